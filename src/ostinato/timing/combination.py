"""`Combination`: what timings have in common that are made of others, and what can be combined.

`combine.py` has `A or B` and `A except B`, `bounds.py` what is bounded.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ostinato.errors import TimingError
from ostinato.timing.base import Timing
from ostinato.timing.dates import DaySet

__all__ = ["Combination", "check_combinable", "refuse_many", "size_of"]

_MOST_PARTS = 20
"""A combination joins so many timings and lists of dates at most."""


def check_combinable(*timings: Timing) -> None:
    """Refuse what has no due times of its own to choose from, and what is said of a whole timing."""
    for timing in timings:
        if timing.runs is not None:
            raise TimingError(f"'until {timing.runs} runs' is of the whole timing, and stands at its end")
        if timing.after_finish is not None:
            raise TimingError(
                f"{timing.text!r} counts from the end of a run and cannot be combined",
                hint=timing.text.replace(" after finish", ""),
            )
        if timing.follows:
            raise TimingError(
                f"{timing.text!r} has no due times and cannot be combined",
                hint="two schedules with the same work, one of them by the clock",
            )


def refuse_many(parts: int) -> None:
    """Refuse a combination of more parts than anybody reads."""
    if parts > _MOST_PARTS:
        raise TimingError(
            f"more than {_MOST_PARTS} timings are joined: take several schedules, or lists in one part "
            "(weekly mon,thu 09:00, except 12-24,12-25,12-26)"
        )


def size_of(part: Timing | DaySet) -> int:
    """Of how many timings and sets of days it is made."""
    return part.size if isinstance(part, Combination) else 1


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Combination(Timing):
    """What follows from its parts, found once: a combination of combinations would ask them over and over."""

    size: int = field(compare=False)
    wants: bool = field(compare=False)
    nameless: bool = field(compare=False)
    own_zone: str | None = field(compare=False)

    @property
    def zone(self) -> str | None:
        return self.own_zone

    @property
    def wants_zone(self) -> bool:
        return self.wants

    @property
    def wants_name(self) -> bool:
        return self.nameless

    @property
    def calendars(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self._timings() for name in part.calendars))

    @property
    def wants_calendars(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self._timings() for name in part.wants_calendars))

    def left_out(self, t: datetime) -> str | None:
        found = [part.left_out(t) for part in self._timings()]
        return found[0] if all(found) else None

    @property
    def owns_zone(self) -> bool:
        timings = self._timings()
        zones = {timing.zone for timing in timings if timing.zone is not None}
        return len(zones) > 1 or any(timing.owns_zone for timing in timings)

    @abstractmethod
    def _timings(self) -> Sequence[Timing]:
        """The timings that it is made of."""

    def _words(self) -> str:
        return self.text_within(self.zone)
