"""Lanes: limits, rates and switches. Their limits are held in each store's claims.py."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Generic, TypeVar

from ostinato.clock import Micros
from ostinato.models.ids import NodeId, RunId
from ostinato.models.lane import DEFAULT_LANES, Lane, Rate
from ostinato.models.run import CLEARED
from ostinato.stores.base import Cleared
from ostinato.stores.rows import load_all, load_lane
from ostinato.stores.sql.connection import Connection, Database
from ostinato.stores.sql.ends import end_queued
from ostinato.stores.sql.parts import Parts
from ostinato.stores.sql.slots import BORROWED
from ostinato.stores.sql.turns import PARKED

__all__ = ["Lanes"]

T = TypeVar("T")
C = TypeVar("C", bound=Connection)

_SETTINGS = "SELECT name, max_running, rate_count, rate_per, set_before, fixed_by FROM lanes"
_ENSURE = """
INSERT INTO lanes (name, max_running)
SELECT name, max_running FROM unnest(:names::text[], :limits::bigint[]) l (name, max_running) WHERE TRUE ORDER BY name
ON CONFLICT (name) DO NOTHING
"""
_FIX = """
UPDATE lanes SET max_running = :limit, set_before = coalesce(set_before, :before), fixed_by = :node WHERE name = :name
"""
# Not while another node lives that has the setting.
_RESTORE = """
UPDATE lanes SET max_running = set_before, set_before = NULL, fixed_by = NULL
WHERE set_before IS NOT NULL AND name <> ALL (:fixed::text[]) AND (fixed_by = :node OR NOT EXISTS (
    SELECT 1 FROM nodes n WHERE n.id = lanes.fixed_by AND n.lost_at IS NULL AND n.lease_until > :now
))
"""
# What somebody sets while a setting holds is what there is after it.
_SET = """
INSERT INTO lanes AS l (name, max_running) VALUES (:name, :limit) ON CONFLICT (name) DO UPDATE
SET max_running = :limit, set_before = CASE WHEN l.set_before IS NOT NULL THEN :limit END
"""
_RATE = "UPDATE lanes SET rate_count = :count, rate_per = :per WHERE name = :name"
_PAUSE = """
UPDATE lanes SET paused = :paused, note = :note, paused_by = :by, paused_at = :at WHERE name = :name RETURNING name
"""
_LIST = f"""
SELECT l.name, l.max_running, l.paused, l.note, l.paused_by, l.paused_at, l.rate_count, l.rate_per, l.rate_from,
       (SELECT count(*) FROM runs WHERE state = 'running' AND lane = l.name) - {BORROWED.format(lane="l.name")},
       coalesce(q.runs, 0) + coalesce(w.runs, 0) + coalesce(p.runs, 0), q.oldest_at
FROM lanes l
LEFT JOIN (SELECT lane, count(*) AS runs, min(ready_at) AS oldest_at FROM runs
           WHERE state = 'queued' AND waiting = FALSE GROUP BY lane) q ON q.lane = l.name
LEFT JOIN (SELECT lane, count(*) AS runs FROM runs
           WHERE state = 'queued' AND waiting = TRUE AND session IS NOT NULL GROUP BY lane) w ON w.lane = l.name
LEFT JOIN (SELECT lane, count(*) AS runs FROM runs
           WHERE id = ANY (ARRAY({PARKED})) AND state = 'queued' GROUP BY lane) p ON p.lane = l.name
