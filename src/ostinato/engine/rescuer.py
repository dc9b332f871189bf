"""Rescue: what ran on a node that is gone is tried again or failed, as its retry policy says.

The crash counts as a failed attempt. Every node rescues; the token decides who writes. A node is gone when nothing was
heard of it for the length of a lease, by the rescuer's own steady clock: nobody's wall clock, right or wrong, can
declare another node lost.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from ostinato.announcer import Announcer
from ostinato.clock import SECOND, Clock, Micros, Signal
from ostinato.engine.quarantine import Quarantine
from ostinato.engine.statistics import Statistics
from ostinato.errors import NotLoadable, StoreUnavailable
from ostinato.execution.outcome import Blame, Outcome, OutcomeKind
from ostinato.execution.retry import decide, undecided
from ostinato.logs import get_logger
from ostinato.models.budget import UNKNOWN
from ostinato.models.ids import NodeId
from ostinato.models.policy import DEFAULT, load_policy
from ostinato.models.run import NEVER_STARTED, ClaimedRun, Finish
from ostinato.models.states import Cause
from ostinato.models.work_kinds import is_task, unserved
from ostinato.plurals import counted
from ostinato.stores.base import Store

__all__ = ["Rescuer"]

log = get_logger("ostinato.engine")

UNKNOWN_TASK_AFTER: Micros = 60 * SECOND
"""How long a run waits for a node that knows its task before it says so; also how often that is looked for."""
ASIDE: Micros = 3600 * SECOND
"""How long a run of a session that waits for such a node lets the others go first, at most."""


class Rescuer:
    """Looks for lost runs a few times within the length of a lease."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        lease: Micros,
        own_id: Callable[[], NodeId],
        look: Callable[[], None],
        quarantine: Quarantine,
        statistics: Statistics | None = None,
        announcer: Announcer | None = None,
    ) -> None:
        self._statistics = statistics or Statistics()
        self._announcer = announcer or Announcer()
        self._quarantine = quarantine
        self._nodes = store.nodes
        self._runs = store.runs
        self._clock = clock
        self._lease = lease
        self.interval: Micros = lease // 3
        self._own_id = own_id
        self._look = look
        self._heard: dict[NodeId, tuple[Micros, Micros]] = {}
        """Of each node: the last sign of life, and when, by the steady clock, it was seen first."""
        self._explained_at: Micros | None = None
        self.signal = Signal()

    async def run(self) -> None:
        """Rescue, wait, and again."""
        while True:
            await self.rescue()
            await self.explain_unknown()
            # Whoever queued a run or set a due time may have died before it could tell: nothing waits longer than this.
            self._look()
            await self._clock.wait(self.signal, self._clock.now() + self.interval)

    async def rescue(self) -> int:
        """Requeue or fail what ran on lost nodes; answers how many runs."""
        now = self._clock.now()
        silent = self._silent(await self._nodes.signs_of_life())
        try:
            rescued = await self._quarantine.attempt(lambda: self._rescue(silent, now))
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("runs of nodes that are gone could not be rescued together: trying one by one")
            rescued = await self._rescue_singly(silent, now)
        if rescued:
            log.warning("rescued %s of nodes that are gone", counted(rescued, "run"))
        await self._settle_parked(now)
        return rescued

    async def _settle_parked(self, now: Micros) -> None:
        try:
            unnoted = await self._runs.settle_parked(now)
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("steps of chains whose upstreams had ended unnoted could not be decided: tried again soon")
            return
        if unnoted:
            log.warning(
                "%s without a note for the runs that wait for it", counted(unnoted, "run had ended", "runs had ended")
            )

    async def _rescue(self, silent: Sequence[tuple[NodeId, Micros]], now: Micros) -> int:
        stale = await self._stale_runs(silent, now)
        return await self._finish([_crashed(run, now) for run in stale]) if stale else 0

    async def _rescue_singly(self, silent: Sequence[tuple[NodeId, Micros]], now: Micros) -> int:
        """What cannot be decided or written as it should be is failed, and holds up nobody."""
        rescued = 0
        for run in await self._stale_runs(silent, now):
            try:
                rescued += await self._finish([_crashed(run, now)])
            except StoreUnavailable:
                raise
            except Exception as error:
                rescued += await self._finish([undecided(run, error, now)])
        return rescued

    async def _stale_runs(self, silent: Sequence[tuple[NodeId, Micros]], now: Micros) -> Sequence[ClaimedRun]:
        stale = await self._runs.stale_runs(silent, now)
        self._announcer.lost(stale.lost, now)
        if stale.bound:
            unstarted = (await self._runs.cancel_runs(stale.bound, NEVER_STARTED, now)).unstarted
            log.warning("ended %s that waited for nodes that are gone", counted(len(unstarted.ids), "run"))
            self._announcer.unstarted(unstarted)
        return stale.runs

    async def _finish(self, crashed: Sequence[Finish]) -> int:
        with self._announcer.ends_first():
            finished = await self._runs.finish_runs(crashed, None, self._clock.now())
            crashed = finished.as_written(crashed)
            self._statistics.ended(crashed, finished.lost)
            self._announcer.ended(crashed, finished)
        return len(crashed) - len(finished.lost)

    def _silent(self, signs: Sequence[tuple[NodeId, Micros]]) -> list[tuple[NodeId, Micros]]:
        """The other nodes that gave no sign of life for a whole lease, each with its last one."""
        steady = self._clock.steady()
        heard: dict[NodeId, tuple[Micros, Micros]] = {}
        for node, seen_at in signs:
            known = self._heard.get(node)
            heard[node] = known if known is not None and known[0] == seen_at else (seen_at, steady)
        self._heard = heard
        return [
            (id, seen_at)
            for id, (seen_at, since) in heard.items()
            if steady - since >= self._lease and id != self._own_id()
        ]

    async def explain_unknown(self) -> int:
        """Say on runs that have long been ready that no living node knows their task; answers how many. In a session
        of people they step aside, and queue up again when a node knows it."""
        steady = self._clock.steady()
        if self._explained_at is not None and steady - self._explained_at < UNKNOWN_TASK_AFTER:
            return 0
        self._explained_at = steady
        now = self._clock.now()
        before = now - UNKNOWN_TASK_AFTER
        await self._runs.step_back(now)
        unknown = await self._quarantine.attempt(lambda: self._runs.unclaimable_runs(before))
        for task in {str(run.task) for run in unknown}:
            ids = [run.id for run in unknown if run.task == task]
            reason = unserved(task)
            if is_task(task):
                reason += ": was it renamed, or is its app not running?"
            await self._runs.explain_queued(ids, Cause.UNKNOWN_TASK, reason)
            log.error("%s: %s", counted(len(ids), "queued run waits", "queued runs wait"), reason)
            await self._step_aside([run for run in unknown if run.task == task], task, reason, before, now)
        return len(unknown)

    async def _step_aside(
        self, unknown: Sequence[ClaimedRun], task: str, reason: str, before: Micros, now: Micros
    ) -> None:
        """What waits behind these in their sessions goes on without them."""
        sessions = {run.session for run in unknown if run.session is not None}
        told = f"{reason}; until a node knows it, the others of its session go first"
        if sessions and (aside := await self._runs.step_aside(sessions, task, before, now + ASIDE, told)):
            log.error("%s aside: the others of their sessions go first", counted(aside, "run stands", "runs stand"))


def _crashed(run: ClaimedRun, now: Micros) -> Finish:
    reason = f"node {run.node} was lost while it ran this"
    try:
        policy = load_policy(run.policy)
    except NotLoadable:
        policy = DEFAULT
    outcome = Outcome(OutcomeKind.FAILED, reason, reason, cause=Cause.NODE_LOST, blame=Blame.NODE)
    finish = decide(run, policy, outcome, now, random.random)
    finish.abandoned = True
    if policy.budget is not None and (run.schedule_id is not None or run.session is not None):
        finish.cost = UNKNOWN
    return finish
