"""Random timings of every kind, and cron expressions made together with the sets they mean."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

from hypothesis import strategies as st

from ostinato.timing import (
    At,
    CalendarDays,
    Cron,
    DailyAt,
    Dates,
    DaySet,
    Every,
    Except,
    Holidays,
    Monthly,
    Or,
    Quarterly,
    Timing,
    Weekly,
)
from ostinato.timing.explain import WEEKDAYS
from tests.unit.timing.oracle import CronRule

__all__ = ["cron_rules", "grid_timings", "instants", "timings", "wall_timings"]

ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kathmandu", "UTC"]

zones = st.sampled_from(ZONES)
instants = st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))
jitters = st.fixed_dictionaries(
    {},
    optional={
        "jitter": st.integers(1, 7_200_000).map(lambda ms: timedelta(milliseconds=ms)),
        "stable": st.booleans(),
    },
)
# Hours around clock changes and midnight are drawn more often.
hours = st.sampled_from([0, 1, 2, 2, 3, 23]) | st.integers(0, 23)
minutes = st.sampled_from([0, 15, 30, 59]) | st.integers(0, 59)


@st.composite
def _part(draw: st.DrawFn, low: int, high: int) -> tuple[str, frozenset[int]]:
    """One cron field of numbers with the set it means."""
    kind = draw(st.sampled_from(["star", "step", "value", "list", "range", "range step"]))
    everything = range(low, high + 1)
    if kind == "star":
        return "*", frozenset(everything)
    step = draw(st.integers(1, high))
    if kind == "step":
        return f"*/{step}", frozenset(everything[::step])
    values = sorted(draw(st.sets(st.integers(low, high), min_size=2, max_size=4)))
    if kind == "value":
        return str(values[0]), frozenset(values[:1])
    if kind == "list":
        return ",".join(map(str, values)), frozenset(values)
    whole = range(values[0], values[-1] + 1)
    if kind == "range":
        return f"{values[0]}-{values[-1]}", frozenset(whole)
    return f"{values[0]}-{values[-1]}/{step}", frozenset(whole[::step])


@st.composite
def cron_rules(draw: st.DrawFn, sparse: bool = False) -> CronRule:
    """A five-field expression; the day fields are mostly stars, so that a short window sees something."""
    minute, minute_set = draw(_part(0, 59))
    hour, hour_set = draw(_part(0, 23) | st.sampled_from([("2", frozenset({2})), ("1-3", frozenset({1, 2, 3}))]))
    day, day_set, last = draw(
        st.sampled_from([("*", frozenset(range(1, 32)), False)] * 4 + [("L", frozenset[int](), True)])
        | _part(1, 31).map(lambda part: (*part, False))
    )
    month, month_set = draw(st.just(("*", frozenset(range(1, 13)))) if not sparse else _part(1, 12))
    nth = draw(st.none() | st.none() | st.tuples(st.integers(0, 6), st.integers(1, 5)))
    if nth is not None:
        # A lone `*` day would ask for both; keep the pair possible.
        weekday, weekday_set = f"{nth[0]}#{nth[1]}", frozenset[int]()
    else:
        weekday, raw = draw(st.just(("*", frozenset(range(8)))) | _part(0, 7))
        weekday_set = frozenset(number % 7 for number in raw)
    text = f"{minute} {hour} {day} {month} {weekday}"
    return CronRule(text, minute_set, hour_set, day_set, month_set, weekday_set, last, nth)


def wall_timings(zone: str | None) -> st.SearchStrategy[Timing]:
    """DailyAt, Weekly and Monthly in one zone."""
    tz = st.just(zone) if zone else zones
    days = st.sets(st.sampled_from(WEEKDAYS), min_size=1).map(sorted)
    month_day = st.integers(1, 31) | st.just("last")
    return (
        st.builds(lambda h, m, z, j: DailyAt(h, m, tz=z, **j), hours, minutes, tz, jitters)
        | st.builds(lambda d, h, m, z, j: Weekly(d, h, m, tz=z, **j), days, hours, minutes, tz, jitters)
        | st.builds(lambda d, h, m, z, j: Monthly(d, h, m, tz=z, **j), month_day, hours, minutes, tz, jitters)
    )


_several = st.sampled_from(["9,17", "2,2:30,3", "0-23:59 every 15m", "1-3 every 7m"])
_month_days = st.sampled_from(["1,15", "last workday", "first mon", "fifth fri", "second,last sun", "30,last"])
_anchors = st.dates(date(2020, 1, 1), date(2030, 1, 1))


def _periodic(zone: str | None) -> st.SearchStrategy[Timing]:
    """Several times of a day, the nth weekdays of months and quarters, and every nth day, week or month."""
    tz, every = st.just(zone) if zone else zones, st.integers(1, 7)
    return (
        st.builds(lambda t, z, e, a: DailyAt(t, tz=z, every=e, anchor=a), _several, tz, every, _anchors)
        | st.builds(lambda t, z, e, a: Weekly("mon,sat", t, tz=z, every=e, anchor=a), _several, tz, every, _anchors)
        | st.builds(lambda d, z, e, a: Monthly(d, 2, 30, tz=z, every=e, anchor=a), _month_days, tz, every, _anchors)
        | st.builds(lambda d, t, z: Quarterly(d, t, tz=z), _month_days, _several, tz)
    )


def _grids(shortest: int) -> st.SearchStrategy[Timing]:
    intervals = st.integers(shortest, 400_000_000).map(lambda ms: timedelta(milliseconds=ms))
    return st.builds(lambda i, a, j: Every(i, anchor=a, **j), intervals, instants, jitters)


grid_timings = _grids(1)
_crons = st.builds(
    lambda expression, zone, j: Cron(expression, zone, **j),
    st.sampled_from(["30 9 * * 1-5", "*/7 * * * *", "@daily", "0 2 L * *", "*/20 15 2 * * *", "0 9 * * 1#5"]),
    zones,
    jitters,
)
_ats = st.builds(
    lambda when, zone, j: At(when, zone, **j), st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)), zones, jitters
) | st.builds(
    lambda when, offset, j: At(when.astimezone(timezone(timedelta(minutes=offset))), **j),
    instants,
    st.integers(-700, 700),
    jitters,
)
# Parts of a combination are not too dense: counting two of them that meet is not by arithmetic alone.
_parts = wall_timings(None) | _periodic(None) | _grids(20_000) | _crons | _ats
_dates = st.lists(
    st.dates(date(2020, 1, 1), date(2035, 1, 1)).map(str) | st.sampled_from(["12-25", "01-01", "02-29"]),
    min_size=1,
    max_size=4,
).map(Dates)


_holidays = st.builds(Holidays, st.sampled_from(["DE-BY", "US-CA", "JP", "NYSE"]))
_calendars = st.builds(CalendarDays, st.sampled_from(["office", "sales team", 'a "b" (c: 1), d']), _dates)


def _except(base: Timing, days: DaySet | Timing, zone: str) -> Timing:
    try:
        return Except(base, days, zone)
    except ValueError:
        return base


def _combined(parts: st.SearchStrategy[Timing]) -> st.SearchStrategy[Timing]:
    weekly = st.builds(lambda d, z: Weekly(d, tz=z), st.sampled_from(["sat,sun", "mon", "tue-thu"]), zones)
    return st.builds(Or, parts, parts) | st.builds(_except, parts, _dates | _holidays | _calendars | weekly, zones)


timings = grid_timings | _parts | _combined(_parts | _combined(_parts))
"""Every kind, also combined twice; all bound to a zone and an anchor."""
