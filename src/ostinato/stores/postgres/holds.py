"""Ends of holds in PostgreSQL: the due times that a schedule left out get their row, whatever ends the hold.

Everything here happens inside the caller's transaction. What is found is locked: of two nodes that end the same hold,
the second finds none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.clock import Micros
from ostinato.models.holding import due_again, ends_hold, held_runs
from ostinato.models.schedule import DueSchedule, ScheduleDraft
from ostinato.stores.postgres.inserts import insert_fires
from ostinato.stores.postgres.query import Connection, fetch, numbers, texts
from ostinato.stores.rows import DUE_COLUMNS, load_due

__all__ = ["end_changed_holds", "end_holds", "find_held"]

_FIND = f"""
SELECT {DUE_COLUMNS} FROM schedules s WHERE s.held_since IS NOT NULL AND {{where}} ORDER BY {{order}} FOR NO KEY UPDATE
"""
_END = """
UPDATE schedules s SET next_at = h.next_at, held_since = NULL, held_reason = NULL, updated_at = %s
FROM unnest(%s::bigint[], %s::bigint[]) h (id, next_at) WHERE s.id = h.id
"""


async def find_held(
    connection: Connection, where: str, values: Sequence[Any], *, order: str = "s.id"
) -> list[DueSchedule]:
    """The schedules `s` that are held, of those for which this is so."""
    query = _FIND.format(where=where, order=order)
    return [load_due(row, (), ()) for row in await fetch(connection, query, values)]


async def end_holds(connection: Connection, held: Sequence[DueSchedule], now: Micros) -> None:
    """End these holds: a row for what each left out until now, and on with its next due time."""
    if held:
        await insert_fires(connection, held_runs(held, now), now)
        following = [due_again(schedule, now) for schedule in held]
        await connection.execute(_END, (now, numbers([schedule.id for schedule in held]), numbers(following)))


async def end_changed_holds(connection: Connection, drafts: Sequence[ScheduleDraft], now: Micros) -> list[str]:
    """End the holds of schedules whose timing or budget is about to change; answers the names of those that stay held.

    Locked by name, the order in which they are written then.
    """
    names = texts([draft.name for draft in drafts])
    found = await find_held(connection, "s.name = ANY (%s::text[])", (names,), order="s.name")
    if not found:
        return []
    given = {draft.name: draft for draft in drafts}
    changed = {schedule.name: schedule for schedule in found if ends_hold(schedule, given[schedule.name])}
    await end_holds(connection, list(changed.values()), now)
    return [schedule.name for schedule in found if schedule.name not in changed]
