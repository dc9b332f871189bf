"""What keeps runs and schedules from going on, as of now. Every door that says why asks here, and says the same.

It reads facts, in six queries for however many are asked for, and leaves the decision to blocked_runs.py and
blocked_schedules.py. Nothing of it is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ostinato.clock import Clock
from ostinato.command_hints import with_flags
from ostinato.models.blocking import BlockedBy, BlockedCause
from ostinato.models.ids import RunId
from ostinato.models.run import Run, RunFilter
from ostinato.models.schedule import Schedule, ScheduleFilter, ScheduleState
from ostinato.models.states import Cause, RunState
from ostinato.service.blocked_runs import Facts, blocked_run
from ostinato.service.blocked_schedules import blocked_schedule, blocked_upstream, broken_for_good
from ostinato.service.schedules.drafts import Code
from ostinato.stores.base import FirstActive, FirstActiveOf, Store
from ostinato.timing import After

__all__ = ["Blocking"]

_NOTHING_ACTIVE = FirstActive()
_LATEST = 10
"""How many runs of a schedule are looked at for one that is not queued: more of them wait in line, which is told."""
_WAITS_FOR_SOMEBODY = (BlockedCause.OFF, BlockedCause.BROKEN, BlockedCause.FINISHED, BlockedCause.UPSTREAM_GONE)
"""What an upstream waits for, whatever else ends: somebody has to do something about it."""
_STARTS = "nothing delays it: it is about to start"


class Blocking:
    """Asks the store once for all of them."""

    def __init__(self, store: Store, clock: Clock, zone: str, code: Code, app: str | None) -> None:
        self._store = store
        self._clock = clock
        self._zone = zone
        self._code = code
        self.app = app
        """What `--app` names the code of this process; empty where it needs no name, and None if it has none."""
        self.flags = ""
        """What a command line adds to its commands, for them to be about the same database and app."""

    async def of_schedule(self, schedule: Schedule) -> BlockedBy | None:
        """What keeps this schedule from running, or those that it runs after."""
        return self._typed(await self._root_of(schedule, {}))

    async def _root_of(self, schedule: Schedule, known: dict[str, BlockedBy | None]) -> BlockedBy | None:
        """The same, each schedule on the way only once: there are no circles, but there may be many ways to one."""
        if schedule.name not in known:
            own = await self._own_root_of(schedule)
            known[schedule.name] = await self._with_upstreams(schedule, own, known) if schedule.follows else own
        return known[schedule.name]

    async def _with_upstreams(
        self, schedule: Schedule, own: BlockedBy | None, known: dict[str, BlockedBy | None]
    ) -> BlockedBy | None:
        """The root of one that runs after others: its own, unless that would end and leave it waiting for good."""
        if not schedule.sentence:
            return own
        timing = schedule.anchored_timing
        found = await self._store.schedules.list_schedules(ScheduleFilter(names=timing.follows))
        upstreams = dict.fromkeys(timing.follows) | {one.name: one for one in found}
        if own is not None and own.cause is BlockedCause.BROKEN and None in upstreams.values():
            return broken_for_good(schedule, own)
        if schedule.state is not ScheduleState.ON or (own is not None and _is_of_run(own)):
            return own
        before = await self._root_of_upstreams(schedule, upstreams, known)
        return before if own is None or (before is not None and before.cause in _WAITS_FOR_SOMEBODY) else own

    async def _own_root_of(self, schedule: Schedule) -> BlockedBy | None:
        schedule = await self._answered(schedule)
        asked = FirstActiveOf(self._clock.now(), schedules=[schedule.id])
        own = await self._store.runs.first_active(asked)
        queued = own.queued.get(schedule.id)
        facts = await self._facts([] if queued is None else [queued], own)
        if schedule.paused_cause is Cause.BUDGET:
            facts = replace(facts, spending=await self._store.projects.read_spending(schedule.id, facts.now))
        return blocked_schedule(schedule, facts)

    async def _answered(self, schedule: Schedule) -> Schedule:
        """The same with the latest run that is more than recorded: one that has not begun answers nothing."""
        if schedule.last_run is None or not _is_recorded_only(schedule.last_run):
            return schedule
        latest = await self._store.runs.list_runs(RunFilter(schedule_id=schedule.id, limit=_LATEST, brief=True))
        return replace(schedule, last_run=next((run for run in latest if not _is_recorded_only(run)), None))

    async def _root_of_upstreams(
        self, schedule: Schedule, upstreams: Mapping[str, Schedule | None], known: dict[str, BlockedBy | None]
    ) -> BlockedBy | None:
        """Of one that runs after any of several, only if none of them runs."""
        roots = []
        for name, upstream in upstreams.items():
            root = None if upstream is None else await self._root_of(upstream, known)
            roots.append(blocked_upstream(schedule, name, upstream, root))
        timing = schedule.anchored_timing
        if isinstance(timing, After) and timing.within is None and None in roots:
            return None
        return next((root for root in roots if root is not None), None)

    async def of_run(self, run: Run) -> BlockedBy | None:
        """What keeps this run from starting, or, where its node was lost, from going on; None if nothing does."""
        return (await self.of_runs([run])).get(run.id)

    async def of_runs(self, runs: Iterable[Run]) -> dict[RunId, BlockedBy]:
        """The same of many; those that nothing delays are left out."""
        active = [run for run in runs if not run.ended]
        if not active:
            return {}
        facts = await self._facts([run for run in active if run.state is RunState.QUEUED])
        found = {run.id: self._typed(blocked_run(run, facts)) for run in active}
        return {id: blocked for id, blocked in found.items() if blocked is not None}

    async def waits_for(self, run: Run) -> str:
        """The rest of a sentence that ends at a queued run: why it does not start, and what ends that."""
        if run.state is not RunState.QUEUED:
            return ""
        blocked = await self.of_run(run)
        return f": {_STARTS if blocked is None else blocked.told}"

    async def explained(self, runs: Sequence[Run]) -> Sequence[Run]:
        """The same runs; a queued one that has no reason of its own gets the one for which it waits, and one whose
        code goes on though it was given up says so."""
        blocked = await self.of_runs(run for run in runs if run.state is RunState.QUEUED and not run.reason)
        going_on = {one.run: one.node for one in await self._store.runs.list_given_up()}
        told = [
            replace(run, reason=blocked[run.id].sentence if run.id in blocked else _STARTS)
            if run.state is RunState.QUEUED and not run.reason
            else run
            for run in runs
        ]
        return [_going_on(run, going_on[run.id]) if run.id in going_on and run.reason else run for run in told]

    def _typed(self, blocked: BlockedBy | None) -> BlockedBy | None:
        if blocked is None or blocked.command is None or not self.flags:
            return blocked
        return replace(blocked, command=with_flags(blocked.command, self.flags))

    async def _facts(self, queued: Sequence[Run], own: FirstActive = _NOTHING_ACTIVE) -> Facts:
        """What can be before these runs. What is before those in turn is found step by step: who waits for the end of
        another waits for no turn yet, who has the turn in a session waits in no other, and what is under way in a lane
        waits for nobody."""
        now = self._clock.now()
        lanes, nodes, given_up = await asyncio.gather(
            self._store.lanes.list_lanes(), self._store.nodes.list_nodes(now), self._store.runs.list_given_up()
        )
        parked = [run.id for run in queued if run.waiting and run.session is None]
        after = (await self._store.runs.first_active(FirstActiveOf(now, after=parked))).after if parked else {}
        before = {run.id: run for runs in after.values() for run in runs}
        queued = [*queued, *(run for run in before.values() if run.state is RunState.QUEUED)]
        sessions = sorted({run.session for run in queued if run.waiting and run.session is not None})
        turns = await self._store.runs.first_active(FirstActiveOf(now, sessions=sessions)) if sessions else own
        in_lanes = {run.lane for run in (*queued, *turns.sessions.values()) if run.state is RunState.QUEUED}
        full = [lane.name for lane in lanes if lane.name in in_lanes and lane.used >= lane.limit]
        busy = [node.id for node in nodes if queued and node.state != "lost" and node.running >= node.slots]
        held = await self._store.runs.first_active(FirstActiveOf(now, lanes=full, nodes=busy)) if full or busy else own
        first = replace(own, sessions=turns.sessions, lanes=held.lanes, nodes=held.nodes, after=after)
        return Facts(
            now, self._zone, {lane.name: lane for lane in lanes}, nodes, given_up, first, self.app, self._is_known_here
        )

    def _is_known_here(self, task: str) -> bool:
        return self._code.takes_payloads(task) is not None


def _is_of_run(blocked: BlockedBy) -> bool:
    """Whether a run is what waits."""
    return bool(blocked.chain) and blocked.chain[0].kind == "run"


def _is_recorded_only(run: Run) -> bool:
    """Whether nothing of it has begun: no attempt, and no check of it was asked."""
    return run.state is RunState.QUEUED and run.attempt == 0


def _going_on(run: Run, node: str) -> Run:
    return replace(run, reason=f"{run.reason}; given up: its code still runs on node {node}")
