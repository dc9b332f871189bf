"""English for cron: the sentence of an expression, from the same fields that its due times come from.

`cron.py` calls `cron_phrase`; `explain.py` has the words that all timings share.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from ostinato.timing.cron_fields import MONTH_NAMES, CronField, FromEnd, Item, Kind, Nearest, Nth, Span, Spread, bounds
from ostinato.timing.cron_lines import CompiledCron
from ostinato.timing.explain import WEEKDAY_NAMES, clock_text, day_number, interval_phrase

__all__ = ["cron_phrase"]

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_MOST_CLOCKS = 4
_SPREAD = ", with H chosen by the schedule's name"


def cron_phrase(cron: CompiledCron) -> str:
    """What a cron expression means, without capital and full stop."""
    if (pace := _pace(cron)) is not None:
        return pace
    time, may_say_every_day = _time(cron)
    date = _date(cron, may_say_every_day)
    return " ".join(part for part in (time, date) if part) + (_SPREAD if cron.needs_name else "")


def _pace(cron: CompiledCron) -> str | None:
    """`every 5 minutes`, where it is no more than that: others than divisors of an hour begin anew with each."""
    days = cron.days
    rest = (cron.hour, days.day, days.month, days.weekday)
    if not all(map(_is_star, rest)) or (days.year is not None and not days.year.is_any):
        return None
    if _is_zero(cron.second) and _is_step_of_60(cron.minute):
        return f"every {interval_phrase(timedelta(minutes=_step(cron.minute)))}"
    if _is_star(cron.minute) and _is_step_of_60(cron.second):
        return f"every {interval_phrase(timedelta(seconds=_step(cron.second)))}"
    return None


def _is_star(field: CronField) -> bool:
    return field.is_any and all(isinstance(item, Span) for item in field.items)


def _is_zero(field: CronField) -> bool:
    return field.values == (0,) and not field.needs_name


def _is_step_of_60(field: CronField) -> bool:
    item = field.items[0]
    return len(field.items) == 1 and isinstance(item, Span) and item.is_whole and 60 % item.step == 0 and item.step < 60


def _step(field: CronField) -> int:
    item = field.items[0]
    return item.step if isinstance(item, Span) else 1


def _time(cron: CompiledCron) -> tuple[str, bool]:
    """The part for the time of day, and whether `every day` may follow."""
    second, minute, hour = cron.second, cron.minute, cron.hour
    whole_minutes = _is_zero(second)
    if (clocks := _clocks(second, minute, hour)) is not None:
        return clocks, True
    if _is_star(hour):
        if _is_star(minute):
            return ("every minute" if whole_minutes else f"{_at(second)} of every minute"), False
        if whole_minutes:
            return ("at the start of every hour" if _is_zero(minute) else f"{_at(minute)} of every hour"), False
    if whole_minutes and (stretch := _stretch(minute, hour)) is not None:
        return stretch, False
    parts = [_at(minute), f"past {_listed(hour)}"]
    return " ".join(parts if whole_minutes else [_at(second), *parts]), cron.needs_name


def _clocks(second: CronField, minute: CronField, hour: CronField) -> str | None:
    """`at 09:00, 09:30, and 17:00`, where they are few."""
    fields = (second, minute, hour)
    if any(field.needs_name or not _singles(field) for field in fields):
        return None
    if len(second.values) * len(minute.values) * len(hour.values) > _MOST_CLOCKS:
        return None
    with_seconds = not _is_zero(second)
    shown = [
        f"{clock_text(h, m)}:{s:02}" if with_seconds else clock_text(h, m)
        for h in hour.values
        for m in minute.values
        for s in second.values
    ]
    return "at " + _and(shown)


def _stretch(minute: CronField, hour: CronField) -> str | None:
    """`every 15th minute from 09:00 through 17:59`."""
    if len(minute.items) != 1 or len(hour.items) != 1:
        return None
    minutes, hours = minute.items[0], hour.items[0]
    if not isinstance(minutes, Span) or not isinstance(hours, Span) or hours.step != 1 or _is_star(hour):
        return None
    if minutes.is_whole and len(minutes.values) > 1:
        return f"{_at(minute)} from {clock_text(hours.first, 0)} through {clock_text(hours.last, 59)}"
    if hours.size == 1 and minutes.step == 1 and minutes.size > 2:
        first, last = clock_text(hours.first, minutes.first), clock_text(hours.first, minutes.last)
        return f"every minute from {first} through {last}"
    return None


def _date(cron: CompiledCron, may_say_every_day: bool) -> str:
    """The part for the days."""
    fields = cron.days
    day, weekday = not _is_star(fields.day), not _is_star(fields.weekday)
    in_year = "" if fields.year is None or fields.year.is_any else f"in {_listed(fields.year)}"
    if day and not weekday and not fields.either:
        return " ".join(part for part in (_day_alone(fields.day, fields.month), in_year) if part)
    parts = []
    if fields.either:
        parts.append(f"on {_listed(fields.day)} or on {_listed(fields.weekday)}")
    elif day:
        parts.append(f"on {_listed(fields.day)}, but only on {_listed(fields.weekday)}")
    elif weekday:
        parts.append(f"on {_listed(fields.weekday)}")
    elif may_say_every_day:
        parts.append("every day")
    if not _is_star(fields.month):
        parts.append(f"in {_listed(fields.month)}")
    return " ".join(part for part in (*parts, in_year) if part)


def _day_alone(day: CronField, month: CronField) -> str:
    """`on January 1`, `on the 15th day of every month`, where no weekday is asked for."""
    of = _listed(month)
    if len(day.items) == 1 and not day.needs_name:
        item = day.items[0]
        if isinstance(item, Span) and item.size == 1:
            if len(month.values) == 1 and not month.needs_name:
                return f"on {of} {item.first}"
            return f"on the {_ordinal(item.first)} day of {of}"
        if isinstance(item, FromEnd | Nearest):
            return f"on {_from_end(item) if isinstance(item, FromEnd) else _nearest(item)} of {of}"
    return f"on {_listed(day)}" + ("" if _is_star(month) else f" in {of}")


def _at(field: CronField) -> str:
    """`every 5th minute`, `at minutes 5 and 10`."""
    text = _listed(field)
    return text if text.startswith("every ") and not any(_is_single(item) for item in field.items) else f"at {text}"


def _listed(field: CronField) -> str:
    """All items of a field in words."""
    kind, singles = field.kind, _singles(field)
    if kind is Kind.YEAR and singles:
        return _and([str(year) for year in field.values])
    if kind in (Kind.SECOND, Kind.MINUTE, Kind.HOUR) and singles and len(field.values) > 1:
        return f"{kind}s {_and([str(value) for value in field.values])}"
    if kind is Kind.DAY and singles and len(field.values) > 1:
        return f"{_and([f'the {_ordinal(day)}' for day in field.values])} day of the month"
    words = [word for item in field.items for word in _worded(item, kind)]
    return _and(list(dict.fromkeys(words)))


def _worded(item: Item, kind: Kind) -> list[str]:
    if isinstance(item, FromEnd | Nearest):
        return [f"{_from_end(item) if isinstance(item, FromEnd) else _nearest(item)} of the month"]
    if isinstance(item, Nth):
        which = "last" if item.nth < 0 else _ordinal(item.nth)
        return [f"the {which} {_name(kind, item.weekday)} of the month"]
    if isinstance(item, Spread):
        return [_spread(item, kind)]
    if kind is Kind.WEEKDAY:
        return _weekdays(item)
    if item.is_whole and len(item.values) > 1:
        return [f"every {kind}" if item.step == 1 else f"every {_ordinal(item.step)} {kind}"]
    if len(item.values) < 3:
        return [_single(kind, value) for value in item.values]
    first, last = _name(kind, item.first), _name(kind, item.last)
    if kind is Kind.YEAR and item.step == 1:
        return [f"{first} through {last}"]
    every = "every" if item.step == 1 else f"every {_ordinal(item.step)}"
    return [f"{every} {kind} from {first} through {last}"]


def _weekdays(item: Span) -> list[str]:
    if item.step > 1 or len(item.values) < 3:
        return [_name(Kind.WEEKDAY, value) for value in item.values]
    if item.size == 7:
        return ["every day of the week"]
    return [f"{_name(Kind.WEEKDAY, item.first)} through {_name(Kind.WEEKDAY, item.last)}"]


def _spread(item: Spread, kind: Kind) -> str:
    low, high = bounds(kind)
    within = f" (from {item.first} through {item.last})" if (item.first, item.last) != (low, high) else ""
    if item.step is None:
        return f"{kind} H{within}" if kind is not Kind.DAY else f"day H of the month{within}"
    return f"every {_ordinal(item.step)} {kind} from H{within}"


def _from_end(item: FromEnd) -> str:
    """What stands before `of the month`."""
    if item.workday:
        return "the last weekday" if not item.back else f"the weekday nearest to the {_before(item.back)} day"
    return "the last day" if not item.back else f"the {_before(item.back)} day"


def _before(back: int) -> str:
    """`L-1` is the second to last day."""
    return f"{_ordinal(back + 1)} to last"


def _nearest(item: Nearest) -> str:
    return f"the weekday nearest to the {_ordinal(item.day)} day"


def _single(kind: Kind, value: int) -> str:
    if kind is Kind.DAY:
        return f"the {_ordinal(value)} day of the month"
    return _name(kind, value) if kind in (Kind.MONTH, Kind.WEEKDAY, Kind.YEAR) else f"{kind} {value}"


def _name(kind: Kind, value: int) -> str:
    if kind is Kind.MONTH:
        return MONTH_NAMES[value - 1]
    return WEEKDAY_NAMES[(value - 1) % 7] if kind is Kind.WEEKDAY else str(value)


def _is_single(item: Item) -> bool:
    if isinstance(item, Spread):
        return item.step is None
    return isinstance(item, Span) and _counts_as_singles(item)


def _counts_as_singles(span: Span) -> bool:
    """Whether its values are named one by one."""
    return len(span.values) == 1 or (len(span.values) == 2 and not span.is_whole)


def _singles(field: CronField) -> bool:
    return all(isinstance(item, Span) and _counts_as_singles(item) for item in field.items)


def _ordinal(number: int) -> str:
    return _ORDINALS[number - 1] if number < 10 else day_number(number)


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])}{',' if len(words) > 2 else ''} and {words[-1]}"
