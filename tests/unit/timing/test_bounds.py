"""From a day on, until a day, for so many runs: what is due within the bounds is what is due, and the text says it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ostinato.errors import TimingError
from ostinato.timing import Bounded, DailyAt, Every, Limited, Timing, parse_timing
from ostinato.timing.text import check_reads_back
from tests.unit.timing.strategies import timings

MORNING = datetime(2026, 11, 15, 9, 7, tzinfo=UTC)

BERLIN = "Europe/Berlin"
some = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
edges = st.dates(date(2026, 3, 20), date(2026, 4, 10)) | st.datetimes(
    datetime(2026, 3, 20), datetime(2026, 4, 10), timezones=st.just(UTC)
)


def _within(timing: Timing, start: datetime, end: datetime, most: int = 40) -> list[datetime]:
    found: list[datetime] = []
    due = timing.next_after(start)
    while due is not None and due <= end and len(found) < most:
        found.append(due)
        due = timing.next_after(due)
    return found


@some
@given(timings, st.none() | edges, st.none() | edges, st.integers(0, 40))
def test_within_its_bounds_it_is_due_when_its_base_is(
    base: Timing, start: date | None, end: date | None, hours: int
) -> None:
    try:
        timing = Bounded(base, start, end, BERLIN)
    except TimingError:  # it ends before it begins
        return
    t, until = datetime(2026, 3, 19, tzinfo=UTC) + timedelta(hours=hours), datetime(2026, 4, 12, tzinfo=UTC)
    low, high = max(t, timing.first - timedelta(microseconds=1)), min(until, timing.last)
    expected = _within(base, low, high)
    found = _within(timing, t, until)
    assert found == expected
    if len(found) < 40:
        assert timing.count_between(t, until) == len(found)
        assert list(timing.stream(t, until)) == list(base.stream(low, high)) if low < high else not found
    for due in found[-3:]:
        assert timing.is_due(due)
        assert timing.previous(due) == due
    if found and found[0] - timing.first > timedelta(0):
        before = timing.previous(found[0] - timedelta(microseconds=1))
        assert before is None or timing.first <= before <= t


@some
@given(timings, st.none() | edges, st.none() | edges, st.none() | st.integers(1, 9))
def test_its_text_parses_back_to_it(base: Timing, start: date | None, end: date | None, runs: int | None) -> None:
    try:
        timing: Timing = Bounded(base, start, end, BERLIN) if start or end else base.in_zone(BERLIN)
    except TimingError:
        return
    timing = timing if runs is None else timing.limited(runs)
    again = parse_timing(timing.text, tz=timing.zone or BERLIN)
    assert again == timing
    assert again.text == timing.text
    check_reads_back(timing, BERLIN)
    assert timing.explain().endswith(".")


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("daily 9 from 2027-01-01 until 2027-06-30", "daily 09:00 from 2027-01-01 until 2027-06-30"),
        ("daily 9 until 2027-06-30 starting on 2027-01-01", "daily 09:00 from 2027-01-01 until 2027-06-30"),
        ("daily 9 from 2027-01-01 12:00 to 2027-06-30", "daily 09:00 from 2027-01-01T12:00 until 2027-06-30"),
        ("daily 9 or daily 17 until 2027-06-30", "daily 09:00 or daily 17:00 until 2027-06-30"),
        ("daily 9 or daily 17 from 2027-01-01", "(daily 09:00 or daily 17:00) from 2027-01-01"),
        ("(daily 9 until 2027-06-30) or daily 17", "daily 09:00 until 2027-06-30 or daily 17:00"),
        ("daily 17 or (daily 9 until 2027-06-30)", "daily 17:00 or (daily 09:00 until 2027-06-30)"),
        ("daily 9 except 12-25 until 2027-06-30", "daily 09:00 except 12-25 until 2027-06-30"),
        ("every 5m from 2027-01-01T10:00Z until 2027-06-30", "every 5m from 2027-01-01T10:00Z until 2027-06-30"),
        ("(every 5m) from 2027-01-01", "(every 5m) from 2027-01-01"),
        ("every day from 2027-01-01", "daily 00:00 from 2027-01-01"),
        (
            "every 2 weeks on mon 9:00 from 2027-01-01 until 3 runs",
            "every 2 weeks on mon at 09:00 from 2027-01-01 until 3 runs",
        ),
        ("every 1h after finish until 10 times", "every 1h after finish until 10 runs"),
        ("daily 9 until 2027-06-30 jitter 5m", "daily 09:00 jitter 5m until 2027-06-30"),
        ("daily 9 until 1 run jitter 5m", "daily 09:00 jitter 5m until 1 run"),
        ("monday until friday at 9", "weekly mon,tue,wed,thu,fri 09:00"),
    ],
)
def test_a_bound_is_of_all_that_stands_before_it(text: str, canonical: str) -> None:
    timing = parse_timing(text, BERLIN)
    assert timing.text == canonical
    assert parse_timing(canonical, BERLIN) == timing


def test_both_days_belong_to_it_in_its_zone() -> None:
    timing = parse_timing("daily 00:00 from 2027-01-01 until 2027-06-30", BERLIN)
    assert (
        timing
        == DailyAt(0, tz=BERLIN).between("2027-01-01", "2027-06-30")
        == DailyAt(0, tz=BERLIN).between(date(2027, 1, 1), date(2027, 6, 30))
    )
    assert timing.next_after(datetime(2026, 1, 1, tzinfo=UTC)) == datetime(2026, 12, 31, 23, tzinfo=UTC)
    assert timing.previous(datetime(2028, 1, 1, tzinfo=UTC)) == datetime(2027, 6, 29, 22, tzinfo=UTC)
    assert timing.next_after(datetime(2027, 6, 30, 12, tzinfo=UTC)) is None
    assert timing.explain() == "At 00:00 every day, from 1 January 2027, until 30 June 2027 (Europe/Berlin)."


def test_so_many_runs_are_said_and_are_nothing_that_the_timing_counts() -> None:
    timing = parse_timing("every 5m until 10 runs")
    assert timing == Every("5m").limited(10)
    assert (timing.runs, timing.unlimited, Every("5m").runs) == (10, Every("5m"), None)
    assert timing.explain() == "Every 5 minutes, until it has run 10 times."
    assert timing.remarks(datetime(2026, 1, 1, tzinfo=UTC))[0] == (
        "A schedule with this timing gets the policy remaining 10."
    )
    assert timing.count_between(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)) == 288


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("daily 9 from 2027-06-01 until 2027-01-01", ""),
        ("daily 9 until 2027-06-30 until 2027-07-30", ""),
        ("daily 9 until 0 runs", ""),
        ("daily 9 until 10 runs or daily 17", ""),
        ("(daily 9 until 10 runs) or daily 17", ""),
        ("daily 9 except (daily 9 until 10 runs)", ""),
        ("every 1h after finish until 2027-06-30", ""),
        ("daily 9 until 2027-06-30 in Asia/Tokyo", "daily 9 in Asia/Tokyo until 2027-06-30"),
        ("daily 9 untill 2027-06-30", "daily 9 until 2027-06-30"),
        ("daily 9 until 2027-06-31", ""),
        ("until 2027-06-30", ""),
    ],
)
def test_what_cannot_be_bounded_so_is_refused(text: str, hint: str) -> None:
    with pytest.raises(TimingError) as caught:
        parse_timing(text, BERLIN)
    assert caught.value.hint == hint


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns", "Pacific/Kiritimati"])
def test_the_ends_of_the_calendar_are_no_bounds(zone: str) -> None:
    timing = parse_timing("daily 9 from 0001-01-01 until 9999-12-31", zone)
    plain = DailyAt(9, tz=zone)
    assert parse_timing(timing.text, zone) == timing
    assert timing.next_after(MORNING) == plain.next_after(MORNING)
    assert timing.count_between(MORNING, MORNING + timedelta(days=9)) == 9


def test_python_refuses_what_is_no_bound() -> None:
    for wrong in (
        lambda: DailyAt(9).between("soon"),
        lambda: DailyAt(9).between(5),  # type: ignore[arg-type]
        lambda: DailyAt(9).limited(0),
        lambda: DailyAt(9).limited(3).limited(2),
        lambda: DailyAt(9).limited(3) | DailyAt(10),
        lambda: DailyAt(9).limited(3).except_dates("12-25"),
        lambda: DailyAt(9) - DailyAt(9).limited(3),
        lambda: Bounded(Limited(DailyAt(9), 3), "2027-01-01"),
    ):
        with pytest.raises(TimingError):
            wrong()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "daily 09:00 or daily 17:00 from 2027-01-01",
            "At 09:00 every day, or at 17:00 every day, both from 1 January 2027 (UTC).",
        ),
        (
            "daily 09:00 or (daily 17:00 from 2027-01-01)",
            "At 09:00 every day, or (at 17:00 every day, from 1 January 2027) (UTC).",
        ),
        (
            "(daily 09:00 from 2027-01-01) or daily 17:00",
            "At 09:00 every day, from 1 January 2027, or at 17:00 every day (UTC).",
        ),
        (
            "daily 09:00 or daily 17:00 or daily 18:00 from 2027-01-01 until 2027-05-05",
            "At 09:00 every day, or at 17:00 every day, or at 18:00 every day, "
            "all from 1 January 2027, until 5 May 2027 (UTC).",
        ),
        (
            "daily 09:00 or daily 17:00 from 2027-01-01 except 12-25",
            "At 09:00 every day, or at 17:00 every day, both from 1 January 2027, but never on 25 December (UTC).",
        ),
        (
            "daily 09:00 or (daily 17:00 from 2027-01-01 except 12-25)",
            "At 09:00 every day, or (at 17:00 every day, from 1 January 2027 except on 25 December) (UTC).",
        ),
        (
            "daily 09:00 or daily 17:00 except 12-25 from 2027-01-01",
            "At 09:00 every day, or at 17:00 every day, but never on 25 December, both from 1 January 2027 (UTC).",
        ),
        (
            "daily 09:00 or (daily 17:00 except 12-25 from 2027-01-01)",
            "At 09:00 every day, or (at 17:00 every day except on 25 December, from 1 January 2027) (UTC).",
        ),
    ],
)
def test_the_sentence_says_of_which_timing_a_bound_is(text: str, sentence: str) -> None:
    assert parse_timing(text, "UTC").explain() == sentence
