"""What cron's fields can say: names, wrapped ranges, `15W`, `L-3`, years; what is refused, and what is asked about."""

from __future__ import annotations

from calendar import monthrange
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.errors import TimingError
from ostinato.timing import Cron, parse_timing
from ostinato.timing.cron_lines import compile_cron

NOW = datetime(2026, 1, 1, tzinfo=UTC)
YEARS = range(2024, 2032)


def due_days(expression: str, years: range = YEARS) -> set[date]:
    """All days on which it is due, by its own pattern."""
    rule = compile_cron(expression).pattern.month_days
    return {date(year, month, day) for year in years for month in range(1, 13) for day in rule(year, month)}


def all_days() -> list[date]:
    return [date(2024, 1, 1) + timedelta(days=number) for number in range((date(2032, 1, 1) - date(2024, 1, 1)).days)]


def _is_workday_nearest_to(wanted: int, day: date) -> bool:
    """By trying the days around it, the nearest first."""
    length = monthrange(day.year, day.month)[1]
    if not 1 <= wanted <= length:
        return False
    near = [wanted, wanted - 1, wanted + 1, wanted - 2, wanted + 2]
    workdays = [one for one in near if 1 <= one <= length and date(day.year, day.month, one).weekday() < 5]
    return day.day == workdays[0]


@pytest.mark.parametrize("wanted", [1, 2, 15, 28, 29, 30, 31])
def test_the_nearest_workday_stays_within_its_month(wanted: int) -> None:
    expected = {day for day in all_days() if _is_workday_nearest_to(wanted, day)}
    assert due_days(f"0 9 {wanted}W * *") == expected


@pytest.mark.parametrize("back", [0, 1, 3, 27, 28, 29, 30])
def test_days_are_counted_back_from_the_last_of_the_month(back: int) -> None:
    def from_end(day: date) -> int:
        return monthrange(day.year, day.month)[1] - day.day

    assert due_days(f"0 9 L-{back} * *") == {day for day in all_days() if from_end(day) == back}
    nearest = {day for day in all_days() if _is_workday_nearest_to(day.day + from_end(day) - back, day)}
    assert due_days(f"0 9 L-{back}W * *") == nearest


@pytest.mark.parametrize("number", range(7))
@pytest.mark.parametrize("nth", ["#1", "#2", "#5", "L"])
def test_the_nth_weekday_of_a_month_comes_when_so_many_were_there(number: int, nth: str) -> None:
    def is_nth(day: date) -> bool:
        if day.isoweekday() % 7 != number:
            return False
        if nth == "L":
            return (day + timedelta(days=7)).month != day.month
        return (day - timedelta(days=7 * int(nth[1:]))).month != day.month == (day - timedelta(days=day.day - 1)).month

    def is_first_of_them(day: date) -> bool:
        return nth == "L" or (day - timedelta(days=7 * (int(nth[1:]) - 1))).month == day.month

    name = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")[number]
    expected = {day for day in all_days() if is_nth(day) and is_first_of_them(day)}
    assert due_days(f"0 9 * * {number}{nth}") == due_days(f"0 9 * * {name}{nth}") == expected


SAME = [
    ("0 0 * * 0-0", "0 0 * * 0"),
    ("0 0 * * SUN-SUN", "0 0 * * 0"),
    ("0 0 * * 7-7", "0 0 * * 0"),
    ("0 0 * * 0-7", "0 0 * * *"),
    ("0 0 * * 1-7", "0 0 * * *"),
    ("0 0 * * 5-1", "0 0 * * 5,6,0,1"),
    ("0 0 * * fri-mon", "0 0 * * 5,6,0,1"),
    ("0 0 * * fri-mon/2", "0 0 * * 5,0"),
    ("0 0 * * sat-sun", "0 0 * * 6,0"),
    ("0 0 * * mon-sun/2", "0 0 * * 1,3,5,0"),
    ("0 0 * * Monday,thursdayL", "0 0 * * 1,4L"),
    ("0 0 * * tuesday#2", "0 0 * * 2#2"),
    ("0 0 * * FRIL", "0 0 * * 5L"),
    ("0 0 1 january,Sept *", "0 0 1 1,9 *"),
    ("0 0 1 nov-feb *", "0 0 1 11,12,1,2 *"),
    ("0 0 1 november-february/3 *", "0 0 1 11,2 *"),
    ("0 9 ? * mon", "0 9 * * 1"),
    ("0 0 9 ? * MON-FRI", "0 9 * * 1-5"),
    ("0 0 9 ? * MON-FRI *", "0 9 * * 1-5"),
    ("0 9 ? * MON-FRI *", "0 9 * * 1-5"),
    ("0 0 9 1 * ?", "0 9 1 * *"),
    ("0 0 9 ? * 1-7", "0 9 * * *"),
    ("0 0 9 ? * 0,3", "0 9 * * 0,3"),
    ("0 0 0 ? * */2", "0 0 * * */2"),
    ("0 0 9 * * * *", "0 9 * * *"),
    ("0 0 L-0 * *", "0 0 L * *"),
    ("0 0 LW * *", "0 0 L-0W * *"),
    ("0 0 1W,15W * *", "0 0 1w,15w * *"),
    ("*/60 */24 */31 */12 *", "0 0 1 1 *"),
]


