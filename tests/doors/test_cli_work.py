"""`ostinato schedule add` and `edit` with work of every kind: what each flag says, and what is refused."""

from __future__ import annotations

from typing import Any

import apsw
import pytest

from tests.doors.command_line import CommandLine

SHELL: dict[str, Any] = {
    "kind": "shell",
    "command": "true",
    "interpreter": None,
    "env": {},
    "folder": None,
    "user": None,
    "nice": None,
    "memory": None,
    "cpu": None,
}
AGENT: dict[str, Any] = {
    "kind": "agent",
    "prompt": "hi",
    "context": "isolated",
    "cli": "claude",
    "model": None,
    "system": None,
    "permission_mode": None,
    "allowed_tools": [],
    "mcp_config": None,
    "env": {},
    "folder": None,
}
HTTP: dict[str, Any] = {
    "kind": "http",
    "method": "GET",
    "url": "https://example.com/",
    "headers": {},
    "json": None,
    "body": None,
    "expect": ["2xx"],
}


def _added(cli: CommandLine, *flags: str) -> dict[str, Any]:
    schedule: dict[str, Any] = cli.ok("schedule", "add", "a", "every 5m", *flags, "--json").json
    return schedule


def _edited(cli: CommandLine, *flags: str) -> dict[str, Any]:
    schedule: dict[str, Any] = cli.ok("schedule", "edit", "a", *flags, "--json").json
    return schedule


def test_a_command_is_added_with_all_that_can_be_said_of_it(cli: CommandLine) -> None:
    added = _added(
        cli, "--shell", "restic backup /srv", "--folder", "/srv", "--env", "LEVEL=debug", "--env", "TOKEN=env:TOKEN",
        "--env", "FLAGS=-a -b=c", "--user", "backup", "--nice", "-5", "--memory", "512MB", "--cpu", "10m",
    )  # fmt: skip
    assert added["work"] == {
        **SHELL,
        "command": "restic backup /srv",
        "folder": "/srv",
        "env": {"LEVEL": "debug", "TOKEN": "env:TOKEN", "FLAGS": "-a -b=c"},
        "user": "backup",
        "nice": -5,
        "memory": 512 * 1024**2,
        "cpu": 600,
    }
    assert added["policy"]["timeout"] == "5m"


def test_what_runs_a_text_is_added_shown_changed_and_taken_away(cli: CommandLine) -> None:
    added = cli.ok("schedule", "add", "a", "every 5m", "--shell", "print(1)", "--interpreter", "python3", "--json")
    assert (added.json["work"], added.err) == ({**SHELL, "command": "print(1)", "interpreter": "python3"}, "")
    assert "interpreter python3" in cli.ok("schedule", "show", "a").out
    assert _edited(cli, "--interpreter", "/bin/sh")["work"]["interpreter"] == "/bin/sh"
    cli.ok("exec", "--shell", "print(1)", "--interpreter", "python3")
    assert "interpreter python3" in cli.ok("run", "show", "1").out
    refused = cli("schedule", "edit", "a", "--shell", '["true"]')
    assert (refused.code, "leave out interpreter" in refused.err) == (2, True)
    assert _edited(cli, "--interpreter", "none")["work"] == {**SHELL, "command": "print(1)"}
    assert "interpreter bash, or sh without it" in cli.ok("schedule", "show", "a").out
    cli.ok("schedule", "edit", "a", "--shell", '["true"]')
    assert "interpreter" not in cli.ok("schedule", "show", "a").out


def test_an_interpreter_that_is_not_on_this_machine_is_told(cli: CommandLine) -> None:
    told = cli.ok("schedule", "add", "a", "every 5m", "--shell", "x", "--interpreter", "no-such-shell").err
    assert "there is no interpreter 'no-such-shell' on this machine; runs fail on a node that lacks it" in told
    (found,) = [one for one in cli.ok("doctor", "--json").json if one["check"] == "interpreters"]
    assert (found["status"], found["text"]) == ("warn", "'no-such-shell', used by a, is not on this machine")
    assert "no-such-shell" in cli.ok("schedule", "edit", "a", "--shell", "y").err
    run = cli("exec", "--shell", "x", "--interpreter", "no-such-shell")
    assert (run.code, "this node has no interpreter 'no-such-shell'" in run.err) == (1, True)
    for name, path in (("b", "env:NOWHERE"), ("c", "/bin:/usr/bin")):
        added = cli.ok(
            "schedule", "add", name, "every 5m", "--shell", "x", "--interpreter", "sh", "--env", f"PATH={path}"
        )
        assert "interpreter" not in added.err
    assert "'sh'" in cli.ok("schedule", "edit", "c", "--env", "PATH=/nowhere").err


