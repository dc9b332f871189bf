"""Timings: what a text means, when it is due, and what the clock changes do to it. Only a calendar needs a database."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ostinato.clock import Clock, from_micros, to_micros
from ostinato.errors import InvalidInput, TimingError
from ostinato.service.calendars import CalendarService
from ostinato.timing import Timing, parse_timing
from ostinato.timing.calendar_days import folded
from ostinato.timing.searching import at_most
from ostinato.timing.zones import check_zone

__all__ = ["Preview", "TimingService"]

_MOST = 10_000
_DAYS = 20_000
"""Beside an engine, no more days are looked at for one preview: about a second, for what nobody means."""


@dataclass(frozen=True, slots=True)
class Preview:
    """A timing explained."""

    text: str
    """Its canonical form."""
    zone: str
    sentence: str
    next: Sequence[datetime]
    remarks: Sequence[str]
    """How clock changes affect it, and which months it skips."""
    after: datetime
    """The next times are after this one."""


class TimingService:
    """What can be asked of a timing."""

    def __init__(self, clock: Clock, zone: str, calendars: CalendarService | None = None) -> None:
        self._calendars = calendars
        self._clock = clock
        self._zone = zone
        self._one = asyncio.Semaphore(1)

    def preview(
        self,
        timing: Timing | str,
        *,
        zone: str | None = None,
        name: str | None = None,
        n: int = 5,
        after: datetime | None = None,
    ) -> Preview:
        """The sentence of a timing, its next times after now, and remarks on them."""
        if not 1 <= n <= _MOST:
            raise InvalidInput(f"n cannot be {n}", field="n", hint=f"give 1 to {_MOST}")
        home = self._zone if zone is None else check_zone(zone)
        start = from_micros(self._clock.now()).replace(microsecond=0) if after is None else after
        if isinstance(timing, str):
            found, text = parse_timing(timing, tz=home, name=name, now=start), timing
        else:
            found, text = timing if name is None else timing.named(name), timing.text
        for calendar in found.wants_calendars:
            raise TimingError(
                f"the dates of calendar {calendar!r} are in a database, and none was asked",
                text=text,
                position=max(text.casefold().find("calendar"), 0),
            )
        if found.wants_name:
            raise TimingError(
                "an H is chosen by the name of the schedule, which is not known here: give its name",
                text=text,
                position=_place_of_h(text),
            )
        times, remarks = _next_times(found, start, n), found.remarks(start, n)
        return Preview(
            folded(found.text_within(found.zone)), found.zone or home, found.explain(), times, remarks, start
        )

    async def preview_aside(
        self,
        timing: Timing | str,
        *,
        zone: str | None = None,
        name: str | None = None,
        n: int = 5,
        after: datetime | None = None,
    ) -> Preview:
        """The same in a thread, one at a time, so that the engine on this loop goes on whatever people type."""

        def limited() -> Preview:
            with at_most(_DAYS):
                return self.preview(timing, zone=zone, name=name, n=n, after=after)

        if self._calendars is not None:
            home = self._zone if zone is None else check_zone(zone)
            start = self._clock.now() if after is None else to_micros(after)
            timing = await self._calendars.resolved(timing, home, start)
        async with self._one:
            return await asyncio.to_thread(limited)


def _place_of_h(timing: str) -> int:
    found = re.search(r"(?<![a-z])h(?![a-z])", timing, re.IGNORECASE)
    return 0 if found is None else found.start()


def _next_times(found: Timing, start: datetime, n: int) -> list[datetime]:
    anchored = found.anchored(start)
    times: list[datetime] = []
    n = min(n, found.runs or n)
    due = anchored.next_after(start)
    while due is not None and len(times) < n:
        times.append(due)
        due = anchored.next_after(due)
    return times
