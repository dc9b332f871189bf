"""Until when a channel is held back, pure: its quiet hours, and the times of its digest, in its zone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from ostinato.clock import from_micros
from ostinato.errors import InvalidInput
from ostinato.models.notification import URGENT, Channel, NoticeKind
from ostinato.timing import DailyAt, parse_timing

__all__ = ["QuietHours", "held_until", "parse_quiet"]

_HOURS = re.compile(r"\s*(\d{1,2}):(\d\d)\s*-\s*(\d{1,2}):(\d\d)\s*")


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From one time of the day until another, maybe of the next."""

    begin: tuple[int, int]
    end: tuple[int, int]

    @property
    def text(self) -> str:
        """As it is written."""
        return f"{self.begin[0]:02}:{self.begin[1]:02}-{self.end[0]:02}:{self.end[1]:02}"

    def until(self, zone: str, now: datetime) -> datetime | None:
        """When they are over that it is in now; None if it is in none. A time that a day does not have is the first
        minute after it."""
        end = DailyAt(*self.end, tz=zone).next_after(now)
        begin = DailyAt(*self.begin, tz=zone).next_after(now)
        return end if end is not None and begin is not None and end < begin else None


def parse_quiet(text: str) -> QuietHours:
    """`22:00-07:00`; InvalidInput if it is not such a text."""
    found = _HOURS.fullmatch(text)
    if found is not None:
        hour, minute, until_hour, until_minute = map(int, found.groups())
        hours = QuietHours((hour, minute), (until_hour, until_minute))
        if max(hour, until_hour) < 24 and max(minute, until_minute) < 60 and hours.begin != hours.end:
            return hours
    raise InvalidInput(
        f"quiet hours cannot be {text!r}", field="quiet", hint="write a start and an end, such as 22:00-07:00"
    )


def held_until(channel: Channel, kind: NoticeKind, at: datetime, now: datetime) -> datetime | None:
    """Until when a notice of this kind that was made then waits for its channel; None if it does not.

    A channel with a digest gets what there is at its times, and what is urgent at once.
    """
    if kind in URGENT:
        return None
    free = now
    if channel.digest is not None and kind is not NoticeKind.DIGEST:
        timing = parse_timing(channel.digest, tz=channel.zone, stored=True).anchored(from_micros(channel.created_at))
        free = max(now, timing.next_after(at) or now)
    if channel.quiet is not None:
        free = parse_quiet(channel.quiet).until(channel.zone, free) or free
    return free if free > now else None
