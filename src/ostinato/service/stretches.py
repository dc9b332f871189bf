"""What the timeline does not list one by one: runs that ended alike, and due times, as stretches of time with counts.

`timeline.py` asks. However much there is, the answer is as long as its limit: where there is more, neighbours are put
together that are further and further from each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from msgspec import field

from ostinato.clock import Micros, from_micros, to_micros
from ostinato.models.ids import RunId
from ostinato.models.states import RunState
from ostinato.service.answers import Answer
from ostinato.service.forecast import DueTime, ScheduleForecast, count_due, first_due, following_due
from ostinato.stores.base import RunStretch

__all__ = ["DueStretch", "TimelineStretch", "due_stretches", "joined"]

_BREATH = 50
_PARTS = 300


class TimelineStretch(Answer):
    """Runs of a schedule (or of a task, without a schedule) that ended alike."""

    schedule: str | None
    task: str | None
    state: RunState
    with_errors: bool
    """They succeeded with errors."""
    start: datetime = field(name="from")
    end: datetime = field(name="to")
    runs: int
    due_times: int
    """How many due times they stand for."""
    run: RunId | None
    """Its only run."""

    @classmethod
    def told(cls, stretch: RunStretch) -> TimelineStretch:
        start, end = from_micros(stretch.start), from_micros(stretch.end)
        found = (stretch.schedule, stretch.task, stretch.state, stretch.with_errors)
        return cls(*found, start, end, stretch.runs, stretch.due_times, stretch.run)


class DueStretch(Answer):
    """Many due times of a schedule."""

    schedule: str
    zone: str
    """Of the schedule."""
    start: datetime = field(name="from")
    end: datetime = field(name="to")
    count: int


def joined(stretches: Iterable[RunStretch], gap: Micros, longest: Micros, limit: int) -> tuple[list[RunStretch], bool]:
    """Those of a row that ended alike as one, where no more than `gap` is between them; at most `limit`, and whether
    that is everything. Failures are kept before others."""
    found = _joined(stretches, gap)
    while len(found) > limit and gap < longest:
        gap *= 2
        found = _joined(found, gap)
    kept = found
    if len(found) > limit:
        kept = sorted(found, key=lambda one: one.state is not RunState.FAILED)[:limit]
    return sorted(kept, key=lambda one: one.start), len(kept) == len(found)


def _joined(stretches: Iterable[RunStretch], gap: Micros) -> list[RunStretch]:
    rows: dict[tuple[str | None, str | None, RunState, bool], list[RunStretch]] = {}
    for one in stretches:
        row = rows.setdefault((one.schedule, one.task, one.state, one.with_errors), [])
        if row and one.start - row[-1].end <= gap:
            row[-1] = _both(row[-1], one)
        else:
            row.append(one)
    return [one for row in rows.values() for one in row]


def _both(first: RunStretch, second: RunStretch) -> RunStretch:
    return replace(
        first,
        end=max(first.end, second.end),
        runs=first.runs + second.runs,
        due_times=first.due_times + second.due_times,
        run=None,
    )


@dataclass(frozen=True, slots=True)
class _Due:
    start: Micros
    end: Micros
    count: int


async def due_stretches(
    coming: Sequence[ScheduleForecast], now: Micros, listed: Sequence[DueTime], until: Micros, limit: int
) -> tuple[list[DueStretch], bool]:
    """The due times after those that are listed, of at most `limit` schedules; and whether that is everything."""
    if not listed:
        return [], True
    since = to_micros(listed[-1].at)
    with_last = {one.schedule for one in listed if one.at == listed[-1].at}
    shown = coming[:limit]
    step = max(1, (until - since) // min(_PARTS, max(1, limit // max(1, len(shown)))))
    found: list[DueStretch] = []
    for number, one in enumerate(shown):
        parts = _of_schedule(one, now, since if one.name in with_last else since - 1, until, step)
        found += [DueStretch(one.name, one.zone, from_micros(p.start), from_micros(p.end), p.count) for p in parts]
        if number % _BREATH == 0:
            await asyncio.sleep(0)  # an engine on this loop must not start late because of us
    return found, len(shown) == len(coming)


def _of_schedule(one: ScheduleForecast, now: Micros, since: Micros, until: Micros, step: Micros) -> Iterator[_Due]:
    """Its due times after `since`, step by step; those of steps that follow each other together."""
    first = first_due(one, now, since)
    at, left = (None, None) if first is None else first
    whole: _Due | None = None
    while at is not None and at <= until and left != 0:
        end = min(at + step, until + 1)
        number = 1 if one.times is None else max(1, count_due(one.times, at, end))
        if left is not None:
            number = min(number, left)
            left -= number
        part = _Due(at, at if number == 1 else end - 1, number)
        if whole is not None and part.start - whole.end <= step:
            whole = _Due(whole.start, part.end, whole.count + part.count)
        else:
            if whole is not None:
                yield whole
            whole = part
        at = following_due(one, end - 1)
    if whole is not None:
        yield whole
