"""`except calendar(office)`: a timing that wants dates, gets them, says them in its text, and shows only the name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ostinato.errors import TimingError
from ostinato.timing import At, CalendarDays, DailyAt, Dates, Except, Timing, parse_timing
from ostinato.timing.calendar_days import MOST_DATES, NO_DATES, calendars_in, folded, with_dates
from ostinato.timing.text import check_reads_back
from tests.unit.timing.strategies import timings

NIGHT = datetime(2026, 12, 23, 12, tzinfo=UTC)
some = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
names = st.text(min_size=1, max_size=12).filter(
    lambda name: name.isprintable() and name == name.strip() and name not in (".", "..")
)


def test_without_its_dates_it_is_read_and_written_but_never_due() -> None:
    timing = parse_timing("daily 9 except calendar(office)", tz="UTC")
    assert timing.text == "daily 09:00 except calendar(office)"
    assert (timing.calendars, timing.wants_calendars) == (("office",), ("office",))
    assert timing.explain() == "At 09:00 every day except on the days of calendar 'office' (UTC)."
    assert timing.remarks(NIGHT) == []
    asked: list[Callable[[], object]] = [
        lambda: timing.next_after(NIGHT),
        lambda: timing.previous(NIGHT),
        lambda: timing.is_due(datetime(2026, 12, 23, 9, tzinfo=UTC)),
        lambda: timing.count_between(NIGHT, datetime(2027, 1, 1, tzinfo=UTC)),
    ]
    for ask in asked:
        with pytest.raises(TimingError, match="the dates of calendar 'office' are not known here"):
            ask()
    check_reads_back(timing, "UTC")


def test_with_its_dates_it_is_due_on_the_other_days_and_its_text_has_them() -> None:
    wanted = DailyAt(9, tz="UTC") - CalendarDays("office")
    timing = wanted.with_calendars({"office": Dates("12-24,2026-12-25"), "sales": Dates("01-01")})
    assert timing.text == "daily 09:00 in UTC except calendar(office: 12-24,2026-12-25)"
    assert parse_timing(timing.text) == timing
    assert timing.next_after(NIGHT) == datetime(2026, 12, 26, 9, tzinfo=UTC)
    assert (timing.calendars, timing.wants_calendars) == (("office",), ())
    assert timing.remarks(NIGHT) == ["The next days that it leaves out: 2026-12-24, 2026-12-25."]
    assert wanted.wants_calendars == ("office",)
    check_reads_back(timing, "UTC")


def test_dates_of_others_change_nothing() -> None:
    timing = parse_timing("daily 9 except 12-24 or monthly last 18:00")
    assert timing.with_calendars({"office": Dates("12-25")}) == timing
    wanted = parse_timing("daily 9 except calendar(office)")
    assert wanted.with_calendars({"Office": Dates("12-25")}) == wanted


def test_a_calendar_without_dates_takes_nothing_off() -> None:
    timing = parse_timing("daily 9 except calendar(office)", tz="UTC").with_calendars({"office": NO_DATES})
    assert timing.text == "daily 09:00 except calendar(office:)"
    assert parse_timing(timing.text, tz="UTC") == timing
    assert timing.next_after(NIGHT) == datetime(2026, 12, 24, 9, tzinfo=UTC)


def test_a_calendar_may_take_all_that_there_is() -> None:
    timing = At("2026-12-24T18:00", "UTC") - CalendarDays("office", "12-24")
    assert timing.next_after(NIGHT) is None
    assert parse_timing(timing.text).next_after(NIGHT) is None


@pytest.mark.parametrize(
    "text",
    [
        "daily 09:00 except calendar(office) except calendar(sales)",
        "daily 09:00 except calendar(office) except 12-24 except calendar(office)",
        "(daily 09:00 except calendar(office)) from 2026-01-01 until 10 runs",
        "daily 09:00 or (daily 15:00 except calendar(office))",
        "daily 09:00 except (weekly sun 00:00 except calendar(office))",
        "H 9 * * * except calendar(office)",
        "every 5m except calendar(office) in Asia/Tokyo",
        "daily 09:00 jitter 5m except calendar(office)",
    ],
)
def test_wherever_it_stands_it_wants_its_dates_and_gets_them(text: str) -> None:
    timing = parse_timing(text, tz="UTC")
    assert timing.text == text
    assert "office" in timing.wants_calendars
    known = {"office": Dates("12-24"), "sales": Dates("12-25")}
    resolved = timing.with_calendars(known)
    assert resolved.wants_calendars == ()
    assert resolved.calendars == timing.calendars == calendars_in(text)
    assert resolved.text == with_dates(text, known)
    assert folded(resolved.text) == text
    assert parse_timing(resolved.text, tz="UTC") == resolved


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("office", "office"),
        ("Büro-2", "Büro-2"),
        ("sales team", '"sales team"'),
        ('a "b" (c: 1)', '"a \\"b\\" (c: 1)"'),
        ("calendar(x: 12-24)", '"calendar(x: 12-24)"'),
    ],
)
def test_a_name_with_other_characters_stands_in_quotes(name: str, written: str) -> None:
    timing = DailyAt(9) - CalendarDays(name, "12-24")
    assert timing.text == f"daily 09:00 except calendar({written}: 12-24)"
    assert parse_timing(timing.text) == timing
    assert folded(timing.text) == f"daily 09:00 except calendar({written})"
    assert folded(folded(timing.text)) == folded(timing.text)
    assert calendars_in(folded(timing.text)) == (name,)


@some
@given(names, st.lists(st.dates().map(str) | st.sampled_from(["12-24", "02-29"]), max_size=5))
def test_every_name_is_read_back(name: str, dates: list[str]) -> None:
    timing = DailyAt(9, tz="UTC") - CalendarDays(name, dates)
    assert parse_timing(timing.text) == timing
    shown = folded(timing.text)
    assert parse_timing(shown).wants_calendars == calendars_in(timing.text) == (name,)
    assert with_dates(shown, {name: Dates(dates, may_be_empty=True)}) == timing.text


@some
@given(timings)
def test_what_people_see_becomes_what_was_stored(timing: Timing) -> None:
    known = {name: Dates("12-24") for name in timing.calendars}
    stored = timing.with_calendars(known)
    shown = parse_timing(folded(stored.text), tz=stored.zone)
    assert shown.with_calendars(known) == stored
    assert with_dates(folded(stored.text), known) == stored.text


def test_after_a_schedule_that_is_called_so_nothing_is_a_calendar() -> None:
    text = 'after "calendar(x: 12-24)"'
    assert folded(text) == with_dates(text, {"x": NO_DATES}) == text
    assert calendars_in(text) == parse_timing(text).calendars == ()


@pytest.mark.parametrize(
    ("text", "message", "position", "hint"),
    [
        ("daily 9 except calendar", "which calendar? As in calendar(office)", 15, ""),
        ("daily 9 except calendar()", "which calendar? As in calendar(office)", 24, ""),
        ("daily 9 except calendar(sales", "its parenthesis is not closed", 23, "daily 9 except calendar(sales)"),
        ('daily 9 except calendar("off)', "its parenthesis is not closed", 23, ""),
        ('daily 9 except calendar("a" b)', '"a" b is not the name of a calendar', 24, ""),
        ("daily 9 except calendar(office: 12-34)", "'12-34' is not a date such as 2026-12-25 or 12-25", 32, ""),
        ("daily 9 except calendar(office: 12-24,x)", "'x' is not a date such as 2026-12-25 or 12-25", 38, ""),
        (
            "daily 9 excpt calendar(weekley)",
            "'excpt' is not understood here",
            8,
            "daily 9 except calendar(weekley)",
        ),
        (
            "daily 9 except calender(office)",
            "'calender' does not begin a timing",
            15,
            "daily 9 except calendar(office)",
        ),
        ("calendar(office)", "'calendar(office)' does not begin a timing", 0, ""),
    ],
)
def test_a_wrong_one_is_pointed_at(text: str, message: str, position: int, hint: str) -> None:
    with pytest.raises(TimingError) as refused:
        parse_timing(text, tz="UTC")
    assert message in refused.value.message
    assert (refused.value.position, refused.value.hint) == (position, hint)


@pytest.mark.parametrize("name", ["", " office", "office\n", "..", "x" * 201, None])
def test_a_name_that_cannot_be_is_refused(name: Any) -> None:
    with pytest.raises(TimingError, match="a calendar cannot be called"):
        CalendarDays(name)


def test_a_calendar_has_so_many_dates_at_most_and_two_of_them_fit_into_a_timing() -> None:
    days = [date.fromordinal(740_000 + number) for number in range(MOST_DATES + 1)]
    with pytest.raises(TimingError, match="a calendar has 1000 dates at most, not 1001"):
        CalendarDays("office", days)
    timing = Except(DailyAt(9) - CalendarDays("a", days[1:]), CalendarDays("b", days[:-1]))
    assert len(timing.text) > 20_000
    assert parse_timing(timing.text) == timing
    with pytest.raises(TimingError, match="too long for a timing"):
        parse_timing("daily 9 except " + ",".join(map(str, days * 2)))
