"""What tells whether a commit happened whose answer was lost, and which rows it inserted.

Each writer has one row in `commits`, with the number of its last group that held something that must not be done twice.
It is written inside that group. One of its own transactions comes after the other, so a number that stands there was
committed, and another one was not. The ids that a group inserted and nobody has read yet are noted with it. Used by
writer.py; inserts.py makes an `Inserted` for each insert whose answer is read after the commit.
"""

from __future__ import annotations

from contextvars import ContextVar

from psycopg import AsyncCursor

from ostinato.models.ids import RunId
from ostinato.stores.postgres.query import Connection, Row, fetch

__all__ = ["NOTE_INSERTED", "Inserted", "inserted", "mark_commit", "recall"]

NOTE_INSERTED = """
SELECT set_config('ostinato.inserted', concat(current_setting('ostinato.inserted', true),
                                              string_agg(id::text, ',' ORDER BY id), ';'), true)
"""
"""Notes the ids of a statement in a variable of the transaction: the next part of `mark_commit`."""
_MARK = """
INSERT INTO commits (writer, number, inserted, at)
VALUES (%s, %s, current_setting('ostinato.inserted', true), (extract(epoch FROM now()) * 1000000)::bigint)
ON CONFLICT (writer) DO UPDATE SET number = excluded.number, inserted = excluded.inserted, at = excluded.at
"""
# Together in one statement: each costs the client more than the server.
_MARK_AND_WAKE = f"WITH marked AS ({_MARK}) SELECT pg_notify(%s, '')"
_FIND = "SELECT inserted FROM commits WHERE writer = %s AND number = %s"


class Inserted:
    """The ids that a statement inserted, in their order: of its answer, or as they were noted with the commit."""

    __slots__ = ("_cursor", "recalled")

    def __init__(self, cursor: AsyncCursor[Row]) -> None:
        self._cursor = cursor
        self.recalled: list[RunId] | None = None

    async def ids(self) -> list[RunId]:
        """Read them, after the commit."""
        if self.recalled is None:
            self.recalled = [RunId(row[0]) for row in await self._cursor.fetchall()]
        return self.recalled


inserted: ContextVar[list[Inserted]] = ContextVar("ostinato_inserted")
"""The inserts of the transaction that is being sent, in their order."""


async def mark_commit(connection: Connection, writer: int, number: int, channel: str | None) -> None:
    """Write the number of a group, as its last statement but for a claim; a channel is notified with it."""
    if channel is None:
        await connection.execute(_MARK, (writer, number))
    else:
        await connection.execute(_MARK_AND_WAKE, (writer, number, channel))


async def recall(connection: Connection, writer: int, number: int, inserts: list[Inserted]) -> bool:
    """Whether the group of this number was committed; its inserts know their ids then."""
    rows = await fetch(connection, _FIND, (writer, number))
    if not rows:
        return False
    noted = (rows[0][0] or "").split(";")[:-1]
    for insert, ids in zip(inserts, noted, strict=True):
        insert.recalled = [RunId(int(id)) for id in ids.split(",") if id]
    return True