@pytest.mark.parametrize(("expression", "same"), SAME)
def test_two_spellings_mean_the_same(expression: str, same: str) -> None:
    one, other = Cron(expression, "Europe/Berlin"), Cron(same, "Europe/Berlin")
    assert due_days(expression) == due_days(same)
    assert one.pattern.times == other.pattern.times
    assert one.follows_clock == other.follows_clock or "*/60" in expression


def test_a_year_says_in_which_years_it_is_due() -> None:
    assert due_days("0 9 1 1 * 2027") == {date(2027, 1, 1)}
    assert due_days("0 0 9 1 1 * 2026-2031/2") == {date(2026, 1, 1), date(2028, 1, 1), date(2030, 1, 1)}
    once = Cron("0 0 9 24 12 * 2031")
    assert once.next_after(NOW) == datetime(2031, 12, 24, 9, tzinfo=UTC)
    assert once.next_after(datetime(2031, 12, 24, 9, tzinfo=UTC)) is None
    assert once.previous(NOW) is None
    assert once.count_between(NOW, datetime(2090, 1, 1, tzinfo=UTC)) == 1
    assert Cron("0 0 1 1 * 2099").next_after(datetime(1971, 1, 1, tzinfo=UTC)) == datetime(2099, 1, 1, tzinfo=UTC)
    assert Cron("0 0 1 1 * 1970").previous(datetime(2099, 1, 1, tzinfo=UTC)) == datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "position", "hint"),
    [
        ("*/90 * * * *", 0, "every 90m"),
        ("*/90 * * * * *", 0, "every 90s"),
        ("0 */36 * * *", 2, "every 36h"),
        ("0 0 */45 * *", 4, "every 45d"),
        ("12-12/11 9 * * *", 0, "12 9 * * *"),
        ("50/15 * * * *", 0, "50 * * * *"),
        ("0 9-17/10 * * *", 2, "0 9 * * *"),
        ("0 9 * * mon-fri/7", 8, "0 9 * * mon"),
        ("0 9 * * L", 8, ""),
        ("0 9 L/2 * *", 4, ""),
        ("0 9 L-31 * *", 4, ""),
        ("0 9 32W * *", 4, ""),
        ("0 9 15 * mon#6", 9, ""),
        ("0 9 * * * 1969", 10, ""),
        ("1 2 3 4 5 6 7", 12, ""),
        ("1 2 3 4 5 6 2027 8", 17, ""),
        ("0 0 29 2 * 2027", 4, "0 0 L 2 * 2027"),
        ("0 0 30 2 */2", 4, ""),
        ("60 25 * * *", 0, ""),
        ("0 9 1,, * *", 6, "0 9 1 * *"),
    ],
)
def test_what_cannot_be_is_refused_with_a_form_that_means_it_if_there_is_one(
    text: str, position: int, hint: str
) -> None:
    with pytest.raises(TimingError) as caught:
        parse_timing(text)
    assert (caught.value.position, caught.value.hint) == (position, hint)
    if hint:
        parse_timing(hint)


@pytest.mark.parametrize(
    "text",
    [
        "0 9 L-{} * *",
        "0 9 * * 1#{}",
        "*/{} * * * *",
        "0 9 {}W * *",
        "H(0-{}) * * * *",
        "monthly {} 09:00",
        "every {}d",
        "in {}d",
        "daily 9 until {} runs",
    ],
)
def test_a_number_of_any_length_is_read_or_refused(text: str) -> None:
    for digits in ("9" * 7, "9" * 5_000, "0" * 5_000):
        with suppress(TimingError):
            parse_timing(text.format(digits), "UTC", now=datetime(2026, 11, 15, tzinfo=UTC))


