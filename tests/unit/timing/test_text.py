"""What people write and how it prints back; each wrong text points at the place and shows a right one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ostinato.errors import TimingError
from ostinato.timing import At, Cron, DailyAt, Dates, Every, Except, Timing, parse_timing

BERLIN = "Europe/Berlin"
NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)  # A Sunday, 13:00 in Berlin.
WORKDAYS = "weekly mon,tue,wed,thu,fri"

MEANT = {
    "every 5m": "every 5m",
    "every 5 minutes": "every 5m",
    "every 5minutes": "every 5m",
    "EVERY  5M": "every 5m",
    "every minute": "every 1m",
    "every second": "every 1s",
    "every hour": "every 1h",
    "every 1h30m": "every 1h30m",
    "every 1h 30m": "every 1h30m",
    "every 1 hour and 30 minutes": "every 1h30m",
    "every 90s": "every 1m30s",
    "every 1.5h": "every 1h30m",
    "every 500ms": "every 500ms",
    "every 2 weeks": "every 14d",
    "@every 5m": "every 5m",
    "every 2 hours after finish": "every 2h after finish",
    "every hour after finish": "every 1h after finish",
    "every day after finish": "every 1d after finish",
    "every 5m from 2026-01-01T10:00Z": "every 5m from 2026-01-01T10:00Z",
    "every 5m from 2026-01-01 10:00": "every 5m from 2026-01-01T09:00Z",
    "every day": "daily 00:00",
    "every day at 9": "daily 09:00",
    "every day at 9:30pm": "daily 21:30",
    "every day at 9 pm": "daily 21:00",
    "daily": "daily 00:00",
    "daily at 3am": "daily 03:00",
    "daily 12am": "daily 00:00",
    "daily 12pm": "daily 12:00",
    "daily noon": "daily 12:00",
    "daily at midnight": "daily 00:00",
    "  Daily   03:00  ": "daily 03:00",
    "daily 03:00:30": "daily 03:00:30",
    "hourly": "@hourly",
    "weekly": "weekly mon 00:00",
    "weekly at 9": "weekly mon 09:00",
    "weekly thu,mon 09:00": "weekly mon,thu 09:00",
    "weekly mon, thu 09:00": "weekly mon,thu 09:00",
    "weekly on friday at 17:00": "weekly fri 17:00",
    "every week on friday at 17:00": "weekly fri 17:00",
    "weekdays 09:30": f"{WORKDAYS} 09:30",
    "every weekday at 9:30": f"{WORKDAYS} 09:30",
    "weekends 10:00": "weekly sat,sun 10:00",
    "every monday at 9": "weekly mon 09:00",
    "Mondays at 9": "weekly mon 09:00",
    "every mon,thu 09:00": "weekly mon,thu 09:00",
    "every monday and thursday at 9": "weekly mon,thu 09:00",
    "mon-fri 09:30": f"{WORKDAYS} 09:30",
    "fri-mon 09:30": "weekly mon,fri,sat,sun 09:30",
    "monthly": "monthly 1 00:00",
    "monthly 1 09:00": "monthly 1 09:00",
    "monthly last 18:00": "monthly last 18:00",
    "monthly on the 15th at 9": "monthly 15 09:00",
    "first day of the month at 9": "monthly 1 09:00",
    "last day of the month at 18:00": "monthly last 18:00",
    "every month on the 3rd at 9": "monthly 3 09:00",
    "cron 30 9 * * 1-5": "30 9 * * 1-5",
    "30   9 * *  MON-FRI": "30 9 * * MON-FRI",
    "@Daily": "@daily",
    "every other day": "every 2d",
    "every other hour": "every 2h",
    "every fortnight": "every 14d",
    "every second day": "every 2d",
    "every other day at 9": "every 2 days at 09:00",
    "every 3 days at 06:00": "every 3 days at 06:00",
    "every 3d at 6am": "every 3 days at 06:00",
    "every 3 days at 06:00 starting 2027-01-01": "every 3 days at 06:00 from 2027-01-01",
    "every 2 weeks on monday 9:00": "every 2 weeks on mon at 09:00",
    "every 2 weeks on monday 9:00 from 2027-01-01": "every 2 weeks on mon at 09:00 from 2027-01-01",
    "every other monday at 9": "every 2 weeks on mon at 09:00",
    "every second week on mon, thu at 9": "every 2 weeks on mon,thu at 09:00",
    "every fortnight on friday at noon": "every 2 weeks on fri at 12:00",
    "every 2 weeks at 9:00": "every 14 days at 09:00",
    "every 1 week on monday at 9": "weekly mon 09:00",
    "every 2 months": "every 2 months on 1 at 00:00",
    "every 2 months on the 1st": "every 2 months on 1 at 00:00",
    "every 2 months on the 1st and 15th at 9": "every 2 months on 1,15 at 09:00",
    "every third month on the last workday at 17:00": "every 3 months on last workday at 17:00",
    "every 2 weeks on weekends 9-17 every 4h": "every 2 weeks on sat,sun 09:00-17:00 every 4h",
    "daily 09:00, 17:00": "daily 09:00,17:00",
    "daily at 17:00 and 9": "daily 09:00,17:00",
    "daily 9am, noon and 5 pm": "daily 09:00,12:00,17:00",
    "weekdays 9-17 every 30m": f"{WORKDAYS} 09:00-17:00 every 30m",
    "every 30m between 9am and 5pm on weekdays": f"{WORKDAYS} 09:00-17:00 every 30m",
    "every 30 minutes from 9:00 to 17:00": "daily 09:00-17:00 every 30m",
    "weekdays every 30m from 9 to 17": f"{WORKDAYS} 09:00-17:00 every 30m",
    "hourly 9-17 on weekdays": f"{WORKDAYS} 09:00-17:00 every 1h",
    "every hour on sundays": "weekly sun 00:00-23:00 every 1h",
    "daily 18:00-midnight every 90m": "daily 18:00-22:30 every 1h30m",
    "daily 9-9:10 every 30m": "daily 09:00",
    "monthly 1,15 09:00": "monthly 1,15 09:00",
    "monthly last,1 09:00": "monthly 1,last 09:00",
    "on the 1st and the 15th at 9am": "monthly 1,15 09:00",
    "first monday 10:00": "monthly first mon 10:00",
    "1st and 3rd monday 10:00": "monthly first,third mon 10:00",
    "every second monday of the month at 9": "monthly second mon 09:00",
    "last friday of the month at 9": "monthly last fri 09:00",
    "last workday 17:00": "monthly last workday 17:00",
    "last business day of the month at 5pm": "monthly last workday 17:00",
    "quarterly": "quarterly 1 00:00",
    "every quarter": "quarterly 1 00:00",
    "quarterly on the 15th at 9": "quarterly 15 09:00",
    "quarterly last workday 17:00": "quarterly last workday 17:00",
    "yearly": "@yearly",
    "monday through friday 9am": f"{WORKDAYS} 09:00",
    "mon - fri 9am": f"{WORKDAYS} 09:00",
    "saturday to monday at 9": "weekly mon,sat,sun 09:00",
    "every business day at 9": f"{WORKDAYS} 09:00",
    "9am every day": "daily 09:00",
    "at 9 on mondays": "weekly mon 09:00",
    "9-17 every 1h on weekdays": f"{WORKDAYS} 09:00-17:00 every 1h",
    "at 9 tomorrow": "at 2026-11-16T09:00",
    "at 1798761600": "at 2027-01-01T00:00Z",
    "at 1798761600500": "at 2027-01-01T00:00:00.500Z",
    "every 5m from 2027-01-01": "every 5m from 2026-12-31T23:00Z",
    "in 30 minutes": "at 2026-11-15T13:30",
    "in 2h": "at 2026-11-15T15:00",
    "in 90s": "at 2026-11-15T13:01:30",
    "tomorrow 15:00": "at 2026-11-16T15:00",
    "tomorrow at 3pm": "at 2026-11-16T15:00",
    "tomorrow noon": "at 2026-11-16T12:00",
    "today 18:00": "at 2026-11-15T18:00",
    "at 15:00": "at 2026-11-15T15:00",
    "at 13:00": "at 2026-11-16T13:00",
    "at noon": "at 2026-11-16T12:00",
    "2026-12-24 18:00": "at 2026-12-24T18:00",
    "on 2026-12-24 at 6pm": "at 2026-12-24T18:00",
    "at 2026-12-24t18:00": "at 2026-12-24T18:00",
    "at 2026-12-24T18:00:30.5": "at 2026-12-24T18:00:30.500",
    "at 2026-12-24T18:00Z": "at 2026-12-24T18:00Z",
    "at 2026-12-24T18:00+00:00": "at 2026-12-24T18:00Z",
    "at 2026-12-24T18:00-05:00": "at 2026-12-24T18:00-05:00",
    "every 5 minutes jitter 30 seconds": "every 5m jitter 30s",
    "daily 03:00 jitter 10m stable": "daily 03:00 jitter 10m stable",
    "daily 9:00 OR monthly last 18:00": "daily 09:00 or monthly last 18:00",
    "daily 9:00 except 2026-12-25, 2026-12-26": "daily 09:00 except 2026-12-25,2026-12-26",
    "daily 9:00 except on 12-25": "daily 09:00 except 12-25",
    "daily 9:00 except weekends": "daily 09:00 except weekly sat,sun 00:00",
    "((daily 9:00))": "daily 09:00",
    "daily 09:00 in asia/tokyo or daily 10:00": "daily 09:00 in Asia/Tokyo or daily 10:00 in Europe/Berlin",
    "daily 09:00 in asia/tokyo": "daily 09:00 in Asia/Tokyo",
    "CRON_TZ=Asia/Tokyo 30 9 * * 1-5": "30 9 * * 1-5 in Asia/Tokyo",
    "TZ=asia/tokyo @daily": "@daily in Asia/Tokyo",
    "@every 90m": "every 1h30m",
}


@pytest.mark.parametrize(("text", "canonical"), MEANT.items())
def test_what_people_write_prints_in_canonical_form(text: str, canonical: str) -> None:
    timing = parse_timing(text, BERLIN, now=NOW)
    assert timing.text == canonical
    assert parse_timing(timing.text, tz=timing.zone) == timing


# Text, the index of what is wrong, and what it should have been, where somebody knows.
WRONG = [
    ("evry 5m", 0, "every 5m"),
    ("  evry 5m", 2, "every 5m"),
    ("dayly 03:00", 0, "daily 03:00"),
    ("tomorow 15:00", 0, "tomorrow 15:00"),
    ("every 5 minuts", 8, "every 5 minutes"),
    ("every 5x", 7, ""),
    ("every 5", 6, ""),
    ("every", 5, ""),
    ("every 0m", 6, ""),
    ("every 0 hours", 6, ""),
    ("every -5m", 6, ""),
    ("every 99999999999999d", 6, ""),
    ("every 1h after lunch", 15, ""),
    ("every 5m from noon", 18, ""),
    ("daily 25:00", 6, ""),
    ("daily 12:75", 9, ""),
    ("daily 12:00:99", 12, ""),
    ("daily 13pm", 6, "daily 13:00"),
    ("daily soon", 6, ""),
    ("daily whenever", 6, ""),
    ("daily 09:00 sharp", 12, ""),
    ("weekly mno 09:00", 7, "weekly mon 09:00"),
    ("weekly mon,xyz 09:00", 11, ""),
    ("every mon, xyz 09:00", 11, ""),
    ("monthly 32 09:00", 8, ""),
    ("monthly 0 09:00", 8, ""),
    ("15:00", 0, "daily 15:00"),
    ("5m", 0, "every 5m"),
    ("at 2026-13-01T10:00", 3, ""),
    ("2026-02-30 10:00", 0, ""),
    ("2026-12-24", 10, "at 2026-12-24T00:00"),
    ("today 10:00", 6, ""),
    ("in a while", 3, ""),
    ("", 0, ""),
    ("   ", 0, ""),
    ("*/0 * * * *", 0, ""),
    ("0 */x * * *", 2, ""),
    ("60 * * * *", 0, ""),
    ("0~30 3 * * *", 0, ""),
    ("0 9,25 * * *", 4, ""),
    ("0 9 * 13 *", 6, ""),
    ("0 9 * * 8", 8, ""),
    ("0 9 * * MOO", 8, ""),
    ("0 9 * * 1#6", 8, ""),
    ("0 9 0 * *", 4, ""),
    ("0 22-2 * * *", 2, "0 22-23,0-2 * * *"),
    ("0 9 1,, * *", 6, "0 9 1 * *"),
    ("? * * * *", 0, "* * * * *"),
    ("0 0 31 2 *", 4, "0 0 L 2 *"),
    ("0 0 30 2 *", 4, "0 0 L 2 *"),
    ("0 0 31 4,6,9,11 *", 4, "0 0 L 4,6,9,11 *"),
    ("* * * *", 7, "* * * * *"),
    ("CRON_TZ=Asia/Tokio 30 9 * * *", 8, "CRON_TZ=Asia/Tokyo 30 9 * * *"),
    ("TZ=Asia/Tokyo", 3, ""),
    ("TZ=Asia/Tokyo 30 9 * * * in UTC", 3, ""),
    ("1 2 3 4 5 6 7", 12, ""),
    ("cron 61 * * * *", 5, ""),
    ("cron", 4, ""),
    ("@reboot", 0, ""),
    ("@dayly", 0, "@daily"),
    ("@daily 5", 7, ""),
    ("daily 09:00 in Europe/Berln", 15, "daily 09:00 in Europe/Berlin"),
    ("daily 09:00 jitter soon", 19, ""),
    ("daily 09:00 jitter 5m forever", 22, ""),
    ("or daily 09:00", 0, ""),
    ("daily 09:00 or", 14, ""),
    ("daily 09:00 except", 18, ""),
    ("daily 09:00 or dayly 10:00", 15, "daily 09:00 or daily 10:00"),
    ("(daily 09:00", 12, "(daily 09:00)"),
    ("daily 09:00)", 11, "daily 09:00"),
    ("(daily 09:00 or daily 10:00) foo", 29, ""),
    ("daily 09:00 except 2026-12-25,2026-02-30", 30, ""),
    ("daily 09:00 except 2026-12-25 2026-12-26", 30, "daily 09:00 except 2026-12-25,2026-12-26"),
    ("weekly mon 09:00 except weekly mon 00:00", 17, ""),
    ("daily 09:00 except * * * * *", 12, ""),
    ("every 1h after finish or daily 09:00", 22, ""),
    ("daily 09:00 except every 1h after finish", 12, ""),
]


@pytest.mark.parametrize(("text", "position", "hint"), WRONG)
def test_a_wrong_text_points_at_the_place_and_shows_a_right_one(text: str, position: int, hint: str) -> None:
    with pytest.raises(TimingError) as caught:
        parse_timing(text, BERLIN, now=NOW)
    assert (caught.value.position, caught.value.text) == (position, text)
    assert caught.value.hint == hint
    if hint:
        assert str(caught.value).endswith(f"try: {hint}")
        parse_timing(hint, BERLIN, now=NOW)


def test_a_wrong_zone_is_named_with_similar_ones() -> None:
    with pytest.raises(TimingError, match="Europe/Berln") as caught:
        parse_timing("daily 09:00", "Europe/Berln")
    assert "Europe/Berlin" in caught.value.hint


@pytest.mark.parametrize("text", ["in 30m", "tomorrow 15:00", "today 15:00", "at 15:00", "daily 09:00 or in 5m"])
def test_a_relative_form_says_that_it_needs_now(text: str) -> None:
    with pytest.raises(TimingError, match="'now' was not given"):
        parse_timing(text, BERLIN)


def test_a_relative_form_is_read_anew_each_time() -> None:
    first = parse_timing("in 30m", BERLIN, now=NOW)
    second = parse_timing("in 30m", BERLIN, now=NOW + timedelta(hours=1))
    assert first.next_after(NOW) == NOW + timedelta(minutes=30)
    assert second.next_after(NOW) == NOW + timedelta(minutes=90)


def test_without_a_zone_relative_forms_are_in_utc() -> None:
    assert parse_timing("in 30m", now=NOW).text == "at 2026-11-15T12:30Z"
    assert parse_timing("tomorrow 15:00", now=NOW).text == "at 2026-11-16T15:00Z"
    assert parse_timing("daily 15:00", now=NOW).zone is None


def test_hostile_text_is_refused_quickly() -> None:
    for text in (
        "(" * 5000,
        "daily 09:00 or " * 5000,
        "x" * 10**6,
        ", " * 5000,
        "every " + "9" * 5000 + "d",
        "\x00",
        "٣ * * * *",
    ):
        with pytest.raises(TimingError):
            parse_timing(text)
    with pytest.raises(TimingError):
        parse_timing(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("every 5m", "Every 5 minutes."),
        ("every 1h30m", "Every 1 hour and 30 minutes."),
        ("every 1h after finish", "Every hour, counted from the end of the last run."),
        ("30 9 * * 1-5", "At 09:30 on Monday through Friday (Europe/Berlin)."),
        ("weekdays 09:30", "At 09:30 on Monday through Friday (Europe/Berlin)."),
        ("*/5 * * * *", "Every 5 minutes (Europe/Berlin)."),
        ("0 0 31 * *", "At 00:00 on the 31st day of every month (Europe/Berlin)."),
        ("daily 03:00 jitter 10m", "At 03:00 every day, started up to 10 minutes later (Europe/Berlin)."),
        ("monthly last 18:00", "At 18:00 on the last day of every month (Europe/Berlin)."),
        ("at 2026-12-24T18:00", "Once, on 24 December 2026 at 18:00 (Europe/Berlin)."),
        ("at 2026-12-24T18:00Z", "Once, on 24 December 2026 at 18:00 UTC."),
        ("daily 9, 17", "At 09:00 and 17:00 every day (Europe/Berlin)."),
        (
            "weekdays 9-17 every 30m",
            "Every 30 minutes from 09:00 to 17:00 on Monday through Friday (Europe/Berlin).",
        ),
        ("monthly 1,15,last 9:00", "At 09:00 on the 1st, 15th and last day of every month (Europe/Berlin)."),
        ("first,third monday 9:00", "At 09:00 on the first and third Monday of every month (Europe/Berlin)."),
        ("last workday 9:00", "At 09:00 on the last workday (Monday to Friday) of every month (Europe/Berlin)."),
        ("quarterly last 18:00", "At 18:00 on the last day of every quarter (Europe/Berlin)."),
        (
            "every 2 weeks on monday 9:00",
            "At 09:00 on Monday every 2 weeks, counted from when it is enabled (Europe/Berlin).",
        ),
        (
            "every 3 days at 6 from 2027-01-01",
            "At 06:00 every 3 days, counted from 1 January 2027 (Europe/Berlin).",
        ),
        (
            "every 2 months on the 1st",
            "At 00:00 on the 1st every 2 months, counted from when it is enabled (Europe/Berlin).",
        ),
        ("daily 09:00 except 12-25", "At 09:00 every day except on 25 December (Europe/Berlin)."),
        ("daily 09:00 except weekends", "At 09:00 every day except on Saturday and Sunday (Europe/Berlin)."),
        (
            "daily 09:00 or monthly 1 10:00",
            "At 09:00 every day, or at 10:00 on the 1st of every month (Europe/Berlin).",
        ),
    ],
)
def test_a_timing_explains_itself_in_english(text: str, sentence: str) -> None:
    assert parse_timing(text, BERLIN).explain() == sentence


def test_equal_texts_give_the_same_object_from_the_cache() -> None:
    assert parse_timing("every 7m", BERLIN) is parse_timing("every 7m", BERLIN)
    assert parse_timing("every 7m") == Every(minutes=7)


@pytest.mark.parametrize(
    "timing",
    [
        DailyAt(9, tz="America/New_York"),
        At("2026-12-24T18:00", tz="America/New_York"),
        Cron("30 9 * * 1-5", tz="America/New_York"),
        DailyAt(9, tz="America/New_York") | Every(minutes=5),
        DailyAt(9, tz="America/New_York").except_dates(["12-25"]),
        Except(Every(minutes=5), Dates("12-25"), "America/New_York"),
        DailyAt(9, tz="America/New_York") - DailyAt(9, tz="Asia/Tokyo").except_dates("12-25"),
    ],
)
@pytest.mark.parametrize("tz", [None, BERLIN, "America/New_York"])
def test_a_zone_of_its_own_is_part_of_the_text(timing: Timing, tz: str | None) -> None:
    assert "in America/New_York" in timing.text
    assert parse_timing(timing.text, tz=tz) == timing
    assert parse_timing(timing.text, tz=tz).text == timing.text


def test_the_zone_of_the_place_where_it_was_read_is_not_part_of_the_text() -> None:
    for text in ("daily 09:00", "30 9 * * 1-5 except 12-25", "daily 09:00 or every 5m", "every 5m except 12-25"):
        assert parse_timing(text, BERLIN).text == text
        assert parse_timing(text).in_zone(BERLIN).text == text


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("at 9 every month", "monthly 1 09:00"),
        ("9 monthly", "monthly 1 09:00"),
        ("at 9 every month on the 15th", "monthly 15 09:00"),
        ("at 9 and 17 every monday", "weekly mon 09:00,17:00"),
    ],
)
def test_an_hour_that_stands_in_front_is_no_day_of_the_month(text: str, meant: str) -> None:
    assert parse_timing(text) == parse_timing(meant)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("daily 9 until 5 runs in Asia/Tokyo", "daily 9 in Asia/Tokyo until 5 runs"),
        ("daily 9 until 5 runs in Asia/Tokyo jitter 5m", "daily 9 in Asia/Tokyo until 5 runs jitter 5m"),
        ("after all a and b", ""),
        ("after any of a or b", ""),
    ],
)
def test_what_stands_at_the_wrong_place_is_not_dropped(text: str, hint: str) -> None:
    with pytest.raises(TimingError) as caught:
        parse_timing(text)
    assert caught.value.hint == hint
