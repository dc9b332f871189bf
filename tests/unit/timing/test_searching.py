"""Combinations of many parts: refused beyond a few, and what is looked for in the others is bounded, told in steps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.errors import TimingError
from ostinato.timing import DailyAt, Except, Or, Timing, Weekly, parse_timing
from ostinato.timing.searching import at_most
from tests.unit.timing.strategies import instants, timings, wall_timings

NOW = datetime(2026, 12, 24, 0, 0, tzinfo=UTC)
BERLIN = "Europe/Berlin"


class _Steps:
    """Counts how often a timing without parts is asked for its next time: that is what a search costs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken = 0
        real = Timing.next_after

        def counted(timing: Timing, t: datetime) -> datetime | None:
            self.taken += not isinstance(timing, Or | Except)
            return real(timing, t)

        monkeypatch.setattr(Timing, "next_after", counted)

    def of(self, question: Callable[[], object]) -> int:
        before = self.taken
        question()
        return self.taken - before


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> _Steps:
    return _Steps(monkeypatch)


def test_twenty_parts_are_taken_and_one_more_is_refused_where_it_stands() -> None:
    text = "daily 09:00" + " or daily 10:00" * 10 + " except 0 0 1-30 * *" * 9
    assert parse_timing(text, BERLIN).next_after(NOW) == datetime(2026, 12, 31, 8, tzinfo=UTC)
    with pytest.raises(TimingError, match="more than 20 timings are joined") as caught:
        parse_timing(f"{text} except weekly mon 00:00", BERLIN)
    assert caught.value.position == len(text) + 1
    assert "several schedules" in caught.value.message


def test_parts_in_parentheses_count_too() -> None:
    inner = "(daily 09:00" + " or daily 10:00" * 4 + ")"
    with pytest.raises(TimingError, match="more than 20 timings are joined"):
        parse_timing(" or ".join([inner] * 5), BERLIN)


@pytest.mark.parametrize("parts", [21, 20_000])
def test_more_are_refused_in_python_too(parts: int) -> None:
    with pytest.raises(TimingError, match="more than 20 timings are joined"):
        Or(*(DailyAt(9) for _ in range(parts)))


def test_nested_ones_are_refused_in_python_too() -> None:
    timing: Timing = DailyAt(9)
    for _ in range(6):
        timing = timing.except_dates("12-25") | DailyAt(10) - Weekly("sat", 0)
    assert isinstance(timing, Or)
    assert timing.size == 19
    with pytest.raises(TimingError, match="more than 20 timings are joined"):
        timing - (DailyAt(9) | DailyAt(10))


def test_twenty_parts_are_read_in_few_steps(steps: _Steps) -> None:
    text = "every 1s" + " except 0 0 1-30 * *" * 19
    assert steps.of(lambda: parse_timing(text, "Europe/Vienna")) < 20_000
    timing = parse_timing(text, "Europe/Vienna").anchored(NOW)
    assert steps.of(lambda: timing.next_after(NOW)) < 500
    assert steps.of(lambda: timing.count_between(NOW, NOW + timedelta(days=2))) < 500
    assert steps.of(lambda: timing.is_due(NOW)) < 500
    assert timing.next_after(NOW) == datetime(2026, 12, 30, 23, tzinfo=UTC)


@pytest.mark.parametrize("exceptions", ["except * * * * *", "except 0 0 1-30 * * " * 18 + "except @daily"])
def test_what_is_never_due_is_given_up_after_so_many_days(steps: _Steps, exceptions: str) -> None:
    def refused() -> None:
        with pytest.raises(TimingError, match="is never due"):
            parse_timing(f"every 1s {exceptions}", "Europe/Paris")

    assert steps.of(refused) < 40_000


def test_exceptions_of_exceptions_in_many_zones_are_given_up_too(steps: _Steps) -> None:
    """Each day touches two days of the next zone, so that twenty levels would double twenty times."""
    text = "daily 00:00 in UTC"
    for level in range(18):
        text = f"daily 00:00 in {('Asia/Tokyo', 'America/New_York')[level % 2]} except ({text})"

    def read() -> None:
        try:
            timing = parse_timing(text)
        except TimingError:
            return
        timing.next_after(NOW)

    assert steps.of(read) < 1_000_000


