"""What the ledger says that a node runs, and nobody there has heard of, goes back to the queue."""

from __future__ import annotations

from ostinato import Ostinato, RunState
from ostinato.engine.node import Engine
from ostinato.models.run import ClaimedRun
from ostinato.testing.store_suite.builders import claim
from tests.engine.conftest import MakeApp, on_shared


async def leak(engine: Engine) -> ClaimedRun:
    """Claim for the node what it never hears of, as when the answer of a claim is lost. Only the test beats."""
    await engine.watchdog.stop("dispatcher", "lease", "waker", "rescuer", "ticker")
    asked = claim(node=engine.id, now=engine.clock.now(), tasks=("job",))
    (run,) = (await engine.store.runs.claim_runs(asked)).runs
    return run


def enqueue_behind_its_back(app: Ostinato, executed: list[int]) -> ClaimedRun:
    """A run that is claimed for a started node which does not know it."""
    job = app.task("job", retry=0)(lambda: executed.append(1))

    async def hold_off(engine: Engine) -> None:
        await engine.watchdog.stop("dispatcher", "waker", "rescuer")

    app.start()
    app.with_engine(hold_off)
    job.enqueue()
    return app.with_engine(leak)


def test_a_run_that_its_node_never_heard_of_goes_back_uncounted_and_is_executed_once(app: Ostinato) -> None:
    executed: list[int] = []
    leaked = enqueue_behind_its_back(app, executed)

    async def beat_twice(engine: Engine) -> None:
        await engine.lease.renew()
        assert engine.recorder.pending == 0, "the answer of a claim may be under way"
        await engine.lease.renew()
        while engine.recorder.pending:
            await engine.recorder.flush()
        await engine.dispatcher.claim()

    app.with_engine(beat_twice)
    run = app.runs.wait(leaked.id, timeout="60s")
    assert (run.state, run.attempt, executed) == (RunState.SUCCEEDED, 1, [1])


def test_a_run_whose_claim_is_still_under_way_is_left_alone(app: Ostinato) -> None:
    executed: list[int] = []
    job = app.task("job", retry=0)(lambda: executed.append(1))

    async def hold_off(engine: Engine) -> None:
        await engine.watchdog.stop("dispatcher", "lease", "waker", "rescuer", "ticker")
        await engine.dispatcher.rest()

    async def claim_slowly(engine: Engine) -> None:
        request = engine.dispatcher.request()
        assert request is not None
        claimed = await engine.store.runs.claim_runs(request)
        assert len(claimed.runs) == 1
        for _ in range(3):
            await engine.lease.renew()
        assert engine.recorder.pending == 0
        engine.dispatcher.accept(claimed)

    app.start()
    app.with_engine(hold_off)
    run = job.enqueue()
    app.with_engine(claim_slowly)
    ended = run.wait(timeout=60)
    assert (ended.state, ended.attempt, executed) == (RunState.SUCCEEDED, 1, [1])


@on_shared
def test_a_drained_node_leaves_nothing_running_that_it_never_heard_of(shared_db: str, make_app: MakeApp) -> None:
    app = make_app(shared_db)
    executed: list[int] = []
    leaked = enqueue_behind_its_back(app, executed)
    app.stop(grace=0)
    run = app.runs.get(leaked.id)
    assert (run.state, run.attempt, run.node, executed) == (RunState.QUEUED, 0, None, [])
    assert run.reason == "its node never learned that it had claimed it"
