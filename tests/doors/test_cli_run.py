"""`ostinato run`, `why`, `task`, `node`, `db` and `doctor`, on a database without an engine."""

from __future__ import annotations

import signal
import sys

from ostinato.cli.open_database import os_user
from tests.doors.command_line import CommandLine, eventually

RUN_KEYS = [
    "id", "schedule", "task", "state", "cause", "reason", "cancelling", "trigger", "due_at", "last_due_at", "count",
    "ready_at", "started_at", "finished_at", "attempt", "attempts", "totals", "progress", "result", "error", "lane",
    "priority", "session", "project", "key", "node", "work", "schedule_id", "trace_id", "zone",
    "started_by", "cancelled_by",
]  # fmt: skip


def _queued(cli: CommandLine) -> str:
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello")
    return cli.ok("schedule", "trigger", "a").out.strip()


def test_json_has_exactly_the_names_that_scripts_rely_on(cli: CommandLine) -> None:
    number = _queued(cli)
    (run,) = cli.ok("run", "ls", "--json").json
    assert sorted(run) == sorted(RUN_KEYS)
    shown = cli.ok("run", "show", number, "--json").json
    assert sorted(shown) == sorted([*RUN_KEYS, "blocked_by"])
    assert {**shown, "reason": None} == {**run, "blocked_by": shown["blocked_by"]}
    assert (run["schedule"], run["task"], run["state"], run["attempts"]) == ("a", "hello", "queued", [])


def test_runs_are_listed_by_schedule_state_and_task(cli: CommandLine) -> None:
    _queued(cli)
    assert len(cli.ok("run", "ls", "--schedule", "a", "--state", "queued", "--task", "hello", "--json").json) == 1
    assert cli.ok("run", "ls", "--state", "failed", "--json").json == []
    assert cli.ok("run", "ls", "--state", "failed", "--state", "queued", "--json").json != []


def test_runs_are_listed_by_their_cause(cli: CommandLine) -> None:
    number = _queued(cli)
    cli.ok("run", "cancel", number)
    (run,) = cli.ok("run", "ls", "--cause", "cancelled", "--json").json
    assert (str(run["id"]), run["cause"]) == (number, "cancelled")
    assert cli.ok("schedule", "runs", "a", "--cause", "timed_out", "--json").json == []
    assert "cancelled" in cli.ok("run", "show", number).out
    wrong = cli("run", "ls", "--cause", "bad-luck")
    assert (wrong.code, "there is no cause 'bad-luck'" in wrong.err) == (2, True)


def test_a_queued_run_is_cancelled_waited_for_and_retried(cli: CommandLine) -> None:
    number = _queued(cli)
    late = cli("run", "wait", number, "--timeout", "20ms")
    assert late.code == 5
    assert "warning: no engine is running on this database" in late.err
    assert "is still queued after 20ms: no engine is running" in late.err
    assert "this ends it: 'ostinato worker --app MODULE:APP'" in late.err
    assert "cancelled" in cli.ok("run", "cancel", number).err
    ended = cli("run", "wait", number)
    assert (ended.code, ended.err.splitlines()[-1]) == (1, f"run {number} cancelled: cancelled by {os_user()}")
    again = cli.ok("run", "retry", number).out.strip()
    assert cli.ok("run", "show", again, "--json").json["state"] == "queued"
    assert cli("run", "retry", again).code == 1


def test_logs_of_a_run_that_said_nothing_are_empty(cli: CommandLine) -> None:
    number = _queued(cli)
    assert cli.ok("run", "logs", number).out == ""
    assert cli.ok("run", "logs", number, "--json").out == ""


