"""What holds for every command: exit codes, JSON errors, 80 columns, no colour off a terminal, quick help."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ostinato.cli.console import emit_json, emit_json_line
from ostinato.cli.main import _complain
from tests.doors.command_line import CommandLine, on_a_terminal

EVERY_HELP = [
    [], ["up"], ["worker"], ["why"], ["timing"], ["doctor"], ["completion"], ["exec"], ["report"],
    *([noun] for noun in ("schedule", "run", "project", "session", "lane", "task", "node", "db")),
    *(["schedule", verb] for verb in ("add", "ls", "show", "edit", "enable", "disable", "trigger", "rm", "runs")),
    *(["run", verb] for verb in ("ls", "show", "logs", "cancel", "retry", "wait")),
    *(["project", verb] for verb in ("add", "ls", "show", "rm", "set")),
    *(["session", verb] for verb in ("send", "ls", "show", "stop", "stop-all", "events")),
    *(["lane", verb] for verb in ("ls", "set", "pause", "resume", "clear")),
    *(["db", verb] for verb in ("migrate", "status", "check", "backup", "prune")),
    ["task", "ls"], ["node", "ls"], ["audit", "ls"],
]  # fmt: skip

HEAVY = [
    "apsw",
    "psycopg",
    "msgspec",
    "asyncio",
    "ostinato.app",
    "ostinato.timing",
    "ostinato.wiring",
    "ostinato.engine",
]


@pytest.mark.parametrize("command", EVERY_HELP, ids=" ".join)
def test_every_command_has_help_that_fits(cli: CommandLine, command: list[str]) -> None:
    answer = cli.ok(*command, "--help")
    assert answer.out.startswith("Usage: ostinato")
    assert max(map(len, answer.out.splitlines())) <= 80
    assert "\x1b" not in answer.out


@pytest.mark.parametrize(
    "command", ["", "up", "schedule add", "run ls", "exec", "project set", "session send", "session chat", "lane set"]
)
def test_help_imports_nothing_heavy(tmp_path: Path, command: str) -> None:
    program = f"""
import sys
from ostinato.cli.main import run
run({[*command.split(), "--help"]!r})
heavy = [name for name in {HEAVY!r} if name in sys.modules]
sys.exit(", ".join(heavy) or 0)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not list(tmp_path.iterdir())


def test_the_version_is_printed(cli: CommandLine) -> None:
    assert cli.ok("--version").out.strip() == "0.1.0"


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["nonsense"], 2),
        (["schedule", "add", "a"], 2),
        (["schedule", "ls", "--nonsense"], 2),
        (["schedule", "show", "nobody"], 3),
        (["schedule", "trigger", "nobody"], 3),
        (["schedule", "runs", "nobody"], 3),
        (["run", "show", "99"], 3),
        (["run", "show", "first"], 2),
        (["run", "ls", "--state", "lost"], 2),
        (["run", "ls", "--limit", "0"], 2),
        (["why", "nobody"], 3),
        (["why", "nobody", "--at", "soon"], 2),
        (["lane", "pause", "nobody"], 3),
        (["lane", "resume", "nobody"], 3),
        (["lane", "clear", "nobody", "--yes"], 3),
        (["lane", "set", "nobody", "--rate", "1/s"], 3),
        (["lane", "set", "main"], 2),
        (["lane", "set", "main", "0"], 2),
        (["lane", "set", "main", "many"], 2),
        (["lane", "set", "main", "--rate", "often"], 2),
        (["session", "send", "dm:1", "hi"], 2),
        (["session", "send", "schedule:a", "hi", "--task", "hello"], 2),
        (["session", "show", "nobody"], 3),
        (["session", "events", "nobody"], 3),
        (["session", "stop", " "], 2),
        (["session", "ls", "--limit", "0"], 2),
        (["exec"], 2),
        (["exec", "--task", "nobody"], 3),
        (["exec", "--shell", "true", "--project", "nobody"], 3),
        (["project", "show", "nobody"], 3),
        (["project", "rm", "nobody"], 3),
        (["project", "add", "blog", "/no/such/folder"], 2),
        (["project", "add", "none", "/tmp"], 2),
        (["project", "set", "nobody", "blog"], 3),
        (["project", "set", "nobody"], 2),
        (["schedule", "ls", "--project", "nobody"], 3),
        (["run", "ls", "--project", "nobody"], 3),
        (["run", "logs", "99"], 3),
        (["report"], 1),
        (["report", "--text", "x"], 2),
        (["schedule", "ls", "--db", "/no/such/folder/x.db"], 4),
        (["schedule", "ls", "--db", "mysql://x"], 2),
        (["task", "ls", "--app", "no_such_module:app"], 2),
    ],
)
def test_errors_have_their_exit_code_and_one_message(cli: CommandLine, argv: list[str], code: int) -> None:
    plain = cli(*argv)
    assert (plain.code, plain.out) == (code, "")
    assert plain.err.startswith("error: ")
    assert "Traceback" not in plain.err
    as_json = cli(*argv, "--json")
    assert (as_json.code, as_json.out) == (code, "")
    assert list(as_json.error) == ["error"]


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("jobs:ap", "has no attribute 'ap'; found there: jobs:app"),
        ("jobs:not_an_app", "is int, not an Ostinato; found there: jobs:app"),
        ("jobs.py:app", "write jobs:app"),
        ("jbos:app", "there is no module 'jbos'"),
        ("raising:app", "raised ZeroDivisionError: division by zero"),
        ("wanting:app", "raised ModuleNotFoundError: No module named 'not_installed'"),
    ],
)
def test_an_app_that_cannot_be_loaded_is_told_with_what_was_looked_for(
    cli: CommandLine, target: str, told: str
) -> None:
    (cli.folder / "raising.py").write_text("1 / 0\n")
    (cli.folder / "wanting.py").write_text("import not_installed\n")
    answer = cli("task", "ls", "--app", target)
    assert answer.code == 2
    assert told in answer.err
    assert "Traceback" not in answer.err


