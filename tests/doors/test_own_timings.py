"""A Timing of somebody's own is stored as its text. One that its text does not say is refused; nothing is stored."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from ostinato import At, Cron, DailyAt, Every, Except, Monthly, Or, Ostinato, ScheduleSpec, Timing, TimingError, Weekly
from ostinato.timing import Dates
from ostinato.timing.base import NO_JITTER, store


class Tides(Timing):
    """Due when no text says: every 12 hours and 25 minutes since a high tide."""

    words = "high tide"

    def __init__(self) -> None:
        store(self, jitter=NO_JITTER, stable=False)

    def _next(self, t: datetime) -> datetime | None:
        return t + timedelta(hours=12, minutes=25)

    def _previous(self, t: datetime) -> datetime | None:
        return t

    def _count(self, after: datetime, until: datetime) -> int:
        return (until - after) // timedelta(hours=12, minutes=25)

    @property
    def zone(self) -> str | None:
        return None

    def _words(self) -> str:
        return self.words

    def phrase(self) -> str:
        return "at high tide"


class Lying(Tides):
    """Its text is one that is read, as something else."""

    words = "every 12h"


class Wordless(Tides):
    """Its text cannot be asked for."""

    def _words(self) -> str:
        raise RuntimeError("no words")


class Unhashable(Tides):
    """Compares in its own way and so has no hash."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = None  # type: ignore[assignment]


class Workdays(Cron):
    """A cron that skips what its text does not say."""

    def _next(self, t: datetime) -> datetime | None:
        return super()._next(t + timedelta(days=1))


OWN: list[Callable[[], Timing]] = [
    Tides,
    Lying,
    Wordless,
    Unhashable,
    lambda: Workdays("30 9 * * 1-5"),
    lambda: Or(Every(hours=1), Lying()),
    lambda: Except(Lying(), Dates(["2026-12-25"])),
]
IDS = ["no text", "another's text", "no words", "no hash", "another's subclass", "within or", "within except"]


@pytest.mark.parametrize("make", OWN, ids=IDS)
def test_a_timing_that_its_text_does_not_say_is_refused(app: Ostinato, make: Callable[[], Timing]) -> None:
    adds: list[Callable[[], object]] = [
        lambda: app.schedules.add("job", make(), "job"),
        lambda: app.schedules.add_many([ScheduleSpec("job", make(), "job")]),
        lambda: app.schedules.edit("other", timing=make()),
    ]
    app.schedules.add("other", "every 1h", "job")
    for add in adds:
        with pytest.raises(TimingError, match=r"cannot be stored: .*text"):
            add()
    assert [(schedule.name, schedule.timing) for schedule in app.schedules.list()] == [("other", "every 1h")]


@pytest.mark.parametrize(
    "timing",
    [
        At(datetime(2030, 1, 1, tzinfo=UTC)),
        Every(minutes=5),
        Every(hours=1, anchor="finish"),
        Cron("30 9 * * 1-5", tz="Europe/Berlin"),
        DailyAt(3, 0, jitter="5m", stable=True),
        Weekly("mon,thu", 9, 0),
        Monthly("last", 18, 0),
        DailyAt(3, 0) | Weekly("mon", 9, 0, tz="Asia/Tokyo"),
        Every(hours=1).except_dates(["12-25"]) | Cron("0 0 * * *"),
    ],
    ids=lambda timing: timing.text,
)
def test_every_timing_of_ours_is_taken(app: Ostinato, timing: Timing) -> None:
    stored = app.schedules.add("job", timing, "job")
    assert stored.timing == timing.in_zone("UTC").text_within(stored.zone)
