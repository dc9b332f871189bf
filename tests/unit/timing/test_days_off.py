"""Days off where a clock goes back over midnight, and counts of dense unions: against a walk by minutes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ostinato.timing import Timing, parse_timing
from ostinato.timing.zones import start_of_day, stretches_of_day
from tests.unit.timing.oracle import Window, walk

MINUTE = timedelta(minutes=1)


def _window(zone: str, day: str, days: int = 4) -> Window:
    return Window(zone, datetime.fromisoformat(f"{day}T00:00+00:00") - timedelta(days=1), days)


OVER_MIDNIGHT = [
    _window("America/St_Johns", "2010-11-07"),  # At 00:01 back to 23:01.
    _window("Antarctica/Casey", "2010-03-05"),  # At 02:00 back to 23:00.
    _window("America/Sao_Paulo", "2018-02-18"),  # At 00:00 back to 23:00.
    _window("Australia/Lord_Howe", "2026-04-05"),
    _window("Antarctica/Troll", "2026-10-25"),  # Two hours back,
    _window("Antarctica/Troll", "2026-03-29"),  # and two hours forward.
    _window("Pacific/Apia", "2011-12-30"),  # A whole day does not exist.
    _window("Europe/Berlin", "2026-10-25"),
    _window("America/New_York", "2026-03-08"),
]
windows = pytest.mark.parametrize("window", OVER_MIDNIGHT, ids=str)


def _shown(window: Window, matches: Callable[[datetime], bool]) -> list[datetime]:
    return [time for time, wall in walk(window) if window.start < time <= window.end and matches(wall)]


def _agrees(timing: Timing, window: Window, expected: Sequence[datetime]) -> None:
    found, due = [], timing.next_after(window.start)
    while due is not None and due <= window.end:
        found.append(due)
        due = timing.next_after(due)
    assert found == expected
    places = [window.start + timedelta(minutes=97 * number, seconds=number) for number in range(1, window.days * 14)]
    for place in places:
        index = bisect_right(expected, place)
        if index:
            assert timing.previous(place) == expected[index - 1]
        assert timing.is_due(place) == (place in expected)
    for first, last in pairwise([window.start, *places, window.end]):
        assert timing.count_between(first, last) == bisect_right(expected, last) - bisect_right(expected, first)
    assert timing.count_between(window.start, window.end) == len(expected)


@windows
@pytest.mark.parametrize("off", [-1, 0, 1])
@pytest.mark.parametrize("base", ["*/7 * * * *", "* 0,22-23 * * *"])
def test_a_day_off_is_what_the_wall_shows_also_the_second_time(window: Window, off: int, base: str) -> None:
    day = (window.start + timedelta(days=1 + off)).date()
    minutes, hours = {"*/7 * * * *": (7, range(24)), "* 0,22-23 * * *": (1, (0, 22, 23))}[base]
    timing = parse_timing(f"{base} except {day}", window.zone)

    def matches(wall: datetime) -> bool:
        return wall.minute % minutes == 0 and wall.hour in hours and wall.date() != day

    _agrees(timing, window, _shown(window, matches))


@windows
def test_days_of_another_timing_are_taken_off_also_the_second_time(window: Window) -> None:
    timing = parse_timing("*/7 * * * * except */50 23 * * mon,wed,fri,sun", window.zone)
    zone = ZoneInfo(window.zone)
    off = {
        wall.date()
        for time, wall in walk(window)
        if (wall.hour, wall.minute) == (23, 50) and wall.isoweekday() in (1, 3, 5, 7)
    }
    # The walk does not see the end of its last day.
    off |= {day for day in [window.end.astimezone(zone).date()] if day.isoweekday() in (1, 3, 5, 7)}

    def matches(wall: datetime) -> bool:
        return wall.minute % 7 == 0 and wall.date() not in off

    _agrees(timing, window, _shown(window, matches))


@windows
def test_the_stretches_of_all_days_are_all_of_time(window: Window) -> None:
    days = [(window.start + timedelta(days=number)).date() for number in range(-1, window.days + 2)]
    stretches = sorted(stretch for day in days for stretch in stretches_of_day(window.zone, day))
    assert all(first[1] == second[0] for first, second in pairwise(stretches))
    for day in days:
        for begin, end in stretches_of_day(window.zone, day):
            shown = {(begin + MINUTE * step).astimezone(ZoneInfo(window.zone)).date() for step in range(5)}
            assert (
                shown | {(end - MINUTE).astimezone(ZoneInfo(window.zone)).date()} == {day} or end - begin < 5 * MINUTE
            )
        if of_day := stretches_of_day(window.zone, day):
            assert of_day[0][0] == start_of_day(window.zone, day)


PARTS = ["* * * * * *", "30 * * * * *", "*/2 * * * *", "*/20 2 * * * *", "0-59 0-3 * * *", "0-59/2 2 * * *"]
PARTS += ["* * * * * in Asia/Kathmandu", "* * * * * in America/St_Johns", "every 15s from 2009-01-01T00:00:05Z"]
PARTS += ["every 7s from 2009-01-01T00:00Z", "daily 02:30", "(* * * * * * except weekends)", "0,1,2 0-5 */2 * * 1-5"]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(OVER_MIDNIGHT),
    st.lists(st.sampled_from(PARTS), min_size=2, max_size=4),
    st.integers(80_000, 2 * 86_400),
    st.integers(1, 5_000),
)
def test_dense_parts_are_counted_as_one_finds_them_by_walking(
    window: Window, parts: list[str], start: int, length: int
) -> None:
    timing = parse_timing(" or ".join(parts), window.zone)
    after = window.start + timedelta(seconds=start, microseconds=start % 3)
    until = after + timedelta(seconds=length, microseconds=start % 5)
    walked = set[int]().union(*(parse_timing(part, window.zone).stream(after, until) for part in parts))
    assert timing.count_between(after, until) == len(walked)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("* * * * * * or 30 * * * * *", 31_536_000),
        ("0 * * * * * or 30 * * * * * in Asia/Kathmandu", 2 * 525_600),
        ("* * * * * * or every 30s from 2025-01-01T00:00Z", 31_536_000),
        ("* * * * * * or every 7s from 2025-01-01T00:00Z", 31_536_000),
        ("* * * * * * or every 7s from 2025-01-01T00:00:00.5Z", 31_536_000 + 4_505_143),
        ("* * * * * * or every 1500ms from 2025-01-01T00:00Z", 31_536_000 + 10_512_000),
        ("every 1ms from 2025-01-01T00:00Z or * * * * * *", 31_536_000_000),
        ("(* * * * * * except 2026-05-01) or 30 * * * * *", 31_536_000 - 86_400 + 1_440),
    ],
)
def test_a_year_of_a_dense_union_is_counted_without_walking_over_it(
    text: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    timing = parse_timing(text, "UTC")
    asked = 0
    real = Timing.previous

    def previous(timing: Timing, t: datetime) -> datetime | None:
        nonlocal asked
        asked += 1
        return real(timing, t)

    monkeypatch.setattr(Timing, "previous", previous)
    after = datetime(2026, 1, 1, tzinfo=UTC) - timedelta(seconds=1)
    assert timing.count_between(after, after + timedelta(days=365)) == count
    assert asked < 2_000


def test_two_zones_far_apart_are_counted_together() -> None:
    timing = parse_timing("* * 0-11 * * * or * * 12-23 * * * in Pacific/Apia", "America/New_York")
    after = datetime(2026, 6, 1, tzinfo=UTC)
    # New York is 4 hours behind UTC and Apia 13 ahead: 04-16 and 23-11 of UTC.
    assert timing.count_between(after - timedelta(seconds=1), after + timedelta(days=10)) == 10 * 17 * 3600 + 1


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(st.sampled_from([333, 500, 700, 1000, 1500, 2500, 3000]), min_size=1, max_size=3),
    offsets=st.lists(st.sampled_from([-86_400_000, -500, 0, 250, 1_234, 9_000]), min_size=3, max_size=3),
    line=st.sampled_from(["* * * * * *", "*/2 * * * * *", "daily 0-4 every 1m", "*/7 * * * * except 2026-03-29"]),
    length=st.integers(1, 200_000),
)
def test_grids_finer_than_a_second_are_counted_as_one_finds_them_by_walking(
    steps: list[int], offsets: list[int], line: str, length: int
) -> None:
    after = datetime(2026, 3, 28, 22, 59, 50, 250_000, tzinfo=UTC)  # Midnight comes soon in Berlin.
    anchors = [after + timedelta(milliseconds=offset) for offset in offsets]
    texts = [f"every {step}ms from {anchor.isoformat()}" for step, anchor in zip(steps, anchors, strict=False)]
    timing = parse_timing(" or ".join([line, *texts]), "Europe/Berlin")
    until = after + timedelta(milliseconds=length)
    assert timing.count_between(after, until) == sum(1 for _ in timing.stream(after, until))
