"""What only looks, or acts on what is there, in a folder without a database: it says where it looked and makes none."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from tests.doors.command_line import PROGRAM, CommandLine

LOOKS = """
run ls; run show 1; run logs 1; run cancel 1; run retry 1; run wait 1; schedule ls; schedule show a; schedule enable a;
schedule disable a;
schedule edit a --note x; schedule trigger a; schedule runs a; schedule rm a --yes; schedule revert a;
schedule backfill a --from 2026-01-01 --until 2026-01-02; schedule ping-key a; schedule badge a; why a; lane ls;
lane pause main; lane resume main; lane clear main --yes; session ls; session show s; session stop s;
session stop-all s;
session events s; node ls; node drain all; node resume all; project ls; project show p; project rm p;
project set a p; notify ls; notify show c; notify test c; notify rm c; notify log; notify rule ls; notify rule rm 1;
incident ls; incident show 1; incident ack 1; incident rerun 1 --yes; token ls; token rm t; audit ls; login; logout all;
db status; db check; db backup copy.db; db prune; db quarantine; task ls;
calendar ls; calendar show c; calendar rm c
"""


@pytest.mark.parametrize("command", [one.strip() for one in LOOKS.replace("\n", " ").split(";")])
def test_a_command_that_adds_nothing_makes_no_database(wrong_folder: CommandLine, command: str) -> None:
    before = set(wrong_folder.folder.iterdir())
    answer = wrong_folder(*shlex.split(command))
    assert (answer.code, answer.out) == (4, ""), answer
    assert f"there is no database {wrong_folder.folder}/ostinato.db (the default in this folder)" in answer.err
    assert "name another with --db, OSTINATO_DB or db in ostinato.toml" in answer.err
    assert set(wrong_folder.folder.iterdir()) == before
    as_json = wrong_folder(*shlex.split(command), "--json")
    assert (as_json.code, as_json.out) == (4, "")
    assert "there is no database" in as_json.error["error"]


def test_it_says_who_named_the_database(wrong_folder: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    place = wrong_folder.folder
    (place / "ostinato.toml").write_text('db = "from_file.db"\n')
    assert f"no database {place}/from_file.db (named by ostinato.toml in this folder)" in wrong_folder("run", "ls").err
    monkeypatch.setenv("OSTINATO_DB", "from_environment.db")
    assert f"no database {place}/from_environment.db (named by OSTINATO_DB)" in wrong_folder("run", "ls").err
    assert f"no database {place}/flag.db (named by --db)" in wrong_folder("run", "ls", "--db", "flag.db").err


@pytest.mark.parametrize(
    "command",
    [
        "schedule add a 'every 5m' --shell true",
        "project add p .",
        "calendar set c 12-24",
        "calendar add c 12-24",
        "lane set extra 3",
        "token add t --role viewer",
        "notify add c json://127.0.0.1:9/x",
        "exec --shell true",
        "db migrate",
    ],
)
def test_a_command_that_adds_something_creates_it(wrong_folder: CommandLine, command: str) -> None:
    wrong_folder.ok(*shlex.split(command))
    assert (wrong_folder.folder / "ostinato.db").exists()


def test_a_hint_names_the_database_that_was_named_and_is_quoted_for_a_shell(wrong_folder: CommandLine) -> None:
    named = ("--db", "my jobs.db")
    wrong_folder.ok("schedule", "add", "a b", "every 5m", "--task", "hello", *named)
    number = wrong_folder.ok("schedule", "trigger", "a b", *named)
    assert f"'ostinato --db 'my jobs.db' run wait {number.out.strip()}' waits for it" in number.err
    missing = wrong_folder("run", "show", "99", *named)
    assert "'ostinato --db 'my jobs.db' run ls' lists the latest" in missing.err
    as_json = wrong_folder("--db", "my jobs.db", "run", "show", "99", "--json")
    assert "'ostinato --db 'my jobs.db' run ls' lists the latest" in as_json.error["error"]
    shown = wrong_folder.ok("--db", "my jobs.db", "doctor", "--app", "jobs:app").out
    assert "'ostinato --db 'my jobs.db' --app jobs:app worker'" in shown


def test_a_hint_does_not_repeat_what_is_found_anyway(
    wrong_folder: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OSTINATO_DB", "other.db")
    wrong_folder.ok("db", "migrate")
    assert "'ostinato run ls' lists the latest" in wrong_folder("run", "show", "99").err


def test_a_hint_shows_no_password(wrong_folder: CommandLine) -> None:
    answer = wrong_folder("run", "ls", "--db", "postgresql://app:secret@127.0.0.1:1/jobs?connect_timeout=1")
    assert answer.code != 0
    assert "secret" not in answer.err


def test_what_a_schedule_does_is_no_hint(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--shell", "sh -c 'ostinato run ls'", "--db", "jobs.db")
    number = cli.ok("schedule", "trigger", "a", "--db", "jobs.db").out.strip()
    assert "sh -c 'ostinato run ls'" in cli.ok("run", "show", number, "--db", "jobs.db").out
    assert "sh -c 'ostinato run ls'" in cli.ok("schedule", "show", "a", "--db", "jobs.db").out


def test_every_command_that_a_message_names_is_quoted(cli: CommandLine) -> None:
    assert "with 'ostinato project add 'my blog' FOLDER'" in cli("project", "show", "my blog").err
    cli.ok("schedule", "add", "my job", "every 5m", "--shell", "true", "--fresh", "1h")
    cli.ok("schedule", "add", "my copy", 'after "my job"', "--task", "hello")
    cli.ok("schedule", "rm", "my job", "--yes")
    assert "then 'ostinato schedule edit 'my copy' --timing TIMING'" in cli("doctor").out


def test_a_command_for_a_name_like_a_flag_has_its_words_in_their_order(cli: CommandLine) -> None:
    add = ("schedule", "add", "a")
    assert "'ostinato project add -- -x FOLDER'" in cli("project", "show", "--", "-x").err
    assert "'ostinato calendar add -- -x 12-24'" in cli("calendar", "add", "--", "-x").err
    unknown = cli(*add, 'daily 9 except calendar("-x")', "--shell", "true").err
    assert "'ostinato calendar set -- -x 2026-12-24 12-31'" in unknown
    cli.ok("calendar", "set", "--", "-x", "12-24")
    assert "'ostinato calendar show -- -x'" in cli("calendar", "rm", "--", "-x", "1-1").err


def test_a_warning_of_an_unknown_lane_names_a_command_that_can_be_copied(wrong_folder: CommandLine) -> None:
    adds = ["schedule", "add", "a", "every 5m", "--shell", "true", "--db", "my jobs.db", "--lane"]
    words = [*PROGRAM, *adds, "night shift"]
    said = subprocess.run(words, cwd=wrong_folder.folder, capture_output=True, text=True, check=True).stderr
    assert "warning: there is no lane 'night shift', its runs go to 'main'; make it with" in said
    assert "with 'ostinato --db 'my jobs.db' lane set 'night shift' LIMIT', or in ostinato.toml\n" in said
