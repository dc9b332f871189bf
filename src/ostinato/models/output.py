"""What work printed: as parts, which is how it is stored, and as lines, which is how it is read.

Every stored line has the instant of its arrival in front, to the millisecond, or a space for "as the line before".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from ostinato.clock import Micros, from_micros

__all__ = [
    "STAMP_LENGTH",
    "OutputLine",
    "OutputPart",
    "cut_line",
    "lines_to_tell",
    "output_lines",
    "output_text",
    "stamp",
]

STAMP_LENGTH = 25
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})Z ")


@dataclass(frozen=True, slots=True)
class OutputPart:
    """A piece of a run's output: whole lines; only the last of an attempt, and one before a cut, may lack its newline.

    Before it, `cut` bytes were dropped, and `cut_lines` lines; -1 if it goes on with the line before. A tail is the end
    of what has come so far: the next one replaces it, and it goes when the attempt ends. `number` counts the others of
    an attempt from 1, in their order: whoever is not sure that a part was written writes it again.
    """

    text: str
    cut_lines: int = 0
    cut: int = 0
    is_tail: bool = False
    number: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class OutputLine:
    """One line as people read it. `number` counts every line that came, kept or cut; a remark on a cut has none."""

    number: int | None
    at: datetime | None
    text: str
    is_open: bool = field(default=False, compare=False)
    """It is the last one so far, and may go on."""


def stamp(instant: Micros) -> str:
    """What stands before the first of the lines that came at this instant; the others have a space."""
    return f"{_to_the_second(instant // 1_000_000)}.{instant // 1000 % 1000:03}Z "


@lru_cache(maxsize=64)
def _to_the_second(second: int) -> str:
    return f"{from_micros(second * 1_000_000):%Y-%m-%dT%H:%M:%S}"


def cut_line(cut: int) -> str:
    """What stands where output was dropped."""
    return f"… {cut:,} bytes cut …"


def output_lines(parts: Sequence[OutputPart], after: int = 0) -> Iterator[OutputLine]:
    """The lines behind the first `after` ones. Where some were cut, a line says so."""
    number, at = 0, None
    for part in parts:
        if part.cut:
            number += part.cut_lines
            if number >= after:
                yield OutputLine(None, None, cut_line(part.cut))
        if not part.text:
            continue
        is_open = not part.text.endswith("\n")
        open_number = number + part.text.count("\n") + 1 if is_open and part is parts[-1] else 0
        lines = part.text.removesuffix("\n").split("\n")
        # Who reads a megabyte in portions must not parse all that is before each of them.
        passed = max(0, min(after - number, len(lines)))
        number, at = number + passed, _last_stamp(lines, passed) or at
        for text in lines[passed:]:
            number += 1
            if (found := _STAMP.match(text)) is not None:
                at, begin = _instant(found), found.end()
            else:
                begin = int(text.startswith(" "))  # not so in what was stored before there were marks
            yield OutputLine(number, at, text[begin:], number == open_number)


def _last_stamp(lines: Sequence[str], count: int) -> datetime | None:
    """When the last of the first `count` lines came, if one of them says it."""
    for place in range(count - 1, -1, -1):
        if not lines[place].startswith(" ") and (found := _STAMP.match(lines[place])) is not None:
            return _instant(found)
    return None


def _instant(found: re.Match[str]) -> datetime:
    return datetime.fromisoformat(f"{found[1]}+00:00")


def lines_to_tell(lines: Iterable[OutputLine], *, ended: bool) -> Iterator[OutputLine]:
    """What a follower prints: while the run goes on, no line that may go on and no remark with nothing behind it."""
    remark: OutputLine | None = None
    for line in lines:
        if line.number is None:
            remark = line
        elif ended or not line.is_open:
            if remark is not None:
                yield remark
            remark = None
            yield line
    if ended and remark is not None:
        yield remark


def output_text(parts: Sequence[OutputPart], *, stamps: bool = False) -> str:
    """All of it as one text, with or without the stamps."""
    lines = [
        f"{line.at:%Y-%m-%dT%H:%M:%S}.{line.at.microsecond // 1000:03}Z {line.text}"
        if stamps and line.at is not None
        else line.text
        for line in output_lines(parts)
    ]
    unfinished = not parts or not parts[-1].text.endswith("\n")
    return "\n".join(lines) + ("" if unfinished or not lines else "\n")
