"""Checks: a schedule is enabled only when they pass, and a scheduled run starts only when they still do."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from ostinato import Ostinato, RunState, Trigger
from ostinato.errors import ChecksFailed
from ostinato.testing import drain, simulate
from tests.engine.conftest import MakeApp


@pytest.fixture
def db() -> str:
    """None of it has anything to do with the database."""
    return "sqlite://:memory:"


def guarded(app: Ostinato) -> list[str | bool | None]:
    """A check whose answer is the list's last item."""
    answers: list[str | bool | None] = [None]
    app.check("disk")(lambda: answers[-1])
    app.task("job")(lambda: None)
    return answers


def test_a_schedule_whose_check_fails_cannot_be_added_enabled(app: Ostinato) -> None:
    guarded(app).append("only 1 GB is free")
    with pytest.raises(ChecksFailed, match="disk: only 1 GB is free") as refused:
        app.schedules.add("job", "every 1h", "job", checks=["disk"])
    assert refused.value.failures == {"disk": "only 1 GB is free"}
    assert app.schedules.list() == []


def test_it_can_be_added_disabled_and_is_refused_when_enabled(app: Ostinato) -> None:
    answers = guarded(app)
    answers.append(False)
    app.schedules.add("job", "every 1h", "job", checks=["disk"], enabled=False)
    with pytest.raises(ChecksFailed, match="disk: said no"):
        app.schedules.enable("job")
    assert app.schedules.get("job").enabled is False
    answers.append(True)
    assert app.schedules.enable("job").enabled


def test_each_failed_check_is_named(app: Ostinato) -> None:
    guarded(app).append("full")
    app.check("network")(_unplugged)
    with pytest.raises(ChecksFailed) as refused:
        app.schedules.add("job", "every 1h", "job", checks="disk, network, nobody")
    assert refused.value.failures["disk"] == "full"
    assert refused.value.failures["network"] == "OSError: unplugged"
    assert "no check of this name is registered here (known: disk, network)" in refused.value.failures["nobody"]


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM, errno.EMFILE])
@pytest.mark.parametrize("is_async", [True, False])
def test_an_error_of_the_check_itself_is_its_answer_and_no_want_of_the_node(
    app: Ostinato, is_async: bool, number: int
) -> None:
    broken: list[int] = []

    def look() -> None:
        if broken:
            raise OSError(number, "not now")

    async def alook() -> None:
        look()

    app.check("lock")(alook if is_async else look)
    app.task("job")(lambda: None)
    app.schedules.add("job", "every 1h", "job", checks=["lock"])
    broken.append(1)
    simulate(app, lasting="1h")
    (run,) = app.runs.list()
    assert run.state is RunState.SKIPPED
    assert "check failed: lock: " in (run.reason or "")
    with pytest.raises(ChecksFailed, match="not now"):
        app.schedules.add("other", "every 1h", "job", checks=["lock"])


def _unplugged() -> bool:
    raise OSError("unplugged")


def test_before_each_scheduled_run_the_check_is_looked_at(app: Ostinato) -> None:
    answers = guarded(app)
    app.schedules.add("job", "every 1h", "job", checks=["disk"])
    simulate(app, lasting="1h")
    answers.append("only 1 GB is free")
    simulate(app, lasting="1h")
    answers.append(None)
    simulate(app, lasting="1h")
    runs = app.runs.list(schedule="job")
    assert [run.state for run in runs] == [RunState.SUCCEEDED, RunState.SKIPPED, RunState.SUCCEEDED]
    assert (runs[1].cause, runs[1].reason) == ("check", "check failed: disk: only 1 GB is free")
    assert app.schedules.get("job").failures == 0


def test_a_manual_run_is_not_checked(app: Ostinato) -> None:
    answers = guarded(app)
    app.schedules.add("job", "every 1h", "job", checks=["disk"])
    answers.append("only 1 GB is free")
    app.schedules.trigger("job")
    drain(app)
    (run,) = app.runs.list(schedule="job")
    assert (run.state, run.trigger) == (RunState.SUCCEEDED, Trigger.MANUAL)


