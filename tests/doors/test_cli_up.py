"""`ostinato up` and `worker` as real processes: fire, tell, drain, force."""

from __future__ import annotations

import json
import re
import signal
import socket

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
    cli.ok("schedule", "add", "bad", "every 1h", "--task", "fail", "--retry", "0", "--db", "other.db")
    with cli.start("worker", "--app", "jobs:app", *flags) as worker:
        eventually(lambda: "INFO ostinato: schedules 1, 1 on; next due " in worker.err, "the worker is ready")
        assert "started: 3 tasks, 3 slots" in worker.err
        cli("schedule", "trigger", "bad", "--wait", "--timeout", "20s", "--db", "other.db")
        eventually(lambda: "ERROR ostinato.runs: run 1 of 'bad' failed after" in worker.err, "the failure is logged")
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
    assert worker.out == ""
    assert "INFO ostinato.runs: run 1 of 'bad' started\n" in worker.err
    assert "\n  Traceback (most recent call last):\n" in worker.err
    assert worker.err.count("ValueError: no good") == 2
    assert all(line[:4].isdigit() or line.startswith("  ") for line in worker.err.splitlines())


_NOISY = """
import logging

logging.getLogger("shop").warning("imported")


@app.task("noisy")
def noisy():
    logging.getLogger("shop").info("sold %d", 3, extra={"customer": "ada", "cart": {1, 2}})
"""


@pytest.mark.parametrize("command", ["worker", "up"])
def test_up_and_worker_log_the_same_as_json(cli: CommandLine, command: str) -> None:
    (cli.folder / "noisy.py").write_text(JOBS + _NOISY)
    port = ("--port", "0") if command == "up" else ()
    with cli.start(command, "--app", "noisy:app", "--log-format", "json", *port) as engine:
        eventually(lambda: "schedules 0, 0 on" in engine.err, "it is ready")
        for task in ("noisy", "fail"):
            cli.ok("schedule", "add", task, "every 1h", "--task", task, "--app", "noisy:app")
            cli("schedule", "trigger", task, "--wait", "--timeout", "60s")
        eventually(lambda: "run 2 of 'fail' failed" in engine.err, "the failure is logged")
        engine.signal(signal.SIGTERM)
        assert engine.wait() == 0
    assert engine.out == ""
    records = [json.loads(line) for line in engine.err.splitlines()]
    assert all(list(record)[:4] == ["time", "level", "logger", "message"] for record in records)
    assert all(record["time"].endswith("Z") and record["time"][10] == "T" for record in records)
    assert [record["message"] for record in records if record["logger"] == "shop"] == ["imported", "sold 3"]
    (sold,) = [record for record in records if record["message"] == "sold 3"]
    assert (sold["customer"], sold["cart"]) == ("ada", "{1, 2}")
    runs = [record for record in records if record["logger"] == "ostinato.runs"]
    assert [(record["level"], record["run"], record["state"]) for record in runs] == [
        ("INFO", 1, "running"),
        ("INFO", 1, "succeeded"),
        ("INFO", 2, "running"),
        ("ERROR", 2, "failed"),
    ]
    failed = runs[-1]
    assert (failed["schedule"], failed["task"], failed["attempt"], failed["cause"]) == ("fail", "fail", 1, "raised")
    assert failed["duration"] >= 0
    assert any(failed["node"] in record["message"] for record in records)
    assert failed["error"].startswith("Traceback (most recent call last):\n")
    assert records[-1]["message"] == "stopped"
    (line,) = cli.ok("run", "logs", "1").out.splitlines()
    assert line == "INFO shop: sold 3"


def test_the_server_of_up_logs_in_the_same_form(cli: CommandLine) -> None:
    with cli.start("up", "--app", "jobs:app", "--log-format", "json", "--port", "0") as up:
        eventually(lambda: "schedules 0, 0 on" in up.err, "it is ready")
        found = re.search(r"http://127\.0\.0\.1:(\d+)", up.err)
        assert found is not None
        with socket.create_connection(("127.0.0.1", int(found[1])), timeout=60) as line:
            line.sendall(b"nonsense\r\n\r\n")
            assert line.recv(100).startswith(b"HTTP/1.1 400")
        eventually(lambda: "uvicorn" in up.err, "it is logged")
        up.signal(signal.SIGTERM)
        assert up.wait() == 0
    records = [json.loads(line) for line in up.err.splitlines()]
    assert [record["level"] for record in records if record["logger"] == "uvicorn.error"] == ["WARNING"]


def test_up_shows_runs_as_a_list_and_its_log_has_the_traceback_of_a_failure(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "bad", "every 1h", "--task", "fail", "--retry", "0")
    with cli.start("up", "--app", "jobs:app", "--port", "0") as up:
        eventually(lambda: "Ctrl-C to stop" in up.err, "up is ready")
        cli("schedule", "trigger", "bad", "--wait", "--timeout", "60s")
        eventually(lambda: "failed     bad, run 1" in up.out, "the run is told")
        up.signal(signal.SIGTERM)
        assert up.wait() == 0
    assert "ERROR: run 1 of 'bad' failed after" in up.err
    assert "\n  Traceback (most recent call last):\n" in up.err
    assert "started" not in up.err


def test_a_schedule_that_is_late_is_told_by_up_and_marked_in_lists(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "silent", "every 1h", "--shell", "true", "--fresh", "1s")
    with cli.start("up") as up:
        eventually(lambda: "WARNING: schedule 'silent' is late: it has never succeeded" in up.err, "it is told")
        (row,) = cli.ok("schedule", "ls").out.splitlines()[1:]
        assert "on, late" in row
        facts = cli.ok("why", "silent", "--json").json["facts"]
        assert facts[0] == "late: it has not succeeded in time (fresh is 1s)"
        assert "'silent' is late: it has not succeeded in time" in cli("doctor").out
        up.signal(signal.SIGTERM)
        assert up.wait() == 0


def test_a_level_and_a_format_can_be_set_by_the_environment(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSTINATO_LOG_LEVEL", "Error")
    monkeypatch.setenv("OSTINATO_LOG_FORMAT", "json")
    with cli.start("worker", "--app", "jobs:app") as worker:
        eventually(lambda: _alive(cli), "the worker is ready")
        cli.ok("schedule", "add", "bad", "every 1h", "--task", "fail", "--retry", "0")
        cli("schedule", "trigger", "bad", "--wait", "--timeout", "60s")
        eventually(lambda: worker.err, "the failure is logged")
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
    assert [json.loads(line)["level"] for line in worker.err.splitlines()] == ["ERROR"]
    monkeypatch.setenv("OSTINATO_LOG_FORMAT", "xml")
    wrong = cli("worker", "--app", "jobs:app")
    assert wrong.code == 2
    assert "log_format cannot be 'xml'" in wrong.err
    assert "auto, text, json" in wrong.err


def test_an_executed_task_prints_its_output_once(cli: CommandLine) -> None:
    with cli.start("exec", "--task", "hello", "--app", "jobs:app", name="exec") as done:
        assert done.wait() == 0
    assert done.out == 'hello world\n{"greeted": "world"}\n'
    assert cli.ok("run", "logs", "1").out == "hello world\n"


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
