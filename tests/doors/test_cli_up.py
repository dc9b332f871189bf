"""`ostinato up` and `worker` as real processes: fire, tell, drain, force."""

from __future__ import annotations

import json
import signal

import pytest

from tests.doors.command_line import JOBS, PATIENT, STUBBORN, CommandLine, eventually


def _alive(cli: CommandLine) -> bool:
    return bool(cli.ok("node", "ls", "--json").json)


def _states(cli: CommandLine, name: str) -> list[str]:
    return [run["state"] for run in cli.ok("schedule", "runs", name, "--json").json]


def test_a_schedule_added_by_another_process_fires_and_sigterm_drains(cli: CommandLine) -> None:
    with cli.start("up", "--app", "jobs:app") as up:
        eventually(lambda: "Ctrl-C to stop" in up.err, "up is ready")
        for told in (f"sqlite:///{cli.folder}/ostinato.db", "node ", "fail, hello, slow", "schedules  0"):
            assert told in up.err
        added = cli.ok("schedule", "add", "greet", "every 1s", "--task", "hello", "--arg", "name=you")
        assert "warning" not in added.err
        eventually(lambda: "succeeded" in _states(cli, "greet"), "the schedule fires")
        assert cli.ok("schedule", "trigger", "greet", "--force", "--wait", "--timeout", "20s").code == 0
        newest = cli.ok("schedule", "show", "greet", "--json").json["last_run"]["id"]
        eventually(lambda: "succeeded  greet, run " in up.out, "the run is told")
        assert cli.ok("run", "wait", str(newest), "--timeout", "20s").code == 0
        assert cli.ok("run", "logs", str(newest), "-f").code == 0
        assert cli.ok("task", "ls", "--json").json[1]["nodes"] != []
        up.signal(signal.SIGTERM)
        assert up.wait() == 0
        assert "draining" in up.err
        assert up.err.rstrip().endswith("stopped")
    assert not _alive(cli)
    assert "\x1b" not in up.out + up.err


def test_commands_need_no_app_and_a_retry_is_told_at_the_end_of_the_attempt_that_failed(cli: CommandLine) -> None:
    cli.ok("project", "add", "here", ".")
    cli.ok("schedule", "add", "greet", "every 1s", "--shell", "echo hello; pwd -P", "--project", "here")
    cli.ok("schedule", "add", "flaky", "every 1h", "--shell", "sleep 1.2; exit 3", "--retry", "1")
    number = cli.ok("schedule", "trigger", "flaky").out.strip()
    with cli.start("up") as up:
        eventually(lambda: "Ctrl-C to stop" in up.err, "up is ready")
        assert "warning" not in up.err
        eventually(lambda: "succeeded  greet, run " in up.out, "the run is told")
        eventually(lambda: "retrying " in up.out, "the retry is told")
        up.signal(signal.SIGTERM)
        assert up.wait() == 0
    newest = cli.ok("run", "ls", "--state", "succeeded", "--project", "here", "--json").json[0]
    assert cli.ok("run", "logs", str(newest["id"])).out == f"hello\n{cli.folder.resolve()}\n"
    run = cli.ok("run", "show", number, "--json").json
    (told,) = [line for line in up.out.splitlines() if " retrying " in line]
    assert told.startswith(run["attempts"][0]["finished_at"][11:19])
    assert not told.startswith(run["due_at"][11:19])


def test_schedules_of_tasks_need_an_app_that_knows_them(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "greet", "every 1h", "--task", "hello")
    with cli.start("up") as up:
        eventually(lambda: "warning: this node knows no tasks" in up.err, "the warning is told")
        up.signal(signal.SIGTERM)
        assert up.wait() == 0


