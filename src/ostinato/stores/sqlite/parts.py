"""The parts that stores.sql needs of SQLite. Its one writer has the whole file: there is nothing to lock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ostinato.clock import Micros
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.output import OutputPart
from ostinato.models.run import NewRun
from ostinato.models.states import RunState
from ostinato.stores.sql.connection import Values
from ostinato.stores.sqlite.ends import count_from_finish, end_queued
from ostinato.stores.sqlite.events import note_runs
from ostinato.stores.sqlite.inserts import insert_all, insert_fires, insert_one, let_in
from ostinato.stores.sqlite.output import add_output
from ostinato.stores.sqlite.query import Connection, fetch_readable
from ostinato.stores.sqlite.turns import give_turns

__all__ = ["SqliteParts"]

_LAST_EVENT = 2**63 - 1
"""Whatever is committed is there."""


class SqliteParts:
    """Answers stores.sql.parts.Parts."""

    async def insert_fires(self, db: Connection, runs: Sequence[NewRun], now: Micros) -> None:
        insert_fires(db, runs, now)

    async def insert_all(self, db: Connection, runs: Sequence[NewRun]) -> list[RunId]:
        return insert_all(db, runs)

    async def insert_new(self, db: Connection, run: NewRun) -> RunId:
        return insert_one(db, run)

    async def let_in(self, db: Connection, session: str, ids: Sequence[RunId], now: Micros) -> None:
        let_in(db, session, ids, now)

    async def add_output(self, db: Connection, said: Sequence[tuple[RunId, int, Sequence[OutputPart]]]) -> None:
        for id, token, parts in said:
            add_output(db, id, token, parts)

    async def end_queued(
        self, db: Connection, ids: Sequence[RunId], state: RunState, reason: str, now: Micros
    ) -> list[RunId]:
        return end_queued(db, ids, state, reason, now)

    async def follow_end(
        self, db: Connection, id: RunId, schedule_id: ScheduleId | None, session: str | None, now: Micros
    ) -> None:
        if schedule_id is not None:
            count_from_finish(db, schedule_id, now)
        if session is not None:
            note_runs(db, EventKind.FINISHED, [id], now)
            give_turns(db, [session])

    async def last_event(self, db: Connection) -> int:
        return _LAST_EVENT

    async def fetch_row(self, db: Connection, statement: str, values: Values) -> dict[str, Any] | None:
        columns, rows = fetch_readable(db, statement, values)
        return dict(zip(columns, rows[0], strict=True)) if rows else None

    async def give_turns(self, db: Connection, sessions: Iterable[str]) -> None:
        give_turns(db, sessions)
