"""What runs print, into PostgreSQL: parts in their order, and a tail that is replaced while the run is under way.

A batch is one statement for each thing that is to be done in it. Everything that writes does so in the caller's
transaction, after the runs were found to hold their tokens. The parts of an attempt come in their order: one whose
number is not higher than that of the last was written before, by a call whose commit got no answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.models.ids import RunId
from ostinato.models.output import OutputPart
from ostinato.stores.postgres.query import Connection, numbers, texts
from ostinato.stores.rows import TAIL
from ostinato.stores.sql.output import drop_tails

__all__ = ["add_output"]

_ADD = f"""
INSERT INTO output (run_id, part, text, cut_lines, cut, token, number)
SELECT o.run_id, coalesce(last.part, 0) + row_number() OVER (PARTITION BY o.run_id ORDER BY o.place),
       o.text, o.cut_lines, o.cut, o.token, o.number
FROM unnest(%s::bigint[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])
     WITH ORDINALITY o (run_id, text, cut_lines, cut, token, number, place)
LEFT JOIN LATERAL (
    SELECT part, token, number FROM output WHERE run_id = o.run_id AND part < {TAIL} ORDER BY part DESC LIMIT 1
) last ON true
WHERE last.token IS DISTINCT FROM o.token OR o.number > last.number
"""
_SET_TAIL = f"""
INSERT INTO output (run_id, part, text, cut_lines, cut)
SELECT run_id, {TAIL}, text, cut_lines, cut
FROM unnest(%s::bigint[], %s::text[], %s::bigint[], %s::bigint[]) o (run_id, text, cut_lines, cut)
ON CONFLICT (run_id, part) DO UPDATE SET text = excluded.text, cut_lines = excluded.cut_lines, cut = excluded.cut
"""
_Piece = tuple[RunId, OutputPart]


async def add_output(connection: Connection, said: Sequence[tuple[RunId, int, Sequence[OutputPart]]]) -> None:
    """Append to the output of runs, each with the token of its attempt, or replace their tails: of several tails of a
    run the last counts."""
    pieces = [(id, token, part) for id, token, parts in said for part in parts if not part.is_tail]
    if pieces:
        tokens = numbers([token for _, token, _ in pieces])
        columns = _columns([(id, part) for id, _, part in pieces])
        await connection.execute(_ADD, (*columns, tokens, numbers([part.number for _, _, part in pieces])))
    tails = {id: part for id, _, parts in said for part in parts if part.is_tail}
    if told := [(id, tail) for id, tail in tails.items() if tail.text]:
        await connection.execute(_SET_TAIL, _columns(told))
    await drop_tails(connection, [id for id, tail in tails.items() if not tail.text])


def _columns(pieces: Sequence[_Piece]) -> tuple[str | None, ...]:
    return (
        numbers([id for id, _ in pieces]),
        texts([part.text for _, part in pieces]),
        numbers([part.cut_lines for _, part in pieces]),
        numbers([part.cut for _, part in pieces]),
    )