def test_the_database_is_named_by_flag_environment_or_file(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def used(*flags: str) -> str:
        cli.ok("db", "migrate", *flags)
        url: str = cli.ok("db", "status", "--json", *flags).json["url"]
        return url

    assert used() == f"sqlite:///{cli.folder}/ostinato.db"
    (cli.folder / "ostinato.toml").write_text('db = "from_file.db"\napp = "jobs:app"\n')
    assert used() == f"sqlite:///{cli.folder}/from_file.db"
    monkeypatch.setenv("OSTINATO_DB", "sqlite:///from_environment.db")
    cli.ok("--db", "first.db", "db", "migrate")
    assert cli("--db", "first.db", "db", "status", "--json").json["url"] == f"sqlite:///{cli.folder}/first.db"
    assert used("--db", "flag.db") == f"sqlite:///{cli.folder}/flag.db"


def test_tables_fit_80_columns_without_colour(cli: CommandLine) -> None:
    for name in ("a" * 60, "b", "ünïcödé 名前"):
        cli.ok("schedule", "add", name, "weekly mon,tue,wed,thu,fri 09:00 except 2026-12-25", "--task", "hello" * 9)
        cli.ok("schedule", "trigger", name)
    cli.ok("schedule", "disable", "b", "--note", "a long note " * 20)
    cli.ok("lane", "pause", "cron", "--note", "a long note " * 20)
    cli.ok("session", "send", "k" * 60, "a long message " * 20, "--task", "hello" * 9)
    for argv in (["schedule", "ls"], ["schedule", "show", "b"], ["run", "ls"], ["run", "show", "1"], ["why", "b"],
                 ["doctor"], ["db", "status"], ["node", "ls"], ["task", "ls", "--app", "jobs:app"],
                 ["lane", "ls"], ["session", "ls"], ["session", "show", "k" * 60],
                 ["timing", "daily 02:30", "--tz", "America/Argentina/ComodRivadavia"]):  # fmt: skip
        out = cli.ok(*argv).out
        assert "\x1b" not in out
        assert max((len(line) for line in out.splitlines()), default=0) <= 80, out


def test_what_others_wrote_cannot_steer_the_terminal(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello", "--note", "red \x1b[31malert\x07 [bold]x[/bold]")
    shown = cli.ok("schedule", "show", "a").out
    assert "\x1b" not in shown
    assert "[bold]x[/bold]" in shown


def test_a_completion_script_is_made_for_each_shell(cli: CommandLine) -> None:
    for shell in ("bash", "zsh", "fish"):
        script = cli.ok("completion", shell).out
        assert "ostinato" in script
        assert "schedule" in script


def test_a_terminal_gets_colour_unless_no_color_is_set(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello")
    assert "\x1b[" in on_a_terminal(cli.folder, "schedule", "ls")
    plain = on_a_terminal(cli.folder, "schedule", "ls", NO_COLOR="1")
    assert "\x1b" not in plain
    assert "every 5m" in plain


def test_a_reader_that_goes_away_is_no_error(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello")
    reading, writing = os.pipe()
    os.close(reading)
    program = [sys.executable, "-c", "import sys; from ostinato.cli.main import run; sys.exit(run())", "schedule", "ls"]
    done = subprocess.run(program, cwd=cli.folder, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert done.returncode == 0
    assert "Error" not in done.stderr


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["nonsense"], "ostinato"),
        (["schedule", "add", "a"], "ostinato schedule add"),
        (["run", "show", "first"], "ostinato run show"),
        (["schedule", "ls", "--nonsense"], "ostinato schedule ls"),
    ],
)
def test_wrong_usage_names_the_help_of_its_command(cli: CommandLine, argv: list[str], command: str) -> None:
    assert cli(*argv).err.splitlines()[-1] == f"see '{command} --help'"


def test_json_holds_nothing_that_a_terminal_would_obey_and_means_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    obeyed = "\x9b31m \x85 \u202egnp.exe \u2066\u2069 \u061c\u200b\u200f\u2028\ufeff\U000e0041 \x7f\x1b[0m"
    value = {"text": [obeyed], obeyed: {"deep": obeyed}, "kept": "Grüße, 日本 ☂ 🎵"}
    for print_it in (emit_json, emit_json_line):
        print_it(value)
        printed = capsys.readouterr().out
        assert all(char.isprintable() or char == "\n" for char in printed)
        assert json.loads(printed) == value
        assert "Grüße, 日本 ☂ 🎵" in printed, "what people read stays as it is"


def test_a_json_error_holds_nothing_that_a_terminal_would_obey(capsys: pytest.CaptureFixture[str]) -> None:
    _complain("there is no x\u202ey\x9bz", as_json=True)
    printed = capsys.readouterr().err
    assert all(char.isprintable() or char == "\n" for char in printed)
    assert json.loads(printed) == {"error": "there is no x\u202ey\x9bz"}