def test_a_seldom_part_is_not_searched_for_anew_on_every_day(steps: _Steps) -> None:
    often, seldom = "daily 10:00 except 02-03", "daily 09:00 except (daily 00:00 except 12-25)"
    timing = parse_timing(f"(({seldom}) or ({often})) except (daily 00:00 except 12-25)", "UTC")
    found = []
    assert steps.of(lambda: found.append(timing.next_after(NOW + timedelta(days=2)))) < 20_000
    assert found == [datetime(2027, 12, 25, 9, tzinfo=UTC)]
    assert steps.of(lambda: found.append(timing.previous(NOW))) < 20_000
    assert found[1:] == [datetime(2025, 12, 25, 10, tzinfo=UTC)]


def test_parts_that_are_seldom_due_are_seldom_asked(steps: _Steps) -> None:
    """Each of them on every day would be twenty thousand times."""
    seldom = " or ".join(f"0 {month} {month} {month} *" for month in range(1, 13))
    timing = parse_timing(f"daily 09:00 except ({seldom} or 0 0 1-28 * * or 0 0 29-31 1,3-12 *)", "UTC")
    found = []
    assert steps.of(lambda: found.append(timing.next_after(datetime(2028, 3, 1, tzinfo=UTC)))) < 7_000
    assert found == [datetime(2032, 2, 29, 9, tzinfo=UTC)]


def test_the_longest_time_between_two_leap_days_is_searched() -> None:
    timing = parse_timing("daily 09:00 except (daily 00:00 except 0 0 29 2 *)", "UTC")
    assert timing.next_after(datetime(2096, 3, 1, tzinfo=UTC)) == datetime(2104, 2, 29, 9, tzinfo=UTC)
    assert timing.previous(datetime(2104, 2, 29, tzinfo=UTC)) == datetime(2096, 2, 29, 9, tzinfo=UTC)


def test_many_times_a_day_are_found_behind_years_of_exceptions() -> None:
    often = " or ".join(f"daily {hour:02}:00" for hour in range(16))
    timing = parse_timing(f"({often}) except (daily 00:00 except 0 0 29 2 *)", "UTC")
    assert timing.next_after(NOW) == datetime(2028, 2, 29, tzinfo=UTC)


def test_all_searches_of_one_question_can_be_bounded_together() -> None:
    timing = parse_timing("daily 09:00 except (0 0 1-28 * * or 0 0 29-31 1,3-12 *)", "UTC")
    assert timing.next_after(NOW) == datetime(2028, 2, 29, 9, tzinfo=UTC)
    with at_most(2_000):
        assert timing.next_after(NOW) == datetime(2028, 2, 29, 9, tzinfo=UTC)
        assert timing.next_after(datetime(2028, 3, 1, tzinfo=UTC)) is None
    assert timing.next_after(datetime(2028, 3, 1, tzinfo=UTC)) == datetime(2032, 2, 29, 9, tzinfo=UTC)


def _filtered(base: Timing, days: list[Timing]) -> Timing | None:
    timing = base
    try:
        for one in days:
            timing = timing - one
    except TimingError:
        return None
    return timing


@settings(max_examples=25, deadline=None)
@given(timings, st.lists(wall_timings(None), min_size=2, max_size=4), instants)
def test_exceptions_one_after_the_other_take_off_what_each_of_them_takes_off(
    base: Timing, days: list[Timing], after: datetime
) -> None:
    timing = _filtered(base, days)
    alone = [_filtered(base, [one]) for one in days]
    if timing is None or None in alone:
        return
    until = after + timedelta(hours=30)
    kept = set(base.stream(after, until)) if base.count_between(after, until) < 300 else None
    if kept is None:
        return
    for one in alone:
        assert one is not None
        kept &= set(one.stream(after, until))
    assert list(timing.stream(after, until)) == sorted(kept)
    assert timing.count_between(after, until) == len(kept)
    first = timing.first_until(after, until)
    assert first == (timing.next_after(after) if kept else None)
    for due in base.stream(after, until):
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=due)
        assert timing.is_due(moment) == (due in kept) == (timing.previous(moment) == moment)
