"""What was claimed of a full session is claimed and not started until the store has said what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

import pytest

from ostinato.clock import Micros
from ostinato.config import Settings
from ostinato.engine.admission import Admission
from ostinato.engine.dispatcher import Dispatcher
from ostinato.engine.quarantine import Quarantine
from ostinato.errors import StoreUnavailable
from ostinato.execution.preparation import UpstreamsOf
from ostinato.execution.registry import Registry
from ostinato.execution.runner import Runner
from ostinato.models.ids import NodeId, RunId
from ostinato.models.run import ClaimedRun, Ending, Finish
from ostinato.models.session import STOPPED
from ostinato.models.states import RunState, Trigger
from ostinato.stores.base import Claim, Claimed, ProjectStore, RunStore
from ostinato.stores.quarantine import QuarantineStore
from ostinato.stores.sessions import SessionStore
from ostinato.testing import FakeClock

SLOTS = 4
Answer = asyncio.Future[list[RunId]]


class SlowStore:
    """Gives nothing to claim, and says which runs may start when the test answers."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[tuple[list[int], Answer]] = asyncio.Queue()
        self.unthrottled: list[str] = []
        self.is_away = False

    async def claim_runs(self, claim: Claim) -> Claimed:
        return Claimed()

    async def hold_back(self, claimed: Sequence[ClaimedRun], now: Micros) -> list[RunId]:
        answer: Answer = asyncio.get_running_loop().create_future()
        self.asked.put_nowait(([run.id for run in claimed], answer))
        return await answer

    async def unthrottle(self, sessions: Sequence[str]) -> None:
        if self.is_away:
            raise StoreUnavailable("the database is away")
        self.unthrottled += sessions

    async def next_question(self) -> tuple[list[int], Answer]:
        return await asyncio.wait_for(self.asked.get(), 5)


class Bench:
    """A dispatcher with a throttle, whose runs go on until the test is over; what ends is noted."""

    def __init__(self) -> None:
        self.store = SlowStore()
        self.ended: list[tuple[int, RunState, str | None]] = []
        self.started: asyncio.Queue[int] = asyncio.Queue()
        self.full = True
        self.clock = FakeClock()
        registry = Registry()
        registry.add_task("reply", self._reply, {})
        registry.throttle.usage = lambda key: (90.0 if self.full else 10.0, 100.0)
        self.runner = Runner(
            registry, self.clock, self._record, cast(ProjectStore, None), cast(UpstreamsOf, None), Settings()
        )
        admission = Admission(cast(SessionStore, self.store), registry.throttle, self.runner, self.clock)
        quarantine = Quarantine(cast(QuarantineStore, None), self.clock)
        runs = cast(RunStore, self.store)
        self.dispatcher = Dispatcher(runs, self.runner, self.clock, NodeId("n"), SLOTS, quarantine, admission)
        self.task = asyncio.get_running_loop().create_task(self.dispatcher.run())

    async def _reply(self, number: int) -> None:
        self.started.put_nowait(number)
        await asyncio.Event().wait()

    def _record(self, finish: Finish) -> None:
        self.ended.append((finish.id, finish.state, finish.reason))

    def claim(self, *numbers: int, token: int = 1) -> None:
        """These runs of a session are claimed."""
        assert self.dispatcher.request() is not None
        self.dispatcher.accept(Claimed([self.run(number, token) for number in numbers]))

    def run(self, number: int, token: int = 1, session: str = "dm:1") -> ClaimedRun:
        now, task = self.clock.now(), "reply"
        work = f'{{"kind":"function","task":"reply","args":[{number}],"kwargs":{{}}}}'
        return ClaimedRun(
            RunId(number), token, "function", task, work, "{}", Trigger.MESSAGE, now, now, 1, None, None, session, None
        )

    async def next_started(self) -> int:
        return await asyncio.wait_for(self.started.get(), 5)


@asynccontextmanager
async def on_bench() -> AsyncIterator[Bench]:
    bench = Bench()
    try:
        yield bench
    finally:
        bench.task.cancel()
        bench.runner.abandon()
        await asyncio.gather(bench.task, return_exceptions=True)


async def test_what_may_start_starts_and_the_rest_is_no_longer_here() -> None:
    async with on_bench() as bench:
        bench.claim(1, 2, 3)
        asked, answer = await bench.store.next_question()
        assert asked == [1, 2, 3]
        assert bench.started.empty(), "nothing starts before the answer"
        assert all(bench.dispatcher.has(RunId(number)) for number in asked)
        assert bench.dispatcher.claimed_ahead == 3
        request = bench.dispatcher.request()
        assert request is not None
        assert request.room == SLOTS - 3
        bench.dispatcher.release()
        answer.set_result([RunId(1)])
        assert await bench.next_started() == 1
        assert bench.dispatcher.claimed_ahead == 0
        assert (bench.runner.running, bench.ended) == (1, [])


