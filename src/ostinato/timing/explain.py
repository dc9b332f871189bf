"""English for timings: intervals, clock times, lists of days, and what a clock change does to them.

Only words, no arithmetic: each timing calls the piece it needs from its own `phrase` and `_remarks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta

from ostinato.timing.zones import Transition, wall_time

__all__ = [
    "WEEKDAYS",
    "WEEKDAY_NAMES",
    "change_remark",
    "clock_text",
    "date_phrase",
    "day_number",
    "interval_phrase",
    "joined",
    "moment_phrase",
    "month_end_remark",
    "weekdays_phrase",
]

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WEEKDAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_UNITS = (("day", 86_400_000_000), ("hour", 3_600_000_000), ("minute", 60_000_000), ("second", 1_000_000))


def joined(words: Sequence[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def interval_phrase(interval: timedelta, *, counted: bool = False) -> str:
    """`minute`, `5 minutes`, `1 hour and 30 minutes`: what stands after 'every'; counted, `minute` is `1 minute`."""
    rest = interval // timedelta(microseconds=1)
    parts = []
    for name, size in _UNITS:
        amount, rest = divmod(rest, size)
        if amount:
            parts.append((amount, name))
    if rest:
        parts.append((rest // 1000, "millisecond") if rest % 1000 == 0 else (rest, "microsecond"))
    if len(parts) == 1 and parts[0][0] == 1 and not counted:
        return parts[0][1]
    return joined([f"{amount} {name}{'' if amount == 1 else 's'}" for amount, name in parts])


def clock_text(hour: int, minute: int, second: int = 0) -> str:
    """`09:30`, and `09:30:15` where there are seconds."""
    return f"{hour:02}:{minute:02}" + (f":{second:02}" if second else "")


def day_number(day: int) -> str:
    """`1st`, `2nd`, `3rd`, `4th`, … `31st`."""
    ending = "th" if day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"


def weekdays_phrase(days: Sequence[int]) -> str:
    """`Monday and Thursday`; three or more in a row are `Monday through Friday`."""
    if len(days) >= 3 and days[-1] - days[0] == len(days) - 1:
        return f"{WEEKDAY_NAMES[days[0]]} through {WEEKDAY_NAMES[days[-1]]}"
    return joined([WEEKDAY_NAMES[day] for day in days])


def moment_phrase(when: datetime) -> str:
    """`on 24 December 2026 at 18:00`, with its offset where it has one."""
    offset = when.strftime("%z") and f" UTC{when.isoformat()[-6:]}".replace("UTC+00:00", "UTC")
    clock = clock_text(when.hour, when.minute, when.second)
    return f"on {date_phrase(when)} at {clock}{offset}"


def date_phrase(day: date) -> str:
    """`24 December 2026`."""
    return f"{day.day} {day.strftime('%B')} {day.year}"


def change_remark(change: Transition, zone: str, wall: int, touched: int, follows_clock: bool) -> str:
    """What a clock change does to the `touched` wall times in it, of which `wall` is the first."""
    first, end = (wall_time(side) for side in change.walls)
    one = touched == 1
    times = _clock(wall_time(wall)) if one else f"{touched} times between {_clock(first)} and {_clock(end)}"
    if change.is_gap:
        what = f"{'does' if one else 'do'} not exist in {zone} (the clock goes from {_clock(first)} to {_clock(end)})"
        then = "it is left out" if one else "they are left out"
        if not follows_clock:
            then = f"due {'' if one else 'once '}at {_clock(end)} instead"
    else:
        back = f"the clock goes back from {_clock(end)} to {_clock(first)}"
        what = f"{'happens' if one else 'happen'} twice in {zone} ({back})"
        then = "due both times" if follows_clock else "due once, the first time"
    return f"On {first:%Y-%m-%d} {times} {what}: {then}."


def _clock(wall: datetime) -> str:
    return clock_text(wall.hour, wall.minute, wall.second)


def month_end_remark(day: int, line: str = "") -> str:
    """For a day of the month that not every month has; `line` is cron with the last days of its months."""
    if line:
        return f"Skips months without a {day_number(day)}; '{line}' is due on the last day of each of its months."
    return f"Skips months without a {day_number(day)}; 'monthly last' is due on the last day of every month."
