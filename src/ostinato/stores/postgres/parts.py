"""The parts that stores.sql needs of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ostinato.clock import Micros
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.output import OutputPart
from ostinato.models.run import NewRun
from ostinato.models.states import RunState
from ostinato.stores.postgres.ends import count_from_finish, end_queued
from ostinato.stores.postgres.events import last_event, note_runs
from ostinato.stores.postgres.inserts import insert_all, insert_fires, let_in, send_insert
from ostinato.stores.postgres.output import add_output
from ostinato.stores.postgres.query import Connection, readable
from ostinato.stores.postgres.turns import give_turns, lock_sessions
from ostinato.stores.sql.connection import Values

__all__ = ["PostgresParts"]


class PostgresParts:
    """Answers stores.sql.parts.Parts."""

    async def insert_fires(self, db: Connection, runs: Sequence[NewRun], now: Micros) -> None:
        await insert_fires(db, runs, now)

    async def insert_all(self, db: Connection, runs: Sequence[NewRun]) -> list[RunId]:
        return await insert_all(db, runs)

    async def insert_new(self, db: Connection, run: NewRun) -> RunId:
        (id,) = await (await send_insert(db, [run])).ids()
        return id

    async def let_in(self, db: Connection, session: str, ids: Sequence[RunId], now: Micros) -> None:
        await let_in(db, session, ids, now)

    async def add_output(self, db: Connection, said: Sequence[tuple[RunId, int, Sequence[OutputPart]]]) -> None:
        await add_output(db, said)

    async def end_queued(
        self, db: Connection, ids: Sequence[RunId], state: RunState, reason: str, now: Micros
    ) -> list[RunId]:
        return await end_queued(db, ids, state, readable(reason), now)

    async def follow_end(
        self, db: Connection, id: RunId, schedule_id: ScheduleId | None, session: str | None, now: Micros
    ) -> None:
        if schedule_id is not None:
            await count_from_finish(db, {schedule_id: now})
        if session is not None:
            await note_runs(db, EventKind.FINISHED, [id], now)
            await give_turns(db, [session])

    async def last_event(self, db: Connection) -> int:
        return await last_event(db)

    async def fetch_row(self, db: Connection, statement: str, values: Values) -> dict[str, Any] | None:
        return await db.fetch_row(f"{statement} FOR UPDATE", values)

    async def give_turns(self, db: Connection, sessions: Iterable[str]) -> None:
        # Whoever did not name them to the writer has found them on the way.
        await lock_sessions(db, sessions)
        await give_turns(db, sessions)