async def test_what_is_claimed_while_the_store_is_asked_is_asked_next() -> None:
    async with on_bench() as bench:
        bench.claim(1)
        _, first = await bench.store.next_question()
        bench.claim(2)
        first.set_result([RunId(1)])
        asked, second = await bench.store.next_question()
        assert asked == [2]
        second.set_result([RunId(2)])
        assert [await bench.next_started(), await bench.next_started()] == [1, 2]


async def test_after_an_error_they_are_still_held_and_asked_again() -> None:
    async with on_bench() as bench:
        bench.claim(1, 2)
        _, answer = await bench.store.next_question()
        answer.set_exception(StoreUnavailable("the database is away"))
        with pytest.raises(StoreUnavailable):
            await bench.task
        assert bench.dispatcher.claimed_ahead == 2
        bench.task = asyncio.create_task(bench.dispatcher.run())  # as the watchdog does
        asked, answer = await bench.store.next_question()
        assert asked == [1, 2]
        answer.set_result([RunId(1)])
        assert await bench.next_started() == 1


async def test_a_stop_that_comes_while_the_store_is_asked_is_not_forgotten() -> None:
    async with on_bench() as bench:
        bench.claim(1, 2)
        _, answer = await bench.store.next_question()
        for number in (1, 2):
            bench.dispatcher.cancel_claimed(RunId(number), STOPPED)
        assert bench.ended == [], "the store may be ending them itself"
        answer.set_result([RunId(1)])
        await bench.dispatcher.rest()
        assert bench.ended == [(1, RunState.CANCELLED, STOPPED.reason)]
        assert (bench.started.empty(), bench.dispatcher.claimed_ahead) == (True, 0)


async def test_a_stop_that_comes_while_the_database_is_away_ends_what_is_held() -> None:
    async with on_bench() as bench:
        bench.claim(1, 2)
        _, answer = await bench.store.next_question()
        answer.set_exception(StoreUnavailable("the database is away"))
        await asyncio.gather(bench.task, return_exceptions=True)
        bench.dispatcher.cancel_claimed(RunId(1), Ending(STOPPED.cause, "told"))
        assert bench.ended == [(1, RunState.CANCELLED, "told")]
        assert not bench.dispatcher.has(RunId(1))


async def test_a_node_that_lost_its_lease_starts_nothing_when_the_answer_comes() -> None:
    async with on_bench() as bench:
        bench.claim(1, 2)
        _, answer = await bench.store.next_question()
        assert bench.dispatcher.forget_claimed() == 2
        answer.set_result([RunId(1)])
        await bench.dispatcher.rest()
        assert (bench.runner.running, bench.ended) == (0, [])


async def test_what_is_claimed_anew_meanwhile_is_another_run_to_the_answer() -> None:
    async with on_bench() as bench:
        bench.claim(1)
        _, answer = await bench.store.next_question()
        bench.dispatcher.forget_claimed()
        bench.claim(1, token=3)
        answer.set_result([RunId(1)])
        asked, answer = await bench.store.next_question()
        assert (asked, bench.runner.running) == ([1], 0)
        answer.set_result([RunId(1)])
        assert await bench.next_started() == 1


async def test_closing_waits_for_the_answer_and_takes_what_has_none() -> None:
    async with on_bench() as bench:
        bench.claim(1, 2)
        _, answer = await bench.store.next_question()
        bench.claim(3)
        closing = asyncio.create_task(bench.dispatcher.close())
        await asyncio.sleep(0)
        assert not closing.done()
        bench.task.cancel()
        answer.cancel()
        assert [run.id for run in await asyncio.wait_for(closing, 5)] == [1, 2, 3]
        assert bench.dispatcher.claimed_ahead == 0


async def test_a_database_that_is_silent_does_not_hold_up_a_close_for_ever() -> None:
    async with on_bench() as bench:
        bench.claim(1)
        await bench.store.next_question()
        closing = bench.dispatcher.close(asyncio.get_running_loop().time())
        assert [run.id for run in await asyncio.wait_for(closing, 5)] == [1]


async def test_a_session_with_room_is_told_as_such_and_delays_nothing() -> None:
    async with on_bench() as bench:
        bench.full = False
        bench.claim(1, 2)
        assert {await bench.next_started(), await bench.next_started()} == {1, 2}
        bench.full = True
        bench.claim(3)
        asked, answer = await bench.store.next_question()
        assert (asked, bench.store.unthrottled) == ([3], ["dm:1"])
        answer.set_result([])


async def test_what_may_start_starts_though_the_store_is_away_since() -> None:
    async with on_bench() as bench:
        bench.store.is_away = True
        bench.claim(1)
        _, answer = await bench.store.next_question()
        bench.full = False
        bench.dispatcher.accept(Claimed([bench.run(2, session="dm:2")]))
        answer.set_result([RunId(1)])
        assert {await bench.next_started(), await bench.next_started()} == {1, 2}
        with pytest.raises(StoreUnavailable):
            await bench.task
        bench.store.is_away = False
        assert await bench.dispatcher.admit() == 0
        assert bench.store.unthrottled == ["dm:2"]
