"""With each beat a node compares what the ledger says it has with what it knows of, and puts the rest back.

A claim may be committed and its answer lost, so that nobody here ever heard of its runs: they would be `running` for as
long as the node lives, and fill their lane. They never started, so they go back to the queue uncounted. What was queued
for this node alone, and nobody here waits for, is ended: nobody else may start it, and its session waits behind it. The
lease calls it; the recorder writes what goes back, fenced by its token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ostinato.announcer import Announcer
from ostinato.clock import Clock, Micros
from ostinato.engine.dispatcher import Dispatcher
from ostinato.engine.recorder import Recorder
from ostinato.errors import StoreError
from ostinato.execution.runner import Runner
from ostinato.logs import get_logger, one_line
from ostinato.models.ids import RunId
from ostinato.models.run import Ending, Finish
from ostinato.models.states import Cause, RunState
from ostinato.plurals import counted
from ostinato.stores.base import OwnedRun, Renewed, RunStore

__all__ = ["Reconciler"]

log = get_logger("ostinato.engine")

_UNHEARD = Ending(Cause.NODE_LOST, "its node never learned that it was queued there: it never started")
_ABANDONED = Ending(Cause.CANCELLED, "nobody waited for it any more when it was to start")


class Reconciler:
    """Remembers what it did not know at the last beat: the answer of a claim may be under way."""

    def __init__(
        self,
        runs: RunStore,
        clock: Clock,
        runner: Runner,
        dispatcher: Dispatcher,
        recorder: Recorder,
        announcer: Announcer,
    ) -> None:
        self._runs = runs
        self._clock = clock
        self._runner = runner
        self._dispatcher = dispatcher
        self._recorder = recorder
        self._announcer = announcer
        self._suspects: set[tuple[RunId, int]] = set()
        self._bound_suspects: set[RunId] = set()
        self._begun = 0
        """How many claims were begun when the suspects were seen."""
        self._ending: asyncio.Task[None] | None = None
        self.starting = 0
        """How many runs are just being queued or started without a claim: their answers are under way too."""
        self.waiting: dict[RunId, Micros] = {}
        """Those that wait here for their turn, and until when."""
        self.abandoned: set[RunId] = set()
        """Those that did, and that could not be ended when nobody waited for them any more."""

    def compare(self, found: Renewed) -> None:
        """Put back or end what nobody here knows, now and at the beat before.

        In between, every claim must have ended that was under way then: whatever it got is known since.
        """
        if self._dispatcher.claims_ended < self._begun or self.starting:
            return
        unknown = {(run.id, run.token): run for run in found.owned if not self._knows(run.id)}
        unheard = set(found.bound) - self.waiting.keys()
        self._put_back([run for seen, run in unknown.items() if seen in self._suspects])
        self._end_bound(sorted(unheard & self._bound_suspects))
        self._begun = self._dispatcher.claims_begun
        self._suspects, self._bound_suspects = set(unknown), unheard
        self.abandoned &= {run.id for run in unknown.values()} | unheard

    def _knows(self, id: RunId) -> bool:
        return self._runner.has(id) or self._dispatcher.has(id) or self._recorder.has(id)

    def _put_back(self, orphans: Sequence[OwnedRun]) -> None:
        for run in orphans:
            if run.id in self.abandoned:
                log.warning("run %s was started for this node when nobody waited for it any more: it is ended", run.id)
                self._recorder.add(self._ended(run))
            else:
                log.warning("run %s was claimed for this node, which never learned of it: it is queued again", run.id)
                self._recorder.add(self._back(run))

    def _back(self, run: OwnedRun) -> Finish:
        now = self._clock.now()
        return Finish(
            id=run.id,
            token=run.token,
            state=RunState.QUEUED,
            reason="its node never learned that it had claimed it",
            started_at=None,
            finished_at=now,
            ready_at=max(now, run.ready_at),
            counted=False,
            schedule_id=run.schedule_id,
            session=run.session,
        )

    def _ended(self, run: OwnedRun) -> Finish:
        """Of one that was to be executed here and nowhere else: in another folder it would do something else."""
        return Finish(
            id=run.id,
            token=run.token,
            state=_ABANDONED.state,
            cause=_ABANDONED.cause,
            reason=_ABANDONED.reason,
            started_at=None,
            finished_at=self._clock.now(),
            session=run.session,
        )

    def _end_bound(self, ids: Sequence[RunId]) -> None:
        """Beside the beat, which waits for nobody else's locks. What fails is seen again at the next one."""
        if ids and (self._ending is None or self._ending.done()):
            self._ending = asyncio.get_running_loop().create_task(self._end(ids))

    async def _end(self, ids: Sequence[RunId]) -> None:
        unheard = f"{counted(len(ids), 'run')}, queued for this node, which never learned of it"
        try:
            cancelled = await self._runs.cancel_runs(ids, _UNHEARD, self._clock.now())
        except StoreError as error:
            log.warning("could not yet end %s: %s", unheard, one_line(error))
        else:
            log.warning("ended %s", unheard)
            self._announcer.unstarted(cancelled.unstarted)

    async def rest(self) -> None:
        """Return when nothing is being ended."""
        if self._ending is not None:
            await self._ending
