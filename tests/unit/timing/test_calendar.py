"""Lists and windows of times, nth weekdays, quarters, every nth period: against days that are looked at one by one."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ostinato.errors import TimingError
from ostinato.timing import DailyAt, Monthly, Quarterly, Weekly, parse_timing
from ostinato.timing.calendar import CalendarTiming

MINUTE = timedelta(minutes=1)
BERLIN = "Europe/Berlin"
NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
ORDINALS = ("first", "second", "third", "fourth", "fifth")
# A gap and a fold each, at two o'clock or at midnight, by half an hour, over a whole day, and none at all.
ZONES = (BERLIN, "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Beirut", "America/Havana", "UTC")
some = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))

DayRule = Callable[[date], bool]


@dataclass(frozen=True)
class Meant:
    """A text, and what it means by other means than those under test."""

    text: str
    day: DayRule
    clocks: tuple[time, ...]
    unit: str
    every: int
    anchor: date


def _instant(zone: ZoneInfo, wall: datetime) -> datetime:
    """When the clock shows this first; if never, the first minute that it shows after it."""
    while True:
        found = wall.replace(tzinfo=zone).astimezone(UTC)
        if found.astimezone(zone).replace(tzinfo=None) == wall:
            return found
        wall += MINUTE


def _period(unit: str, day: date) -> int:
    if unit == "month":
        return day.year * 12 + day.month
    return day.toordinal() if unit == "day" else (day - timedelta(days=day.weekday())).toordinal() // 7


def _expected(meant: Meant, zone: str, first: date, days: int) -> list[datetime]:
    found = set()
    start = None
    day = meant.anchor
    while day < first + timedelta(days=days):
        if meant.day(day):
            start = day if start is None else start
            if day >= first and (_period(meant.unit, day) - _period(meant.unit, start)) % meant.every == 0:
                found |= {_instant(ZoneInfo(zone), datetime.combine(day, clock)) for clock in meant.clocks}
        day += timedelta(days=1)
    return sorted(found)


def _last_workday(day: date) -> bool:
    month_end = [date(day.year, day.month, number) for number in range(1, monthrange(day.year, day.month)[1] + 1)]
    return day == [each for each in month_end if each.weekday() < 5][-1]


def _nth(numbers: set[int], weekday: int, *, last: bool) -> DayRule:
    def rule(day: date) -> bool:
        is_last = (day + timedelta(days=7)).month != day.month
        return day.weekday() == weekday and ((day.day - 1) // 7 + 1 in numbers or (last and is_last))

    return rule


@st.composite
def day_rules(draw: st.DrawFn) -> tuple[str, str, DayRule]:
    """The unit, the words and the rule."""
    kind = draw(st.sampled_from(["day", "week", "number", "nth", "workday", "nth workday"]))
    if kind == "day":
        return "day", "", lambda day: True
    if kind == "week":
        days = draw(st.sets(st.integers(0, 6), min_size=1, max_size=3))
        return "week", ",".join(NAMES[day] for day in sorted(days)), lambda day: day.weekday() in days
    if kind == "number":
        numbers = draw(st.sets(st.integers(1, 31), min_size=1, max_size=3))
        last = draw(st.booleans())
        words = [*map(str, sorted(numbers)), *(["last"] if last else [])]
        return "month", ",".join(words), lambda day: day.day in numbers or (last and (day + timedelta(1)).day == 1)
    if kind == "nth":
        numbers, weekday, last = (
            draw(st.sets(st.integers(1, 5), min_size=1)),
            draw(st.integers(0, 6)),
            draw(st.booleans()),
        )
        words = [*(ORDINALS[number - 1] for number in sorted(numbers)), *(["last"] if last else [])]
        return "month", f"{','.join(words)} {NAMES[weekday]}", _nth(numbers, weekday, last=last)
    if kind == "workday":
        return "month", "last workday", _last_workday

    def third_workday(day: date) -> bool:
        before = [date(day.year, day.month, number).weekday() < 5 for number in range(1, day.day + 1)]
        return before[-1] and sum(before) == 3

    return "month", "third workday", third_workday


@st.composite
def clocks(draw: st.DrawFn) -> tuple[str, tuple[time, ...]]:
    hours = st.sampled_from([0, 1, 2, 3, 12, 23])
    if draw(st.booleans()):
        found = sorted(draw(st.sets(st.tuples(hours, st.sampled_from([0, 15, 30, 59])), min_size=1, max_size=3)))
        return ",".join(f"{hour:02}:{minute:02}" for hour, minute in found), tuple(time(*each) for each in found)
    first, length, step = draw(hours), draw(st.integers(1, 200)), draw(st.integers(5, 60))
    minutes = range(first * 60, min(first * 60 + length, 1439) + 1, step)
    last = f"{minutes[-1] // 60:02}:{minutes[-1] % 60:02}"
    text = f"{first:02}:00-{last} every {step}m" if len(minutes) > 1 else f"{first:02}:00"
    return text, tuple(time(minute // 60, minute % 60) for minute in minutes)


@st.composite
def meanings(draw: st.DrawFn) -> Meant:
    unit, days, rule = draw(day_rules())
    times, walls = draw(clocks())
    every = draw(st.sampled_from([1, 2, 3, 5]))
    anchor = draw(st.dates(date(2025, 1, 1), date(2027, 1, 1)))
    if every == 1:
        words = {"day": "daily", "week": f"weekly {days}", "month": f"monthly {days}"}[unit]
        return Meant(f"{words} {times}", rule, walls, unit, 1, date(2024, 1, 1))
    on, at = f"on {days} " if days else "", "" if "every" in times else "at "
    return Meant(f"every {every} {unit}s {on}{at}{times} from {anchor}", rule, walls, unit, every, anchor)


@some
@given(meanings(), st.sampled_from(ZONES), st.sampled_from([date(2026, 2, 1), date(2026, 9, 20), date(2024, 6, 1)]))
def test_due_times_are_those_that_days_looked_at_one_by_one_have(meant: Meant, zone: str, first: date) -> None:
    try:
        timing = parse_timing(meant.text, zone)
    except TimingError as error:
        # A time that is not in a window: its end is the last one there is.
        raise AssertionError(f"{meant.text}: {error}") from error
    assert timing.text == meant.text
    due = _expected(meant, zone, first, 130)
    # The days at the rim are not all there.
    start, end = (datetime(day.year, day.month, day.day, 12, tzinfo=UTC) for day in (first, first + timedelta(128)))
    due = [each for each in due if start < each <= end]
    found, t = [], timing.next_after(start)
    while t is not None and t <= end:
        found.append(t)
        t = timing.next_after(t)
    assert found == due
    places = [start + (end - start) * part / 7 for part in range(8)]
    for place in places:
        if bisect_right(due, place):
            assert timing.previous(place) == due[bisect_right(due, place) - 1]
    for one, other in pairwise(places):
        assert timing.count_between(one, other) == bisect_right(due, other) - bisect_right(due, one)
    assert bool(timing.is_due(end)) == (bisect_left(due, end) < len(due))


@some
@given(meanings().filter(lambda meant: meant.every > 1), st.sampled_from(ZONES))
def test_without_a_day_to_count_from_the_next_one_is_the_first_and_the_others_follow_it(
    meant: Meant, zone: str
) -> None:
    timing = parse_timing(meant.text.partition(" from ")[0], zone)
    t = datetime(2026, 3, 20, 9, 17, tzinfo=UTC)
    plain = Meant(meant.text, meant.day, meant.clocks, meant.unit, 1, t.date() - timedelta(days=3))
    coming = next(due for due in _expected(plain, zone, plain.anchor, 200) if due > t)
    bound = timing.anchored(t)
    assert timing.next_after(t) == bound.next_after(t) == coming
    assert bound.anchored(t + timedelta(days=400)) == bound
    assert parse_timing(bound.text, zone) == bound
    unbound = [coming]
    for _ in range(7):
        following = timing.next_after(unbound[-1])
        assert following is not None
        unbound.append(following)
    assert [bound.next_after(due) for due in unbound[:-1]] == unbound[1:]
    assert timing.count_between(datetime(2026, 3, 20, 9, 17, tzinfo=UTC), unbound[-1]) == 8


def test_every_second_week_keeps_its_local_time_where_fourteen_days_do_not() -> None:
    t = datetime(2026, 3, 20, tzinfo=UTC)
    calendar, real = parse_timing("every 2 weeks on monday 9:00", BERLIN), parse_timing("every 14d", BERLIN)
    first = calendar.next_after(t)
    assert first == datetime(2026, 3, 23, 8, tzinfo=UTC)
    assert calendar.next_after(first) == datetime(2026, 4, 6, 7, tzinfo=UTC)
    assert real.next_after(first) == datetime(2026, 4, 6, 8, tzinfo=UTC)


def test_what_counts_from_a_far_day_is_found_from_long_before_it() -> None:
    timing = parse_timing("every 2 weeks on monday 9:00 from 2027-01-01", BERLIN)
    assert timing.next_after(datetime(1800, 1, 1, tzinfo=UTC)) == datetime(2027, 1, 4, 8, tzinfo=UTC)
    assert timing.previous(datetime(2027, 1, 4, 7, tzinfo=UTC)) is None
    assert timing.previous(datetime(2200, 1, 1, tzinfo=UTC)) is not None


def test_carried_back_it_is_due_at_the_same_times() -> None:
    start, t = datetime(2024, 2, 3, tzinfo=UTC), datetime(2026, 11, 15, 12, tzinfo=UTC)
    for text in (
        "every 3 days at 06:00",
        "every 2 weeks on mon,sun at 9",
        "every 5 months on the 31st",
        "every 2 months",
    ):
        bound = parse_timing(text, BERLIN).anchored(t)
        assert isinstance(bound, CalendarTiming)
        carried = bound.carried_back(start)
        assert carried.count_between(t, t + timedelta(900)) == bound.count_between(t, t + timedelta(900))
        assert carried.next_after(t) == bound.next_after(t)
        assert carried.anchor is not None
        assert carried.anchor <= start.date()


def test_a_list_of_times_takes_hours_times_and_texts() -> None:
    assert DailyAt([9, 17]).text == "daily 09:00,17:00"
    assert DailyAt([time(3), 17]).text == "daily 03:00,17:00"
    assert DailyAt(["9:30", "17"]).text == "daily 09:30,17:00"
    assert DailyAt((17, "9-11 every 1h", time(9))).text == "daily 09:00,10:00,11:00,17:00"
    assert Weekly("mon", [9, 17], tz=BERLIN) == Weekly("mon", "9,17", tz=BERLIN)
    assert DailyAt(range(9, 12)) == DailyAt([time(9), time(10), time(11)])


@pytest.mark.parametrize("hour", ["9,17", time(9), [9, 17]])
def test_a_minute_that_no_hour_takes_is_refused(hour: object) -> None:
    with pytest.raises(TimingError, match="minute and second are of an hour that is a number"):
        DailyAt(hour, 30)  # type: ignore[arg-type]
    with pytest.raises(TimingError, match="minute and second are of an hour that is a number"):
        Monthly(1, hour, 0, 15)  # type: ignore[arg-type]


def test_python_takes_times_lists_and_texts() -> None:
    assert DailyAt(time(3)) == DailyAt(3) == DailyAt("03:00") == parse_timing("daily 3")
    assert DailyAt([time(9), time(17)]) == DailyAt("9,17") == parse_timing("daily 09:00, 17:00")
    assert DailyAt(time(3, tzinfo=ZoneInfo(BERLIN))) == DailyAt(3, tz=BERLIN)
    assert Weekly("weekdays", "9-17 every 30m") == parse_timing("weekdays 9-17 every 30m")
    assert Weekly("mon", time(9), every=2) == parse_timing("every 2 weeks on monday 9:00")
    assert Monthly([1, "last"], time(9, 30)) == parse_timing("monthly 1,last 09:30")
    assert Monthly("last workday", 17) == parse_timing("last workday 17:00")
    assert Monthly(1, every=2, anchor=date(2027, 1, 1)) == parse_timing("every 2 months on the 1st from 2027-01-01")
    assert Quarterly() == parse_timing("quarterly")
    assert (DailyAt("9:30,17").hour, DailyAt("9:30,17").minute, Monthly("last,1").day) == (9, 30, 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: DailyAt("soon"),
        lambda: DailyAt(""),
        lambda: DailyAt([]),
        lambda: DailyAt(time(3, microsecond=1)),
        lambda: DailyAt(time(3, tzinfo=UTC), tz=object()),  # type: ignore[arg-type]
        lambda: DailyAt([time(3, tzinfo=UTC), time(4)]),
        lambda: DailyAt(time(3, tzinfo=UTC), tz="Asia/Tokyo"),
        lambda: DailyAt(3, every=0),
        lambda: Weekly("mon", 9, every=2, anchor=datetime(2027, 1, 1)),
        lambda: Monthly("sixth mon"),
        lambda: Monthly("first someday"),
        lambda: Monthly(6, every=100),
        lambda: Monthly([]),
        lambda: Quarterly(32),
        lambda: parse_timing("every 2000 days at 9"),
        lambda: parse_timing("every 3 days on monday at 9"),
        lambda: parse_timing("every 2 weeks on monday 9:00 from 2027-01-01T10:00"),
        lambda: parse_timing("weekdays 22-6 every 1h"),
        lambda: parse_timing("daily 1-5pm every 1h"),
        lambda: parse_timing("daily at 9 and 5pm"),
        lambda: parse_timing("daily 9-17"),
        lambda: parse_timing("daily 0-24 every 1s"),
        lambda: parse_timing("every second monday at 9"),
    ],
)
def test_what_cannot_be_or_may_mean_two_things_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(TimingError):
        make()