def test_a_second_signal_forces_and_nothing_is_lost(cli: CommandLine) -> None:
    (cli.folder / "patient.py").write_text(JOBS + PATIENT)
    with cli.start("up", "--app", "patient:app") as up:
        eventually(lambda: "Ctrl-C to stop" in up.err, "up is ready")
        cli.ok("schedule", "add", "long", "every 1h", "--task", "slow")
        number = cli.ok("schedule", "trigger", "long").out.strip()
        eventually(lambda: "started    long, run" in up.out, "the run is told")
        up.signal(signal.SIGINT)
        eventually(lambda: "draining" in up.err, "the first signal drains")
        assert cli.ok("run", "show", number, "--json").json["state"] == "running"
        up.signal(signal.SIGINT)
        assert up.wait() == 130
        assert "forcing" in up.err
    run = cli.ok("run", "show", number, "--json").json
    assert (run["state"], run["attempts"][0]["state"]) == ("queued", "cut_off")


@pytest.mark.parametrize("task", ["swallow", "block", "deaf", "beside"])
def test_the_second_signal_ends_the_process_whatever_its_work_does(cli: CommandLine, task: str) -> None:
    holds_the_loop = task in ("block", "deaf")
    (cli.folder / "stubborn.py").write_text(STUBBORN if holds_the_loop else STUBBORN + PATIENT)
    with cli.start("worker", "--app", "stubborn:app") as worker:
        eventually(lambda: "database" in worker.err, "the worker is ready")
        cli.ok("schedule", "add", "long", "every 1h", "--task", task, "--retry", "0")
        number = cli.ok("schedule", "trigger", "long").out.strip()
        eventually((cli.folder / "begun").exists, "the work has begun")
        worker.signal(signal.SIGINT)
        if not holds_the_loop:  # or else nobody could say so
            eventually(lambda: "draining" in worker.err, "the first signal drains")
        worker.signal(signal.SIGTERM)  # another one: two of a kind that wait to be delivered are one
        assert worker.wait(60) == 130
    run = cli.ok("run", "show", number, "--json").json
    if holds_the_loop:  # nobody could write it: the lease ends
        assert run["state"] == "running"
    else:
        assert (run["state"], run["reason"]) == ("failed", "its node was stopped by force while it ran")


def test_a_task_that_swallows_its_cancellation_does_not_hold_up_a_drain(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cli.folder / "stubborn.py").write_text(STUBBORN)
    monkeypatch.setenv("OSTINATO_GRACE", "100ms")
    with cli.start("worker", "--app", "stubborn:app") as worker:
        eventually(lambda: "database" in worker.err, "the worker is ready")
        cli.ok("schedule", "add", "long", "every 1h", "--task", "swallow", "--retry", "0")
        number = cli.ok("schedule", "trigger", "long").out.strip()
        eventually((cli.folder / "begun").exists, "the work has begun")
        worker.signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    assert "may still be running" in cli.ok("run", "show", number, "--json").json["reason"]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_worker_needs_no_standard_stream(cli: CommandLine, closed: str) -> None:
    with cli.start("worker", "--app", "jobs:app", by=f'exec "$@" {closed}') as worker:
        eventually(lambda: _alive(cli), "the worker is ready")
        cli.ok("schedule", "add", "greet", "every 1h", "--task", "hello")
        assert cli.ok("schedule", "trigger", "greet", "--wait", "--timeout", "60s").code == 0
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0


def test_the_second_signal_ends_a_worker_without_stderr(cli: CommandLine) -> None:
    (cli.folder / "stubborn.py").write_text(STUBBORN)
    with cli.start("worker", "--app", "stubborn:app", by='exec "$@" 2>&-') as worker:
        eventually(lambda: _alive(cli), "the worker is ready")
        cli.ok("schedule", "add", "long", "every 1h", "--task", "block", "--retry", "0")
        cli.ok("schedule", "trigger", "long")
        eventually((cli.folder / "begun").exists, "the work has begun")
        worker.signal(signal.SIGINT)
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 130