def test_a_step_that_its_field_cannot_hold_gets_no_form_where_none_means_the_same() -> None:
    with pytest.raises(TimingError, match="a step of 90 is longer") as caught:
        Cron("*/90 9-17 * * 1-5")
    assert caught.value.hint == ""


@pytest.mark.parametrize(
    ("text", "in_quartz", "in_cron"),
    [
        ("0 0 9 ? * 2-6", "0 0 9 * * mon-fri", "0 0 9 * * tue-sat"),
        ("0 9 ? * 2-6", "0 9 * * mon-fri", "0 9 * * tue-sat"),
        ("0 0 9 ? * 7", "0 0 9 * * sat", "0 0 9 * * sun"),
        ("0 0 9 ? * 1", "0 0 9 * * sun", "0 0 9 * * mon"),
        ("0 0 9 ? * 6L", "0 0 9 * * friL", "0 0 9 * * satL"),
        ("0 0 9 ? * 6#3", "0 0 9 * * fri#3", "0 0 9 * * sat#3"),
        ("0 0 9 ? * 2/2", "0 0 9 * * mon-sat/2", "0 0 9 * * tue-sun/2"),
        ("0 0 9 ? * MON,3", "0 0 9 * * mon,tue", "0 0 9 * * mon,wed"),
        ("0 0 9 ? * 2-6 2027", "0 0 9 * * mon-fri 2027", "0 0 9 * * tue-sat 2027"),
        ("0 0 9 * * 2 *", "0 0 9 * * mon", "0 0 9 * * tue"),
        ("0 9 ? * 2-6 *", "0 9 * * mon-fri", "0 9 * * tue-sat"),
        ("0 0 9 ? * SUN-2", "0 0 9 * * sun-mon", "0 0 9 * * sun-tue"),
        ("0 0 9 ? * 2-FRI", "0 0 9 * * mon-fri", "0 0 9 * * tue-fri"),
        ("0 0 9 ? * SUN-6", "0 0 9 * * sun-fri", "0 0 9 * * *"),
        ("0 0 9 ? * SUN-1", "0 0 9 * * sun", "0 0 9 * * sun-mon"),
        ("0 0 9 ? * 6-2", "0 0 9 * * fri-mon", "0 0 9 * * sat-tue"),
        ("0 0 9 ? * MON/2", "0 0 9 * * mon-sat/2", "0 0 9 * * mon-sun/2"),
    ],
)
def test_a_line_of_quartz_is_asked_about_and_not_shifted_by_a_day(text: str, in_quartz: str, in_cron: str) -> None:
    with pytest.raises(TimingError, match="two meanings") as caught:
        parse_timing(text)
    assert repr(in_quartz) in caught.value.message
    assert repr(in_cron) in caught.value.message
    assert caught.value.hint == in_quartz
    assert due_days(in_quartz) != due_days(in_cron)


@pytest.mark.parametrize("days", ["SUN-7", "1-7", "MON-FRI", "FRI-MON", "SUN-SAT", "*/2", "FRIL", "MON#2", "0-2"])
def test_a_line_of_quartz_that_means_the_same_here_is_taken(days: str) -> None:
    assert parse_timing(f"0 0 9 ? * {days}").text == f"0 0 9 ? * {days}"


def test_the_l_of_quartz_is_the_last_day_of_the_week() -> None:
    with pytest.raises(TimingError) as caught:
        parse_timing("0 0 9 ? * L")
    assert caught.value.hint == "0 0 9 ? * sat"
    with pytest.raises(TimingError) as caught:
        parse_timing("0 9 * * L")
    assert caught.value.hint == ""


