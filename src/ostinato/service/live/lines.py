"""The lines of a run's output for those who follow it: each is parsed once for all who are at the same place, and what
is known of the parts is kept when more is printed. output.py tells them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from ostinato.models.output import OutputLine, OutputPart, lines_to_tell, output_lines

__all__ = ["Output"]

MOST_READERS = 8
_STAMPED = re.compile(r"^[^ \n]", re.MULTILINE)
"""The beginning of a line that does not say "as the line before"."""


@dataclass(frozen=True, slots=True)
class _Place:
    """What is known behind a part."""

    number: int = 0
    """How many lines came."""
    at: datetime | None = None
    """When the last of them came."""


class Output:
    """What a run has printed so far. The parts that were there before begin at the same line as before."""

    def __init__(self, parts: Sequence[OutputPart], before: Output | None = None, *, is_over: bool = False) -> None:
        self.is_over = is_over
        self._parts = parts
        self._places = [] if before is None else self._known_places(before)
        """Behind each part, as far as they were looked for."""
        self._readers: dict[int, _Reader] = {}
        """By the number of the line that they stopped behind."""

    def lines(self, after: int, most: int) -> tuple[list[OutputLine], bool]:
        """The next lines to tell behind this number, and whether there are more. It may take long: call it in a
        thread, one at a time."""
        reader = self._readers.pop(after, None) or _Reader(self._behind(after))
        lines = reader.take(most)
        numbers = [line.number for line in lines if line.number is not None]
        if numbers:
            self._readers[max(numbers)] = reader
            if len(self._readers) > MOST_READERS:
                del self._readers[next(iter(self._readers))]
        return lines, reader.has_more

    def _known_places(self, before: Output) -> list[_Place]:
        places: list[_Place] = []
        for part, old, place in zip(self._parts, before._parts, before._places, strict=False):
            if part != old:
                break
            places.append(place)
        return places

    def _behind(self, after: int) -> Iterator[OutputLine]:
        """The lines to tell behind this number, from the part on that holds the first of them."""
        first, begin = 0, _Place()
        for index in range(1, len(self._parts)):
            if index > len(self._places):
                self._places.append(_behind(self._parts[index - 1], self._places[-1] if self._places else _Place()))
            if self._places[index - 1].number >= after:
                break
            first, begin = index, self._places[index - 1]
        lines = output_lines(self._parts[first:], after - begin.number)
        return lines_to_tell(_shifted(lines, begin) if first else lines, ended=self.is_over)


class _Reader:
    """Goes on where it stopped."""

    def __init__(self, lines: Iterator[OutputLine]) -> None:
        self._lines = lines
        self._next = next(lines, None)

    @property
    def has_more(self) -> bool:
        return self._next is not None

    def take(self, most: int) -> list[OutputLine]:
        """The next lines. A remark on a cut comes with the lines around it, which may have one number: a long line
        that was cut in its middle."""
        lines: list[OutputLine] = []
        while (line := self._next) is not None and (len(lines) < most or None in (line.number, lines[-1].number)):
            lines.append(line)
            self._next = next(self._lines, None)
        return lines


def _behind(part: OutputPart, place: _Place) -> _Place:
    """What is known behind a part."""
    number = place.number + (part.cut_lines if part.cut else 0)
    if not part.text:
        return _Place(number, place.at)
    begin = max((found.start() for found in _STAMPED.finditer(part.text)), default=None)
    at = place.at
    if begin is not None:
        end = part.text.find("\n", begin)
        line = part.text[begin:] if end < 0 else part.text[begin : end + 1]
        at = next((line.at for line in output_lines([OutputPart(line)])), None) or at
    return _Place(number + part.text.removesuffix("\n").count("\n") + 1, at)


def _shifted(lines: Iterator[OutputLine], begin: _Place) -> Iterator[OutputLine]:
    """The same lines, behind a place that is not the beginning."""
    for line in lines:
        if line.number is None:
            yield line
        else:
            yield OutputLine(line.number + begin.number, line.at or begin.at, line.text, line.is_open)
