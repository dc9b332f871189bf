"""`or` and `except`: precedence, days of a zone, coinciding instants, jitter of the parts, and what is never due."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.errors import TimingError
from ostinato.timing import At, Cron, DailyAt, Dates, Every, Except, Monthly, Or, Timing, Weekly, parse_timing
from ostinato.timing.grids import count_union

BERLIN = "Europe/Berlin"
NOW = datetime(2026, 12, 24, 0, 0, tzinfo=UTC)


def times(timing: Timing, n: int, after: datetime = NOW) -> list[str]:
    found = []
    for _ in range(n):
        due = timing.next_after(after)
        assert due is not None
        found.append(f"{due:%m-%d %H:%M}")
        after = due
    return found


def test_or_is_due_with_either_and_once_where_they_meet() -> None:
    timing = parse_timing("daily 09:00 or weekly thu,fri 09:00 or weekly fri 15:00")
    assert times(timing, 4) == ["12-24 09:00", "12-25 09:00", "12-25 15:00", "12-26 09:00"]
    assert timing.count_between(NOW, NOW + timedelta(days=7)) == 8


def test_two_dense_parts_that_meet_are_counted_once() -> None:
    timing = parse_timing("*/2 * * * * or */3 * * * * or every 1m from 2026-01-01T00:00:30Z")
    # Of 60 minutes 40 are even or a multiple of three, and 60 half minutes are there besides.
    assert timing.count_between(NOW, NOW + timedelta(hours=1)) == 100


def test_very_dense_parts_are_still_counted_in_a_moment() -> None:
    timing = parse_timing("every 5s from 2026-01-01T00:00Z or */10 * * * * * or 0-59 * * * *", BERLIN)
    # All of the others fall on the grid of five seconds.
    assert timing.count_between(NOW, NOW + timedelta(days=2)) == 34_560
    shifted = parse_timing("every 5s from 2026-01-01T00:00:01Z or */10 * * * * *", BERLIN)
    assert shifted.count_between(NOW, NOW + timedelta(days=2)) == 34_560 + 17_280


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("every 5s or every 7s", 9_911_314),
        ("every 5s or every 7s or every 11s", 6_307_200 + 4_505_142 + 2_866_909 - 901_028 - 573_381 - 409_558 + 81_911),
        # Of the 365 midnights 52 are on the grid of seven seconds, 33 on that of eleven, and 4 on both.
        ("every 7s or every 11s or daily 00:00", 4_505_142 + 2_866_909 - 409_558 + 365 - 52 - 33 + 4),
    ],
)
def test_dense_grids_that_meet_are_counted_without_walking_over_them(
    text: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def walk(*_: object) -> Iterator[int]:
        raise AssertionError("millions of instants are not to be walked over")

    monkeypatch.setattr(Every, "stream", walk)
    monkeypatch.setattr(Or, "stream", walk)
    timing = parse_timing(text, "UTC")
    assert timing.count_between(NOW, NOW + timedelta(days=365)) == count


_grids = st.builds(
    lambda step, start: Every(timedelta(milliseconds=step), anchor=NOW + timedelta(milliseconds=start)),
    st.integers(1, 60) | st.sampled_from([64, 96, 120, 360]),
    st.integers(-200, 400),
)
_any_grids = _grids | st.builds(lambda step: Every(timedelta(milliseconds=step)), st.integers(1, 60))


@settings(max_examples=300, deadline=None)
@given(st.lists(_any_grids, min_size=2, max_size=6), st.integers(-50, 300), st.integers(0, 1_500))
def test_grids_that_meet_are_counted_as_one_finds_them_by_walking(parts: list[Every], start: int, length: int) -> None:
    after = NOW + timedelta(milliseconds=start)
    until = after + timedelta(milliseconds=length)
    timing = Or(*parts)
    walked = set[int]().union(*(part.anchored(after).stream(after, until) for part in parts))
    assert timing.count_between(after, until) == len(walked)
    assert list(timing.anchored(after).stream(after, until)) == sorted(walked)


def test_grids_that_meet_in_too_many_ways_are_walked_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ostinato.timing.unions.count_union", partial(count_union, most_meets=10))
    primes = [2, 3, 5, 7, 11, 13]
    timing = Or(*(Every(timedelta(seconds=prime), anchor=NOW) for prime in primes))
    hours = timedelta(hours=9)
    expected = sum(any(second % prime == 0 for prime in primes) for second in range(1, int(hours.total_seconds()) + 1))
    assert timing.count_between(NOW, NOW + hours) == expected


def test_except_after_or_takes_the_days_from_both() -> None:
    timing = parse_timing("daily 09:00 or daily 15:00 except 12-25")
    assert times(timing, 4) == ["12-24 09:00", "12-24 15:00", "12-26 09:00", "12-26 15:00"]
    assert timing == (DailyAt(9) | DailyAt(15)) - Dates("12-25")


def test_or_after_except_keeps_the_other_as_it_is() -> None:
    timing = parse_timing("daily 09:00 except 12-25 or daily 15:00")
    assert times(timing, 4) == ["12-24 09:00", "12-24 15:00", "12-25 15:00", "12-26 09:00"]
    assert timing == (DailyAt(9) - Dates("12-25")) | DailyAt(15)


def test_parentheses_say_it_otherwise_and_print_back() -> None:
    timing = parse_timing("daily 09:00 or (daily 15:00 except 12-25)")
    assert times(timing, 3) == ["12-24 09:00", "12-24 15:00", "12-25 09:00"]
    assert timing.text == "daily 09:00 or (daily 15:00 except 12-25)"
    assert timing == DailyAt(9) | (DailyAt(15) - Dates("12-25"))


def test_except_twice_is_except_both() -> None:
    timing = DailyAt(9).except_dates(["2026-12-25"]).except_dates(["12-26"])
    assert times(timing, 2) == ["12-24 09:00", "12-27 09:00"]
    assert timing.text == "daily 09:00 except 12-26,2026-12-25"


def test_excepted_days_are_days_of_the_zone() -> None:
    timing = parse_timing("0 * * * * except 2026-12-25", "Asia/Tokyo")
    # In Tokyo the 25th lasts from the 24th 15:00 UTC to the 25th 15:00 UTC.
    assert times(timing, 2, datetime(2026, 12, 24, 13, tzinfo=UTC)) == ["12-24 14:00", "12-25 15:00"]
    assert timing.previous(datetime(2026, 12, 25, 14, 59, tzinfo=UTC)) == datetime(2026, 12, 24, 14, tzinfo=UTC)
    assert timing.count_between(NOW, NOW + timedelta(days=2)) == 24


def test_an_interval_takes_the_zone_of_its_exception() -> None:
    timing = parse_timing("every 1h except 2026-12-25", "Asia/Tokyo").anchored(NOW)
    assert timing.zone == "Asia/Tokyo"
    assert times(timing, 2, datetime(2026, 12, 24, 13, tzinfo=UTC)) == ["12-24 14:00", "12-25 15:00"]
    assert parse_timing(timing.text, tz=timing.zone) == timing


def test_days_of_another_timing_are_excepted() -> None:
    timing = DailyAt(9) - Weekly("sat,sun", 23)
    assert times(timing, 3) == ["12-24 09:00", "12-25 09:00", "12-28 09:00"]
    assert timing.count_between(NOW, NOW + timedelta(days=14)) == 10
    month_end = parse_timing("0 9 * * * except monthly last")
    assert times(month_end, 2, datetime(2026, 12, 30, tzinfo=UTC)) == ["12-30 09:00", "01-01 09:00"]


def test_a_dense_timing_jumps_over_excepted_days() -> None:
    timing = parse_timing("* * * * * * except 12-25,12-26")
    last = datetime(2026, 12, 24, 23, 59, 59, tzinfo=UTC)
    assert timing.next_after(last) == datetime(2026, 12, 27, tzinfo=UTC)
    assert timing.previous(datetime(2026, 12, 26, 12, tzinfo=UTC)) == last
    assert timing.count_between(last, datetime(2026, 12, 27, tzinfo=UTC)) == 1


def test_an_exception_that_runs_into_the_end_is_none_and_no_endless_loop() -> None:
    timing = Or(At("2026-12-25T09:00"), At("2026-12-24T09:00")) - Dates("2026-12-25")
    assert timing.next_after(datetime(2026, 12, 24, 9, tzinfo=UTC)) is None


@pytest.mark.parametrize(
    ("base", "days"),
    [
        (At("2026-12-25T09:00"), Dates("2026-12-25")),
        (Weekly("mon", 9), Weekly("mon,tue")),
        (Cron("0 9 25 12 *"), Dates("12-25")),
        (DailyAt(9), Cron("* * * * *")),
        (Monthly("last", 9), DailyAt(0)),
    ],
)
def test_what_would_never_be_due_is_refused(base: Timing, days: Dates | Timing) -> None:
    with pytest.raises(TimingError, match="never due"):
        Except(base, days)


def test_after_finish_cannot_be_combined() -> None:
    finish = Every(hours=1, anchor="finish")
    for combine in (lambda: finish | DailyAt(9), lambda: DailyAt(9) | finish, lambda: finish - Dates("12-25")):
        with pytest.raises(TimingError, match="cannot be combined"):
            combine()


def test_combinations_pass_on_anchor_and_zone() -> None:
    timing = (Every(hours=1) | DailyAt(9)).anchored(NOW).in_zone(BERLIN)
    assert timing == Every(hours=1, anchor=NOW) | DailyAt(9, tz=BERLIN)
    nested = (Every(hours=1) - Weekly("sat,sun")).anchored(NOW).in_zone(BERLIN)
    assert nested == Every(hours=1, anchor=NOW) - Weekly("sat,sun", tz=BERLIN)
    assert nested.zone == BERLIN


def test_each_part_keeps_its_own_jitter() -> None:
    timing = parse_timing("daily 09:00 jitter 10m or daily 15:00")
    nine, three = datetime(2026, 12, 24, 9, tzinfo=UTC), datetime(2026, 12, 24, 15, tzinfo=UTC)
    assert timing.start_delay("x", nine, lambda: 0.5) == timedelta(minutes=5)
    assert timing.start_delay("x", three, lambda: 0.5) == timedelta(0)
    assert timing.jitter == timedelta(minutes=10)


def test_jitter_of_a_combination_goes_to_its_parts() -> None:
    assert (
        parse_timing("(daily 09:00 or daily 15:00) jitter 5m").text == "daily 09:00 jitter 5m or daily 15:00 jitter 5m"
    )
    timing = parse_timing("daily 09:00 except 12-25 jitter 5m stable")
    assert timing.text == "daily 09:00 jitter 5m stable except 12-25"
    assert (timing.jitter, timing.stable) == (timedelta(minutes=5), True)
    assert parse_timing("daily 09:00 except weekends jitter 5m").text.startswith("daily 09:00 jitter 5m except")


def test_parts_in_different_zones_print_their_zones() -> None:
    timing = DailyAt(9, tz=BERLIN) | DailyAt(9, tz="Asia/Tokyo")
    assert timing.text == "daily 09:00 in Europe/Berlin or daily 09:00 in Asia/Tokyo"
    assert timing.text_within(BERLIN) == "daily 09:00 or daily 09:00 in Asia/Tokyo"
    assert times(timing, 2) == ["12-24 08:00", "12-25 00:00"]
    half_bound = DailyAt(9) | DailyAt(9, tz="Asia/Tokyo")
    assert half_bound.zone is None
    assert parse_timing(half_bound.text, tz=half_bound.zone) == half_bound


@pytest.mark.parametrize("line", ["10-27 23 18W * *", "1-2 3-4 5-6 7-8 1-3", "0 9 * * 1"])
def test_a_line_of_cron_whose_days_are_off_reads_back(line: str) -> None:
    timing = Except(DailyAt(9), Cron(line))
    assert parse_timing(timing.text) == timing
    assert parse_timing(timing.text).text == timing.text


def test_a_zone_behind_days_off_is_not_passed_over() -> None:
    for text in ("daily 9 except 12-25 in Asia/Tokyo", "daily 9 except holidays(JP) in Asia/Tokyo"):
        with pytest.raises(TimingError, match="a zone is written with the timing") as caught:
            parse_timing(text, BERLIN)
        assert parse_timing(caught.value.hint, BERLIN).zone == "Asia/Tokyo"
    assert parse_timing("daily 9 except 12-25 in Europe/Berlin", BERLIN).zone == BERLIN
    assert parse_timing("every 5m except 12-25 in Asia/Tokyo", BERLIN).zone == "Asia/Tokyo"


def test_or_needs_two_and_only_timings() -> None:
    with pytest.raises(TimingError, match="two"):
        Or(DailyAt(9))
    with pytest.raises(TimingError, match="joins timings"):
        Or(DailyAt(9), "daily 10:00")  # type: ignore[arg-type]
