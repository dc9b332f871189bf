"""`ostinato project`, lists by project, and what `doctor` finds in the work of schedules."""

from __future__ import annotations

from typing import Any

from ostinato import Ostinato
from ostinato.testing import FakeClock
from tests.doors.command_line import CommandLine

PROJECT_KEYS = ["name", "folder", "env", "schedules", "created_at"]


def _found(cli: CommandLine, check: str) -> list[dict[str, Any]]:
    return [one for one in cli("doctor", "--json").json if one["check"] == check]


def test_a_project_is_added_listed_shown_and_removed(cli: CommandLine) -> None:
    (cli.folder / "blog").mkdir()
    added = cli.ok("project", "add", "blog", "./blog", "--env", "TOKEN=file:token", "--env", "A=-1")
    assert (added.out, added.err) == ("", f"project 'blog' is {cli.folder / 'blog'}\n")
    (project,) = cli.ok("project", "ls", "--json").json
    assert list(project) == PROJECT_KEYS
    assert (project["folder"], project["env"]) == (str(cli.folder / "blog"), {"TOKEN": "file:token", "A": "-1"})
    assert project == cli.ok("project", "show", "blog", "--json").json
    assert cli.ok("project", "ls").out.splitlines()[0].split() == ["NAME", "SCHEDULES", "FOLDER"]
    shown = cli.ok("project", "show", "blog").out
    assert "TOKEN=file:token" in shown
    assert "schedules: none" in shown
    assert cli.ok("project", "rm", "blog", "--json").json == {"name": "blog", "removed": True}
    assert "add one with 'ostinato project add NAME FOLDER'" in cli.ok("project", "ls").err
    assert (cli.folder / "blog").is_dir()


def test_adding_again_changes_the_folder_and_keeps_the_variables(cli: CommandLine) -> None:
    (cli.folder / "blog").mkdir()
    cli.ok("project", "add", "blog", ".", "--env", "A=1")
    moved = cli.ok("project", "add", "blog", "blog", "--json").json
    assert (moved["folder"], moved["env"]) == (str(cli.folder / "blog"), {"A": "1"})
    assert cli.ok("project", "add", "blog", "blog", "--env", "none", "--json").json["env"] == {}


def test_a_project_that_schedules_belong_to_is_not_removed(cli: CommandLine) -> None:
    cli.ok("project", "add", "blog", ".")
    cli.ok("schedule", "add", "nightly", "daily 03:00", "--shell", "true", "--project", "blog")
    refused = cli("project", "rm", "blog")
    assert (refused.code, refused.out) == (1, "")
    assert "schedules belong to project 'blog': nightly" in refused.err
    assert "schedules: nightly" in cli.ok("project", "show", "blog").out
    cli.ok("project", "set", "nightly", "none")
    cli.ok("project", "rm", "blog")


def test_a_schedule_is_put_into_a_project_and_taken_out(cli: CommandLine) -> None:
    cli.ok("project", "add", "blog", ".")
    cli.ok("schedule", "add", "nightly", "daily 03:00", "--shell", "true")
    assert cli.ok("project", "set", "nightly", "blog").err == "schedule 'nightly' belongs to project 'blog'\n"
    assert cli.ok("schedule", "show", "nightly", "--json").json["project"] == "blog"
    assert cli.ok("project", "set", "nightly", "project", "none", "--json").json["project"] is None
    assert cli.ok("project", "set", "nightly", "project", "blog", "--json").json["project"] == "blog"
    assert cli.ok("schedule", "edit", "nightly", "--project", "none", "--json").json["project"] is None
    assert cli("project", "set", "nightly", "nowhere").code == 3
    assert cli("project", "set", "nightly", "a", "blog").code == 2


def test_a_project_may_be_called_project(cli: CommandLine) -> None:
    cli.ok("project", "add", "project", ".")
    cli.ok("schedule", "add", "nightly", "daily 03:00", "--shell", "true")
    for words in (["project"], ["project", "project"]):
        assert cli.ok("project", "set", "nightly", *words, "--json").json["project"] == "project"


def test_schedules_and_runs_are_listed_by_project(cli: CommandLine) -> None:
    cli.ok("project", "add", "blog", ".")
    cli.ok("schedule", "add", "in", "daily 03:00", "--shell", "true", "--project", "blog")
    cli.ok("schedule", "add", "out", "daily 03:00", "--shell", "true")
    for name in ("in", "out"):
        cli.ok("schedule", "trigger", name)
    for wanted, names in ((["--project", "blog"], ["in"]), (["--project", "none"], ["out"]), ([], ["in", "out"])):
        listed = cli.ok("schedule", "ls", *wanted, "--json").json
        assert sorted(one["name"] for one in listed) == names
    assert [run["schedule"] for run in cli.ok("run", "ls", "--project", "blog", "--json").json] == ["in"]
    assert "project: blog" in cli.ok("run", "show", "1").out


def test_doctor_finds_folders_that_are_gone(cli: CommandLine) -> None:
    (cli.folder / "blog").mkdir()
    cli.ok("project", "add", "blog", "blog")
    assert [one["status"] for one in _found(cli, "projects")] == ["ok"]
    (cli.folder / "blog").rmdir()
    (finding,) = _found(cli, "projects")
    assert finding["status"] == "warn"
    assert str(cli.folder / "blog") in finding["text"]
    assert finding["fix"] == "create it, or correct it with 'ostinato project add blog FOLDER'"
    assert "missing: /" in cli.ok("project", "ls").out


def test_doctor_finds_agents_that_are_not_set_or_not_installed(cli: CommandLine) -> None:
    (cli.folder / "ostinato.toml").write_text(
        '[agents.shy]\ncommand = "no-such-program -"\n[agents.good]\ncommand = "sh -c cat"\n'
    )
    for name in ("shy", "good", "unset"):
        cli.ok("schedule", "add", name, "daily 03:00", "--agent", "hi", "--cli", name)
    findings = _found(cli, "agents")
    assert [(one["status"], one["text"]) for one in findings] == [
        ("warn", "'shy', used by shy: its program 'no-such-program' is not in PATH here"),
        ("warn", "'unset', used by unset, is not configured"),
    ]
    for name in ("shy", "unset"):
        cli.ok("schedule", "disable", name)
    assert [(one["status"], one["text"]) for one in _found(cli, "agents")] == [("ok", "found good")]


def test_doctor_finds_queued_runs_of_tasks_that_nobody_knows(cli: CommandLine) -> None:
    cli.ok("session", "send", "dm:1", "hi", "--task", "nobody")
    (finding,) = _found(cli, "queue")
    assert (finding["status"], "run 1 waits for tasks" in finding["text"]) == ("warn", True)
    cli.ok("run", "cancel", "1")
    assert _found(cli, "queue") == []


def test_doctor_finds_schedules_that_sleep_because_the_clock_was_set_back(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "right", "every 5m", "--shell", "true")
    assert [one["status"] for one in _found(cli, "clock")] == ["ok"]
    ahead = Ostinato(f"sqlite:///{cli.folder}/ostinato.db", clock=FakeClock("2200-01-01T00:00:00Z"))
    ahead.schedules.add("asleep", "every 5m", "job")
    ahead.stop()
    _, found = _found(cli, "clock")
    assert (found["status"], found["fix"]) == ("warn", "start an engine, or restart it: it plans them again")
    assert "asleep" in found["text"]
    assert "right" not in found["text"]
