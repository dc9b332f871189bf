"""Each kind of timing by example: calendars, cron, intervals, once; counts, and what constructors refuse."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from ostinato.errors import InvalidInput, TimingError
from ostinato.timing import After, At, Cron, DailyAt, Every, Monthly, Or, Timing, Weekly, parse_timing
from ostinato.timing.zones import check_zone

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
RIGHT = ("Europe/Berlin", "* * * * *", "0 0 L 2 *")


def days(timing: Timing, after: datetime, n: int) -> list[str]:
    found = []
    for _ in range(n):
        due = timing.next_after(after)
        assert due is not None
        found.append(f"{due:%Y-%m-%d %H:%M}")
        after = due
    return found


def test_the_31st_skips_months_without_one() -> None:
    assert days(Monthly(31, 9), datetime(2026, 1, 1, tzinfo=UTC), 4) == [
        "2026-01-31 09:00",
        "2026-03-31 09:00",
        "2026-05-31 09:00",
        "2026-07-31 09:00",
    ]


def test_the_last_day_is_there_in_every_month_and_in_leap_years() -> None:
    assert days(Monthly("last", 18), datetime(2027, 12, 31, 18, tzinfo=UTC), 3) == [
        "2028-01-31 18:00",
        "2028-02-29 18:00",
        "2028-03-31 18:00",
    ]
    assert days(Cron("0 18 L 2 *"), NOW, 2) == ["2027-02-28 18:00", "2028-02-29 18:00"]


def test_the_leap_day_comes_every_four_years_and_not_in_2100() -> None:
    assert days(Cron("0 0 29 2 *"), datetime(2095, 1, 1, tzinfo=UTC), 2) == ["2096-02-29 00:00", "2104-02-29 00:00"]
    assert Cron("0 0 29 2 *").previous(NOW) == datetime(2024, 2, 29, tzinfo=UTC)


def test_the_fifth_monday_comes_only_in_months_that_have_one() -> None:
    assert days(Cron("0 9 * * 1#5"), NOW, 3) == ["2026-11-30 09:00", "2027-03-29 09:00", "2027-05-31 09:00"]


def test_the_last_friday_of_a_month() -> None:
    assert days(Cron("0 9 * * 5L"), NOW, 2) == ["2026-11-27 09:00", "2026-12-25 09:00"]


def test_a_year_ends_and_the_next_begins() -> None:
    end = datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert Cron("* * * * * *").next_after(end) == datetime(2027, 1, 1, tzinfo=UTC)
    assert Cron("@yearly").next_after(end) == datetime(2027, 1, 1, tzinfo=UTC)
    assert Cron("@yearly").next_after(end + timedelta(seconds=1)) == datetime(2028, 1, 1, tzinfo=UTC)
    assert DailyAt(23, 59, 59).previous(end) == end


@pytest.mark.parametrize(
    ("expression", "same"),
    [
        ("0 9 * * 7", "0 9 * * 0"),
        ("0 9 * * SUN", "0 9 * * 0"),
        ("0 9 * * mon-fri", "0 9 * * 1-5"),
        ("0 9 * * FRI-SUN", "0 9 * * 5-7"),
        ("0 9 * * MON-SUN", "0 9 * * *"),
        ("0 9 ? * MON", "0 9 * * 1"),
        ("0 9 1 JAN,jul ?", "0 9 1 1,7 *"),
        ("0 0 9 * * *", "0 9 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@midnight", "@daily"),
        ("@annually", "@yearly"),
        ("10-30/10 * * * *", "10,20,30 * * * *"),
    ],
)
def test_two_spellings_of_one_cron_have_the_same_times(expression: str, same: str) -> None:
    assert days(Cron(expression), NOW, 10) == days(Cron(same), NOW, 10)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kathmandu"])
@pytest.mark.parametrize(
    "expression",
    [
        "30 9 * * 1-5",
        "*/17 * * * *",
        "15 2 * * *",
        "0 0 L * *",
        "0 12 13 * 5",
        "20 */3 * * 1#2",
        "0 0 LW * *",
        "0 9 * * 5L,2#3",
        "0 9 */2 * 1",
        "0 9 1-7 * */3",
        "5/15 7-9 * 2,JUL 0-7",
        "0 9 * * 3-7/2",
        "10 1 15,L * 0",
    ],
)
def test_where_changes_are_whole_hours_cronsim_gives_the_same_times(expression: str, zone: str) -> None:
    start = datetime(2026, 3, 1, tzinfo=ZoneInfo(zone))
    reference = CronSim(expression, start)
    timing, after = Cron(expression, zone), start.astimezone(UTC)
    for _ in range(400):
        due = timing.next_after(after)
        assert due == next(reference).astimezone(UTC)
        assert due is not None
        after = due


def test_an_interval_is_due_from_one_interval_after_its_anchor() -> None:
    anchor = datetime(2026, 11, 15, 10, 0, tzinfo=UTC)
    timing = Every(minutes=5).anchored(anchor)
    assert timing.next_after(anchor - timedelta(days=3)) == anchor + timedelta(minutes=5)
    assert timing.next_after(anchor) == anchor + timedelta(minutes=5)
    assert timing.previous(anchor + timedelta(minutes=4, seconds=59)) is None
    assert timing.previous(anchor + timedelta(minutes=12)) == anchor + timedelta(minutes=10)
    assert timing.next_after(anchor + timedelta(days=9, seconds=1)) == anchor + timedelta(days=9, minutes=5)


def test_an_explicit_anchor_stays_when_the_engine_anchors() -> None:
    timing = parse_timing("every 5m from 2026-01-01T10:02Z")
    assert timing.anchored(NOW) == timing
    assert timing.next_after(NOW) == NOW + timedelta(minutes=2)


def test_an_interval_without_anchor_counts_from_where_it_is_asked() -> None:
    for timing in (Every(minutes=5), Every(minutes=5, anchor="finish")):
        assert timing.next_after(NOW) == NOW + timedelta(minutes=5)
        assert timing.previous(NOW) is None
        assert timing.count_between(NOW, NOW + timedelta(minutes=14)) == 2
    assert Every(minutes=5, anchor="finish").after_finish == timedelta(minutes=5)
    assert Every(minutes=5, anchor="finish").anchored(NOW).after_finish == timedelta(minutes=5)
    assert Every(minutes=5).after_finish is None


def test_once_is_due_once() -> None:
    when = datetime(2026, 12, 24, 18, 0, tzinfo=timezone(timedelta(hours=1)))
    timing = At(when)
    assert timing.next_after(NOW) == when
    assert timing.next_after(when) is None
    assert timing.previous(when) == when
    assert timing.previous(when - timedelta(seconds=1)) is None
    assert (timing.count_between(NOW, when), timing.count_between(when, when + timedelta(1))) == (1, 0)


def test_a_century_of_downtime_is_counted_by_arithmetic() -> None:
    """A loop over three billion due times would not end within the bound of a test."""
    until = NOW + timedelta(days=36_525)
    assert Every(seconds=5).anchored(NOW).count_between(NOW, until) == 631_152_000
    assert Cron("* * * * * *").count_between(NOW, until) == 3_155_760_000
    assert Cron("*/5 * * * * *", "Europe/Berlin").count_between(NOW, until) == 631_152_000


def test_counts_across_clock_changes_are_exact() -> None:
    start = datetime(2026, 3, 28, 23, 0, tzinfo=UTC)  # Midnight in Berlin; the day has 23 hours.
    assert Cron("* * * * *", "Europe/Berlin").count_between(start, start + timedelta(hours=23)) == 23 * 60
    assert Cron("* 2 * * *", "Europe/Berlin").count_between(start, start + timedelta(hours=23)) == 0
    start = datetime(2026, 10, 24, 22, 0, tzinfo=UTC)
    assert Cron("* 2 * * *", "Europe/Berlin").count_between(start, start + timedelta(hours=25)) == 120
    assert Cron("0-59 2 * * *", "Europe/Berlin").count_between(start, start + timedelta(hours=25)) == 60


def test_a_zone_is_utc_until_one_is_given_and_explicit_zones_stay() -> None:
    unbound = DailyAt(3, 0)
    assert unbound.zone is None
    assert unbound.next_after(NOW) == datetime(2026, 11, 16, 3, 0, tzinfo=UTC)
    assert unbound.in_zone("Asia/Tokyo").next_after(NOW) == datetime(2026, 11, 15, 18, 0, tzinfo=UTC)
    assert unbound.in_zone("Asia/Tokyo").in_zone("UTC").zone == "Asia/Tokyo"
    assert Every(minutes=5).in_zone("Asia/Tokyo").zone is None


def test_a_time_asked_in_any_zone_is_the_same_instant() -> None:
    local = NOW.astimezone(ZoneInfo("Asia/Tokyo"))
    for timing in (DailyAt(3, 0), Every(minutes=5).anchored(NOW), Cron("@hourly")):
        assert timing.next_after(local) == timing.next_after(NOW)
        assert timing.previous(local) == timing.previous(NOW)


def test_a_naive_time_is_refused() -> None:
    naive = datetime(2026, 1, 1)
    for ask in (DailyAt(3).next_after, DailyAt(3).previous, Every(minutes=5).next_after):
        with pytest.raises(InvalidInput, match="no zone"):
            ask(naive)
    with pytest.raises(InvalidInput, match="until"):
        DailyAt(3).count_between(NOW, naive)


def test_the_end_of_the_calendar_is_an_end_and_not_a_crash() -> None:
    last = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    for text in (
        "every 5m",
        "daily 03:00",
        "monthly last 03:00",
        "* * * * *",
        "0 0 29 2 *",
        "daily 03:00 except 12-25",
    ):
        for zone in ("UTC", "Europe/Berlin", "America/New_York"):
            assert parse_timing(text, zone).next_after(last) is None
            assert parse_timing(text, zone).count_between(last, last) == 0
            assert parse_timing(text, zone).remarks(last) == parse_timing(text, zone).remarks(last, 9)
    never = At("9999-12-31T12:00", "Europe/Berlin")
    assert never.next_after(NOW) == datetime(9999, 12, 31, 11, 0, tzinfo=UTC)
    assert never.remarks(NOW) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda: DailyAt(24),
        lambda: DailyAt(3, 60),
        lambda: DailyAt(-1),
        lambda: DailyAt(3, 0, tz="Europe/Berln"),
        lambda: Weekly("", 9),
        lambda: Weekly([], 9),
        lambda: Weekly("mon,xyz", 9),
        lambda: Weekly(1, 9),  # type: ignore[arg-type]
        lambda: Weekly(day=0),  # type: ignore[arg-type]
        lambda: Monthly(0, 9),
        lambda: Monthly(32, 9),
        lambda: Monthly("first", 9),
        lambda: Every(minutes=-5),
        lambda: Every(milliseconds=0.5),
        lambda: Every(days=10**12),
        lambda: Every(minutes=5, anchor=datetime(2026, 1, 1)),
        lambda: Every(minutes=5, anchor="end"),  # type: ignore[arg-type]
        lambda: Every(minutes=5, jitter="soon"),
        lambda: Every(minutes=5, jitter=-1),
        lambda: At("Christmas"),
        lambda: Cron("* * *"),
        lambda: Cron("0 0 31 2 *"),
        lambda: Cron(5),  # type: ignore[arg-type]
        lambda: At(5),  # type: ignore[arg-type]
        lambda: DailyAt(3, tz="Nope"),
        lambda: DailyAt(3, tz=timezone(timedelta(hours=2))),
        lambda: DailyAt([24]),
        lambda: DailyAt([]),
        lambda: DailyAt("9,17", 30),
        lambda: DailyAt(9, every=0),
        lambda: DailyAt(9, every=2, anchor=5),  # type: ignore[arg-type]
        lambda: DailyAt(9).between(5),  # type: ignore[arg-type]
        lambda: DailyAt(9).between("soon"),
        lambda: DailyAt(9).limited(0),
        lambda: DailyAt(9).limited(3).limited(3),
        lambda: DailyAt(9).except_dates([]),
        lambda: DailyAt(9).except_dates("soon"),
        lambda: DailyAt(9) - DailyAt(9),
        lambda: DailyAt(9) | 5,  # type: ignore[operator]
        lambda: DailyAt(9) | After("import"),
        lambda: DailyAt(9) | Every(hours=1, anchor="finish"),
        lambda: Or(DailyAt(9)),
        lambda: Weekly("mon", day="tue"),
        After,
        lambda: After(""),
        lambda: After("import", on="foo"),
        lambda: After("import", within="1h"),
        lambda: After("a", "b", all=True, within="soon"),
        lambda: After("a", "b", all=True, within=0),
        lambda: After("import").limited(3),
    ],
)
def test_constructors_refuse_what_cannot_be_and_a_hint_is_a_right_value_or_none(make: Callable[[], object]) -> None:
    with pytest.raises(TimingError) as caught:
        make()
    assert caught.value.hint in ("", *RIGHT)


def test_what_is_right_for_something_wrong_is_said_in_the_message() -> None:
    for make, said in (
        (lambda: After("import", on="foo"), "success, failure or end"),
        (lambda: After("import").limited(3), "remaining=3"),
        (lambda: DailyAt(9) | After("import"), "two schedules"),
        (lambda: DailyAt(3, tz=timezone(timedelta(hours=2))), "such as Europe/Berlin"),
        (lambda: DailyAt(3, tz="Nope"), "such as Europe/Berlin"),
    ):
        with pytest.raises(TimingError) as caught:
            make()
        assert said in caught.value.message
        assert caught.value.hint == ""


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("Nope", ""),
        ("Europe/Munich", ""),
        ("Pacific", ""),  # of the US, or of Canada
        ("GMT+2", ""),  # Etc/GMT+2 is two hours behind
        ("Etc/GMT-25", ""),
        ("Mars", ""),
    ],
)
def test_the_hint_of_an_unknown_zone_is_the_one_that_is_meant(name: str, meant: str) -> None:
    with pytest.raises(TimingError) as caught:
        check_zone(name)
    assert caught.value.hint == meant


def test_a_zone_is_found_by_any_case_and_suggested_by_its_city() -> None:
    assert DailyAt(3, tz="europe/berlin").zone == "Europe/Berlin"
    with pytest.raises(TimingError) as caught:
        DailyAt(3, tz="Berlin")
    assert "Europe/Berlin" in caught.value.hint
    for wrong in ("../etc/passwd", "Europe", "", "Mars/Olympus"):
        with pytest.raises(TimingError):
            DailyAt(3, tz=wrong)


def test_jitter_moves_the_start_and_never_the_due_time() -> None:
    timing = DailyAt(3, 0, jitter="10m")
    due = timing.next_after(NOW)
    assert due == DailyAt(3, 0).next_after(NOW)
    assert due is not None
    assert timing.start_delay("backup", due, lambda: 0.5) == timedelta(minutes=5)
    assert DailyAt(3, 0).start_delay("backup", due, lambda: 0.5) == timedelta(0)


def test_stable_jitter_depends_on_the_name_alone() -> None:
    timing = DailyAt(3, 0, jitter="10m", stable=True)
    delays = {name: timing.start_delay(name, NOW, lambda: 0.5) for name in ("a", "b", "backup")}
    assert len(set(delays.values())) == 3
    assert all(timedelta(0) <= delay <= timedelta(minutes=10) for delay in delays.values())
    assert timing.start_delay("a", NOW + timedelta(1), lambda: 0.9) == delays["a"]
    # Written down, since it must be the same in every process and release.
    assert timing.start_delay("backup", NOW, lambda: 0.5) == timedelta(seconds=446, microseconds=143592)


def test_days_as_dates_may_be_given_as_objects() -> None:
    timing = DailyAt(9).except_dates([date(2026, 11, 16), "11-17"])
    assert days(timing, NOW, 1) == ["2026-11-18 09:00"]


def test_what_is_left_out_has_a_sensible_default() -> None:
    assert Every() == Every(hours=1)
    assert DailyAt() == DailyAt(3, 0)
    assert DailyAt(minute=30).text == "daily 03:30"
    assert Weekly(day="mon", hour=9) == Weekly("mon", 9)
    assert Weekly(day=["mon", "thu"]) == Weekly("mon,thu")


def test_weekdays_are_given_once_and_an_interval_of_nothing_stays_an_error() -> None:
    with pytest.raises(TimingError, match="either days or day"):
        Weekly("mon", day="tue")
    with pytest.raises(TimingError, match="at least one weekday"):
        Weekly(hour=9)
    with pytest.raises(TimingError, match="at least 1 ms"):
        Every(minutes=0)
