"""What holds for every timing: increasing, round trips, previous and counts that agree with iteration."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ostinato.timing import Every, Timing, parse_timing
from ostinato.timing.text import check_reads_back
from tests.unit.timing.strategies import grid_timings, instants, timings

some = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def _following(timing: Timing, t: datetime, n: int) -> list[datetime]:
    found: list[datetime] = []
    due = timing.next_after(t)
    while due is not None and len(found) < n:
        found.append(due)
        due = timing.next_after(due)
    return found


@some
@given(timings, instants)
def test_due_times_are_strictly_increasing_and_in_utc(timing: Timing, t: datetime) -> None:
    times = [t, *_following(timing, t, 12)]
    assert all(first < second for first, second in pairwise(times))
    assert all(time.tzinfo is UTC for time in times)


@some
@given(timings, st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]))
def test_every_timing_can_be_stored_in_every_zone(timing: Timing, zone: str) -> None:
    check_reads_back(timing, zone)


@some
@given(timings)
def test_the_text_of_a_timing_parses_to_an_equal_timing(timing: Timing) -> None:
    again = parse_timing(timing.text, tz=timing.zone)
    if timing.owns_zone:
        assert parse_timing(timing.text) == timing
        assert parse_timing(timing.text, tz="Asia/Tokyo") == timing
    assert again == timing
    assert again.text == timing.text
    assert hash(again) == hash(timing)


@some
@given(timings, instants)
def test_previous_is_the_last_time_at_or_before(timing: Timing, t: datetime) -> None:
    times = _following(timing, t, 6)
    for first, second in pairwise(times):
        assert timing.previous(first) == first
        assert timing.previous(second - timedelta(microseconds=1)) == first
    before = timing.previous(t)
    if before is not None:
        assert before <= t
        after = timing.next_after(before)
        assert after == (times[0] if times else None)


@some
@given(timings, instants, st.integers(0, 40))
def test_counting_agrees_with_iteration(timing: Timing, t: datetime, n: int) -> None:
    times = _following(timing, t, n)
    if times:
        assert timing.count_between(t, times[-1]) == len(times)
        assert timing.count_between(t, times[-1] - timedelta(microseconds=1)) == len(times) - 1
        assert timing.count_between(times[0], times[-1]) == len(times) - 1
    assert timing.count_between(t, t) == 0
    assert timing.count_between(t, t - timedelta(days=1)) == 0


@some
@given(timings, instants, st.integers(1, 900), st.integers(1, 900))
def test_counts_of_adjoining_spans_add_up(timing: Timing, t: datetime, first: int, second: int) -> None:
    middle, end = t + timedelta(hours=first), t + timedelta(hours=first + second)
    whole = timing.count_between(t, middle) + timing.count_between(middle, end)
    assert timing.count_between(t, end) == whole


@some
@given(grid_timings, instants)
def test_a_grid_never_drifts_from_its_anchor(timing: Timing, t: datetime) -> None:
    assert isinstance(timing, Every)
    anchor = timing.anchor
    assert isinstance(anchor, datetime)
    interval = timing.next_after(anchor)
    due = timing.next_after(t)
    assert interval is not None
    assert due is not None
    assert (due - anchor) % (interval - anchor) == timedelta(0)
    assert due > anchor


@some
@given(timings, instants)
def test_every_timing_explains_itself_in_one_sentence(timing: Timing, t: datetime) -> None:
    sentence = timing.explain()
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert all(remark.endswith(".") for remark in timing.remarks(t))
    assert len(timing.remarks(t, 2)) <= 2


@some
@given(timings)
def test_copies_are_equal_and_binding_twice_changes_nothing(timing: Timing) -> None:
    assert copy.deepcopy(timing) == timing
    assert timing.in_zone("Asia/Tokyo").in_zone("Asia/Kolkata") == timing.in_zone("Asia/Tokyo")
    anchor = datetime(2026, 1, 1, tzinfo=UTC)
    assert timing.anchored(anchor).anchored(anchor + timedelta(1)) == timing.anchored(anchor)
