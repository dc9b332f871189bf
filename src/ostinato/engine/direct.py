"""Runs that this process executes because somebody here asked for it: no lane and no slot holds them back.

Their session does: such a run waits in the queue of its session, bound to this node, which starts it itself when its
turn has come. direct_execution.py follows them to their end; the rescuer ends what a lost node leaves waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

from ostinato.announcer import Announcer
from ostinato.clock import Clock
from ostinato.engine.fence import Fence
from ostinato.engine.reconciler import Reconciler
from ostinato.engine.rescuer import Rescuer
from ostinato.errors import Conflict, StoreError, StoreUnavailable
from ostinato.execution.context import current_context
from ostinato.execution.runner import Runner
from ostinato.execution.throttle import Throttle
from ostinato.logs import get_logger, one_line
from ostinato.models.ids import NodeId, RunId
from ostinato.models.run import NEVER_STARTED, ClaimedRun, Ending, NewRun
from ostinato.models.states import Cause
from ostinato.stores.base import RunStore
from ostinato.tracing import find_tracer

__all__ = ["DirectRuns"]

log = get_logger("ostinato.engine")

_FIRST_LOOK, _LONGEST_LOOK = 0.005, 0.1
_LAST_WRITE = 4.0
"""Seconds that the database has to take the end of a run for which nobody waits any more."""
_NEVER = 1 << 62
_LEFT = Ending(Cause.CANCELLED, "its process was stopped before its turn came")


class DirectRuns:
    """Starts them, at once or in their turn."""

    def __init__(
        self,
        runs: RunStore,
        runner: Runner,
        clock: Clock,
        node: Callable[[], NodeId],
        fence: Fence,
        reconciler: Reconciler,
        rescuer: Rescuer,
        throttle: Throttle,
        announcer: Announcer,
    ) -> None:
        self._runs = runs
        self._runner = runner
        self._clock = clock
        self._node = node
        self._fence = fence
        self._reconciler = reconciler
        self._rescuer = rescuer
        self._throttle = throttle
        self._announcer = announcer
        self._waiting = reconciler.waiting
        self._answered = asyncio.Event()
        """Set while the ledger is asked nothing."""
        self._answered.set()
        self._is_closed = False
        self.rescues = False
        """Whether a run that waits here looks for lost nodes meanwhile: where no other service does."""

    async def start(self, run: NewRun, outer: Sequence[RunId] = ()) -> RunId:
        """Execute a run that is in no session; answers when it has begun."""
        await self._fence.wait()
        node = self._node()

        async def insert() -> ClaimedRun:
            return await self._runs.start_run(run, node, self._clock.now())

        claimed = await self._begin(insert, node, outer)
        assert claimed is not None
        return claimed.id

    async def queue(self, run: NewRun, *, wait: bool) -> RunId:
        """Put a run into the queue of its session; a Conflict if it would have to wait there and must not.

        Whoever gets its id goes on with `take_turn` at once.
        """
        session = run.session
        assert session is not None
        await self._fence.wait()  # of a node that is in nobody's list yet, a rescuer would end it at once
        is_full = not wait and bool(self._throttle.look(session))
        with self._asking():
            bound = await self._runs.queue_bound(run, self._node(), self._clock.now(), wait=wait, is_full=is_full)
        if bound.id is None:
            raise Conflict(
                f"session {session!r} is busy: run {bound.before} has its turn; wait for its end, or stop it"
            )
        self._waiting[bound.id] = _NEVER if run.expires_at is None else run.expires_at
        return bound.id

    async def take_turn(
        self,
        id: RunId,
        outer: Sequence[RunId],
        queued: Callable[[], None],
        waits: Callable[[], Awaitable[None]],
    ) -> bool:
        """Start such a run when its turn has come; False if it has ended before, or others have it now.

        `queued` is called first; `waits` once, if it has to wait. Whatever goes wrong, nobody waits behind it for ever.
        """
        try:
            queued()
            return await self._wait_for_turn(id, outer, waits)
        except BaseException as error:
            await self._give_up(id, error)
            raise
        finally:
            del self._waiting[id]

    async def _wait_for_turn(self, id: RunId, outer: Sequence[RunId], waits: Callable[[], Awaitable[None]]) -> bool:
        node, pause, rescued_at = self._node(), _FIRST_LOOK, self._clock.steady()
        is_away = is_told = False
        while True:
            try:
                if (is_begun := await self._try(id, node, outer)) is not None:
                    return is_begun
                if not is_told:
                    await waits()
                    is_told = True
                if self.rescues and self._clock.steady() - rescued_at >= self._rescuer.interval:
                    rescued_at = self._clock.steady()
                    await self._rescuer.rescue()
                is_away = False
            except StoreUnavailable as error:
                if not is_away:
                    log.warning("run %s waits for its turn, and for the database: %s", id, one_line(error))
                is_away = True
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_LOOK)

    async def _give_up(self, id: RunId, error: BaseException) -> None:
        """Nobody waits for its turn any more: end it, so that others get theirs."""
        is_stopped = isinstance(error, asyncio.CancelledError)
        ending = _LEFT if is_stopped else Ending(Cause.CANCELLED, f"it never started: {one_line(error)}")
        try:
            async with asyncio.timeout(_LAST_WRITE):
                await self.stop(id, ending)
        except (StoreError, TimeoutError) as failure:
            self._reconciler.abandoned.add(id)
            log.warning("nobody waits for run %s any more, and it could not be ended yet: %s", id, one_line(failure))

    async def _try(self, id: RunId, node: NodeId, outer: Sequence[RunId]) -> bool | None:
        """Whether it has begun; None if it goes on waiting."""
        run = await self._runs.get_run(id)
        if run is None or run.ended or run.node != node:
            return False
        if node != self._node():
            await self.stop(id, NEVER_STARTED)  # this process lost its lease, and nobody starts what its old name left
            return False
        if run.waiting and self._clock.now() < self._waiting[id]:
            if self._is_closed:
                await self.stop(id, _LEFT)
            return None
        await self._fence.wait()
        if self._is_closed and not outer:
            await self.stop(id, _LEFT)
            return None
        assert run.session is not None
        is_full = self._throttle.look(run.session)

        async def begin() -> ClaimedRun | None:
            claimed = await self._runs.start_bound(id, node, self._clock.now(), is_full=is_full)
            self._announcer.unstarted(claimed.expired)
            return next(iter(claimed.runs), None)

        return None if await self._begin(begin, node, outer) is None else True

    async def _begin(
        self, start: Callable[[], Awaitable[ClaimedRun | None]], node: NodeId, outer: Sequence[RunId]
    ) -> ClaimedRun | None:
        """Start it in the ledger and then here, unless others have taken over meanwhile."""
        with self._asking():
            claimed = await start()
            if claimed is None:
                return None
            await self._fence.wait()
            if node != self._node():
                raise Conflict(f"run {claimed.id} was not started: this node lost its lease, and others took over")
            claimed.outer = outer
            self._runner.tracer = find_tracer()
            loaded = self._runner.load(claimed)
            if (inside := current_context.get(None)) is not None:
                loaded.context.belong_to(inside)
            self._runner.start(loaded)
            self._announcer.started((claimed,))
        return claimed

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """While the ledger is asked to queue or start a run: until its answer, nobody here knows what it has done."""
        self._reconciler.starting += 1
        self._answered.clear()
        try:
            yield
        finally:
            self._reconciler.starting -= 1
            if not self._reconciler.starting:
                self._answered.set()

    async def stop(self, id: RunId, ending: Ending) -> None:
        """Tell a run to stop that is under way here, or end it while it waits."""
        if not self._runner.cancel(id, ending):
            await self._runs.cancel_runs([id], ending, self._clock.now())

    async def close(self, seconds: float) -> None:
        """This process stops: what waits here will not be started, and what is just being started is under way
        afterwards. The database has so many seconds for that."""
        self._is_closed = True
        try:
            async with asyncio.timeout(seconds):
                if self._waiting:
                    await self._runs.cancel_runs(list(self._waiting), _LEFT, self._clock.now())
                await self._answered.wait()
        except (StoreError, TimeoutError) as error:
            log.warning("what waits for its turn here could not be ended: others will do it (%s)", one_line(error))
