"""What is due in PostgreSQL, and `record_fires`: the transaction that turns due times into rows of the ledger.

Everything else about schedules is in stores.sql.schedules.
"""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.clock import Micros
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.schedule import FirePlan
from ostinato.stores.base import Due, Fired
from ostinato.stores.postgres.database import Database
from ostinato.stores.postgres.given_up import GIVEN_UP_OF
from ostinato.stores.postgres.query import Connection, booleans, fetch, fetch_value, numbers, texts
from ostinato.stores.rows import DUE_COLUMNS, load_due
from ostinato.stores.sql.cancels import cancel_now
from ostinato.stores.sql.followers import DUE_BY_ITSELF
from ostinato.stores.sql.schedules import Schedules
from ostinato.stores.sql.telling import tell
from ostinato.stores.sql.upstreams import answer_ends, unanswered, with_ends

__all__ = ["PostgresSchedules"]

_ACTIVE = "EXISTS (SELECT 1 FROM runs WHERE schedule_id = s.id AND state IN ('queued', 'running'))"
_DUE = f"""
SELECT {DUE_COLUMNS},
       ARRAY(SELECT id FROM runs WHERE schedule_id = s.id AND state IN ('queued', 'running') AND NOT waiting
             ORDER BY id),
       ARRAY(SELECT id FROM runs WHERE schedule_id = s.id AND state IN ('queued', 'running') AND waiting ORDER BY id),
       {GIVEN_UP_OF}
FROM schedules s WHERE s.next_at <= %s {{}} ORDER BY s.next_at LIMIT %s
"""
_TO_SHOW, _TO_FIRE = _DUE.format(DUE_BY_ITSELF), _DUE.format("")
_MOVE = f"""
UPDATE schedules s SET next_at = p.next_at, remaining = p.remaining, enabled = p.enabled, broken = p.broken,
    paused_since = NULL, paused_reason = NULL,
    version = s.version + (s.enabled <> p.enabled OR s.broken IS DISTINCT FROM p.broken)::int,
    -- A fire is no change; its switch is, and the end of a pause.
    updated_at = CASE WHEN s.enabled <> p.enabled OR s.broken IS DISTINCT FROM p.broken OR s.paused_since IS NOT NULL
                      THEN %s ELSE s.updated_at END
FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::boolean[], %s::bigint[], %s::bigint[], %s::boolean[],
            %s::text[])
     p (id, read_next_at, version, idle, next_at, remaining, enabled, broken)
WHERE s.id = p.id AND s.next_at = p.read_next_at AND s.version = p.version AND NOT (p.idle AND {_ACTIVE})
RETURNING s.id
"""


class PostgresSchedules(Schedules[Connection]):
    """Answers stores.base.ScheduleStore."""

    _database: Database

    async def due_schedules(self, horizon: Micros, limit: int, *, shown: bool = False) -> Due:
        async def look(connection: Connection) -> Due:
            rows = await fetch(connection, _TO_SHOW if shown else _TO_FIRE, (horizon, limit))
            due = [load_due(row[:-3], *(tuple(map(RunId, ids)) for ids in row[-3:])) for row in rows]
            due = await with_ends(connection, due)
            if len(rows) == limit:
                return Due(due, rows[-1][9])
            return Due(
                due, await fetch_value(connection, "SELECT min(next_at) FROM schedules WHERE next_at > %s", (horizon,))
            )

        return await self._database.read(look)

    async def record_fires(self, plans: Sequence[FirePlan], now: Micros) -> Fired:
        # In the order of their ids, so that two nodes that fire the same schedules wait and do not deadlock.
        first: dict[ScheduleId, FirePlan] = {}
        for plan in plans:
            first.setdefault(plan.schedule_id, plan)
        sorted_plans = sorted(first.values(), key=lambda plan: plan.schedule_id)
        values = (now, *_moves(sorted_plans))
        ids = values[1]

        async def record(connection: Connection) -> Fired:
            # Locked in a statement of its own, so that the next one sees every run that was inserted meanwhile.
            await connection.execute(
                "SELECT id FROM schedules WHERE id = ANY (%s::bigint[]) ORDER BY id FOR NO KEY UPDATE", (ids,)
            )
            wanted = await unanswered(connection, sorted_plans)
            move = values if len(wanted) == len(sorted_plans) else (now, *_moves(wanted))
            moved = {ScheduleId(id) for (id,) in await fetch(connection, _MOVE, move)}
            fired = [plan for plan in wanted if plan.schedule_id in moved]
            for plan in fired:
                if plan.ending is not None:
                    await cancel_now(connection, self._parts, plan.cancel, plan.ending, now)
            runs = [run for plan in fired if not plan.follows for run in plan.runs]
            await self._parts.insert_fires(connection, runs, now)
            await answer_ends(connection, self._parts, [plan for plan in fired if plan.follows], now)
            told = await tell(connection, [notice for plan in fired for notice in plan.notices], now)
            return Fired([id for id in first if id in moved], told)

        sessions = {run.session for plan in sorted_plans for run in plan.runs if run.session is not None}
        # A second time no schedule is where it was read: nothing is moved, and no row made.
        return await self._database.write(record, wakes=True, once=False, sessions=sessions) if plans else Fired([])


def _moves(plans: Sequence[FirePlan]) -> tuple[str | None, ...]:
    return (
        numbers([plan.schedule_id for plan in plans]),
        numbers([plan.read_next_at for plan in plans]),
        numbers([plan.version for plan in plans]),
        booleans([plan.idle for plan in plans]),
        numbers([plan.next_at for plan in plans]),
        numbers([plan.remaining for plan in plans]),
        booleans([plan.enabled for plan in plans]),
        texts([plan.broken for plan in plans]),
    )
