"""Ends of holds in SQLite: the due times that a schedule left out get their row, whatever ends the hold.

Everything here happens inside the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from ostinato.clock import Micros
from ostinato.models.holding import due_again, ends_hold, held_runs
from ostinato.models.schedule import DueSchedule, ScheduleDraft
from ostinato.stores.rows import DUE_COLUMNS, load_due
from ostinato.stores.sqlite.inserts import insert_fires
from ostinato.stores.sqlite.query import fetch

__all__ = ["end_changed_holds", "end_holds", "find_held"]


def find_held(connection: apsw.Connection, where: str, values: Sequence[Any]) -> list[DueSchedule]:
    """The schedules `s` that are held, of those for which this is so."""
    query = f"SELECT {DUE_COLUMNS} FROM schedules s WHERE s.held_since IS NOT NULL AND {where}"
    return [load_due(row, (), ()) for row in fetch(connection, query, values)]


def end_holds(connection: apsw.Connection, held: Sequence[DueSchedule], now: Micros) -> None:
    """End these holds: a row for what each left out until now, and on with its next due time."""
    if held:
        insert_fires(connection, held_runs(held, now), now)
        connection.executemany(
            "UPDATE schedules SET next_at = ?, held_since = NULL, held_reason = NULL, updated_at = ? WHERE id = ?",
            [(due_again(schedule, now), now, schedule.id) for schedule in held],
        )


def end_changed_holds(connection: apsw.Connection, drafts: Sequence[ScheduleDraft], now: Micros) -> None:
    """End the holds of schedules whose timing or budget is about to change."""
    names = msgspec.json.encode([draft.name for draft in drafts]).decode()
    # The plus keeps to the index of what is held, mostly nothing, instead of a look for each name.
    held = {one.name: one for one in find_held(connection, "+s.name IN (SELECT value FROM json_each(?))", (names,))}
    if held:
        changed = {draft.name for draft in drafts if draft.name in held and ends_hold(held[draft.name], draft)}
        end_holds(connection, [held[name] for name in changed], now)