def test_a_schedule_of_the_code_whose_check_fails_is_there_switched_off_and_says_why(app: Ostinato) -> None:
    app.check("disk")(lambda: "full")
    app.task("job", schedule="every 1h", checks=["disk"])(lambda: None)
    app.start()
    schedule = app.schedules.get("job")
    assert (schedule.enabled, schedule.note, schedule.off_note) == (False, None, "checks failed: disk: full")


# The gate: a schedule is switched on in one way, whoever asks.


def broken_and_guarded(app: Ostinato) -> list[str | bool | None]:
    """A schedule that the breaker has switched off, with a check that fails from now on."""
    answers: list[str | bool | None] = [None]
    app.check("disk")(lambda: answers[-1])

    @app.task("job", retry=0)
    def job() -> None:
        raise ValueError

    app.schedules.add("job", "every 1h", job, checks=["disk"], break_after=1)
    simulate(app, lasting="1h")
    assert app.schedules.get("job").broken is not None
    answers.append("full")
    return answers


GATED: dict[str, Callable[[Ostinato], object]] = {
    "enable": lambda app: app.schedules.enable("job"),
    "edit": lambda app: app.schedules.edit("job", timing="every 2h"),
    "edit the zone": lambda app: app.schedules.edit("job", tz="Asia/Tokyo"),
    "add": lambda app: app.schedules.add("job", "every 2h", "job", checks=["disk"], break_after=1),
}


@pytest.mark.parametrize("way", GATED)
def test_what_the_breaker_switched_off_is_switched_on_by_nobody_while_its_check_fails(app: Ostinato, way: str) -> None:
    answers = broken_and_guarded(app)
    before = app.schedules.get("job")
    with pytest.raises(ChecksFailed, match="disk: full"):
        GATED[way](app)
    assert app.schedules.get("job") == before
    answers.append(True)
    GATED[way](app)
    schedule = app.schedules.get("job")
    assert (schedule.enabled, schedule.broken) == (True, None)
    assert schedule.next_run_at is not None


def test_code_with_another_timing_leaves_broken_what_its_check_keeps_off(
    make_app: MakeApp, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answers: list[str | bool | None] = [None]

    def declare(timing: str) -> Ostinato:
        app = make_app(f"sqlite:///{tmp_path / 'jobs.db'}")
        app.check("disk")(lambda: answers[-1])

        @app.task("job", schedule=timing, checks=["disk"], retry=0, break_after=1)
        def job() -> None:
            raise ValueError

        return app

    first = declare("every 1h")
    simulate(first, lasting="1h")
    first.stop()
    answers.append("full")
    second = declare("every 2h")
    drain(second)
    schedule = second.schedules.get("job")
    assert (schedule.timing, schedule.enabled) == ("every 2h", False)
    assert (schedule.broken or "").startswith("a scheduled run failed")
    assert "schedule 'job' stays broken" in caplog.text
    second.stop()
    answers.append(True)
    third = declare("every 3h")
    drain(third)
    assert (third.schedules.get("job").enabled, third.schedules.get("job").broken) == (True, None)


@pytest.mark.parametrize("way", [way for way in GATED if way != "enable"])
def test_what_a_person_switched_off_stays_off_with_its_note(app: Ostinato, way: str) -> None:
    broken_and_guarded(app)
    off = app.schedules.disable("job", note="on leave")
    assert (off.enabled, off.broken, off.off_note) == (False, None, "on leave")
    GATED[way](app)
    schedule = app.schedules.get("job")
    assert (schedule.enabled, schedule.broken, schedule.off_note) == (False, None, "on leave")
    assert schedule.next_run_at is None


def test_switching_off_clears_what_broke_it_and_its_incident_keeps_the_reason(app: Ostinato) -> None:
    broken_and_guarded(app)
    assert app.schedules.disable("job").state == "off"
    version = app.schedules.get("job").version
    assert app.schedules.disable("job").version == version
    (incident,) = [one for one in app.incidents.list() if one.cause == "broken"]
    assert (incident.closed_reason, incident.reason) == (
        "the schedule was disabled",
        "a scheduled run failed: ValueError",
    )
