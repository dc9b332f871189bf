"""With each beat a node compares what the ledger says it runs with what it knows of, and puts the rest back.

A claim may be committed and its answer lost, so that nobody here ever heard of its runs: they would be `running` for as
long as the node lives, and fill their lane. They never started, so they go back to the queue uncounted. The lease calls
it; the recorder writes what goes back, fenced by its token.
"""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.clock import Clock
from ostinato.engine.dispatcher import Dispatcher
from ostinato.engine.recorder import Recorder
from ostinato.execution.runner import Runner
from ostinato.logs import get_logger
from ostinato.models.ids import RunId
from ostinato.models.run import Finish
from ostinato.models.states import RunState
from ostinato.stores.base import OwnedRun

__all__ = ["Reconciler"]

log = get_logger("ostinato.engine")


class Reconciler:
    """Remembers what it did not know at the last beat: the answer of a claim may be under way."""

    def __init__(self, clock: Clock, runner: Runner, dispatcher: Dispatcher, recorder: Recorder) -> None:
        self._clock = clock
        self._runner = runner
        self._dispatcher = dispatcher
        self._recorder = recorder
        self._suspects: set[tuple[RunId, int]] = set()
        self._begun = 0
        """How many claims were begun when the suspects were seen."""
        self.starting = 0
        """How many runs are just being started without a claim: their answers are under way too."""

    def compare(self, owned: Sequence[OwnedRun]) -> int:
        """Put back what nobody here knows, now and at the beat before; answers how many runs.

        In between, every claim must have ended that was under way then: whatever it got is known since.
        """
        unknown = {(run.id, run.token): run for run in owned if not self._knows(run.id)}
        is_settled = self._dispatcher.claims_ended >= self._begun and not self.starting
        orphans = [run for seen, run in unknown.items() if seen in self._suspects] if is_settled else []
        if is_settled:
            self._begun = self._dispatcher.claims_begun
            self._suspects = set(unknown)
        for run in orphans:
            log.warning("run %s was claimed for this node, which never learned of it: it is queued again", run.id)
            self._recorder.add(self._back(run))
        return len(orphans)

    def _knows(self, id: RunId) -> bool:
        return self._runner.has(id) or self._dispatcher.has(id) or self._recorder.has(id)

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
