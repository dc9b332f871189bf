"""Named pairs of what a clock change does: a gap and a fold for each kind of timing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from ostinato.timing import At, Cron, DailyAt, Every, Timing, parse_timing

BERLIN = "Europe/Berlin"
BEFORE_GAP = datetime(2026, 3, 29, 0, 0, tzinfo=UTC)  # 01:00 on the wall; at 01:00 UTC 02:00 becomes 03:00.
BEFORE_FOLD = datetime(2026, 10, 24, 23, 0, tzinfo=UTC)  # 01:00 on the wall; at 01:00 UTC 03:00 becomes 02:00.


def _walls(timing: Timing, after: datetime, n: int, zone: str = BERLIN) -> list[str]:
    found = []
    for _ in range(n):
        due = timing.next_after(after)
        assert due is not None
        found.append(f"{due.astimezone(ZoneInfo(zone)):%d %H:%M%z}")
        after = due
    return found


def test_daily_in_a_gap_is_due_at_the_first_minute_that_exists() -> None:
    assert _walls(DailyAt(2, 30, tz=BERLIN), BEFORE_GAP, 2) == ["29 03:00+0200", "30 02:30+0200"]


def test_daily_in_a_fold_is_due_once_the_first_time() -> None:
    assert _walls(DailyAt(2, 30, tz=BERLIN), BEFORE_FOLD, 2) == ["25 02:30+0200", "26 02:30+0100"]


def test_daily_asked_in_the_second_pass_of_a_fold_waits_for_tomorrow() -> None:
    second_pass = datetime(2026, 10, 25, 2, 10, tzinfo=ZoneInfo(BERLIN), fold=1)
    assert _walls(DailyAt(2, 30, tz=BERLIN), second_pass, 1) == ["26 02:30+0100"]
    assert DailyAt(2, 30, tz=BERLIN).previous(second_pass) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


def test_daily_with_seconds_in_a_gap_is_due_at_the_whole_minute_after_it() -> None:
    assert DailyAt(2, 30, 15, tz=BERLIN).next_after(BEFORE_GAP) == datetime(2026, 3, 29, 1, 0, tzinfo=UTC)


def test_two_times_in_one_gap_are_due_once() -> None:
    both = DailyAt(2, 15, tz=BERLIN) | DailyAt(2, 45, tz=BERLIN) | DailyAt(3, 0, tz=BERLIN)
    assert _walls(both, BEFORE_GAP, 2) == ["29 03:00+0200", "30 02:15+0200"]
    assert both.count_between(BEFORE_GAP, BEFORE_GAP + timedelta(hours=6)) == 1


def test_fixed_cron_in_a_gap_is_due_at_the_first_minute_that_exists() -> None:
    assert _walls(Cron("15,45 2 * * *", BERLIN), BEFORE_GAP, 2) == ["29 03:00+0200", "30 02:15+0200"]


def test_fixed_cron_in_a_fold_is_due_once_the_first_time() -> None:
    assert _walls(Cron("15,45 2 * * *", BERLIN), BEFORE_FOLD, 3) == ["25 02:15+0200", "25 02:45+0200", "26 02:15+0100"]


def test_wildcard_cron_in_a_gap_leaves_out_what_does_not_exist() -> None:
    assert _walls(Cron("*/30 2 * * *", BERLIN), BEFORE_GAP, 2) == ["30 02:00+0200", "30 02:30+0200"]


def test_wildcard_cron_in_a_fold_is_due_both_times() -> None:
    assert _walls(Cron("*/30 2 * * *", BERLIN), BEFORE_FOLD, 4) == [
        "25 02:00+0200",
        "25 02:30+0200",
        "25 02:00+0100",
        "25 02:30+0100",
    ]


@pytest.mark.parametrize("expression", ["30 2 * * *", "0 30 2 * * *", "0 30 2 * * * *"])
def test_a_zero_for_seconds_changes_nothing(expression: str) -> None:
    assert _walls(Cron(expression, BERLIN), BEFORE_GAP, 2) == ["29 03:00+0200", "30 02:30+0200"]
    assert _walls(Cron(expression, BERLIN), BEFORE_FOLD, 2) == ["25 02:30+0200", "26 02:30+0100"]


def test_cron_at_a_fixed_second_is_due_once_and_with_a_star_for_seconds_it_follows_the_clock() -> None:
    assert _walls(Cron("15 30 2 * * *", BERLIN), BEFORE_GAP, 2) == ["29 03:00+0200", "30 02:30+0200"]
    assert _walls(Cron("15 30 2 * * *", BERLIN), BEFORE_FOLD, 2) == ["25 02:30+0200", "26 02:30+0100"]
    assert _walls(Cron("*/30 30 2 * * *", BERLIN), BEFORE_GAP, 1) == ["30 02:30+0200"]
    assert Cron("*/30 30 2 * * *", BERLIN).count_between(BEFORE_FOLD, BEFORE_FOLD + timedelta(hours=5)) == 4


def test_a_half_hour_gap_loses_no_time_of_the_next_hour() -> None:
    zone, before = "Australia/Lord_Howe", datetime(2026, 10, 3, 15, 10, tzinfo=UTC)
    assert _walls(Cron("*/20 3 * * *", zone), before, 3, zone) == ["04 03:00+1100", "04 03:20+1100", "04 03:40+1100"]


def test_a_half_hour_fold_loses_no_time_of_the_next_hour() -> None:
    zone, before = "Australia/Lord_Howe", datetime(2026, 4, 4, 13, 10, tzinfo=UTC)
    assert _walls(Cron("*/20 2 * * *", zone), before, 3, zone) == ["05 02:00+1030", "05 02:20+1030", "05 02:40+1030"]


@pytest.mark.parametrize(
    ("zone", "text", "after", "walls"),
    [
        # Half an hour: 02:00 becomes 02:30, and 02:00 becomes 01:30.
        ("Australia/Lord_Howe", "daily 02:15", "2026-10-03T12Z", ["04 02:30+1100", "05 02:15+1100"]),
        ("Australia/Lord_Howe", "daily 01:45", "2026-04-04T12Z", ["05 01:45+1100", "06 01:45+1030"]),
        # Two hours: 01:00 becomes 03:00, and 03:00 becomes 01:00.
        ("Antarctica/Troll", "daily 02:30", "2026-03-28T12Z", ["29 03:00+0200", "30 02:30+0200"]),
        ("Antarctica/Troll", "*/30 1-2 * * *", "2026-03-28T12Z", ["30 01:00+0200", "30 01:30+0200"]),
        ("Antarctica/Troll", "daily 01:30", "2026-10-24T12Z", ["25 01:30+0200", "26 01:30+0000"]),
        ("Antarctica/Troll", "0 1-2 * * *", "2026-10-24T12Z", ["25 01:00+0200", "25 02:00+0200", "26 01:00+0000"]),
        # At midnight: the day begins at 01:00, and a day ends with its last hour twice.
        ("America/Sao_Paulo", "daily 00:00", "2018-11-03T12Z", ["04 01:00-0200", "05 00:00-0200"]),
        ("America/Sao_Paulo", "daily 23:30", "2019-02-16T12Z", ["16 23:30-0200", "17 23:30-0300"]),
        # A whole day: there was no 30 December.
        ("Pacific/Apia", "daily 09:00", "2011-12-29T12Z", ["29 09:00-1000", "31 00:00+1400", "31 09:00+1400"]),
        ("Pacific/Apia", "0 * * * *", "2011-12-30T08:30Z", ["29 23:00-1000", "31 00:00+1400", "31 01:00+1400"]),
        ("Pacific/Apia", "weekly fri 09:00", "2011-12-29T12Z", ["31 00:00+1400", "06 09:00+1400"]),
    ],
)
def test_zones_that_jump_neither_lose_nor_double_a_due_time(zone: str, text: str, after: str, walls: list[str]) -> None:
    timing, start = parse_timing(text, zone), datetime.fromisoformat(after)
    assert _walls(timing, start, len(walls), zone) == walls
    found = timing.next_after(start)
    for _ in walls[1:]:
        assert found is not None
        assert timing.previous(found) == found
        found = timing.next_after(found)
    assert found is not None
    assert timing.count_between(start, found) == len(walls)


def test_at_in_a_gap_is_the_first_minute_that_exists() -> None:
    assert At("2026-03-29T02:30:10.5", BERLIN).next_after(BEFORE_GAP) == datetime(2026, 3, 29, 1, 0, tzinfo=UTC)


def test_at_in_a_fold_is_the_first_time() -> None:
    assert At("2026-10-25T02:30", BERLIN).next_after(BEFORE_FOLD) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


def test_a_relative_time_in_the_second_pass_of_a_fold_keeps_its_instant() -> None:
    now = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)
    timing = parse_timing("in 5m", BERLIN, now=now)
    assert timing.next_after(now) == now + timedelta(minutes=5)
    assert timing.text == "at 2026-10-25T02:15+01:00"


def test_every_day_as_an_interval_is_24_hours_whatever_the_clock_does() -> None:
    timing = Every(days=1).anchored(datetime(2026, 3, 28, 8, 0, tzinfo=UTC))
    assert _walls(timing, BEFORE_GAP, 1) == ["29 10:00+0200"]


def test_a_day_whose_midnight_does_not_exist_begins_when_the_gap_ends() -> None:
    zone = "Asia/Beirut"
    timing = Every(minutes=30).anchored(datetime(2026, 3, 1, tzinfo=UTC)).except_dates(["2026-03-29"]).in_zone(zone)
    start = datetime(2026, 3, 28, 21, 10, tzinfo=UTC)
    assert _walls(timing, start, 2, zone) == ["28 23:30+0200", "30 00:00+0300"]


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        (
            "daily 02:30",
            "On 2026-03-29 02:30 does not exist in Europe/Berlin (the clock goes from 02:00 to 03:00): "
            "due at 03:00 instead.",
        ),
        (
            "*/30 2 * * *",
            "On 2026-03-29 2 times between 02:00 and 03:00 do not exist in Europe/Berlin "
            "(the clock goes from 02:00 to 03:00): they are left out.",
        ),
        (
            "at 2026-03-29T02:30",
            "On 2026-03-29 02:30 does not exist in Europe/Berlin (the clock goes from 02:00 to 03:00): "
            "due at 03:00 instead.",
        ),
    ],
)
def test_remarks_say_what_a_gap_does(text: str, remark: str) -> None:
    assert parse_timing(text, BERLIN).remarks(datetime(2026, 1, 1, tzinfo=UTC))[0] == remark


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("daily 02:30", "02:30 happens twice in Europe/Berlin (the clock goes back from 03:00 to 02:00): "),
        ("at 2026-10-25T02:30", "02:30 happens twice in Europe/Berlin (the clock goes back from 03:00 to 02:00): "),
    ],
)
def test_remarks_say_what_a_fold_does(text: str, ending: str) -> None:
    remarks = parse_timing(text, BERLIN).remarks(datetime(2026, 6, 1, tzinfo=UTC))
    assert remarks[0] == f"On 2026-10-25 {ending}due once, the first time."


@pytest.mark.parametrize(
    "text",
    [
        *["daily 09:00", "30 9 * * 1-5", "every 5m", "*/5 * * * *", "hourly", "at 2026-10-25T09:00"],
        *["monthly 28 09:00", "59 23 31 12 *", "0 0 30 4,6 *", "0 0 31W 3 *", "0 0 29 2 * 2028"],
    ],
)
def test_there_are_no_remarks_where_there_is_nothing_to_say(text: str) -> None:
    assert parse_timing(text, BERLIN).remarks(datetime(2026, 1, 1, tzinfo=UTC)) == []


def test_remarks_name_what_a_month_or_a_step_leaves_out() -> None:
    after = datetime(2026, 1, 1, tzinfo=UTC)
    assert parse_timing("monthly 31 09:00", BERLIN).remarks(after)[0].startswith("Skips months without a 31st")
    assert parse_timing("0 9 30 * *", BERLIN).remarks(after)[0].startswith("Skips months without a 30th")
    assert "either the day of the month" in parse_timing("0 9 13 * 5", BERLIN).remarks(after)[0]
    assert "Steps of 7 in the minute field" in parse_timing("*/7 * * * *", BERLIN).remarks(after)[0]
    assert "Steps of 5 in the hour field" in parse_timing("0 */5 * * *", BERLIN).remarks(after)[0]
    assert "24 hours" in parse_timing("every 2d").remarks(after)[0]


@pytest.mark.parametrize(
    ("text", "line"),
    [("0 0 29 2 *", "0 0 L 2 *"), ("0 0 31 2,3 *", "0 0 L 2,3 *"), ("0 0 9 31 4,5 ? 2027", "0 0 9 L 4,5 ? 2027")],
)
def test_a_remark_on_missing_days_keeps_the_months_that_are_named(text: str, line: str) -> None:
    (remark, *_) = parse_timing(text, BERLIN).remarks(datetime(2026, 1, 1, tzinfo=UTC))
    assert f"'{line}' is due on the last day of each of its months" in remark
    assert parse_timing(line, BERLIN).remarks(datetime(2026, 1, 1, tzinfo=UTC)) == []


def test_a_line_without_months_is_told_of_the_last_day_of_all() -> None:
    (remark, *_) = parse_timing("0 0 31 * *", BERLIN).remarks(datetime(2026, 1, 1, tzinfo=UTC))
    assert "'monthly last' is due on the last day of every month" in remark
