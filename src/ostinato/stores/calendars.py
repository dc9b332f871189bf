"""Calendars, as the other layers ask for them: a part of base.py, answered in sql/calendars.py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ostinato.clock import Micros
from ostinato.models.calendar import Calendar
from ostinato.timing import Dates

__all__ = ["CalendarStore"]


class CalendarStore(Protocol):
    """Named sets of dates, and which schedules use them."""

    async def list_calendars(self, name: str | None = None) -> list[Calendar]:
        """All of them by name, or the one of this name."""
        ...

    async def calendar_dates(self, names: Iterable[str]) -> dict[str, Dates]:
        """The dates of these calendars, without those that are not there."""
        ...

    async def put_calendar(
        self, name: str, dates: Dates, note: str | None, by: str, now: Micros, version: int | None = None
    ) -> Sequence[str] | None:
        """Add a calendar, or change the one of this name, in one transaction with every schedule that uses it: it gets
        the dates, and is planned anew from now. Answers the names of those.

        Without a note it keeps its own. With a `version`, None if it has another one; 0 is that of no calendar at all.
        """
        ...

    async def remove_calendar(self, name: str) -> Sequence[str] | None:
        """Delete a calendar that no schedule uses; answers the names of those that do. None if there is none."""
        ...
