"""What people write and how it prints back; each wrong text points at the place and shows a right one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ostinato.errors import TimingError
from ostinato.timing import Every, parse_timing

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
    "daily 09:00 in asia/tokyo or daily 10:00": "daily 09:00 or daily 10:00 in Europe/Berlin",
}


@pytest.mark.parametrize(("text", "canonical"), MEANT.items())
def test_what_people_write_prints_in_canonical_form(text: str, canonical: str) -> None:
    timing = parse_timing(text, BERLIN, now=NOW)
    assert timing.text == canonical
    assert parse_timing(timing.text, tz=timing.zone) == timing


# Text, the index of what is wrong, and a part of the hint.
WRONG = [
    ("evry 5m", 0, "every 5m"),
    ("  evry 5m", 2, "every 5m"),
    ("dayly 03:00", 0, "daily 03:00"),
    ("tomorow 15:00", 0, "tomorrow 15:00"),
    ("every 5 minuts", 8, "every 5 minutes"),
    ("every 5x", 7, "every 5m"),
    ("every 5", 6, "every 5m"),
    ("every", 5, "every 5m"),
    ("every 0m", 6, "every 1m"),
    ("every 0 hours", 6, "every 1h"),
    ("every -5m", 6, "every 5m"),
    ("every 99999999999999d", 6, "every 5m"),
    ("every fortnight", 6, "every 5m"),
    ("every other day", 6, "every 2 days"),
    ("every 3 days at 9", 13, "daily 09:00"),
    ("every 1h after lunch", 15, "every 1h after finish"),
    ("every 5m from noon", 14, "from 2026-01-01T10:00Z"),
    ("daily 25:00", 6, "daily 09:00"),
    ("daily 12:75", 9, "daily 09:00"),
    ("daily 12:00:99", 12, "daily 09:00"),
    ("daily 13pm", 6, "daily 09:00"),
    ("daily soon", 6, "daily noon"),
    ("daily whenever", 6, "daily 09:00"),
    ("daily 09:00 sharp", 12, "daily 09:00"),
    ("weekly mno 09:00", 7, "weekly mon 09:00"),
    ("weekly mon,xyz 09:00", 11, "weekly mon,thu 09:00"),
    ("every mon, xyz 09:00", 11, "weekly mon,thu 09:00"),
    ("monthly 32 09:00", 8, "monthly last 09:00"),
    ("monthly 0 09:00", 8, "monthly 31 09:00"),
    ("last friday of the month at 9", 5, "0 9 * * 5L"),
    ("second monday of the month", 7, "0 9 * * 1#2"),
    ("15:00", 0, "daily 15:00"),
    ("5m", 0, "every 5m"),
    ("at 2026-13-01T10:00", 3, "at 2026-12-24T18:00"),
    ("2026-02-30 10:00", 0, "at 2026-12-24T18:00"),
    ("2026-12-24", 10, "at 2026-12-24T09:00"),
    ("today 10:00", 6, "tomorrow 10:00"),
    ("in a while", 3, "in 30m"),
    ("", 0, "every 5m"),
    ("   ", 0, "every 5m"),
    ("*/0 * * * *", 0, "*/5 * * * *"),
    ("0 */x * * *", 2, "0 */5 * * *"),
    ("60 * * * *", 0, "59 * * * *"),
    ("0~30 3 * * *", 0, "0 3 * * *"),
    ("0 9,25 * * *", 4, "0 9,23 * * *"),
    ("0 9 * 13 *", 6, "0 9 * 12 *"),
    ("0 9 * * 8", 8, "0 9 * * 7"),
    ("0 9 * * MOO", 8, "0 9 * * mon"),
    ("0 9 * * 1#6", 8, "0 9 * * "),
    ("0 9 0 * *", 4, "0 9 31 * *"),
    ("0 22-2 * * *", 2, "0 22-23,0-2 * * *"),
    ("0 0 * * FRI-MON", 8, "0 0 * * 5-7,1"),
    ("0 9 1,, * *", 6, "0 9 1"),
    ("? * * * *", 0, "* * * * *"),
    ("0 0 31 2 *", 4, "0 0 L 2 *"),
    ("0 0 30 2 *", 4, "0 0 L 2 *"),
    ("0 0 31 4,6,9,11 *", 4, "0 0 L 4,6,9,11 *"),
    ("* * * *", 7, "* * * * *"),
    ("1 2 3 4 5 6 7", 12, "1 2 3 4 5 6"),
    ("cron 61 * * * *", 5, "59 * * * *"),
    ("cron", 4, "cron 30 9 * * 1-5"),
    ("@reboot", 0, "@daily"),
    ("@dayly", 0, "@daily"),
    ("@daily 5", 7, "@daily"),
    ("daily 09:00 in Europe/Berln", 15, "Europe/Berlin"),
    ("daily 09:00 jitter soon", 19, "jitter 30s"),
    ("daily 09:00 jitter 5m forever", 22, "jitter 10m stable"),
    ("or daily 09:00", 0, "daily 09:00"),
    ("daily 09:00 or", 14, "daily 09:00"),
    ("daily 09:00 except", 18, "daily 09:00"),
    ("daily 09:00 or dayly 10:00", 15, "daily 09:00 or daily 10:00"),
    ("(daily 09:00", 12, "(daily 09:00)"),
    ("daily 09:00)", 11, "daily 09:00"),
    ("(daily 09:00 or daily 10:00) foo", 29, "except 2026-12-25"),
    ("daily 09:00 except 2026-12-25,2026-02-30", 30, "except 2026-12-25"),
    ("daily 09:00 except 2026-12-25 2026-12-26", 30, "2026-12-25,2026-12-26"),
    ("weekly mon 09:00 except weekly mon 00:00", 17, "except"),
    ("daily 09:00 except * * * * *", 12, "except"),
    ("every 1h after finish or daily 09:00", 22, "every 1h"),
    ("daily 09:00 except every 1h after finish", 12, "every 1h"),
]


@pytest.mark.parametrize(("text", "position", "hint"), WRONG)
def test_a_wrong_text_points_at_the_place_and_shows_a_right_one(text: str, position: int, hint: str) -> None:
    with pytest.raises(TimingError) as caught:
        parse_timing(text, BERLIN, now=NOW)
    assert (caught.value.position, caught.value.text) == (position, text)
    assert hint in caught.value.hint
    assert str(caught.value).endswith(f"try: {caught.value.hint}")


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
