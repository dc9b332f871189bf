"""Waiting: what a queued run waits for, in words, in the order in which a claim would look at it.

`why.py`, `runs.py` and `overview.py` ask. Nothing of it is stored: a moment later it may be another thing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from ostinato.clock import Clock, Micros, from_micros, to_micros
from ostinato.errors import AlreadyActive
from ostinato.models.given_up import GivenUp
from ostinato.models.ids import RunId
from ostinato.models.lane import Bucket, Lane, parse_rate
from ostinato.models.node import Node
from ostinato.models.run import Run, RunFilter
from ostinato.models.schedule import Schedule
from ostinato.models.session import SHARED_TURN
from ostinato.models.states import ACTIVE, RunState
from ostinato.models.work import CheckIn
from ostinato.models.work_kinds import unserved
from ostinato.stores.base import Store

__all__ = ["Waiting", "already_active", "moment_text", "why_waiting"]

_LOOK_AT = 500
"""So many active runs of a session are looked through for the one that is before another."""


def why_waiting(
    run: Run,
    lanes: Sequence[Lane],
    nodes: Sequence[Node],
    now: Micros,
    before: RunId | None = None,
    given_up: Sequence[GivenUp] = (),
) -> str:
    """Why a queued run does not start now; `before` is the run that has the turn in its session, `given_up` what goes
    on though its run has ended."""
    if to_micros(run.ready_at) > now:
        return f"it is not ready before {moment_text(run.ready_at)}"
    if isinstance(run.work, CheckIn):
        return f"it waits for its machine to check in, and is late {run.work.late_after} after its due time"
    if run.waiting:
        return _of_turn(run, before)
    if run.node is not None:
        return f"the process that is to execute it, {run.node}, is about to start it"
    running = [node for node in nodes if node.state != "lost"]
    lane = next((lane for lane in lanes if lane.name == run.lane), None)
    return (
        _of_given_up(run, given_up)
        or _of_nodes(run, running)
        or (None if lane is None else _of_lane(lane, now))
        or _of_slots(_able(run, running))
        or "nothing delays it: it is about to start"
    )


def already_active(schedule: Schedule, given_up: Sequence[GivenUp]) -> AlreadyActive:
    """Why it is not triggered now: something of it runs, or goes on though it was given up."""
    going_on = next((one for one in given_up if one.schedule == schedule.name), None)
    busy = "it has an active run" if going_on is None else going_on.sentence
    end = "cancel it" if going_on is None else "restart that node"
    return AlreadyActive(
        f"schedule {schedule.name!r} is not triggered: {busy}, and its overlap policy is {schedule.policy.overlap}: "
        f"wait for it, {end}, or force another one"
    )


def _of_given_up(run: Run, given_up: Sequence[GivenUp]) -> str | None:
    """Whose code occupies the name of its schedule."""
    found = next((one for one in given_up if run.schedule is not None and one.schedule == run.schedule), None)
    return None if found is None else f"{found.sentence}: it starts when that has ended; a restart of the node ends it"


def _of_turn(run: Run, before: RunId | None) -> str:
    behind = "" if before is None else f", behind run {before}"
    if run.session == f"schedule:{run.schedule}":
        return f"it waits for its turn: the runs of its schedule go one after the other{behind}"
    if run.session is not None and run.session.startswith(SHARED_TURN):
        outer = run.session.removeprefix(SHARED_TURN)
        return f"it waits for its turn: what shares the turn of run {outer} goes one after the other{behind}"
    return f"it waits for its turn in its session {run.session!r}{behind}"


def _of_nodes(run: Run, running: Sequence[Node]) -> str | None:
    """Why no node would take it, however much room there were."""
    if not running:
        return "no engine is running: start one with 'ostinato up'"
    knowing = [node for node in running if _knows(node, run)]
    if not knowing:
        return unserved(str(run.task))
    if not all(map(_is_draining, knowing)):
        return None
    which = "every running node" if len(knowing) == len(running) else f"every running node that knows task {run.task!r}"
    asked = next((node.id for node in knowing if node.drain), None)
    if asked is None:
        return f"{which} is shutting down: start another one with 'ostinato up'"
    return f"{which} is draining: 'ostinato node resume {asked}' lets it take work again"


def _of_lane(lane: Lane, now: Micros) -> str | None:
    """Why nothing starts in its lane."""
    if lane.paused:
        note = f" ({lane.note})" if lane.note else ""
        return f"its lane {lane.name!r} is paused{note}: 'ostinato lane resume {lane.name}' starts its runs again"
    if lane.used >= lane.limit:
        return f"its lane {lane.name!r} is full: {lane.used} of {lane.limit} under way"
    if lane.rate is None:
        return None
    bucket = Bucket(parse_rate(lane.rate), lane.rate_from).at(now)
    if bucket.holds(now):
        return None
    return (
        f"its lane {lane.name!r} starts no more than {lane.rate}, which is used up: "
        f"the next one starts at {moment_text(from_micros(bucket.next_at(now)))}"
    )


def _of_slots(able: Sequence[Node]) -> str | None:
    """Why no node has room for it."""
    if any(node.running < node.slots for node in able):
        return None
    if len(able) == 1:
        return f"the slots of node {able[0].id} are full: {able[0].running} of {able[0].slots} under way"
    used, slots = sum(node.running for node in able), sum(node.slots for node in able)
    return f"the slots of all {len(able)} nodes that could take it are full: {used} of {slots} under way"


def _able(run: Run, running: Sequence[Node]) -> list[Node]:
    return [node for node in running if _knows(node, run) and not _is_draining(node)]


def _knows(node: Node, run: Run) -> bool:
    return run.task is None or run.task in node.tasks


def _is_draining(node: Node) -> bool:
    return node.drain or node.state == "draining"


def moment_text(at: datetime) -> str:
    """A time, for a sentence."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _going_on(run: Run, node: str) -> Run:
    return replace(run, reason=f"{run.reason}; given up: its code still runs on node {node}")


