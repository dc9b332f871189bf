"""Once means once: one execution, over errors and crashes, unless a retry is asked for by name."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import Agent, InvalidInput, Ostinato, Retry, RunState, Shell
from ostinato.testing import FakeClock, simulate
from tests.engine.conftest import Gate, MakeApp, eventually, on_shared

ONCE: list[dict[str, Any]] = [{"run_once": True}, {"remaining": 1}]


def counting(app: Ostinato, **policy: Any) -> list[int]:
    """A schedule each hour that fails; the list has an item for each execution."""
    executed: list[int] = []

    @app.task("job")
    def job() -> None:
        executed.append(1)
        raise ValueError("no")

    app.schedules.add("job", "every 1h", job, **policy)
    return executed


@pytest.mark.parametrize("once", ONCE)
def test_what_runs_once_is_not_tried_again(memory_app: Ostinato, once: dict[str, Any]) -> None:
    executed = counting(memory_app, **once)
    simulate(memory_app, lasting="5h")
    assert len(executed) == 1
    (run,) = memory_app.runs.list(schedule="job")
    assert (run.state, run.attempt) == (RunState.FAILED, 1)
    assert memory_app.schedules.get("job").policy.retry == Retry(max=0)


@pytest.mark.parametrize("once", ONCE)
def test_a_retry_that_is_asked_for_by_name_is_obeyed(memory_app: Ostinato, once: dict[str, Any]) -> None:
    executed = counting(memory_app, **once, retry=3)
    simulate(memory_app, lasting="5h")
    assert len(executed) == 4


def test_the_retry_of_its_task_is_asked_for_by_name_too(memory_app: Ostinato) -> None:
    memory_app.task("job", retry=2)(lambda: None)
    assert memory_app.schedules.add("job", "every 1h", "job", run_once=True).policy.retry == Retry(max=2)


def test_what_runs_several_times_is_tried_again_as_always(memory_app: Ostinato) -> None:
    executed = counting(memory_app, remaining=2)
    simulate(memory_app, lasting="5h")
    assert len(executed) == 8


def test_commands_and_agents_that_run_once_are_not_tried_again_either(memory_app: Ostinato) -> None:
    for name, work in {"shell": Shell("false"), "agent": Agent("go")}.items():
        assert memory_app.schedules.add(name, "every 1h", work, run_once=True).policy.retry == Retry(max=0)


@pytest.mark.parametrize("once", ONCE)
def test_who_edits_a_schedule_to_run_once_means_once(memory_app: Ostinato, once: dict[str, Any]) -> None:
    memory_app.task("job")(lambda: None)
    memory_app.schedules.add("job", "every 1h", "job")
    assert memory_app.schedules.edit("job", **once).policy.retry == Retry(max=0)
    memory_app.schedules.add("asked", "every 1h", "job", retry=5)
    assert memory_app.schedules.edit("asked", **once).policy.retry == Retry(max=5)
    assert memory_app.schedules.edit("job", **once, retry=1).policy.retry == Retry(max=1)
    assert memory_app.schedules.edit("job", note="other").policy.retry == Retry(max=1)


def test_a_timing_that_says_one_run_means_once(memory_app: Ostinato) -> None:
    executed = counting(memory_app)
    assert memory_app.schedules.edit("job", timing="every 1h until 1 run").policy.retry == Retry(max=0)
    simulate(memory_app, lasting="5h")
    assert len(executed) == 1
    assert memory_app.schedules.edit("job", timing="every 2h until 3 runs").policy.remaining == 3
    memory_app.schedules.add("new", "every 1h until 1 run", "job")
    assert memory_app.schedules.get("new").policy.retry == Retry(max=0)


@pytest.mark.parametrize("policy", [{"run_once": True}, {"remaining": 2}])
def test_two_numbers_of_runs_are_refused(memory_app: Ostinato, policy: dict[str, Any]) -> None:
    memory_app.task("job")(lambda: None)
    timing, refused = "every 1h until 5 runs", "the timing says until 5 runs, and the policy"
    with pytest.raises(InvalidInput, match=refused):
        memory_app.schedules.add("job", timing, "job", **policy)
    memory_app.schedules.add("job", "every 1h", "job", remaining=5)
    with pytest.raises(InvalidInput, match=refused):
        memory_app.schedules.edit("job", timing=timing, **policy)
    assert memory_app.schedules.edit("job", timing=timing, remaining=5).remaining == 5


def test_the_number_of_a_schedule_goes_before_that_of_its_task(memory_app: Ostinato) -> None:
    memory_app.task("job", run_once=True)(lambda: None)
    assert memory_app.schedules.add("job", "every 1h until 5 runs", "job").remaining == 5


@on_shared
def test_a_crash_cannot_run_it_once_more(shared_db: str, make_app: MakeApp, gate: Gate, fake_clock: FakeClock) -> None:
    app, other = make_app(shared_db), make_app(shared_db, clock=(later := FakeClock()))
    app.task("job")(gate.wait)
    again: list[int] = []
    other.task("job")(lambda: again.append(1))
    app.schedules.add("job", "every 1h", "job", run_once=True)
    fake_clock.advance("1h")
    app.start()
    gate.entered()
    (run,) = app.runs.list(schedule="job")
    other.start()
    later.advance("15s")
    eventually(lambda: later.advance("100ms") and other.runs.get(run.id).state is RunState.FAILED)
    assert other.runs.get(run.id).cause == "node_lost"
    assert again == []
