"""What a run used up (cost, tokens, turns) is the sum over its attempts; what else it counted is its last attempt's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ostinato import Agent, Budget, Ostinato, Retry, RunContext, RunState, Shell, Snooze
from ostinato.engine.node import Engine
from ostinato.testing import FakeClock, drain, simulate
from tests.engine import process_tasks
from tests.engine.conftest import MakeApp, eventually, on_shared
from tests.engine.stand_in import StandIn

QUICK = Retry(3, base="1s", longest="1s", spread=0)


def test_the_attempts_of_an_agent_add_up(make_app: MakeApp, db: str, tmp_path: Path) -> None:
    app = make_app(db, agents={"claude": StandIn(tmp_path / "bin").cli})
    app.projects.add("blog", tmp_path)
    run = app.enqueue(Agent("play:error"), project="blog", retry=QUICK)
    simulate(app, lasting="10s")
    ended = run.get()
    assert (ended.state, ended.attempt) == (RunState.FAILED, 4)
    assert ended.totals == {"cost_usd": 1.0, "turns": 8, "tokens_in": 4416, "tokens_out": 200}


def test_what_a_task_counts_as_its_usage_adds_up_and_the_rest_is_the_last_attempts(app: Ostinato) -> None:
    @app.task("job", retry=QUICK)
    def job(run: RunContext) -> None:
        run.count("cost_usd", 0.05)
        run.count("cost_usd", 0.05)
        run.set_total("turns", 2)
        run.count("copied", 5)
        if run.attempt < 3:
            raise ValueError("not yet")

    run = job.enqueue()
    simulate(app, lasting="10s")
    assert (run.get().state, run.get().attempt) == (RunState.SUCCEEDED, 3)
    assert run.get().totals == {"cost_usd": 0.3, "turns": 6, "copied": 5}


def test_an_attempt_that_reports_something_else_or_nothing_keeps_what_was_used_before(app: Ostinato) -> None:
    @app.task("job", retry=QUICK)
    def job(run: RunContext) -> None:
        if run.attempt == 1:
            run.count("cost_usd", 1)
        if run.attempt == 3:
            run.count("copied", 5)
        if run.attempt < 4:
            raise ValueError("not yet")

    run = job.enqueue()
    simulate(app, lasting="10s")
    assert (run.get().state, run.get().totals) == (RunState.SUCCEEDED, {"cost_usd": 1, "copied": 5})


def test_a_snooze_adds_up_too(app: Ostinato) -> None:
    @app.task("job", retry=0)
    def job(run: RunContext) -> None:
        run.count("cost_usd", 1)
        if not snoozed:
            snoozed.append(1)
            raise Snooze("1s")

    snoozed: list[int] = []
    run = job.enqueue()
    simulate(app, lasting="10s")
    assert run.get().totals == {"cost_usd": 2}


def test_a_command_and_a_function_in_its_own_process_add_up_too(app: Ostinato) -> None:
    spend = app.task("spend", retry=QUICK, isolation="process")(process_tasks.spend)
    line = '{"count": {"cost_usd": 0.25, "copied": 1}}'
    runs = [spend.enqueue(), app.enqueue(Shell(f"echo '{line}' > $OSTINATO_REPORT; exit 1"), retry=QUICK)]
    simulate(app, lasting="10s")
    assert [run.get().attempt for run in runs] == [4, 4]
    assert [run.get().totals for run in runs] == [{"cost_usd": 1, "copied": 1}] * 2


def test_each_attempt_settles_its_own_cost(app: Ostinato) -> None:
    @app.task("job", retry=QUICK)
    def job(run: RunContext) -> None:
        run.count("cost_usd", 1)
        raise ValueError("no good")

    app.schedules.add("job", "every 1h", job, tz="UTC", break_after=9, budget=Budget(per_run_usd=4, per_day_usd=5))
    simulate(app, lasting="70m")
    (run,) = app.runs.list(schedule="job")
    assert (run.attempt, run.totals) == (4, {"cost_usd": 4})
    drain(app)
    app.schedules.edit("job", budget=Budget(per_run_usd=1, per_day_usd=4))
    simulate(app, lasting="1h")
    assert "$4.00 of $4.00 spent today" in (app.schedules.get("job").next_run_reason or "")


@on_shared
@pytest.mark.parametrize("end", ["cut off", "crashed"])
def test_an_attempt_that_its_node_did_not_let_end_counts_with_what_it_had_reported(
    shared_db: str, make_app: MakeApp, fake_clock: FakeClock, end: str
) -> None:
    first, second = make_app(shared_db, name="first"), make_app(shared_db, name="second")

    @first.task("job", retry=1)
    async def begin(run: RunContext) -> None:
        run.count("cost_usd", 0.25)
        await asyncio.Event().wait()

    @second.task("job", retry=1)
    async def go_on(run: RunContext) -> None:
        run.count("cost_usd", 0.5)

    async def fall_silent(engine: Engine) -> None:
        await engine.watchdog.stop("lease", "waker", "rescuer")

    first.start()
    run = begin.enqueue()
    eventually(lambda: first.runs.get(run.id).totals)
    if end == "crashed":
        first.with_engine(fall_silent)
    else:
        first.stop(grace=0)
    second.start()

    def is_over() -> bool:
        fake_clock.advance("5s")
        return second.runs.get(run.id).ended

    eventually(is_over)
    ended = second.runs.get(run.id)
    assert (ended.state, ended.attempt, ended.totals) == (RunState.SUCCEEDED, 2, {"cost_usd": 0.75})
