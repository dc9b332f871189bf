"""The parts that stores.sql needs of SQLite. Its one writer has the whole file: there is nothing to lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ostinato.clock import Micros
from ostinato.models.chain import RunEnd
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId, RunIds, ScheduleId
from ostinato.models.output import OutputPart
from ostinato.models.run import Finish, NewRun
from ostinato.models.upstream import EndedRun
from ostinato.stores.sql.arrivals import let_in
from ostinato.stores.sql.chains import follow_ends
from ostinato.stores.sql.connection import Values
from ostinato.stores.sql.events import note, note_runs
from ostinato.stores.sql.followers import FOLLOWERS_OF, NOTE, WAKE, note_values
from ostinato.stores.sql.parts import EndedRuns
from ostinato.stores.sqlite.finishes import end_rows
from ostinato.stores.sqlite.inserts import insert_all, insert_due, insert_due_one, insert_one
from ostinato.stores.sqlite.output import add_output
from ostinato.stores.sqlite.query import Connection, fetch, fetch_readable
from ostinato.stores.sqlite.turns import give_turns

__all__ = ["PARTS", "SqliteParts"]

_LAST_EVENT = 2**63 - 1
"""Whatever is committed is there."""
_COUNT = """
UPDATE schedules SET next_at = ?1 + after_finish WHERE id = ?2 AND after_finish IS NOT NULL
   AND enabled AND broken IS NULL AND NOT orphaned AND paused_since IS NULL AND (next_at IS NULL OR next_at > ?1)
   AND NOT EXISTS (SELECT 1 FROM runs WHERE schedule_id = schedules.id AND state IN ('queued', 'running'))
"""


_ANY_FOLLOWER = "SELECT 1 FROM schedule_upstreams LIMIT 1"
_ANY_PARKED = "SELECT 1 FROM run_upstreams WHERE state IS NULL LIMIT 1"
_RESULT = "UPDATE runs SET result = ? WHERE id = ?"


class _Inserted:
    """Ids that are known at once."""

    def __init__(self, ids: list[RunId]) -> None:
        self._ids = ids

    async def ids(self) -> list[RunId]:
        return self._ids


class SqliteParts:
    """Answers stores.sql.parts.Parts."""

    async def insert_fires(self, db: Connection, runs: Sequence[NewRun], now: Micros) -> None:
        insert_due(db, [run for run in runs if run.session is None])
        for run in runs:
            if run.session is None:
                continue
            run.later = run.mode is not None and run.ready_at > now
            ids = insert_due_one(db, run)
            if ids and run.mode is not None:
                await let_in(db, self, run.session, ids, now)
            elif ids:
                give_turns(db, [run.session])

    async def insert_all(self, db: Connection, runs: Sequence[NewRun]) -> RunIds:
        return insert_all(db, runs)

    async def insert_new(self, db: Connection, run: NewRun) -> RunId:
        return insert_one(db, run)

    async def send_arrivals(self, db: Connection, runs: Sequence[NewRun], now: Micros) -> _Inserted:
        ids = insert_all(db, runs)
        await note_runs(db, EventKind.ENQUEUED, ids, now)
        return _Inserted(ids)

    async def send_skipped(
        self,
        db: Connection,
        run: NewRun,
        now: Micros,
        kind: EventKind,
        data: Mapping[str, object],
        result: str | None = None,
    ) -> _Inserted:
        id = insert_one(db, run)
        if result is not None:
            db.execute(_RESULT, (result, id))
        await note(db, kind, run.session or "", now, id, **data)
        return _Inserted([id])

    async def add_output(self, db: Connection, said: Sequence[tuple[RunId, int, Sequence[OutputPart]]]) -> None:
        for id, token, parts in said:
            add_output(db, id, token, parts)

    async def end_runs(self, db: Connection, ended: Sequence[Finish]) -> EndedRuns:
        written = end_rows(db, ended)
        in_session = [finish.id for finish in ended if finish.session is not None and finish.id in written]
        if in_session:
            await note_runs(db, EventKind.FINISHED, in_session, None)
        return EndedRuns(written, written if fetch(db, _ANY_PARKED) else ())

    async def count_from_finish(self, db: Connection, finished: Mapping[ScheduleId, Micros]) -> None:
        db.executemany(_COUNT, [(at, id) for id, at in finished.items()])

    async def note_ends(self, db: Connection, ended: Sequence[EndedRun]) -> None:
        if fetch(db, _ANY_FOLLOWER):
            values = note_values(ended)
            await db.run(NOTE, values)
            await db.run(WAKE, {"ids": [id for (id,) in await db.fetch(FOLLOWERS_OF, values)]})

    async def follow_ends(self, db: Connection, ended: Sequence[RunEnd]) -> None:
        await follow_ends(db, self, ended)

    async def wake(self, db: Connection) -> None:
        db.is_woken = True

    async def lock_schedules(self, db: Connection, finishes: Sequence[Finish]) -> None: ...

    async def lock_ends(self, db: Connection, ids: Sequence[RunId]) -> None: ...

    async def lock_sessions(self, db: Connection, sessions: Iterable[str]) -> None: ...

    async def last_event(self, db: Connection) -> int:
        return _LAST_EVENT

    async def fetch_row(self, db: Connection, statement: str, values: Values) -> dict[str, Any] | None:
        columns, rows = fetch_readable(db, statement, values)
        return dict(zip(columns, rows[0], strict=True)) if rows else None

    async def give_turns(self, db: Connection, sessions: Iterable[str]) -> None:
        give_turns(db, sessions)


PARTS = SqliteParts()
