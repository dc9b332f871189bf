"""Rescue: what ran on a node that is gone is tried again or failed, as its retry policy says.

The crash counts as a failed attempt. Every node rescues; the token decides who writes. Runs whose task nobody knows
are failed after a while, so that they do not wait in silence.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable

from ostinato.clock import SECOND, Clock, Micros, Signal
from ostinato.errors import NotLoadable
from ostinato.execution.outcome import Outcome, OutcomeKind
from ostinato.execution.retry import decide
from ostinato.models.policy import DEFAULT, load_policy
from ostinato.models.run import ClaimedRun, Finish
from ostinato.stores.base import RunStore

__all__ = ["Rescuer"]

log = logging.getLogger("ostinato.engine")

UNKNOWN_TASK_AFTER: Micros = 60 * SECOND


class Rescuer:
    """Looks for lost runs a few times within the length of a lease."""

    def __init__(
        self,
        runs: RunStore,
        clock: Clock,
        lease: Micros,
        hold_lease: Callable[[], Awaitable[None]],
        look: Callable[[], None],
    ) -> None:
        self._runs = runs
        self._clock = clock
        self._lease = lease
        self._hold_lease = hold_lease
        self._look = look
        self.signal = Signal()

    async def run(self) -> None:
        """Rescue, wait, and again."""
        while True:
            await self.rescue()
            await self.fail_unknown()
            # Whoever queued a run may have died before it could tell: nothing waits longer than this to be seen.
            self._look()
            await self._clock.wait(self.signal, self._clock.now() + self._lease // 3)

    async def rescue(self) -> int:
        """Requeue or fail what ran on lost nodes; answers how many runs."""
        await self._hold_lease()
        now = self._clock.now()
        stale = await self._runs.stale_runs(now)
        if not stale:
            return 0
        finished = await self._runs.finish_runs([_crashed(run, now) for run in stale])
        rescued = len(stale) - len(finished.lost)
        if rescued:
            log.warning("rescued %d runs of nodes that are gone", rescued)
        return rescued

    async def fail_unknown(self) -> int:
        """Fail what has been ready for a minute and whose task no living node knows."""
        now = self._clock.now()
        unknown = await self._runs.unclaimable_runs(now - UNKNOWN_TASK_AFTER, now)
        for task in {run.task for run in unknown}:
            ids = [run.id for run in unknown if run.task == task]
            reason = f"task {task!r} is not registered on any running node: was it renamed, or is its app not running?"
            breaks = [_decided(run, Outcome(OutcomeKind.ABORTED, reason), now) for run in unknown if run.task == task]
            failed = await self._runs.fail_queued(ids, reason, now, breaks)
            log.error("failed %d runs: %s", failed, reason)
        return len(unknown)


def _crashed(run: ClaimedRun, now: Micros) -> Finish:
    reason = f"node {run.node} was lost while it ran this"
    return _decided(run, Outcome(OutcomeKind.FAILED, reason, reason), now)


def _decided(run: ClaimedRun, outcome: Outcome, now: Micros) -> Finish:
    try:
        policy = load_policy(run.policy)
    except NotLoadable:
        policy = DEFAULT
    return decide(run, policy, outcome, now, random.random)
