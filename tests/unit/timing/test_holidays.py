"""`except holidays(DE-BY)`: the days that the package `holidays` says, and what is said where it cannot say any."""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import holidays
import pytest

from ostinato.errors import TimingError
from ostinato.timing import DailyAt, Dates, Every, Except, Holidays, Timing, parse_timing
from ostinato.timing import public_holidays as module

DAY = timedelta(days=1)
MARCH = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("code", "known"),
    [
        ("DE-BY", lambda: holidays.country_holidays("DE", subdiv="BY")),
        ("US-CA", lambda: holidays.country_holidays("US", subdiv="CA")),
        ("IN", lambda: holidays.country_holidays("IN")),
        ("NYSE", lambda: holidays.financial_holidays("NYSE")),
    ],
)
def test_it_is_due_on_every_day_but_those_of_the_package(code: str, known: Callable[[], Any]) -> None:
    timing = parse_timing(f"daily 09:00 except holidays({code})", tz="UTC")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of India it knows the years from 2001 on
        oracle = known()
        days = [date(1998, 1, 1) + number * DAY for number in range(366 * 40)]
        expected = [day for day in days if day not in oracle]
    found: list[date] = []
    due = timing.next_after(datetime(1998, 1, 1, tzinfo=UTC))
    while due is not None and due.date() <= days[-1]:
        found.append(due.date())
        due = timing.next_after(due)
    assert found == expected


def test_next_previous_and_count_agree() -> None:
    timing = parse_timing("every 7h except holidays(DE-BY) or daily 03:00", tz="Europe/Berlin").anchored(MARCH)
    start, end = datetime(2026, 12, 20, tzinfo=UTC), datetime(2027, 1, 10, tzinfo=UTC)
    times = []
    due = timing.next_after(start)
    while due is not None and due <= end:
        times.append(due)
        due = timing.next_after(due)
    assert timing.count_between(start, end) == len(times) == len(list(timing.stream(start, end)))
    back = []
    due = timing.previous(end)
    while due is not None and due > start:
        back.append(due)
        due = timing.previous(due - timedelta(microseconds=1))
    assert back[::-1] == times
    assert all(timing.is_due(one) for one in times)


def test_a_count_over_all_years_computes_those_that_there_are_once(monkeypatch: pytest.MonkeyPatch) -> None:
    timing = parse_timing("daily 09:00 except holidays(AT)", tz="UTC")
    years: list[int] = []
    real = module._made

    def counted(code: str, year: int | None = None, language: str | None = None) -> Any:
        years.extend([] if year is None else [year])
        return real(code, year, language)

    monkeypatch.setattr(module, "_made", counted)
    module._of_year.cache_clear()
    whole = timing.count_between(datetime(1, 1, 5, tzinfo=UTC), datetime(9999, 12, 1, tzinfo=UTC))
    again = timing.count_between(datetime(1, 1, 5, tzinfo=UTC), datetime(9999, 12, 1, tzinfo=UTC))
    assert whole == again > 3_600_000
    assert len(years) == len(set(years)) < 300


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("daily 9 except holidays(de-by)", "daily 09:00 except holidays(DE-BY)"),
        ("daily 9 except holidays( DE )", "daily 09:00 except holidays(DE)"),
        ("daily 9 except on holidays(deu-bayern)", "daily 09:00 except holidays(DE-BY)"),
        ("daily 9 except holidays(de-augsburg)", "daily 09:00 except holidays(DE-Augsburg)"),
        ("daily 9 EXCEPT Holidays(nyse) jitter 5m", "daily 09:00 jitter 5m except holidays(NYSE)"),
        ("daily 9 except holidays (uk-eng)", "daily 09:00 except holidays(GB-ENG)"),
        ("daily 9 except holidays(DE) except 12-24", "daily 09:00 except holidays(DE) except 12-24"),
        ("every 5m except holidays(US-CA) in Asia/Tokyo", "every 5m except holidays(US-CA) in Asia/Tokyo"),
        ("daily 9 except holidays(FR) or monthly last 18", "daily 09:00 except holidays(FR) or monthly last 18:00"),
        ("H 9 * * * except holidays(DE)", "H 9 * * * except holidays(DE)"),
        (
            "daily 9 except holidays(DE) from 2027-01-01 until 3 runs",
            "(daily 09:00 except holidays(DE)) from 2027-01-01 until 3 runs",
        ),
    ],
)
def test_it_is_printed_as_it_is_called_and_read_back(text: str, canonical: str) -> None:
    timing = parse_timing(text, tz="Europe/Berlin")
    assert timing.text == canonical
    assert parse_timing(canonical, tz="Europe/Berlin") == timing