ORDER BY l.name
"""
# By the two indexes that hold what is queued (the sum keeps from walking through the ledger by id instead). Those that
# wait go first: the end of one that has its turn gives it to the next, and so with what waits for the end of others.
_QUEUED = f"""
SELECT id, session FROM runs WHERE id = ANY (ARRAY({PARKED})) AND state = 'queued' AND lane = :lane AND id + 0 <= :until
UNION ALL
SELECT id, session FROM runs
WHERE state = 'queued' AND waiting = TRUE AND session IS NOT NULL AND lane = :lane AND id + 0 <= :until
UNION ALL
SELECT id, session FROM runs WHERE state = 'queued' AND waiting = FALSE AND lane = :lane AND id + 0 <= :until
LIMIT :limit
"""


class Lanes(Generic[C]):
    """Answers stores.base.LaneStore."""

    def __init__(self, database: Database[C], parts: Parts[C]) -> None:
        self._database = database
        self._parts = parts

    async def ensure_lanes(
        self,
        limits: Mapping[str, int],
        fixed: Sequence[str],
        rates: Mapping[str, Rate] | None = None,
        node: tuple[NodeId, Micros] | None = None,
    ) -> None:
        rates = rates or {}
        rows = await self._database.read(lambda db: db.fetch(_SETTINGS))
        there = {name: settings for name, *settings in rows}
        id, now = node or (None, 0)
        if (
            limits.keys() <= there.keys()
            and all(there[name][0] == limits[name] and there[name][4] == id for name in fixed)
            and all(there[name][1:3] == [rate.count, rate.per] for name, rate in rates.items() if name in there)
            and (node is None or all(settings[3] is None for name, settings in there.items() if name not in fixed))
        ):
            return  # a list opens the database too, and takes no lock to write nothing

        async def ensure(db: C) -> None:
            await db.run(_ENSURE, {"names": list(limits), "limits": list(limits.values())})
            for name in sorted(fixed):
                before = there[name][0] if name in there else DEFAULT_LANES.get(name, limits[name])
                await db.run(_FIX, {"name": name, "limit": limits[name], "before": before, "node": id})
            if node is not None:
                await db.run(_RESTORE, {"fixed": sorted(fixed), "node": id, "now": now})
            for name, rate in rates.items():
                await db.run(_RATE, {"name": name, "count": rate.count, "per": rate.per})

        await self._change(ensure, wakes=False)

    async def set_lane(self, name: str, limit: int | None, rate: Rate | None, *, clear_rate: bool = False) -> bool:
        async def change(db: C) -> bool:
            if limit is not None:
                await db.run(_SET, {"name": name, "limit": limit})
            if rate is not None:
                await db.run(_RATE, {"name": name, "count": rate.count, "per": rate.per})
            elif clear_rate:
                await db.run(_RATE, {"name": name, "count": None, "per": None})
            return bool(await db.fetch("SELECT 1 FROM lanes WHERE name = :name", {"name": name}))

        return await self._change(change)

    async def pause_lane(
        self, name: str, paused: bool, note: str | None, by: str | None = None, at: Micros | None = None
    ) -> bool:
        values = {"name": name, "paused": paused, "note": note, "by": by, "at": at}
        return bool(await self._change(lambda db: db.fetch(_PAUSE, values)))

    async def clear_lane(
        self, name: str, now: Micros, until: RunId | None, limit: int, by: str | None = None
    ) -> Cleared:
        # Looked up before, so that the writer knows the sessions; what has started meanwhile is not ended.
        async def look(db: Connection) -> tuple[RunId, list[tuple[Any, ...]]]:
            last = await db.fetch_value("SELECT max(id) FROM runs") if until is None else until
            return last, await db.fetch(_QUEUED, {"lane": name, "until": last, "limit": limit})

        last, rows = await self._database.read(look)
        ids = [RunId(id) for id, _ in rows]
        ended = await self._database.write(
            lambda db: end_queued(db, self._parts, ids, CLEARED, now, by),
            wakes=True,
            sessions={session for _, session in rows if session is not None},
        )
        return Cleared(len(ended.ids), last if len(rows) == limit else None)

    async def list_lanes(self) -> list[Lane]:
        return load_all(load_lane, await self._database.read(lambda db: db.fetch(_LIST)))

    async def _change(self, query: Callable[[C], Coroutine[Any, Any, T]], *, wakes: bool = True) -> T:
        """Change lanes where a claim would read them."""
        return await self._database.write(query, wakes=wakes)