def test_why_answers_in_words_and_in_json(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello")
    cli.ok("schedule", "disable", "a", "--note", "holidays")
    assert "disabled: holidays" in cli.ok("why", "a").out
    answer = cli.ok("why", "a", "--at", "2026-03-01 09:00", "--json").json
    assert list(answer) == ["schedule", "at", "answer", "due_at", "run", "facts", "blocked_by"]
    assert answer["at"] == "2026-03-01T09:00:00Z"


def test_tasks_come_from_the_app(cli: CommandLine) -> None:
    assert cli.ok("task", "ls", "--json").json == []
    tasks = cli.ok("task", "ls", "--app", "jobs:app", "--json").json
    assert [task["name"] for task in tasks] == ["fail", "hello", "slow"]
    said = {"name": "hello", "kind": "sync", "description": "Greet somebody.", "app": True, "nodes": []}
    idle = {"schedules": [], "schedule_count": 0, "running": 0, "running_since": None, "next_run_at": None}
    assert tasks[1] == {**said, **idle}
    assert cli.ok("task", "ls", "--app", "jobs", "--json").json == tasks
    cli.ok("schedule", "add", "a", "every 2h", "--task", "hello")
    (hello,) = cli.ok("task", "ls", "--json").json
    assert (hello["kind"], hello["app"], hello["schedule_count"]) == (None, False, 1)
    assert hello["schedules"][0]["next_run_at"] == hello["next_run_at"] is not None
    titles, _, row, _ = cli.ok("task", "ls", "--app", "jobs:app").out.splitlines()
    assert titles.split()[:5] == ["NAME", "KIND", "SCHEDULES", "RUNNING", "NEXT"]
    assert row.split()[:4] == ["hello", "sync", "every", "2h"]


def test_without_an_engine_there_are_no_nodes(cli: CommandLine) -> None:
    assert cli.ok("node", "ls", "--json").json == []
    assert "start one with 'ostinato worker'" in cli.ok("node", "ls").err


def test_the_database_is_made_looked_at_and_pruned(cli: CommandLine) -> None:
    status = cli.ok("db", "migrate", "--json").json
    assert list(status) == ["url", "version", "latest", "size_bytes", "schedules", "runs"]
    assert status["version"] == status["latest"]
    assert cli.ok("db", "status", "--json").json == status
    assert cli.ok("db", "prune", "--json").json == {"removed": 0}


def test_doctor_makes_no_database(wrong_folder: CommandLine) -> None:
    findings = wrong_folder.ok("doctor", "--json").json
    assert [(one["check"], one["status"]) for one in findings][-1] == ("database", "warn")
    assert not list(wrong_folder.folder.glob("*.db*"))


def test_what_only_looks_makes_no_schema_in_postgresql(cli: CommandLine, empty_postgres_url: str) -> None:
    (cli.folder / "crontab").write_text("0 3 * * * true\n")
    db = ("--db", empty_postgres_url)
    for _ in range(2):  # the second finds what the first would have made
        findings = cli.ok("doctor", *db, "--json").json
        assert [(one["check"], one["status"]) for one in findings][-1] == ("database", "warn")
        cli.ok("schedule", "import-crontab", "crontab", "--dry-run", *db)
        assert "there is no database" in cli("db", "check", *db).err
    cli.ok("db", "migrate", *db)
    assert "nothing is wrong" in cli.ok("db", "check", *db).err


def test_doctor_tells_what_is_wrong_and_the_fix(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--task", "nobody")
    (cli.folder / "ostinato.db").chmod(0o644)
    findings = {one["check"]: one for one in cli.ok("doctor", "--json").json}
    assert list(findings["file"]) == ["check", "status", "text", "fix"]
    assert findings["file"]["fix"] == f"chmod 600 {cli.folder}/ostinato.db"
    assert findings["engine"]["status"] == findings["tasks"]["status"] == "warn"
    assert "nobody" in findings["tasks"]["text"]
    assert findings["journal"]["status"] == findings["clock"]["status"] == findings["processes"]["status"] == "ok"
    assert findings["locks"]["status"] == ("ok" if sys.platform == "linux" else "warn")


def test_doctor_fails_when_the_database_cannot_be_read(cli: CommandLine) -> None:
    (cli.folder / "ostinato.db").write_bytes(b"this is not a database, " * 100)
    answer = cli("doctor", "--json")
    assert answer.code == 1
    assert answer.json[-1]["status"] == "fail"
    assert "Traceback" not in answer.err


def test_an_interrupted_wait_exits_with_130(cli: CommandLine) -> None:
    number = _queued(cli)
    with cli.start("run", "wait", number) as waiting:
        eventually(lambda: "waiting for run" in waiting.err, "the process waits")
        waiting.signal(signal.SIGINT)
        assert waiting.wait() == 130
    assert "Traceback" not in waiting.err


def test_pages_of_runs_follow_each_other_and_each_names_the_next(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "7 x", "every 5m", "--task", "hello", "--overlap", "allow")
    ids = [int(cli.ok("schedule", "trigger", "7 x").out) for _ in range(5)]
    first = cli.ok("run", "ls", "--search", "7", "-n", "2")
    assert f"'ostinato run ls --search 7 --limit 2 --after {ids[3]}' lists the next" in first.err
    second = cli.ok("run", "ls", "--search", "7", "-n", "2", "--after", str(ids[3]), "--json").json
    assert [run["id"] for run in second] == [ids[2], ids[1]]
    assert [run["id"] for run in cli.ok("schedule", "runs", "7 x", "-n", "2", "-p", "3", "--json").json] == [ids[0]]
    told = cli.ok("schedule", "runs", "7 x", "-n", "2", "-p", "2").err
    assert f"'ostinato schedule runs '7 x' --limit 2 --after {ids[1]}' lists the next" in told
    assert "lists the next" not in cli.ok("run", "ls").err
    assert cli("run", "ls", "-p", "0").code == cli("run", "ls", "-p", "9999").code == 2


def test_every_verb_of_a_schedule_takes_its_number_unless_one_has_that_name(cli: CommandLine) -> None:
    number = str(cli.ok("schedule", "add", "a", "every 5m", "--task", "hello", "--json").json["id"])
    assert cli.ok("schedule", "show", number, "--json").json["name"] == "a"
    assert cli.ok("schedule", "disable", number, "--json").json["enabled"] is False
    assert cli.ok("schedule", "enable", number, "--json").json["enabled"] is True
    assert cli.ok("schedule", "edit", number, "--note", "x", "--json").json["note"] == "x"
    run = cli.ok("schedule", "trigger", number).out.strip()
    assert [one["id"] for one in cli.ok("schedule", "runs", number, "--json").json] == [int(run)]
    assert [one["id"] for one in cli.ok("run", "ls", "--schedule", number, "--json").json] == [int(run)]
    assert "answer" in cli.ok("why", number).out
    cli.ok("schedule", "add", number, "every 1h", "--task", "hello")
    assert cli.ok("schedule", "show", number, "--json").json["name"] == number
    assert cli("schedule", "show", "99").code == 3


def test_schedules_are_listed_with_their_kind_and_page_by_page(cli: CommandLine) -> None:
    for name in "abc":
        cli.ok("schedule", "add", name, "every 5m", "--shell", "true")
    assert "KIND" in cli.ok("schedule", "ls").out
    assert " shell " in cli.ok("schedule", "ls").out
    first = cli.ok("schedule", "ls", "--limit", "2")
    assert "'ostinato schedule ls --limit 2 --page 2' lists the next" in first.err
    assert len(cli.ok("schedule", "ls", "--limit", "2", "-p", "2", "--json").json) == 1
    assert cli.ok("schedule", "ls", "--state", "failing", "--json").json == []
    assert cli.ok("run", "ls", "--project", "none", "--json").json == []


def test_a_page_and_a_run_to_go_on_behind_are_not_both_taken(cli: CommandLine) -> None:
    for listing in (("run", "ls"), ("schedule", "runs", "a")):
        both = cli(*listing, "-p", "2", "--after", "5")
        assert (both.code, "give one of page and after, not both" in both.err) == (2, True)


def test_what_is_no_number_is_told_in_plain_words(cli: CommandLine) -> None:
    for words, name, given in ((("run", "ls", "--after", "abc"), "--after", "abc"), (("run", "show", "x"), "ID", "x")):
        wrong = cli(*words)
        assert (wrong.code, wrong.err.splitlines()[0]) == (
            2,
            f"error: {name} takes a whole number, and {given!r} is none",
        )
