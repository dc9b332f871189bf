"""The log of runs: with plain `logging`, a person sees what the engine does, and programs find fields on records."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest

from ostinato import Cause, Ostinato, Shell, Snooze, current_run
from ostinato.engine.node import Engine
from ostinato.logs import RUN_LOGGER
from ostinato.run_log import MOST_SCHEDULES
from ostinato.testing import FakeClock, drain, simulate
from tests.engine.conftest import Gate

FIELDS = ("run", "schedule", "task", "state", "attempt", "node", "cause", "reason", "duration", "trace_id")


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Everything that an application with `logging.basicConfig(level=logging.INFO)` sees."""
    with caplog.at_level(logging.INFO):
        yield caplog


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [f"{one.levelname} {one.getMessage()}" for one in records(caplog)]


def records(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == RUN_LOGGER]


def fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: getattr(record, name) for name in FIELDS}


def fails() -> None:
    raise ValueError("the disk is full")


def test_a_run_is_logged_when_it_starts_and_when_it_has_ended_with_its_fields(
    app: Ostinato, fake_clock: FakeClock, logged: pytest.LogCaptureFixture
) -> None:
    run = app.task("mail")(lambda: fake_clock.advance("1500ms")).enqueue()
    drain(app)
    assert lines(logged) == [f"INFO run {run.id} of 'mail' started", f"INFO run {run.id} of 'mail' succeeded in 1.5s"]
    started, ended = map(fields, records(logged))
    node = started["node"]
    assert isinstance(node, str)
    same = {"run": run.id, "task": "mail", "attempt": 1, "node": node}
    same |= dict.fromkeys(("schedule", "cause", "reason", "trace_id"))
    assert started == {**same, "state": "running", "duration": None}
    assert ended == {**same, "state": "succeeded", "duration": 1.5}


def test_an_attempt_that_is_tried_again_is_a_warning_and_the_last_failure_an_error_with_its_traceback(
    app: Ostinato, logged: pytest.LogCaptureFixture
) -> None:
    run = app.task("job", retry=1)(fails).enqueue()
    simulate(app, lasting="1h")
    started, retried, again, failed = records(logged)
    assert [one.levelname for one in (started, retried, again, failed)] == ["INFO", "WARNING", "INFO", "ERROR"]
    (first, _) = app.runs.get(run.id).attempts
    assert first.finished_at is not None
    assert retried.getMessage().startswith(f"run {run.id} of 'job' is tried again at 20")
    assert "attempt 1 of 2 failed, next in" in retried.getMessage()
    assert (fields(retried)["state"], fields(retried)["cause"], fields(retried)["attempt"]) == ("queued", "raised", 1)
    assert again.getMessage() == f"run {run.id} of 'job' started, attempt 2"
    assert failed.getMessage() == f"run {run.id} of 'job' failed after 0ms: ValueError: the disk is full (attempt 2)"
    shown = logging.Formatter("%(message)s").format(failed)
    assert shown.splitlines()[1] == "Traceback (most recent call last):"
    assert shown.endswith("\nValueError: the disk is full")
    assert "in fails" in shown
    assert (failed.exc_info, fields(failed)["cause"]) == (None, Cause.RAISED)


def test_what_a_command_says_of_its_failure_is_logged(memory_app: Ostinato, logged: pytest.LogCaptureFixture) -> None:
    memory_app.schedules.add("backup", "every 1h", Shell("exit 3"), retry=0)
    simulate(memory_app, lasting="1h")
    assert [line for line in lines(logged) if line.startswith("ERROR")] == [
        next(line for line in lines(logged) if "of 'backup' failed after" in line and "status 3" in line)
    ]


def test_a_due_time_that_is_skipped_or_missed_is_a_warning(
    app: Ostinato, gate: Gate, fake_clock: FakeClock, logged: pytest.LogCaptureFixture
) -> None:
    app.schedules.add("hourly", "every 1h", app.task("job")(gate.wait), catch_up="none")
    fake_clock.advance("5h30m")

    async def overlap(engine: Engine) -> None:
        await engine.step()
        fake_clock.advance("30m")
        await engine.step()
        await asyncio.to_thread(gate.entered)
        fake_clock.advance("1h")
        await engine.step()
        gate.open()

    app.with_engine(overlap)
    missed, skipped = [record for record in records(logged) if record.levelname == "WARNING"]
    assert missed.getMessage().startswith("schedule 'hourly' missed 5 due times from ")
    assert (fields(missed)["state"], fields(missed)["cause"]) == ("missed", "downtime")
    assert skipped.getMessage().startswith("schedule 'hourly' skipped its due time ")
    assert (fields(skipped)["schedule"], fields(skipped)["cause"]) == ("hourly", "overlap")


