"""A run that is executed in this process, from its first row to its end: what `app.execute` and `exec` wait for.

`engine/direct.py` starts it, at once or when its turn in its session has come. It can be told to stop at any time: by
whoever waits for it, and by the end of the run whose work has asked for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from ostinato.engine.node import Engine
from ostinato.errors import Conflict, NotFound, StoreError, StoreUnavailable
from ostinato.logs import get_logger, one_line
from ostinato.models.ids import RunId
from ostinato.models.output import OutputLine
from ostinato.models.run import Ending, NewRun, OuterRun, Run
from ostinato.models.session import in_shared_turn
from ostinato.models.states import Cause, RunState
from ostinato.models.work import Unreadable, Work, load_work
from ostinato.service.runs import RunService

__all__ = ["DirectExecution", "ExecutionCallbacks"]

log = get_logger("ostinato.engine")

_PATIENCE = 60
"""Seconds for which whoever executes a run here waits for the ledger to take its end."""
_PUT_OFF = Ending(Cause.CANCELLED, "it could not be executed now, and the run that asked for it does not wait")


@dataclass(frozen=True, slots=True)
class ExecutionCallbacks:
    """What whoever waits for a run is told of it on the way."""

    queued: Callable[[RunId], None] = lambda _: None
    """It has its row."""
    waits: Callable[[Run], None] = lambda _: None
    """It waits for its turn; its reason says for which run."""
    begun: Callable[[RunId], None] = lambda _: None
    printed: Callable[[OutputLine], Awaitable[None] | None] = lambda _: None
    """Each line of its output, as it comes."""


class DirectExecution:
    """One run, on an engine of this process."""

    def __init__(
        self,
        engine: Engine,
        runs: RunService,
        run: NewRun,
        callbacks: ExecutionCallbacks,
        *,
        wait: bool,
        outer: OuterRun | None,
    ) -> None:
        self._engine = engine
        self._runs = runs
        self._run = run
        self._callbacks = callbacks
        self._wait = wait
        self._outer = outer
        self._id: RunId | None = None
        self._ending: Ending | None = None
        self._stopping: asyncio.Task[None] | None = None

    async def execute(self) -> Run:
        """Answer how it ended. One that goes back to the queue (a snooze, say) is answered as it is: others do it."""
        around = await self._outer_runs()
        self._check_conversation(around)
        outer = [run.id for run in around]
        run = in_shared_turn(self._run, [(run.id, run.session) for run in around])
        self._engine.attend()
        if run.session is None:
            self._known(await self._engine.direct.start(run, outer))
        else:
            id = await self._engine.direct.queue(run, wait=self._wait)
            if not await self._engine.direct.take_turn(id, outer, lambda: self._known(id), self._waits):
                return await self._runs.get(id)
        assert self._id is not None
        self._callbacks.begun(self._id)
        ended = await self._followed(self._id)
        if ended.state is RunState.QUEUED and run is not self._run:
            # Later, somebody else may have the turn that it shared.
            await self._engine.direct.stop(ended.id, _PUT_OFF)
            return await self._runs.get(ended.id)
        return ended

    def stop(self, ending: Ending) -> None:
        """Tell it to stop, whether it has begun, waits, or has no row yet. The first who says so counts."""
        if self._ending is None:
            self._ending = ending
            if self._id is not None:
                self._tell(self._id, ending)

    def _known(self, id: RunId) -> None:
        self._id = id
        self._callbacks.queued(id)
        if self._ending is not None:
            self._tell(id, self._ending)

    def _tell(self, id: RunId, ending: Ending) -> None:
        self._stopping = asyncio.get_running_loop().create_task(self._stop(id, ending))

    async def _stop(self, id: RunId, ending: Ending) -> None:
        try:
            await self._engine.direct.stop(id, ending)
        except StoreError as error:
            log.warning("run %s could not be told to stop: %s", id, one_line(error))

    async def _outer_runs(self) -> Sequence[Run]:
        """The runs that it is executed inside of, as far as they are under way in this database."""
        if self._outer is None:
            return ()
        inner, *others = [await self._find(id) for id in (self._outer.id, *self._outer.outer)]
        # A node has a name of its own: if it is the same, so is the database.
        if inner is None or inner.node != self._outer.node:
            return ()
        return [run for run in (inner, *others) if run is not None and run.state is RunState.RUNNING]

    def _check_conversation(self, around: Sequence[Run]) -> None:
        """A Conflict, if one of the runs around it is the very conversation that it would continue: two would go on
        with it at once, and to wait for that would be for ever."""
        asked = _conversation(load_work(self._run.work), self._run.project)
        for run in around:
            if asked is not None and _conversation(run.work, run.project) == asked:
                raise Conflict(
                    f"run {run.id} is this conversation itself, and asks for another run of it: use another context "
                    "there, or send a message, which waits for its turn"
                )

    async def _find(self, id: RunId) -> Run | None:
        try:
            return await self._runs.get(id)
        except NotFound:
            return None

    async def _waits(self) -> None:
        assert self._id is not None
        self._callbacks.waits(await self._runs.look(self._id))

    async def _followed(self, id: RunId) -> Run:
        following = asyncio.ensure_future(self._follow(id))
        giving_up = asyncio.ensure_future(_unrecorded(self._engine))
        try:
            await asyncio.wait({following, giving_up}, return_when=asyncio.FIRST_COMPLETED)
            return await (following if following.done() else giving_up)
        finally:
            following.cancel()
            giving_up.cancel()

    async def _follow(self, id: RunId) -> Run:
        async for line in self._runs.follow(id, only_running=True):
            told = self._callbacks.printed(line)
            if told is not None:
                await told  # whoever reads slowly is waited for, and the run goes on meanwhile
        return await self._runs.get(id)


def _conversation(work: Work | Unreadable, project: str | None) -> str | None:
    return None if isinstance(work, Unreadable) else work.conversation(project)


async def _unrecorded(engine: Engine) -> NoReturn:
    """Raise when nothing runs any more and the ledger has not taken its end for a while: the disk is full, say."""
    looks = 0
    while looks < _PATIENCE:
        await asyncio.sleep(1)
        looks = looks + 1 if engine.recorder.pending and not engine.runner.running else 0
    raise StoreUnavailable(f"the end of the run could not be recorded for {_PATIENCE} s: see what the recorder says")
