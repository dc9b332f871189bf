"""What runs print, into SQLite: parts in their order, and a tail that is replaced while the run is under way.

Everything that writes does so in the caller's transaction, after the run was found to hold its token. The parts of an
attempt come in their order: one whose number is not higher than that of the last was written before.
"""

from __future__ import annotations

from collections.abc import Iterable

from ostinato.models.ids import RunId
from ostinato.models.output import OutputPart
from ostinato.stores.rows import TAIL
from ostinato.stores.sqlite.query import Connection

__all__ = ["add_output"]

_LAST = f"SELECT max(part) FROM output WHERE run_id = ?1 AND part < {TAIL}"
_NEXT = f"(coalesce(({_LAST}), 0) + 1)"
_ADD = f"""
INSERT INTO output (run_id, part, text, cut_lines, cut, token, number) SELECT ?1, {_NEXT}, ?2, ?3, ?4, ?5, ?6
WHERE NOT EXISTS (SELECT 1 FROM output WHERE run_id = ?1 AND part = ({_LAST}) AND token = ?5 AND number >= ?6)
"""
_SET_TAIL = f"INSERT OR REPLACE INTO output (run_id, part, text, cut_lines, cut) VALUES (?, {TAIL}, ?, ?, ?)"
_DROP_TAIL = f"DELETE FROM output WHERE run_id = ? AND part = {TAIL}"


def add_output(connection: Connection, id: RunId, token: int, parts: Iterable[OutputPart]) -> None:
    """Append to a run's output, with the token of its attempt, or replace its tail."""
    for part in parts:
        if not part.is_tail:
            connection.execute(_ADD, (id, part.text, part.cut_lines, part.cut, token, part.number))
        elif part.text:
            connection.execute(_SET_TAIL, (id, part.text, part.cut_lines, part.cut))
        else:
            connection.execute(_DROP_TAIL, (id,))
