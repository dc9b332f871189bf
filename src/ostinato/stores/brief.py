"""Runs as lists show them, the same for every store: what is long in one is cut, for a list has hundreds.

Of work and result the beginning is kept, of an error the end, and `Run.cut` names what is cut; of the attempts there is
the last. rows.py loads a run as a whole.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ostinato.models.run import Run
from ostinato.stores.rows import RUN_COLUMNS, Row, load_run

__all__ = ["BRIEF_COLUMNS", "LONGEST", "json_beginning", "load_brief"]

LONGEST = 4_000
"""So many characters of each are in a list."""
_SHORTEST = 200
"""An unfinished text that is shorter is left out: of a name or a mode, a part would be another one."""

# The database cuts, one character later so that it can be seen: what is not shown is not even read into memory.
_CUT = {
    "r.work": f"substr(r.work, 1, {LONGEST + 1})",
    "r.result": f"substr(r.result, 1, {LONGEST + 1})",
    "r.error": (
        f"CASE WHEN length(r.error) > {LONGEST} THEN '…' || substr(r.error, length(r.error) - {LONGEST - 1}) "
        "ELSE r.error END"
    ),
}
_NAMES = RUN_COLUMNS.split(", ")
BRIEF_COLUMNS = ", ".join(_CUT.get(name, name) for name in _NAMES)

_WORK, _RESULT, _ERROR = (_NAMES.index(f"r.{name}") for name in ("work", "result", "error"))
# Brackets, a text that has no end, and whatever is between those, with the last comma in it. Escapes count as a whole.
_TEXT = r'"[^"\\]*(?:\\(?:u[0-9a-fA-F]{4}|[^u])[^"\\]*)*'
_TOKENS = re.compile(rf'(?:{_TEXT}"|[^"{{}}\[\],]+|(?P<comma>,))+|[{{}}\[\]]|(?P<open>{_TEXT})')


def load_brief(row: Row) -> Run:
    """A run from BRIEF_COLUMNS, with its last attempt."""
    work, result, error = row[_WORK], row[_RESULT], row[_ERROR]
    cut = []
    if len(work) > LONGEST:
        cut.append("work")
        work = json_beginning(work[:LONGEST]) or work
    if result is not None and len(result) > LONGEST:
        cut.append("result")
        result = json_beginning(result[:LONGEST])
    if error is not None and len(error) > LONGEST:
        cut.append("error")
    if not cut:
        return load_run(row)
    given = list(row)
    given[_WORK], given[_RESULT] = work, result
    return replace(load_run(given), cut=tuple(cut))


def json_beginning(text: str) -> str:
    """The most that a cut-off JSON text says and that is JSON itself; empty, if that is nothing."""
    closing: list[str] = []
    end, before = 0, ""
    for found in _TOKENS.finditer(text):
        token = found[0]
        if token in ("{", "["):
            closing.append("}" if token == "{" else "]")
            end = found.end()
        elif token in ("}", "]"):
            if closing[-1:] != [token]:
                return ""
            closing.pop()
            end = found.end()
        elif found["comma"]:
            end = found.start("comma")
        elif found["open"]:
            is_key = closing[-1:] == ["}"] and before != ":"
            if len(token) > _SHORTEST and not is_key:
                return f'{text[: found.end()]}…"{"".join(reversed(closing))}'
            break
        before = token[-1]
    return text[:end] + "".join(reversed(closing))