def test_a_prompt_is_added_with_all_that_can_be_said_of_it(cli: CommandLine) -> None:
    added = _added(
        cli, "--agent", "Summarise new issues", "--context", "session:news", "--cli", "codex", "--model", "opus",
        "--system", "- be brief", "--permission-mode", "acceptEdits", "--allowed-tool", "Read", "--allowed-tool",
        "Bash(git *)", "--mcp-config", "mcp.json", "--env", "A=1", "--folder", "/srv",
    )  # fmt: skip
    assert added["work"] == {
        **AGENT,
        "prompt": "Summarise new issues",
        "context": "session:news",
        "cli": "codex",
        "model": "opus",
        "system": "- be brief",
        "permission_mode": "acceptEdits",
        "allowed_tools": ["Read", "Bash(git *)"],
        "mcp_config": "mcp.json",
        "env": {"A": "1"},
        "folder": "/srv",
    }
    assert added["policy"]["timeout"] == "30m"


def test_a_request_is_added_with_all_that_can_be_said_of_it(cli: CommandLine) -> None:
    added = _added(
        cli, "--http", "post", "https://example.com/hook?a=1", "--header", "Authorization: Bearer env:TOKEN",
        "--header", "X-Empty:", "--json-data", '{"text": "it\'s \\"done\\""}', "--expect", "204", "--expect", "3XX",
    )  # fmt: skip
    assert added["work"] == {
        **HTTP,
        "method": "POST",
        "url": "https://example.com/hook?a=1",
        "headers": {"Authorization": "Bearer env:TOKEN", "X-Empty": ""},
        "json": {"text": 'it\'s "done"'},
        "expect": [204, "3xx"],
    }
    assert added["policy"]["timeout"] == "1m"
    assert _added(cli, "--http", "PUT", "https://example.com/", "--data", "-raw\n")["work"]["body"] == "-raw\n"


@pytest.mark.parametrize(
    "command",
    [
        "-x",
        "--json",
        "--timeout",
        "echo \"a 'b'\" $HOME `c`",
        "echo 1\necho 2\n",
        "[ -f x ] && y",
        "é 名",
    ],
)
def test_a_command_survives_as_it_was_typed(cli: CommandLine, command: str) -> None:
    assert _added(cli, "--shell", command)["work"]["command"] == command
    assert _added(cli, f"--agent={command}")["work"]["prompt"] == command
    assert _added(cli, "--shell", "true", "--gate", command)["policy"]["gate"]["command"] == command


@pytest.mark.parametrize("command", ["[]", '["head", "-n", 5]'])
def test_a_list_that_is_no_command_is_not_given_to_a_shell(cli: CommandLine, command: str) -> None:
    answer = cli("schedule", "add", "x", "every 1h", "--shell", command)
    assert answer.code == 2
    assert "or leave out the brackets for a shell" in answer.err


def test_a_json_array_of_texts_is_run_without_a_shell(cli: CommandLine) -> None:
    listed = '["restic", "backup", "-q", "/srv/my files"]'
    expected = ["restic", "backup", "-q", "/srv/my files"]
    added = _added(cli, "--shell", listed, "--gate", listed)
    assert (added["work"]["command"], added["policy"]["gate"]["command"]) == (expected, expected)
    assert "shell restic backup -q '/srv/my files'" in cli.ok("schedule", "show", "a").out


