"""Rows that break the rules of rules.py: found, set aside, listed. A part of base.py, answered in each quarantine.py.

The queries are made here, once for each database. Nothing of it is on the way of a run: the engine asks when a service
meets a row that it cannot work with, and once in an hour for what is new.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from ostinato.clock import Micros, from_micros
from ostinato.models.quarantine import BadRow, Quarantined
from ostinato.stores.rules import GROWING, KEYS, MENDS, NAMED, NUMBERED, SECRETS, STEPS, UNDECODABLE, Dialect

__all__ = ["QUARANTINE_COLUMNS", "QuarantineStore", "Queries", "Seen", "content_of", "find_all", "load_quarantined"]

QUARANTINE_COLUMNS = "id, table_name, row_key, reason, at, content"
_STEP = 50_000
"""So many rows are looked at in one read: a ledger has millions."""
Seen = dict[str, int]
"""How far the tables that grow have been looked at."""


class QuarantineStore(Protocol):
    """Rows that nobody can work with."""

    async def find_bad(self, limit: int, seen: Seen | None = None) -> list[BadRow]:
        """Rows of every table that break a rule, at most so many; changes nothing. Of the tables that grow only what
        is beyond `seen`, which is moved on."""
        ...

    async def set_aside(self, bad: Sequence[BadRow], now: Micros) -> list[Quarantined]:
        """Keep what these rows say, and end, switch off, mend or remove them, each if it still breaks a rule. What
        follows from the end of a run follows."""
        ...

    async def list_quarantined(self, limit: int) -> list[Quarantined]:
        """What was set aside, the newest first."""
        ...

    async def count_quarantined(self) -> int: ...

    async def clear_quarantine(self) -> int:
        """Forget what was set aside; answers how many rows."""
        ...


class Queries:
    """The SQL for one table, in the words of one database.

    `texts` are the columns whose bytes are looked at, where the database takes any."""

    def __init__(self, dialect: Dialect, table: str, texts: Sequence[str] = ()) -> None:
        key = dialect.readable.replace("EXPRESSION", KEYS[table]) if table in NAMED else f"CAST({KEYS[table]} AS text)"
        wrong = [(f"NOT ({dialect.write(rule.holds)})", rule.says) for rule in dialect.rules(table)]
        undecodable = dialect.undecodable and dialect.undecodable.replace("COLUMNS", ", ".join(texts))
        if undecodable:
            wrong.append((undecodable, UNDECODABLE))
        whens = " ".join(f"WHEN {broken} THEN '{says}'" for broken, says in wrong)
        bad = f"CASE {whens} END"
        # Of what has no numbers there is little, and one look at all of it.
        step = STEPS.get(table)
        span = f" AND {step} > :after AND {step} <= :until" if step else ""
        next_ones = f"SELECT {step} FROM {table} WHERE {step} > :after ORDER BY {step} LIMIT {_STEP}"
        self.until = (
            f"SELECT max({step}) FROM ({next_ones}) next_ones"
            if step
            else "SELECT CASE WHEN CAST(:after AS bigint) < 0 THEN 0 END"
        )
        self.find = f"SELECT {key}, {bad} FROM {table} WHERE {bad} IS NOT NULL{span} LIMIT :limit"
        own = f"{key} = :row" if table not in NUMBERED else "id = CAST(:row AS bigint)"
        self._where = f"{own} AND {bad} IS NOT NULL"
        self.read = f"SELECT * FROM {table} WHERE {self._where}"
        mend = MENDS[table]
        self.change = (
            f"DELETE FROM {table} WHERE {self._where}"
            if mend is None
            else f"UPDATE {table} SET {dialect.write(mend)} WHERE {self._where}"
        )
        decoded = ", ".join(f"{column} = {dialect.readable.replace('EXPRESSION', column)}" for column in texts)
        self.decode = f"UPDATE {table} SET {decoded} WHERE {own} AND {undecodable}" if undecodable else None
        self.keep = (
            "INSERT INTO quarantine (table_name, row_key, reason, at, content) "
            f"VALUES ('{table}', :row, :reason, :now, :content) RETURNING {QUARANTINE_COLUMNS}"
        )


async def find_all(
    queries: Mapping[str, Queries],
    ask: Callable[[str, Mapping[str, Any]], Awaitable[list[Any]]],
    limit: int,
    seen: Seen | None,
) -> list[BadRow]:
    """Rows of every table that break a rule; `ask` answers the rows of a query."""
    found: list[BadRow] = []
    for table, query in queries.items():
        after = (seen or {}).get(table, -(2**63))
        while len(found) < limit:
            ((until,),) = await ask(query.until, {"after": after})
            if until is None:
                break
            rows = await ask(query.find, {"after": after, "until": until, "limit": limit - len(found)})
            found += [BadRow(table, *row) for row in rows]
            after = until
            if seen is not None and table in GROWING and len(found) < limit:
                seen[table] = until
    return found


def content_of(row: Mapping[str, Any]) -> str:
    """A row as it was, as JSON; what is secret of it is left out."""
    return msgspec.json.encode({name: value for name, value in row.items() if name not in SECRETS}).decode()


def load_quarantined(row: Sequence[Any]) -> Quarantined:
    """What was set aside, from QUARANTINE_COLUMNS."""
    id, table, key, reason, at, content = row
    return Quarantined(id, table, key, reason, from_micros(at), content)
