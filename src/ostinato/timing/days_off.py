"""Which coming days a set of days takes from a timing: what a person is told of holidays and calendars.

Called by `combine.py`; a list of dates says it itself.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice

from ostinato.timing.base import Timing
from ostinato.timing.dates import DaySet
from ostinato.timing.zones import local_date, stretches_of_day

__all__ = ["days_off_remarks"]

_NAMED = 3
_AHEAD = timedelta(days=365)
_TICK = timedelta(microseconds=1)


def days_off_remarks(base: Timing, days: DaySet, zone: str, after: datetime) -> list[str]:
    """The next days within a year on which it would be due but for them."""
    if days.is_listed or days.wants_dates:
        return []
    first = local_date(zone, after)
    taken = (
        day
        for day in days.within(first, first + _AHEAD)
        if any(
            base.first_until(max(begin - _TICK, after), end - _TICK) is not None
            for begin, end in stretches_of_day(zone, day)
            if end > after
        )
    )
    named = [f"{day} ({days.name_of(day)})" if days.name_of(day) else str(day) for day in islice(taken, _NAMED + 1)]
    if not named:
        return []
    more = ", …" if len(named) > _NAMED else ""
    return [f"The next days that it leaves out: {', '.join(named[:_NAMED])}{more}."]