def test_exactly_one_kind_of_work_must_be_named(cli: CommandLine) -> None:
    nothing = cli("schedule", "add", "a", "every 5m", "--folder", "/srv")
    assert (nothing.code, nothing.out) == (2, "")
    assert "give one of --task, --shell, --agent, --http and --check-in" in nothing.err
    both = cli("schedule", "add", "a", "every 5m", "--shell", "true", "--http", "GET", "https://example.com/")
    assert (both.code, both.out) == (2, "")
    assert "not --shell and --http; give one of --task, --shell, --agent, --http and --check-in" in both.err


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--agent", "hi", "--nice", "3"], "--nice goes with --shell, not with --agent"),
        (["--shell", "true", "--model", "opus"], "--model goes with --agent, not with --shell"),
        (["--shell", "true", "--json-data", "{}"], "--json-data goes with --http, not with --shell"),
        (["--http", "GET", "https://a.example", "--env", "A=1"], "--env goes with --shell or --agent, not with --http"),
        (["--task", "hello", "--folder", "x"], "--folder goes with --shell or --agent, not with --task"),
        (["--shell", "true", "--arg", "a=1"], "--arg goes with --task, not with --shell"),
        (["--shell", " "], "command cannot be ' '"),
        (["--shell", "true", "--nice", "99"], "nice cannot be 99"),
        (["--shell", "true", "--nice", "very"], "nice cannot be 'very'"),
        (["--shell", "true", "--memory", "lots"], "memory cannot be 'lots'"),
        (["--shell", "true", "--interpreter", "bash -e"], "interpreter cannot be 'bash -e'"),
        (["--shell", '["true"]', "--interpreter", "bash"], "a list of words runs without a shell"),
        (["--agent", "hi", "--interpreter", "bash"], "--interpreter goes with --shell, not with --agent"),
        (["--shell", "true", "--cpu", "fast"], "'fast' is not a duration"),
        (["--shell", "true", "--env", "NAME"], "write --env NAME=VALUE"),
        (["--agent", "hi", "--context", "mine"], "it is isolated, group or session:NAME"),
        (["--agent", "hi", "--model=-x"], "must not begin with a dash"),
        (["--http", "GET"], "requires 2"),
        (["--http", "GET", "example.com"], "url cannot be 'example.com'"),
        (["--http", "GET", "https://a.example", "--header", "Accept"], 'write --header "Name: value"'),
        (["--http", "GET", "https://a.example", "--expect", "999"], "expect cannot be 999"),
        (["--http", "GET", "https://a.example", "--json-data", "{"], "--json-data is not JSON"),
        (["--http", "GET", "https://a.example", "--json-data", "1", "--data", "1"], "either --data or --json-data"),
        (["--shell", "true", "--gate-timeout", "3s"], "--gate-timeout needs a gate"),
        (["--shell", "true", "--gate", "x", "--gate-timeout", "0s"], "gate.timeout cannot be zero"),
        (["--shell", "true", "--budget", "5"], "write per_run_usd=1,per_day_usd=5,per_day_runs=20"),
        (["--shell", "true", "--budget", "per_day_runs=few"], "budget.per_day_runs cannot be 'few'"),
        (["--shell", "true", "--budget", "per_run_usd=6,per_day_usd=5"], "none would ever start"),
        (["--shell", "true", "--project", "nowhere"], "there is no project 'nowhere'"),
    ],
)
def test_a_wrong_flag_says_what_is_wrong_and_adds_nothing(cli: CommandLine, flags: list[str], told: str) -> None:
    answer = cli("schedule", "add", "a", "every 5m", *flags)
    assert answer.code == (3 if "project" in told else 2)
    assert answer.out == ""
    assert told in answer.err
    assert "Traceback" not in answer.err
    assert cli.ok("schedule", "ls", "--json").json == []


def test_edit_changes_only_the_parts_of_the_work_that_are_given(cli: CommandLine) -> None:
    _added(cli, "--shell", "old", "--nice", "3", "--memory", "1GB", "--env", "A=1", "--env", "B=2", "--timeout", "9m")
    edited = _edited(cli, "--shell", "new", "--env", "B=3", "--memory", "none")
    assert edited["work"] == {**SHELL, "command": "new", "nice": 3, "env": {"A": "1", "B": "3"}}
    assert edited["policy"]["timeout"] == "9m"
    assert _edited(cli, "--env", "none", "--env", "C=4", "--nice", "none")["work"]["env"] == {"C": "4"}
    assert cli.ok("schedule", "edit", "a", "--env", "C=4").err.startswith("unchanged:")


def test_edit_of_a_request_keeps_the_headers_that_are_not_named(cli: CommandLine) -> None:
    _added(cli, "--http", "POST", "https://a.example", "--header", "Accept: a", "--header", "X: 1", "--data", "text")
    edited = _edited(cli, "--header", "accept: b", "--json-data", "[1]")["work"]
    assert (edited["headers"], edited["json"], edited["body"]) == ({"Accept": "b", "X": "1"}, [1], None)
    edited = _edited(cli, "--http", "PUT", "https://b.example", "--data", "")["work"]
    assert (edited["method"], edited["url"], edited["json"], edited["body"]) == ("PUT", "https://b.example", None, None)
    assert _edited(cli, "--header", "none")["work"]["headers"] == {}


def test_edit_of_a_prompt_keeps_the_rest(cli: CommandLine) -> None:
    _added(cli, "--agent", "old", "--allowed-tool", "Read", "--model", "opus", "--system", "be brief")
    edited = _edited(cli, "--agent", "new", "--context", "group", "--allowed-tool", "none", "--system", "")["work"]
    assert edited == {**AGENT, "prompt": "new", "model": "opus", "context": "group"}


