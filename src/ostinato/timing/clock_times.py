"""`ClockTimes`: the times of a day at which a calendar timing is due, one, a list, or every so often within a window.

Below `calendar.py`; `reading.py` reads them from text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import time, timedelta
from typing import NamedTuple

from ostinato.durations import duration_text
from ostinato.timing.explain import clock_text, interval_phrase, joined

__all__ = ["MIDNIGHT", "MOST_TIMES", "ClockTimes", "second_of"]

_DAY = 86_400
MOST_TIMES = 1_440
"""A day has so many at most: one for each minute."""


def second_of(clock: time) -> int:
    """The second of the day that a clock shows."""
    return clock.hour * 3600 + clock.minute * 60 + clock.second


class ClockTimes(NamedTuple):
    """Seconds of the day, in order; with the step of the window that they were written as, if they were."""

    seconds: tuple[int, ...]
    step: int = 0

    @classmethod
    def listed(cls, seconds: Iterable[int]) -> ClockTimes:
        """Each of these, once."""
        return cls(tuple(sorted(set(seconds))))

    @classmethod
    def window(cls, first: int, last: int, step: int) -> ClockTimes:
        """From the first up to the last, every so many seconds."""
        found = tuple(range(first, min(last, _DAY - 1) + 1, step))
        return cls(found, step if len(found) > 1 else 0)

    @property
    def per_day(self) -> int:
        return len(self.seconds)

    @property
    def hours(self) -> Sequence[int]:
        return sorted({second // 3600 for second in self.seconds})

    def rank(self, second_of_day: int) -> int:
        return bisect_left(self.seconds, second_of_day)

    def select(self, rank: int) -> int:
        return self.seconds[rank]

    @property
    def text(self) -> str:
        """`09:00,17:00`, or `09:00-17:00 every 30m`."""
        if not self.step:
            return ",".join(map(_clock, self.seconds))
        return f"{_clock(self.seconds[0])}-{_clock(self.seconds[-1])} every {duration_text(self._every)}"

    @property
    def phrase(self) -> str:
        if not self.step:
            return f"at {joined([_clock(second) for second in self.seconds])}"
        return f"every {interval_phrase(self._every)} from {_clock(self.seconds[0])} to {_clock(self.seconds[-1])}"

    @property
    def _every(self) -> timedelta:
        return timedelta(seconds=self.step)


MIDNIGHT = ClockTimes((0,))


def _clock(second_of_day: int) -> str:
    minute, second = divmod(second_of_day, 60)
    return clock_text(*divmod(minute, 60), second)
