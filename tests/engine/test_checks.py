"""Checks: a schedule is enabled only when they pass, and a scheduled run starts only when they still do."""

from __future__ import annotations

import errno

import pytest

from ostinato import Ostinato, RunState, Trigger
from ostinato.errors import ChecksFailed
from ostinato.testing import drain, simulate


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


def test_a_check_can_be_a_coroutine(app: Ostinato) -> None:
    app.task("job")(lambda: None)

    @app.check("slow")
    async def slow() -> str:
        return "not today"

    with pytest.raises(ChecksFailed, match="slow: not today"):
        app.schedules.add("job", "every 1h", "job", checks=["slow"])


def test_a_schedule_of_the_code_whose_check_fails_is_there_switched_off_and_says_why(app: Ostinato) -> None:
    app.check("disk")(lambda: "full")
    app.task("job", schedule="every 1h", checks=["disk"])(lambda: None)
    app.start()
    schedule = app.schedules.get("job")
    assert (schedule.enabled, schedule.note, schedule.off_note) == (False, None, "checks failed: disk: full")
