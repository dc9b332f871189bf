"""The breaker: so many scheduled runs failed in a row, and the schedule is switched off with the reason."""

from __future__ import annotations

from typing import Any

from ostinato import Ostinato, RunState
from ostinato.engine.node import Engine
from ostinato.engine.rescuer import _crashed
from ostinato.testing import FakeClock, simulate
from tests.engine.conftest import Gate, MakeApp, eventually, on_shared


def failing(app: Ostinato, **policy: Any) -> list[bool]:
    """A schedule each hour, without retries, that fails while the list's last item is True."""
    fails = [True]

    @app.task("job", retry=0)
    def job() -> None:
        if fails[-1]:
            raise ValueError("the disk is full")

    app.schedules.add("job", "every 1h", job, **policy)
    return fails


def test_three_scheduled_failures_in_a_row_break_the_schedule(app: Ostinato) -> None:
    failing(app)
    simulate(app, lasting="2h")
    schedule = app.schedules.get("job")
    assert (schedule.enabled, schedule.broken, schedule.failures) == (True, None, 2)

    assert simulate(app, lasting="10h") == 1
    schedule = app.schedules.get("job")
    assert schedule.enabled is False
    assert schedule.broken == "3 scheduled runs failed in a row; the last: ValueError: the disk is full"
    assert schedule.next_run_at is None
    assert (schedule.next_run_reason or "").startswith("broken: 3 scheduled runs")


def test_enabling_clears_it_and_the_count(app: Ostinato) -> None:
    fails = failing(app)
    simulate(app, lasting="5h")
    fails.append(False)
    schedule = app.schedules.enable("job")
    assert (schedule.enabled, schedule.broken, schedule.failures) == (True, None, 0)
    assert simulate(app, lasting="1h") == 1


@on_shared
def test_a_lost_node_neither_trips_the_breaker_nor_resets_it(
    shared_db: str, make_app: MakeApp, gate: Gate, fake_clock: FakeClock
) -> None:
    app, other = make_app(shared_db), make_app(shared_db, clock=(later := FakeClock()))
    app.task("job", retry=0)(gate.wait)
    other.task("job", retry=0)(lambda: None)
    app.schedules.add("job", "every 1h", "job", retry=0, break_after=1)
    fake_clock.advance("1h")
    app.start()
    gate.entered()
    (run,) = app.runs.list(schedule="job")
    other.start()
    later.advance("15s")
    eventually(lambda: later.advance("100ms") and other.runs.get(run.id).state is RunState.FAILED)
    assert "was lost while it ran this" in (other.runs.get(run.id).reason or "")
    assert other.runs.get(run.id).cause == "node_lost"
    schedule = other.schedules.get("job")
    assert (schedule.enabled, schedule.broken, schedule.failures) == (True, None, 0)
    assert schedule.next_run_at is not None


def test_failures_before_a_lost_node_still_count(app: Ostinato, fake_clock: FakeClock) -> None:
    failing(app, break_after=2)
    simulate(app, lasting="1h")

    async def lose(engine: Engine) -> None:
        """A due time comes, and the node that claims it is never heard of again."""
        await engine.ticker.tick()
        request = engine.dispatcher.request()
        assert request is not None
        (run,) = (await engine.store.runs.claim_runs(request)).runs
        engine.dispatcher.release()
        await engine.store.runs.finish_runs([_crashed(run, engine.clock.now())])

    fake_clock.advance("1h")
    app.with_engine(lose)
    assert [run.state for run in app.runs.list(limit=1)] == [RunState.FAILED]
    assert app.schedules.get("job").failures == 1
    simulate(app, lasting="1h")
    assert app.schedules.get("job").broken
