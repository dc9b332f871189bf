"""The parts that stores.sql needs of PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.clock import Micros
from ostinato.models.chain import RunEnd
from ostinato.models.ids import RunId
from ostinato.models.run import NewRun
from ostinato.models.session import STALE
from ostinato.stores.postgres.ends import count_from_finish, lock_ends, note_ends
from ostinato.stores.postgres.events import last_event
from ostinato.stores.postgres.finishes import end_rows, lock_schedules
from ostinato.stores.postgres.inserts import (
    insert_all,
    insert_due,
    insert_due_and_tell,
    insert_due_late,
    send_arrivals,
    send_insert,
    send_skipped,
)
from ostinato.stores.postgres.output import add_output
from ostinato.stores.postgres.query import Connection
from ostinato.stores.postgres.turns import WAKE, give_turns, lock_sessions
from ostinato.stores.sql.arrivals import cut_off, remember
from ostinato.stores.sql.chains import follow_ends
from ostinato.stores.sql.connection import Values
from ostinato.stores.sql.ends import end_queued

__all__ = ["PARTS", "PostgresParts"]


class PostgresParts:
    """Answers stores.sql.parts.Parts."""

    insert_all = staticmethod(insert_all)
    send_arrivals = staticmethod(send_arrivals)
    send_skipped = staticmethod(send_skipped)
    add_output = staticmethod(add_output)
    end_runs = staticmethod(end_rows)
    count_from_finish = staticmethod(count_from_finish)
    note_ends = staticmethod(note_ends)
    lock_schedules = staticmethod(lock_schedules)
    lock_ends = staticmethod(lock_ends)
    lock_sessions = staticmethod(lock_sessions)
    last_event = staticmethod(last_event)
    give_turns = staticmethod(give_turns)

    async def follow_ends(self, db: Connection, ended: Sequence[RunEnd]) -> None:
        await follow_ends(db, self, ended)

    async def wake(self, db: Connection) -> None:
        await db.execute(WAKE)

    async def insert_fires(self, db: Connection, runs: Sequence[NewRun], now: Micros) -> None:
        mailboxes = {run.session for run in runs if run.session is not None and run.mode is not None}
        if mailboxes and (closed := await cut_off(db, mailboxes, now)):
            ids = await insert_due_late(db, [run for run in runs if run.session in closed])
            await end_queued(db, self, ids, STALE, now)
            runs = [run for run in runs if run.session not in closed]
            mailboxes -= closed
        if not runs:
            return
        if mailboxes:
            for run in runs:
                run.later = run.mode is not None and run.ready_at > now
            await remember(db, dict.fromkeys(mailboxes, now))
            await insert_due_and_tell(db, runs, now)
        else:
            await insert_due(db, runs)
        await give_turns(db, {run.session for run in runs if run.session is not None})

    async def insert_new(self, db: Connection, run: NewRun) -> RunId:
        (id,) = await (await send_insert(db, [run])).ids()
        return id

    async def fetch_row(self, db: Connection, statement: str, values: Values) -> dict[str, Any] | None:
        return await db.fetch_row(f"{statement} FOR UPDATE", values)


PARTS = PostgresParts()