def test_a_star_with_a_step_in_one_day_field_asks_for_both_and_says_so() -> None:
    both = due_days("0 0 */2 * 1")
    assert both == {day for day in all_days() if day.day % 2 and day.isoweekday() == 1}
    assert Cron("0 0 */2 * 1").explain() == "At 00:00 on every second day of the month, but only on Monday."
    assert due_days("0 0 15 * */2") == {day for day in all_days() if day.day == 15 and day.isoweekday() % 7 % 2 == 0}
    assert due_days("0 0 1-31/2 * 1") == {day for day in all_days() if day.day % 2 or day.isoweekday() == 1}


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("0 0 * * 0-0", "At 00:00 on Sunday."),
        ("0 9 15W * *", "At 09:00 on the weekday nearest to the 15th day of every month."),
        ("0 9 L-3 * *", "At 09:00 on the fourth to last day of every month."),
        ("0 9 * * FRIL", "At 09:00 on the last Friday of the month."),
        ("0 9 * * fri-mon", "At 09:00 on Friday through Monday."),
        ("0 9 * nov-feb *", "At 09:00 every day in every month from November through February."),
        ("0 9 1 1 * 2027,2029", "At 09:00 on January 1 in 2027 and 2029."),
        ("0 9 13 * 5", "At 09:00 on the 13th day of the month or on Friday."),
        ("0 9 1-31 * 1", "At 09:00 on every day of the month or on Monday."),
        ("0 0,6,12,15,18 * * *", "At minute 0 past hours 0, 6, 12, 15, and 18."),
        ("*/15 9-17 * * 1-5", "Every 15th minute from 09:00 through 17:59 on Monday through Friday."),
        ("*/10 * * * * *", "Every 10 seconds."),
        ("5,35 */2 * * *", "At minutes 5 and 35 past every second hour."),
        ("@hourly", "At the start of every hour."),
    ],
)
def test_the_sentence_says_what_the_fields_mean(expression: str, sentence: str) -> None:
    assert Cron(expression).explain() == sentence


MINUTES = ["*", "0", "5,35", "0-0", "*/15", "*/60", "0-30/10", "0-30/30", "5/15", "0-59", "1-2", "1,*/20"]
HOURS = ["*", "9", "9-9", "9-17", "*/2", "9,17", "0-23", "22/1", "9-17/4"]
DAYS = ["*", "15", "1,15", "L", "L-3", "LW", "15W", "*/2", "1-31", "1-7", "15,L"]
MONTHS = ["*", "1", "jan-mar", "nov-feb", "*/2", "1-12", "1,7"]
WEEKDAYS = ["*", "0", "7", "0-0", "1-5", "mon-sun", "fri-mon", "*/2", "1#2", "5L", "1,3,5L", "0-6"]
YEARS_SAID = ["", " 2027", " 2027-2031"]


def test_two_expressions_with_one_sentence_are_due_at_the_same_times() -> None:
    """The sentence leaves nothing out that decides on when it is due."""
    said: dict[str, tuple[object, frozenset[date]]] = {}
    lines = [f"{minute} {hour} 15 * *" for minute, hour in product(MINUTES, HOURS)]
    lines += [f"30 9 {' '.join(days)}" for days in product(DAYS, MONTHS, WEEKDAYS)]
    lines += [f"30 9 {day} 1 mon{year}" for day, year in product(DAYS, YEARS_SAID)]
    for line in lines:
        cron = Cron(line)
        meant = cron.pattern.times, frozenset(due_days(line, range(2026, 2033)))
        assert said.setdefault(cron.explain(), meant) == meant, line


@pytest.mark.parametrize("name", [None, "backup"])
def test_an_h_beside_a_question_mark_is_not_a_number_of_quartz(name: str | None) -> None:
    assert parse_timing("0 0 9 ? * H(1-5)", name=name).text == "0 0 9 ? * H(1-5)"
    with pytest.raises(TimingError, match="two meanings") as caught:
        parse_timing("0 9 ? * 2,H", name=name)
    assert caught.value.hint == "0 9 * * mon,H"


@pytest.mark.parametrize(
    ("stored", "meant"),
    [
        ("5/60 * * * *", "5 * * * *"),
        ("0 9/24 * * *", "0 9 * * *"),
        ("*/90 * * * *", "*/60 * * * *"),
        ("0 9 */40 * 1", "0 9 */31 * 1"),
        ("0 9 ? * 2-6", "0 9 * * 2-6"),
        ("0 9 * * * or 5/60 * * * *", "0 9 * * * or 5 * * * *"),
        ("H 9 * * 1-5", "H 9 * * 1-5"),
    ],
)
def test_what_was_stored_keeps_its_meaning(stored: str, meant: str) -> None:
    assert parse_timing(stored, stored=True) == parse_timing(meant)


_words = st.text("0123456789*/,-#?LWHlwhmonjafri~() ", min_size=1, max_size=12)


@settings(max_examples=400, deadline=None)
@given(st.lists(_words, min_size=1, max_size=8).map(" ".join))
def test_whatever_is_written_is_read_or_refused_with_a_form_that_parses(text: str) -> None:
    refused = _refusal(text)
    if refused is None:
        found = Cron(text)
        assert found.explain().endswith(".")
        assert Cron(found.text) == found
        return
    assert 0 <= refused.position <= len(text)
    if refused.hint:
        parse_timing(refused.hint)


def _refusal(text: str) -> TimingError | None:
    try:
        Cron(text)
    except TimingError as error:
        return error
    return None
