"""Ends of pauses: the due times that a schedule left out get their row, whatever ends the pause.

Everything here happens inside the caller's transaction. What is found is locked: of two nodes that end the same pause,
the second finds none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ostinato.clock import Micros
from ostinato.models.pause import due_again, paused_runs
from ostinato.models.schedule import DueSchedule
from ostinato.stores.rows import DUE_COLUMNS, load_due
from ostinato.stores.sql.connection import Connection, Values
from ostinato.stores.sql.parts import Parts

__all__ = ["end_pauses", "find_paused"]

C = TypeVar("C", bound=Connection)

# By a sum, so that the order does not lead through all schedules instead of the index of what is paused.
_FIND = f"""
SELECT {DUE_COLUMNS} FROM schedules s WHERE s.paused_since IS NOT NULL AND {{}} ORDER BY s.id + 0 FOR NO KEY UPDATE
"""
_END = """
UPDATE schedules AS s SET next_at = h.next_at, paused_since = NULL, paused_reason = NULL, updated_at = :now
FROM unnest(:ids::bigint[], :following::bigint[]) h (id, next_at) WHERE s.id = h.id
"""


async def find_paused(db: Connection, where: str, values: Values) -> list[DueSchedule]:
    """The schedules `s` that are paused, of those for which this is so."""
    return [load_due(row, (), ()) for row in await db.fetch(_FIND.format(where), values)]


async def end_pauses(db: C, parts: Parts[C], paused: Sequence[DueSchedule], now: Micros) -> dict[int, Micros | None]:
    """End these pauses: a row for what each left out until now, and on with its next due time, which it answers."""
    following: dict[int, Micros | None] = {schedule.id: due_again(schedule, now) for schedule in paused}
    if paused:
        await parts.insert_fires(db, paused_runs(paused, now), now)
        await db.run(_END, {"now": now, "ids": list(following), "following": list(following.values())})
    return following