def test_another_kind_of_work_replaces_what_was_there(cli: CommandLine) -> None:
    _added(cli, "--shell", "true", "--env", "A=1", "--priority", "3")
    edited = _edited(cli, "--agent", "hi")
    assert edited["work"] == AGENT
    assert (edited["policy"]["timeout"], edited["policy"]["priority"]) == ("30m", 3)
    assert _edited(cli, "--task", "hello", "--arg", "n=1")["work"]["kwargs"] == {"n": 1}
    wrong = cli("schedule", "edit", "a", "--nice", "3")
    assert (wrong.code, "--nice goes with --shell, not with --task" in wrong.err) == (2, True)


def test_edit_changes_parts_of_gate_and_budget_and_takes_them_away(cli: CommandLine) -> None:
    cli.ok("notify", "add", "ops", "json://hooks.example")
    _added(cli, "--shell", "true", "--gate", "./a", "--gate-timeout", "5s", "--budget", "per_day_usd=5,per_day_runs=9",
           "--notify", "ops", "--check", "disk", "--disabled")  # fmt: skip
    policy = _edited(cli, "--gate", "./b", "--budget", "per_day_usd=6")["policy"]
    assert policy["gate"] == {"command": "./b", "timeout": "5s"}
    assert policy["budget"] == {"per_run_usd": None, "per_day_usd": 6, "per_day_runs": 9}
    assert _edited(cli, "--gate-timeout", "7s")["policy"]["gate"] == {"command": "./b", "timeout": "7s"}
    none = _edited(cli, "--gate", "none", "--budget", "none", "--notify", "none", "--check", "none")["policy"]
    assert (none["gate"], none["budget"], none["notify"], none["checks"]) == (None, None, [], [])


def test_a_folder_counts_from_the_current_one_unless_there_is_a_project(cli: CommandLine) -> None:
    assert _added(cli, "--shell", "true", "--folder", "sub")["work"]["folder"] == str(cli.folder / "sub")
    cli.ok("project", "add", "blog", ".")
    assert _added(cli, "--shell", "true", "--folder", "sub", "--project", "blog")["work"]["folder"] == "sub"
    assert _edited(cli, "--folder", "other")["work"]["folder"] == "other"
    assert _edited(cli, "--folder", "other", "--project", "none")["work"]["folder"] == str(cli.folder / "other")


def test_the_work_is_listed_where_there_is_room(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    _added(cli, "--shell", "restic backup /srv\n--and more" + "x" * 99)
    monkeypatch.setenv("COLUMNS", "100")
    title, row = cli.ok("schedule", "ls").out.splitlines()
    assert title.split()[-1] == "WORK"
    assert " every 5m  shell  restic backup /srv --and" in row
    assert row.endswith("…")
    monkeypatch.setenv("COLUMNS", "60")
    assert "WORK" not in cli.ok("schedule", "ls").out
    assert max(map(len, cli.ok("schedule", "ls").out.splitlines())) <= 60


def test_a_schedule_shows_its_work_and_policy_in_words(cli: CommandLine) -> None:
    cli.ok("notify", "add", "ops", "json://hooks.example")
    _added(cli, "--http", "POST", "https://a.example", "--header", "X: 1", "--gate", "./a b", "--notify", "ops",
           "--budget", "per_run_usd=1.5,per_day_runs=20")  # fmt: skip
    shown = " ".join(cli.ok("schedule", "show", "a").out.split())
    assert "work: http POST https://a.example headers X: 1 expect 2xx" in shown
    assert "gate './a b' within 30s" in shown
    assert "budget ($1.5 a run, 20 runs a day)" in shown
    assert "notify ops" in shown


def test_a_schedule_whose_budget_is_used_up_is_shown_as_paused(cli: CommandLine) -> None:
    _added(cli, "--shell", "true", "--budget", "per_day_runs=1")
    connection = apsw.Connection(str(cli.folder / "ostinato.db"))
    connection.execute("UPDATE schedules SET paused_since = next_at, paused_reason = '1 of 1 run used today'")
    connection.close()
    assert " paused " in cli.ok("schedule", "ls").out
    shown = cli.ok("schedule", "show", "a").out
    assert "state: paused" in shown
    assert "next: " in shown
    assert "because: paused: 1 of 1 run used today" in shown


@pytest.mark.parametrize("depth", [101, 500, 5_000])
def test_json_that_is_nested_too_deep_is_refused_and_not_stored(cli: CommandLine, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    task, http = ["--task", "hello"], ["--http", "POST", "https://example.com/"]
    given = [[*task, "--args", deep], [*http, "--json-data", deep]]
    if depth < 1_000:  # what nobody can read as JSON is text
        given.append([*task, "--arg", f"a={deep}"])
    for flags in given:
        answer = cli("schedule", "add", "deep", "every 1h", *flags)
        assert answer.code == 2, answer
        assert "nested more than 100 deep" in answer.err
    assert cli.ok("schedule", "ls", "--json").json == []
