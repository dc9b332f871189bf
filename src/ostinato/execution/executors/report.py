"""The side channel of shell and agent work: what a script says of itself through `$OSTINATO_REPORT`.

It is a named pipe that takes JSON lines from the work and from whatever it starts: `{"totals": {"copied": 5}}` says
what a total is, `{"count": {"copied": 1}}` adds to it, `{"progress": {"done": 3, "total": 10, "text": "c.txt"}}` says
how far it is (`"3/10"` and `3` do, too), and `{}` that it is still at work. `ostinato report` writes such lines. A line
that is not right in all its parts is told in the run's output and does no harm. Who writes without end waits: the loop
that reads is everybody's.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from ostinato.errors import InvalidInput
from ostinato.execution.context import RunContext, checked_total, finite
from ostinato.execution.executors.private_places import PLACES
from ostinato.execution.output import readable
from ostinato.plurals import counted

__all__ = ["ReportChannel"]

_CHUNK = 16_384
_PIPE = 65_536
"""What a pipe holds: as much is read of what was written before the end."""
_LAST_LINES = 5_000
"""How many lines that is at most, of those that say anything."""
_LINES_A_TURN = 100
_SHORT_PAUSE, _LONG_PAUSE = 0.000_1, 0.001
"""Seconds for each line, until the next ones are read. Who writes faster waits, and nothing is lost."""
_LEAST_PAUSE = 0.001
_MOST_REMARKS = 5
_LONGEST_LINE = 100_000
_MOST_TOTALS = 100
_LONGEST_NAME = 200
_SHOWN = 200
"""How many letters of a line that cannot be read are shown, and of why."""
_AMOUNTS = re.compile(r"(\d+(?:\.\d+)?)(?:/(\d+(?:\.\d+)?))?")


class ReportChannel:
    """A named pipe, read until it is closed. All of this process lie in one folder, which is gone with the last."""

    def __init__(self, context: RunContext, owner: tuple[int, int] | None = None, many: int = 10_000) -> None:
        self._context = context
        self._many = many
        """Up to here, a run's lines are read nearly as fast as they come; the further ones, a thousand in a second."""
        self._begun = b""
        self._lines: deque[bytes] = deque()
        """Read, and not heard yet."""
        self._heard_so_far = self._remarks = 0
        self._pause: asyncio.TimerHandle | None = None
        self.path = PLACES.take("report", _make_pipe)
        try:
            if owner is not None:
                os.chown(self.path, *owner)
            # For both ways, so that it never ends while no writer is there, and a writer never waits for a reader.
            self._pipe = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except BaseException:
            PLACES.give_back(self.path)
            raise
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._pipe, self._turn)

    @classmethod
    @contextmanager
    def made(cls, context: RunContext, owner: tuple[int, int] | None = None) -> Iterator[str]:
        """Its path, while the block lasts. If there can be none, reports go nowhere: that is no reason not to work."""
        try:
            channel = cls(context, owner)
        except OSError as error:
            context.log(f"ostinato: there is no report channel, so progress and totals are lost: {error}")
            yield os.devnull
            return
        try:
            yield channel.path
        finally:
            channel.close()

    def close(self) -> None:
        """Read what is left, and be gone."""
        self._loop.remove_reader(self._pipe)
        if self._pause is not None:
            self._pause.cancel()
        left = _PIPE  # somebody who fled may still be writing
        while left > 0 and (read := self._read()):
            left -= read
        if self._begun:
            self._lines.append(self._begun)
        self._hear(_LAST_LINES)
        if self._lines:
            self._context.log(f"ostinato: dropped the last {counted(len(self._lines), 'report')}, which were too many")
        os.close(self._pipe)
        PLACES.give_back(self.path)

    def _turn(self) -> None:
        """A little of what has come, and a pause: other runs want to be heard, too."""
        if not self._lines:
            self._read()
        before = self._heard_so_far
        heard = self._hear(_LINES_A_TURN)
        if before < self._many <= self._heard_so_far:
            self._context.log("ostinato: from here on at most 1,000 reports are read in a second: report less often")
        self._loop.remove_reader(self._pipe)
        pause = heard * (_SHORT_PAUSE if self._heard_so_far < self._many else _LONG_PAUSE)
        self._pause = self._loop.call_later(max(pause, _LEAST_PAUSE), self._go_on)

    def _go_on(self) -> None:
        if self._lines:
            self._turn()
        else:
            self._loop.add_reader(self._pipe, self._turn)

    def _read(self) -> int:
        """How many bytes there were."""
        try:
            data = os.read(self._pipe, _CHUNK)
        except BlockingIOError:
            return 0
        *lines, self._begun = (self._begun + data).split(b"\n")
        self._lines.extend(lines)
        if len(self._begun) > _LONGEST_LINE:
            self._begun = b""
            self._remark("a report of more than 100 KB without a line end was dropped")
        return len(data)

    def _hear(self, most: int) -> int:
        """Take up to so many of the lines that were read; how many."""
        heard = min(most, len(self._lines))
        for _ in range(heard):
            self._heard(self._lines.popleft())
        self._heard_so_far += heard
        return heard

    def _remark(self, text: str) -> None:
        """Say what is wrong, but not without end."""
        self._remarks += 1
        if self._remarks <= _MOST_REMARKS:
            self._context.log(f"ostinato: {text}")
        elif self._remarks == _MOST_REMARKS + 1:
            self._context.log("ostinato: more reports could not be read; they are not listed one by one")

    def _heard(self, line: bytes) -> None:
        if not line.strip():
            return
        self._context.heartbeat()
        try:
            said = msgspec.json.decode(line)
            if not isinstance(said, Mapping) or (said and not said.keys() & {"totals", "count", "progress"}):
                raise InvalidInput("it has neither totals nor count nor progress")
            # All of it is looked at before any of it counts.
            totals = self._totals(said)
            progress = _progress(said.get("progress"))
        except (InvalidInput, TypeError, ValueError, RecursionError) as error:
            if self._remarks <= _MOST_REMARKS:
                short = self._context.mask.shortened
                said_of = short(str(error), _SHOWN), short(readable(line), _SHOWN)
                self._remark("a report could not be read ({}): {}".format(*said_of))
            return
        for name, value in totals.items():
            self._context.set_total(name, value)
        if progress is not None:
            self._context.progress(*progress)

    def _totals(self, said: Mapping[str, Any]) -> dict[str, float]:
        """What the totals that it names are after it."""
        known = self._context.totals
        after = dict(_numbers(said.get("totals")))
        for name, by in _numbers(said.get("count")):
            after[name] = finite(f"total {name!r}", after.get(name, known.get(name, 0)) + by)
        if len(known.keys() | after.keys()) > _MOST_TOTALS or any(len(name) > _LONGEST_NAME for name in after):
            raise InvalidInput(f"a run has at most {_MOST_TOTALS} totals with names of at most {_LONGEST_NAME} letters")
        return after


def _make_pipe(path: str) -> None:
    os.mkfifo(path, 0o600)


def _numbers(said: Any) -> Iterable[tuple[str, float]]:
    if said is None:
        return ()
    if not isinstance(said, Mapping):
        raise InvalidInput(f"totals cannot be {said!r}", hint='write {"totals": {"copied": 5}}')
    return [checked_total(name, value) for name, value in said.items()]


def _progress(said: Any) -> tuple[float, float | None, str] | None:
    match said:
        case None:
            return None
        case str() if (amounts := _AMOUNTS.fullmatch(said)) is not None:
            done, total, text = _number(amounts[1]), _number(amounts[2]) if amounts[2] else None, ""
        case int() | float() if not isinstance(said, bool):
            done, total, text = said, None, ""
        case dict() if "done" in said:
            fields: dict[str, Any] = said
            done, total, text = fields["done"], fields.get("total"), str(fields.get("text") or "")
        case _:
            raise InvalidInput(f"progress cannot be {said!r}", hint='write {"progress": {"done": 3}} or "3/10"')
    return finite("progress.done", done), None if total is None else finite("progress.total", total), text


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)
