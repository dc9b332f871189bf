"""No wake-up is lost between the dispatcher and the recorder, whichever of them has a claim under way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

from ostinato.clock import Micros
from ostinato.config import Settings
from ostinato.engine.admission import Admission
from ostinato.engine.budgets import BudgetKeeper
from ostinato.engine.dispatcher import Dispatcher
from ostinato.engine.quarantine import Quarantine
from ostinato.engine.recorder import Recorder
from ostinato.execution.preparation import UpstreamsOf
from ostinato.execution.registry import Registry
from ostinato.execution.runner import Runner
from ostinato.execution.throttle import Throttle
from ostinato.models.ids import NodeId, RunId
from ostinato.models.run import ClaimedRun, Ending, Finish
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.stores.base import Claim, Claimed, Finished, ProjectStore, RunStore, Store
from ostinato.stores.quarantine import QuarantineStore
from ostinato.stores.sessions import SessionStore
from ostinato.testing import FakeClock


class SlowStore:
    """Claims wait until the test answers them; finishes are written at once."""

    def __init__(self) -> None:
        self.claims: asyncio.Queue[asyncio.Future[Claimed]] = asyncio.Queue()
        self.finishes: list[Finish] = []

    async def claim_runs(self, claim: Claim) -> Claimed:
        answer: asyncio.Future[Claimed] = asyncio.get_running_loop().create_future()
        self.claims.put_nowait(answer)
        return await answer

    async def finish_runs(
        self, finishes: Sequence[Finish], claim: Claim | None = None, now: Micros | None = None
    ) -> Finished:
        assert claim is None, "the dispatcher's own claim is under way"
        self.finishes += finishes
        return Finished()

    async def next_claim(self) -> asyncio.Future[Claimed]:
        return await asyncio.wait_for(self.claims.get(), 5)


class Bench:
    def __init__(self) -> None:
        self.store = SlowStore()
        runs = cast(RunStore, self.store)
        clock = FakeClock()
        store = cast(Store, self.store)
        self.recorder = Recorder(runs, Throttle(), BudgetKeeper(store, clock), clock)
        runner = Runner(
            Registry(), clock, self.recorder.add, cast(ProjectStore, None), cast(UpstreamsOf, None), Settings()
        )
        quarantine = Quarantine(cast(QuarantineStore, None), clock)
        admission = Admission(cast(SessionStore, None), Throttle(), runner, clock)
        self.dispatcher = Dispatcher(runs, runner, clock, NodeId("n"), 10, quarantine, admission)
        self.recorder.connect(runner, self.dispatcher)
        self.task = asyncio.get_running_loop().create_task(self.dispatcher.run())


@asynccontextmanager
async def on_bench() -> AsyncIterator[Bench]:
    bench = Bench()
    try:
        yield bench
    finally:
        bench.task.cancel()
        await asyncio.gather(bench.task, return_exceptions=True)


async def test_ends_written_while_a_claim_is_under_way_are_followed_by_another_claim() -> None:
    async with on_bench() as bench:
        under_way = await bench.store.next_claim()
        bench.recorder.add(Finish(RunId(1), 1, RunState.SUCCEEDED, None, 0))
        await bench.recorder.flush()
        assert len(bench.store.finishes) == 1
        under_way.set_result(Claimed())
        assert not (await bench.store.next_claim()).done()


async def test_who_asks_while_a_claim_is_under_way_is_not_forgotten() -> None:
    async with on_bench() as bench:
        (await bench.store.next_claim()).set_result(Claimed())
        await bench.dispatcher.rest()
        request = bench.dispatcher.request()
        assert request is not None, "the recorder takes a claim with it"
        bench.dispatcher.wake()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert bench.store.claims.empty()
        bench.dispatcher.accept(Claimed())
        assert not (await bench.store.next_claim()).done()


async def test_closing_waits_for_the_claim_that_is_under_way() -> None:
    async with on_bench() as bench:
        under_way = await bench.store.next_claim()
        closing = asyncio.create_task(bench.dispatcher.close())
        await asyncio.sleep(0)
        assert not closing.done()
        under_way.set_result(Claimed())
        assert await asyncio.wait_for(closing, 5) == []
        assert bench.dispatcher.request() is None


async def test_a_stop_that_comes_while_its_run_is_being_claimed_is_not_forgotten() -> None:
    async with on_bench() as bench:
        under_way = await bench.store.next_claim()
        # The database has the claim and the stop, and this node has heard only of the stop.
        bench.dispatcher.cancel_claimed(RunId(7), Ending(Cause.CANCELLED, "its session was stopped"))
        run = ClaimedRun(
            RunId(7), 1, "function", "job", "{}", "{}", Trigger.API, 0, 0, 1, None, None, None, None, started_at=0
        )
        under_way.set_result(Claimed([run]))
        await bench.dispatcher.rest()
        await bench.recorder.flush(claim=False)
        (finish,) = bench.store.finishes
        assert (finish.id, finish.state, finish.reason) == (7, RunState.CANCELLED, "its session was stopped")


async def test_a_stop_of_a_run_of_others_is_forgotten_with_the_claim() -> None:
    async with on_bench() as bench:
        under_way = await bench.store.next_claim()
        bench.dispatcher.cancel_claimed(RunId(7), Ending(Cause.CANCELLED, "its session was stopped"))
        under_way.set_result(Claimed())
        await bench.dispatcher.rest()
        await bench.recorder.flush(claim=False)
        assert bench.store.finishes == []
