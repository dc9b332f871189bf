"""The parts that stores.sql needs of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ostinato.clock import Micros
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.output import OutputPart
from ostinato.models.run import Finish, NewRun
from ostinato.models.session import STALE
from ostinato.stores.postgres.commits import Inserted
from ostinato.stores.postgres.ends import count_from_finish, lock_ends
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
from ostinato.stores.postgres.turns import give_turns, lock_sessions
from ostinato.stores.sql.arrivals import cut_off, remember
from ostinato.stores.sql.connection import Values
from ostinato.stores.sql.ends import end_queued

__all__ = ["PARTS", "PostgresParts"]


class PostgresParts:
    """Answers stores.sql.parts.Parts."""

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

    async def insert_all(self, db: Connection, runs: Sequence[NewRun]) -> list[RunId]:
        return await insert_all(db, runs)

    async def insert_new(self, db: Connection, run: NewRun) -> RunId:
        (id,) = await (await send_insert(db, [run])).ids()
        return id

    async def send_arrivals(self, db: Connection, runs: Sequence[NewRun], now: Micros) -> Inserted:
        return await send_arrivals(db, runs, now)

    async def send_skipped(
        self,
        db: Connection,
        run: NewRun,
        now: Micros,
        kind: EventKind,
        data: Mapping[str, object],
        result: str | None = None,
    ) -> Inserted:
        return await send_skipped(db, run, now, kind, data, result)

    async def add_output(self, db: Connection, said: Sequence[tuple[RunId, int, Sequence[OutputPart]]]) -> None:
        await add_output(db, said)

    async def end_runs(self, db: Connection, ended: Sequence[Finish]) -> set[RunId]:
        return await end_rows(db, ended)

    async def count_from_finish(self, db: Connection, finished: Mapping[ScheduleId, Micros]) -> None:
        await count_from_finish(db, finished)

    async def lock_schedules(self, db: Connection, finishes: Sequence[Finish]) -> None:
        await lock_schedules(db, finishes)

    async def lock_ends(self, db: Connection, ids: Sequence[RunId]) -> None:
        await lock_ends(db, ids)

    async def lock_sessions(self, db: Connection, sessions: Iterable[str]) -> None:
        await lock_sessions(db, sessions)

    async def last_event(self, db: Connection) -> int:
        return await last_event(db)

    async def fetch_row(self, db: Connection, statement: str, values: Values) -> dict[str, Any] | None:
        return await db.fetch_row(f"{statement} FOR UPDATE", values)

    async def give_turns(self, db: Connection, sessions: Iterable[str]) -> None:
        await give_turns(db, sessions)


PARTS = PostgresParts()
