"""Until when a channel is held back: quiet hours in its zone, over midnight and clock changes, and its digest."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from ostinato.errors import InvalidInput
from ostinato.models.notification import Channel, NoticeKind
from ostinato.models.quiet import held_until, parse_quiet

BERLIN = ZoneInfo("Europe/Berlin")


def wall(text: str, fold: int = 0) -> datetime:
    """A time in Berlin, in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold).astimezone(UTC)


def until(hours: str, now: datetime) -> datetime | None:
    return parse_quiet(hours).until("Europe/Berlin", now)


@pytest.mark.parametrize(
    ("now", "free"),
    [
        ("2026-11-17T21:59:59", None),
        ("2026-11-17T22:00:00", "2026-11-18T07:00:00"),
        ("2026-11-17T23:30:00", "2026-11-18T07:00:00"),
        ("2026-11-18T06:59:59", "2026-11-18T07:00:00"),
        ("2026-11-18T07:00:00", None),
        ("2026-11-18T12:00:00", None),
    ],
)
def test_quiet_hours_go_over_midnight(now: str, free: str | None) -> None:
    assert until("22:00-07:00", wall(now)) == (None if free is None else wall(free))


def test_quiet_hours_within_a_day() -> None:
    assert until("12:00-13:30", wall("2026-11-18T12:59")) == wall("2026-11-18T13:30")
    assert until("12:00-13:30", wall("2026-11-18T13:30")) is None


def test_the_night_of_a_clock_change_ends_at_the_same_time_on_the_wall() -> None:
    assert until("22:00-07:00", wall("2026-03-29T01:00")) == wall("2026-03-29T07:00")
    assert until("22:00-07:00", wall("2026-10-25T02:30", fold=1)) == wall("2026-10-25T07:00")


def test_an_end_that_the_day_does_not_have_is_the_first_minute_after_it() -> None:
    assert until("22:00-02:30", wall("2026-03-29T01:00")) == wall("2026-03-29T03:00")


@pytest.mark.parametrize("text", ["22-7", "22:00", "24:00-07:00", "22:60-07:00", "07:00-07:00", "night", ""])
def test_what_are_no_quiet_hours_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="quiet hours cannot be"):
        parse_quiet(text)


def test_quiet_hours_are_written_as_they_are_read() -> None:
    assert parse_quiet(" 7:05 - 22:00 ").text == "07:05-22:00"


def channel(**fields: str) -> Channel:
    return Channel("phone", "json://x", zone="Europe/Berlin", **fields)  # type: ignore[arg-type]


def test_what_somebody_waits_for_is_never_held_back() -> None:
    now = wall("2026-11-17T23:00")
    held = channel(quiet="22:00-07:00", digest="daily 08:00")
    assert held_until(held, NoticeKind.TEST, now, now) is None
    assert held_until(held, NoticeKind.ANSWER, now, now) is None
    assert held_until(held, NoticeKind.FAILED, now, now) is not None


def test_a_digest_keeps_what_there_is_until_its_time() -> None:
    held, made = channel(digest="daily 08:00"), wall("2026-11-17T09:00")
    assert held_until(held, NoticeKind.FAILED, made, wall("2026-11-17T20:00")) == wall("2026-11-18T08:00")
    assert held_until(held, NoticeKind.FAILED, made, wall("2026-11-18T08:00")) is None
    assert held_until(held, NoticeKind.FAILED, made, wall("2026-11-18T09:00")) is None
    assert held_until(held, NoticeKind.DIGEST, made, wall("2026-11-17T20:00")) is None


def test_a_digest_that_falls_into_quiet_hours_waits_for_their_end() -> None:
    held, made = channel(digest="daily 23:00", quiet="22:00-07:00"), wall("2026-11-17T09:00")
    assert held_until(held, NoticeKind.FAILED, made, wall("2026-11-17T20:00")) == wall("2026-11-18T07:00")
    assert held_until(held, NoticeKind.FAILED, made, wall("2026-11-17T23:00")) == wall("2026-11-18T07:00")


def test_a_digest_every_so_often_comes_on_the_grid_of_its_channel() -> None:
    held = channel(digest="every 30s")
    first, second = (datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC) for second in (7, 29))
    due = datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC)
    assert held_until(held, NoticeKind.FAILED, first, first) == due
    assert held_until(held, NoticeKind.FAILED, second, second) == due
    assert held_until(held, NoticeKind.FAILED, first, due) is None