def test_a_failing_schedule_is_told_until_it_breaks(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "bad", "every 1s", "--task", "fail", "--retry", "0", "--break-after", "1")
    with cli.start("up", "--app", "jobs:app", "--json") as up:
        eventually(lambda: '"event": "broken"' in up.out, "the breaker is told")
        events = [json.loads(line) for line in up.out.splitlines()]
        up.signal(signal.SIGTERM)
        assert up.wait() == 0
    # Where the machine is slow, its first due times were missed before the engine was there, or are all started within
    # the misfire grace, and the next one was recorded before the failure was, and is skipped.
    usual = ("missed", "started", "skipped")
    first, second, *rest = [event["event"] for event in events if event["event"] not in usual]
    assert [first, second] == ["failed", "broken"]
    assert set(rest) <= {"failed"}
    assert events[-1]["run"]["schedule"] == "bad"
    assert " broken " in cli.ok("schedule", "ls").out
    assert cli.ok("schedule", "show", "bad", "--json").json["broken"].endswith("ValueError: no good")


def test_a_worker_speaks_in_log_lines_and_takes_its_settings(cli: CommandLine) -> None:
    flags = ("--slots", "3", "--lane", "cron=2", "--tz", "Europe/Berlin", "--db", "other.db")
    with cli.start("worker", "--app", "jobs:app", *flags) as worker:
        eventually(lambda: "started: 3 tasks, 3 slots" in worker.err, "the worker is ready")
        cli.ok("schedule", "add", "bad", "every 1h", "--task", "fail", "--retry", "0", "--db", "other.db")
        cli("schedule", "trigger", "bad", "--wait", "--timeout", "20s", "--db", "other.db")
        eventually(lambda: "WARNING ostinato: failed bad, run 1" in worker.err, "the failure is logged")
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
    assert worker.out == ""
    assert all(line[:4].isdigit() for line in worker.err.splitlines())


def test_the_same_commands_work_on_postgresql(cli: CommandLine, empty_postgres_url: str) -> None:
    db = ("--db", empty_postgres_url)
    with cli.start("up", "--app", "jobs:app", *db) as up:
        eventually(lambda: "Ctrl-C to stop" in up.err, "up is ready")
        cli.ok("schedule", "add", "greet", "every 1h", "--task", "hello", *db)
        done = cli.ok("schedule", "trigger", "greet", "--wait", "--timeout", "20s", "--json", *db).json
        assert (done["state"], done["result"]) == ("succeeded", {"greeted": "world"})
        assert [one["status"] for one in cli.ok("doctor", "--json", *db).json if one["status"] != "ok"] == []
        eventually(lambda: "succeeded  greet, run" in up.out, "the run is told")
        up.signal(signal.SIGTERM)
        assert up.wait() == 0


_UNRULY = """
import logging, os

from ostinato import Ostinato

app = Ostinato()
FORGED = "no\\n2026-01-01 00:00:00,000 CRITICAL ostinato: forged\\x1b[2J\\u202e"


@app.task("forge", retry=0, break_after=1)
def forge():
    logging.getLogger("shop").warning("a table:\\none two")
    logging.getLogger("shop").error("told: %s", FORGED, exc_info=ValueError(FORGED))
    raise ValueError(FORGED)


@app.task("close", retry=0)
def close():
    os.close(1)
    os.close(2)


@app.task("fail", retry=0)
def fail():
    raise ValueError("after that")
"""


@pytest.mark.parametrize("command", ["worker", "up"])
def test_work_neither_forges_a_line_of_the_log_nor_silences_it(cli: CommandLine, command: str) -> None:
    (cli.folder / "unruly.py").write_text(_UNRULY)
    with cli.start(command, "--app", "unruly:app") as engine:
        eventually(lambda: "database" in engine.err, "it is ready")
        for task in ("forge", "close", "fail"):
            cli.ok("schedule", "add", task, "every 1h", "--task", task, "--app", "unruly:app")
            cli("schedule", "trigger", task, "--wait", "--timeout", "60s")
        eventually(lambda: "ValueError: after that" in engine.err + engine.out, "the failure is told")
        engine.signal(signal.SIGTERM)
        assert engine.wait() == 0
    lines = engine.err.splitlines()
    assert "  one two" in lines
    assert any(line.startswith("  ValueError: no") for line in lines)
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("2026-01-01") for line in lines)
    assert lines[-1].endswith("stopped")
