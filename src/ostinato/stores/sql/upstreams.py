"""Schedules that run after others: who follows whom, and what ended that they have not answered yet.

An end is noted in the transaction that writes it (`Parts.note_ends`), and answered in the one that fires the follower:
nothing is lost or doubled in between, whoever is killed. Everything here happens inside the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from ostinato.clock import Micros
from ostinato.errors import InvalidInput
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.run import Finish
from ostinato.models.schedule import DueSchedule, FirePlan, ScheduleDraft
from ostinato.models.states import RunState
from ostinato.models.upstream import EndedRun, UpstreamEnd, find_circle
from ostinato.stores.rows import DUE_COLUMNS, load_due
from ostinato.stores.schedules import Removed
from ostinato.stores.sql.connection import Connection
from ostinato.stores.sql.followers import FOLLOWERS, WAKE
from ostinato.stores.sql.parts import Parts
from ostinato.stores.sql.telling import tell
from ostinato.timing import parse_timing

__all__ = [
    "answer_ends",
    "break_followers",
    "ended_runs",
    "followers_of",
    "forget_ends",
    "relate",
    "unanswered",
    "wake",
    "with_ends",
]

C = TypeVar("C", bound=Connection)

_MOST = 1_000
"""So many ends of one schedule are decided over at once; what is left is next."""

_PENDING = """
SELECT upstream_run, upstream, state, ended_at, held FROM upstream_ends
WHERE schedule_id = :id AND run_id IS NULL ORDER BY ended_at, upstream_run LIMIT :most
"""
_STILL = """
SELECT count(*) FROM upstream_ends
WHERE schedule_id = :id AND run_id IS NULL AND upstream_run = ANY (:runs::bigint[])
"""
# Whoever fires holds the schedule: the newest run of this trigger is the one that was just inserted.
_LINK = """
UPDATE upstream_ends SET run_id = (SELECT max(id) FROM runs WHERE schedule_id = :id AND trigger = 'after')
WHERE schedule_id = :id AND run_id IS NULL AND upstream_run = ANY (:runs::bigint[])
"""
_HOLD = """
UPDATE upstream_ends SET held = TRUE
WHERE schedule_id = :id AND run_id IS NULL AND upstream_run = ANY (:runs::bigint[])
"""
_FORGET = "DELETE FROM upstream_ends WHERE schedule_id = ANY (:ids::bigint[]) AND run_id IS NULL"
_LOCK = "LOCK TABLE schedule_upstreams IN SHARE ROW EXCLUSIVE MODE"
_UNRELATE = """
DELETE FROM schedule_upstreams WHERE schedule_id IN (SELECT id FROM schedules WHERE name = ANY (:names::text[]))
"""
_RELATE = """
INSERT INTO schedule_upstreams (upstream, schedule_id)
SELECT n.upstream, s.id FROM unnest(:upstreams::text[], :names::text[]) n (upstream, name)
JOIN schedules s ON s.name = n.name WHERE TRUE ON CONFLICT DO NOTHING
"""
_EDGES = "SELECT u.upstream, s.name FROM schedule_upstreams u JOIN schedules s ON s.id = u.schedule_id"
_NAMES = """
SELECT s.name FROM schedule_upstreams u JOIN schedules s ON s.id = u.schedule_id
WHERE u.upstream = :name ORDER BY s.name
"""
_LEFT_BEHIND = f"""
SELECT {DUE_COLUMNS} FROM schedules s
WHERE s.id = ANY (ARRAY({FOLLOWERS} WHERE n.id = :id)) AND s.enabled AND s.broken IS NULL AND NOT s.orphaned
ORDER BY s.id FOR NO KEY UPDATE
"""
_BREAK = """
UPDATE schedules SET enabled = FALSE, broken = :broken, next_at = NULL, version = version + 1, updated_at = :now
WHERE id = :id
"""


def ended_runs(finishes: Iterable[Finish]) -> list[EndedRun]:
    """Those of schedules."""
    return [
        EndedRun(finish.id, finish.schedule_id, finish.state, finish.finished_at)
        for finish in finishes
        if finish.schedule_id is not None
    ]


async def with_ends(db: Connection, due: Sequence[DueSchedule]) -> list[DueSchedule]:
    """The same, those that follow others with the ends that they have not answered."""
    return [replace(one, ends=await _pending(db, one.id)) if one.follows else one for one in due]


async def _pending(db: Connection, id: ScheduleId) -> tuple[UpstreamEnd, ...]:
    rows = await db.fetch(_PENDING, {"id": id, "most": _MOST})
    return tuple(
        UpstreamEnd(RunId(run), name, RunState(state), at, held=bool(held)) for run, name, state, at, held in rows
    )


async def unanswered(db: Connection, plans: Sequence[FirePlan]) -> list[FirePlan]:
    """The plans without those whose ends another node has answered meanwhile: an end of the same instant may have made
    their schedule due again."""
    return [plan for plan in plans if not plan.follows or await _are_open(db, plan)]


async def _are_open(db: Connection, plan: FirePlan) -> bool:
    runs = {*plan.held, *(run for one in plan.runs for run in one.after)}
    return not runs or await db.fetch_value(_STILL, {"id": plan.schedule_id, "runs": sorted(runs)}) == len(runs)


async def answer_ends(db: C, parts: Parts[C], plans: Sequence[FirePlan], now: Micros) -> None:
    """Insert the runs of these followers, each as the answer to its ends; what ended since makes them due again."""
    for plan in plans:
        for run in plan.runs:
            await parts.insert_fires(db, [run], now)
            await db.run(_LINK, {"id": plan.schedule_id, "runs": run.after})
        if plan.held:
            await db.run(_HOLD, {"id": plan.schedule_id, "runs": plan.held})
        if not plan.enabled:
            await forget_ends(db, [plan.schedule_id])
    if plans:
        await wake(db, [plan.schedule_id for plan in plans])


async def wake(db: Connection, ids: Sequence[ScheduleId]) -> None:
    """Make followers due that have something to answer."""
    await db.run(WAKE, {"ids": ids})


async def forget_ends(db: Connection, ids: Sequence[int]) -> None:
    """These schedules begin anew, or are off: what they did not answer is none of theirs any more."""
    await db.run(_FORGET, {"ids": ids})


async def relate(db: Connection, drafts: Iterable[ScheduleDraft]) -> None:
    """Note whom these schedules follow now; InvalidInput if one would follow itself, over others too."""
    upstreams = {draft.name: parse_timing(draft.timing).follows if draft.follows else () for draft in drafts}
    if not upstreams:
        return
    if db.dialect == "postgres":
        # Two that would each close the other's circle wait for each other.
        await db.run(_LOCK)
    await db.run(_UNRELATE, {"names": list(upstreams)})
    pairs = [(upstream, name) for name, names in upstreams.items() for upstream in names]
    if not pairs:
        return
    await db.run(_RELATE, {"upstreams": [one for one, _ in pairs], "names": [name for _, name in pairs]})
    circle = find_circle(await db.fetch(_EDGES), upstreams)
    if circle is not None:
        raise InvalidInput(
            f"schedule {circle[0]!r} would run after itself: {' → '.join(circle)}",
            field="timing",
            hint="take one of them out of the circle",
        )


async def followers_of(db: Connection, name: str) -> list[str]:
    """The names of the schedules that follow this one."""
    return [follower for (follower,) in await db.fetch(_NAMES, {"name": name})]


async def break_followers(db: Connection, id: ScheduleId, now: Micros) -> Removed:
    """A schedule is being removed: what follows it would wait for good, so it is switched off, and people told."""
    left = [load_due(row, (), ()) for row in await db.fetch(_LEFT_BEHIND, {"id": id})]
    if not left:
        return Removed()
    name = await db.fetch_value("SELECT name FROM schedules WHERE id = :id", {"id": id})
    why = f"it runs after {name!r}, which was removed: give it another timing, or add {name!r} again and enable it"
    for schedule in left:
        await db.run(_BREAK, {"id": schedule.id, "broken": why, "now": now})
    await forget_ends(db, [schedule.id for schedule in left])
    told = await tell(db, [notice for schedule in left for notice in schedule.notices((), why, now)], now)
    return Removed([(schedule.name, why) for schedule in left], told)
