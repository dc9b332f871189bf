"""Sessions of Ostinato. Roles: claims, by the store's own methods with nothing executed; worker and producer, by the
public interface."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from dataclasses import replace
from typing import Any

from link import arguments, produce, tell, wait_for_end

from ostinato import Ostinato
from ostinato.clock import SystemClock
from ostinato.errors import WaitTimeout
from ostinato.models.ids import NodeId
from ostinato.models.policy import policy_text
from ostinato.models.run import ClaimedRun, Finish, NewRun
from ostinato.models.session import Message
from ostinato.models.states import RunState, Trigger
from ostinato.models.work import Function, payload_work
from ostinato.service.schedules.drafts import policy_for_enqueue
from ostinato.stores.base import Claim, Store
from ostinato.wiring import open_store

SEND_BATCH = 500
CHUNKS = 15
"""How often each queue is measured, in turn with the other."""

_POLICY, _WORK = policy_text(policy_for_enqueue({})), payload_work("noop", "1")


class Queue:
    """A database with messages queued in so many sessions, claimed and finished as the engine does it."""

    def __init__(self, store: Store, sessions: int) -> None:
        self._store = store
        self._sessions = sessions
        self._runs: list[ClaimedRun] = []

    async def fill(self, n: int) -> None:
        """Send messages to one session after the other, and from the first again."""
        for first in range(0, n, SEND_BATCH):
            now = SystemClock().now()
            numbers = range(first, min(first + SEND_BATCH, n))
            await self._store.sessions.send([_message(number % self._sessions, now) for number in numbers], now)

    async def widen(self, at_once: int) -> None:
        """Let so many runs of the first session go at once from now on."""
        now = SystemClock().now()
        await self._store.sessions.send([replace(_message(0, now), max_concurrent=at_once)], now)

    async def begin(self, room: int) -> None:
        """Finish what is claimed, and claim the first batch of this size."""
        self._runs = await self._finish_and_claim(room)

    async def work(self, n: int, room: int) -> float:
        """Finish `n` runs, and with each batch claim the next in the same transaction; microseconds for each."""
        start = time.perf_counter()
        for _ in range(n // room):
            self._runs = await self._finish_and_claim(room)
        return (time.perf_counter() - start) / n * 1e6

    async def _finish_and_claim(self, room: int) -> list[ClaimedRun]:
        finished = await self._store.runs.finish_runs([_finish(run) for run in self._runs], _claim(room))
        if finished.lost or len(finished.claimed.runs) != room:
            raise AssertionError(f"claimed {len(finished.claimed.runs)} of {room}, lost {len(finished.lost)}")
        return list(finished.claimed.runs)


async def claims(asked: dict[str, Any]) -> None:
    """One session and many, in turn, in chunks: what it costs to finish a run and to claim the next."""
    stores = [open_store(db, "bench") for db in asked["dbs"]]
    one, many = Queue(stores[0], 1), Queue(stores[1], asked["sessions"])
    room, figures = asked["room"], {}
    try:
        for store in stores:
            await store.open()
            await store.lanes.ensure_lanes({"main": 1_000_000}, ["main"])
        await one.widen(room)
        for queue in (one, many):
            await queue.fill(asked["queued"])
        figures["batch"] = await _in_turn(one, many, room, asked["chunk"])
        await one.widen(1)
        figures["single"] = await _in_turn(one, many, 1, asked["singles"])
    finally:
        for store in stores:
            await store.close()
    tell(**{f"{name}_{what}": value for name, found in figures.items() for what, value in found.items()})


async def _in_turn(one: Queue, many: Queue, room: int, chunk: int) -> dict[str, float]:
    """The median cost of each, and the median of what many cost more than one, chunk by chunk."""
    for queue in (one, many):
        await queue.begin(room)
    costs = [(await one.work(chunk, room), await many.work(chunk, room)) for _ in range(CHUNKS)]
    return {
        "one_us": statistics.median(of_one for of_one, _ in costs),
        "many_us": statistics.median(of_many for _, of_many in costs),
        "cost": statistics.median(of_many / of_one for of_one, of_many in costs),
    }


def _message(session: int, now: int) -> Message:
    run = NewRun(Function.kind, "noop", _WORK, _POLICY, Trigger.MESSAGE, now, now, "main", session=f"dm:{session}")
    return Message(run, now)


def _claim(room: int) -> Claim:
    now = SystemClock().now()
    return Claim(NodeId("bench"), now, now, room, ["noop"], json.dumps(["noop"]))


def _finish(run: ClaimedRun) -> Finish:
    now = SystemClock().now()
    return Finish(run.id, run.token, RunState.SUCCEEDED, now, now, session=run.session)


def make_app(asked: dict[str, Any]) -> tuple[Ostinato, Any]:
    """The same app in both processes, and a task that does nothing."""
    app = Ostinato(asked["db"], tz="UTC", lanes={"main": asked["lane"]}, slots=256)

    @app.task("noop")
    async def noop(payloads: list[Any]) -> None:
        pass

    return app, noop


def worker(asked: dict[str, Any]) -> None:
    """A node, and nothing else."""
    app, _ = make_app(asked)
    app.start()
    tell(ready=True)
    wait_for_end()
    app.stop()


def producer(asked: dict[str, Any]) -> None:
    """So many senders at once, each with its own session and each waiting for an answer before it sends the next."""
    app, noop = make_app(asked)
    senders = asked["senders"]
    ids: list[int] = []

    async def send(sender: int, n: int) -> None:
        for number in range(n):
            if asked["plain"]:
                ids.append(await noop.aio.enqueue([number]))
            else:
                ids.append(await app.aio.sessions.send(f"dm:{sender}", number, task=noop, cap=n, debounce=0))

    async def send_all(n: int) -> None:
        await asyncio.gather(*(send(sender, n // senders) for sender in range(senders)))

    def is_done(_: int) -> bool:
        # A cheap look first: the last one in is among the last to end.
        if not app.runs.get(ids[-1]).ended:
            return False
        try:
            app.wait_idle(timeout=0)
        except WaitTimeout:
            return False
        return True

    figures = produce(lambda n: asyncio.run(send_all(n)), is_done, asked["n"], asked["warm_up"])
    recorded = len(app.runs.list(state="succeeded", limit=len(ids) + 1))
    tell(per_second=figures["rate"], sent_per_second=figures["enqueue_rate"], recorded=recorded - asked["warm_up"])
    app.stop()


if __name__ == "__main__":
    given = arguments()
    match given["role"]:
        case "claims":
            asyncio.run(claims(given))
        case "worker":
            worker(given)
        case _:
            producer(given)