class Waiting:
    """Asks the store what runs wait for: lanes and nodes once for all of them."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def explained(self, runs: Sequence[Run]) -> Sequence[Run]:
        """The same runs; a queued one that has no reason of its own gets the one for which it waits, and one whose
        code goes on though it was given up says so."""
        silent = [run for run in runs if run.state is RunState.QUEUED and not run.reason]
        reasons = dict(zip([run.id for run in silent], await self.reasons(silent), strict=True))
        going_on = {one.run: one.node for one in await self._store.runs.list_given_up()}
        told = [replace(run, reason=reasons[run.id]) if run.id in reasons else run for run in runs]
        return [_going_on(run, going_on[run.id]) if run.id in going_on and run.reason else run for run in told]

    async def reasons(self, queued: Sequence[Run]) -> Sequence[str]:
        """Why each of these does not start now."""
        if not queued:
            return []
        now = self._clock.now()
        lanes, nodes, given_up = await asyncio.gather(
            self._store.lanes.list_lanes(), self._store.nodes.list_nodes(now), self._store.runs.list_given_up()
        )
        return [why_waiting(run, lanes, nodes, now, await self._before(run), given_up) for run in queued]

    async def _before(self, run: Run) -> RunId | None:
        """The run whose end gives the turn to this one, or to those between them."""
        if not run.waiting or run.session is None:
            return None
        wanted = RunFilter(session=run.session, states=tuple(ACTIVE), limit=_LOOK_AT)
        if run.session == f"schedule:{run.schedule}":
            # Its own line is no session that people see: it is found by the schedule.
            wanted = replace(wanted, session=None, schedule_id=run.schedule_id)
        found = await self._store.runs.list_runs(wanted)
        turns = [other.id for other in found if other.session == run.session and not other.waiting]
        return min(turns, default=None)