@pytest.mark.parametrize(
    ("text", "message", "position", "hint"),
    [
        ("daily 9 except holidays", "holidays of which country or market?", 15, ""),
        ("daily 9 except holidays()", "holidays of which country or market?", 24, ""),
        ("daily 9 except holidays(DE", "its parenthesis is not closed", 23, "daily 9 except holidays(DE)"),
        ("daily 9 except holidays(Germany)", "there are no holidays of 'Germany'", 24, "daily 9 except holidays(DE)"),
        ("daily 9 except holidays(NYSF)", "there are no holidays of 'NYSF'", 24, "daily 9 except holidays(NYSE)"),
        ("daily 9 except hollidays(DE)", "'hollidays' does not begin a timing", 15, "daily 9 except holidays(DE)"),
        ("daily 9 except holidays(?) or daily 3", "there are no holidays of '?'", 24, ""),
        ("daily 9 except holidays(DE-BX) or daily 3", "DE has no part 'BX': it has BB, BE, BW,", 24, ""),
        (
            "daily 9 except holidays(DE-BYY) or daily 3",
            "DE has no part 'BYY': it has BB, BE,",
            24,
            "daily 9 except holidays(DE-BY) or daily 3",
        ),
        (
            "daily 9 except holidays(NYSE-X)",
            "there are no holidays of 'NYSE-X'",
            24,
            "daily 9 except holidays(NYSE)",
        ),
        (
            "daily 9 except holidays(DE), 2026-12-24",
            "each set of days has an 'except' of its own",
            27,
            "daily 9 except holidays(DE) except 2026-12-24",
        ),
        (
            "daily 9 except holidays(DE) and holidays(AT)",
            "each set of days has an 'except' of its own",
            28,
            "daily 9 except holidays(DE) except holidays(AT)",
        ),
    ],
)
def test_a_wrong_one_is_pointed_at(text: str, message: str, position: int, hint: str) -> None:
    with pytest.raises(TimingError) as refused:
        parse_timing(text, tz="UTC")
    assert message in refused.value.message
    assert (refused.value.position, refused.value.hint) == (position, hint)


def test_in_python_they_are_taken_from_any_timing() -> None:
    days = Holidays("de-by")
    assert (days.code, repr(days)) == ("DE-BY", "<Holidays holidays(DE-BY)>")
    assert DailyAt(9).except_dates(days) == DailyAt(9) - days == Except(DailyAt(9), days)
    assert (Every(minutes=5) - days).text == "every 5m except holidays(DE-BY)"
    with pytest.raises(TimingError, match="no holidays of 'nobody'"):
        Holidays("nobody")


def test_the_next_ones_that_are_left_out_are_named() -> None:
    timing = parse_timing("weekdays 09:00 except holidays(DE-BY)", tz="Europe/Berlin")
    assert timing.remarks(datetime(2026, 12, 20, tzinfo=UTC))[0] == (
        "The next days that it leaves out: 2026-12-25 (Christmas Day), 2027-01-01 (New Year's Day), "
        "2027-01-06 (Epiphany), …."
    )
    assert timing.explain() == "At 09:00 on Monday through Friday except on holidays of DE-BY (Europe/Berlin)."
    assert parse_timing("monthly 13 09:00 except holidays(DE-BY)").remarks(datetime(2024, 3, 1, tzinfo=UTC)) == []


def test_what_is_taken_off_by_the_inner_is_not_named_by_the_outer() -> None:
    both = DailyAt(9).except_dates(Holidays("DE")).except_dates(Holidays("DE-BY"))
    inner, outer = both.remarks(datetime(2026, 12, 20, tzinfo=UTC))[::-1]
    assert "Christmas" in inner
    assert "Christmas" not in outer
    assert "Epiphany" in outer


@pytest.fixture
def without_package(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *given: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "holidays":
            raise ModuleNotFoundError("No module named 'holidays'", name="holidays")
        return real(name, *given, **more)

    module._canonical.cache_clear()
    monkeypatch.setattr(builtins, "__import__", refuse)


@pytest.mark.usefixtures("without_package")
def test_without_the_package_the_error_names_what_installs_it() -> None:
    for make in (lambda: parse_timing("daily 9 except holidays(CH)", stored=True), lambda: Holidays("CH")):
        with pytest.raises(TimingError, match=r"pip install 'ostinato\[holidays\]'"):
            make()


def test_dates_and_holidays_together_are_both_left_out() -> None:
    timing: Timing = DailyAt(9).except_dates("12-24").except_dates(Holidays("DE")).except_dates("12-31")
    assert timing.text == "daily 09:00 except 12-24 except holidays(DE) except 12-31"
    due = timing.next_after(datetime(2026, 12, 23, 12, tzinfo=UTC))
    assert due == datetime(2026, 12, 27, 9, tzinfo=UTC)
    assert (DailyAt(9) - Dates("12-24") - Dates("12-25")).text == "daily 09:00 except 12-24,12-25"