def test_a_schedule_that_breaks_is_one_error(app: Ostinato, logged: pytest.LogCaptureFixture) -> None:
    app.task("job", retry=0)(fails)
    app.schedules.add("hourly", "every 1h", "job", retry=0, break_after=2)
    simulate(app, lasting="5h")
    (broken,) = [record for record in logged.records if "broken" in record.getMessage()]
    assert (broken.levelname, broken.name) == ("ERROR", RUN_LOGGER)
    assert broken.getMessage() == f"schedule 'hourly' is broken and disabled: {app.schedules.get('hourly').broken}"
    assert (fields(broken)["schedule"], fields(broken)["state"]) == ("hourly", "broken")


def test_what_counts_errors_is_a_warning_and_a_gate_that_says_no_is_none(
    memory_app: Ostinato, caplog: pytest.LogCaptureFixture
) -> None:
    @memory_app.task("job")
    def job() -> None:
        current_run().count("errors", 3)

    memory_app.schedules.add("counts", "every 1h", job)
    memory_app.schedules.add("gated", "every 1h", Shell("true"), gate="echo '{\"wake\": false}'")
    with caplog.at_level(logging.WARNING):
        simulate(memory_app, lasting="1h")
    (record,) = records(caplog)
    assert (fields(record)["schedule"], fields(record)["state"]) == ("counts", "succeeded")


def test_a_snooze_and_a_cancel_are_told_without_a_warning(
    memory_app: Ostinato, gate: Gate, logged: pytest.LogCaptureFixture
) -> None:
    tries = [Snooze("1m", "later")]

    @memory_app.task
    def job() -> None:
        if tries:
            raise tries.pop()

    @memory_app.task
    async def long() -> None:
        gate.open()
        await asyncio.Event().wait()

    job.enqueue()
    simulate(memory_app, lasting="1h")
    run = long.enqueue()
    memory_app.start()
    gate.wait()
    memory_app.runs.cancel(run.id, reason="not today")
    memory_app.wait_idle(timeout="60s")
    memory_app.stop()
    told = lines(logged)
    assert any(line.startswith("INFO run 1 of 'job' is put off until ") for line in told)
    assert any(line.startswith(f"INFO run {run.id} of 'long' was cancelled after ") for line in told)
    assert {line.split()[0] for line in told} == {"INFO"}


def test_a_run_that_is_cancelled_before_it_starts_is_told(app: Ostinato, logged: pytest.LogCaptureFixture) -> None:
    run = app.task("job")(lambda: None).enqueue()
    app.runs.cancel(run.id, reason="not today")
    (record,) = records(logged)
    assert (record.levelname, record.getMessage()) == ("INFO", f"run {run.id} of 'job' was cancelled: not today")
    assert (fields(record)["run"], fields(record)["state"], fields(record)["cause"]) == (
        *(run.id, "cancelled", "cancelled"),
    )


def test_a_start_tells_when_the_declared_schedules_are_due_and_counts_the_rest(
    app: Ostinato, fake_clock: FakeClock, logged: pytest.LogCaptureFixture
) -> None:
    for number in range(MOST_SCHEDULES + 3):
        app.task(f"job-{number:02}", schedule="daily 03:00", tz="Europe/Berlin")(lambda: None)
    app.task("off", schedule="every 1h", enabled=False)(lambda: None)
    drain(app)
    told = lines(logged)
    due = app.schedules.get("job-00").next_run_at
    assert due is not None
    assert len(told) == MOST_SCHEDULES + 1
    at = f"{due:%Y-%m-%dT%H:%M:%SZ}"
    assert told[0] == f"INFO schedule 'job-00' (daily 03:00, Europe/Berlin) is next due at {at}"
    assert told[-1] == "INFO and 4 more schedules"
    drain(app)
    assert len(lines(logged)) == MOST_SCHEDULES + 1, "they are told once"


def test_a_schedule_that_is_added_is_told_with_its_next_time_or_why_it_has_none(
    memory_app: Ostinato, logged: pytest.LogCaptureFixture
) -> None:
    memory_app.schedules.add("on", "daily 03:00", Shell("true"), tz="UTC")
    memory_app.schedules.add("off", "daily 03:00", Shell("true"), enabled=False)
    on, off = lines(logged)
    assert on.startswith("INFO schedule 'on' (daily 03:00) is next due at ")
    assert on.endswith("T03:00:00Z")
    assert off.startswith("INFO schedule 'off' (daily 03:00) is off")


def test_where_the_level_is_off_nothing_is_made(memory_app: Ostinato, caplog: pytest.LogCaptureFixture) -> None:
    memory_app.task("good")(lambda: None).enqueue()
    memory_app.task("bad", retry=0)(fails).enqueue()
    with caplog.at_level(logging.INFO), caplog.at_level(logging.ERROR, RUN_LOGGER):
        drain(memory_app)
        assert [record.levelname for record in records(caplog)] == ["ERROR"]
    memory_app.task("bad", retry=0)(fails).enqueue()
    with caplog.at_level(logging.CRITICAL, RUN_LOGGER):
        drain(memory_app)
    assert len(records(caplog)) == 1
