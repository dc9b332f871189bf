"""A calendar: a named set of dates, on which schedules that say `except calendar(NAME)` are not due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

__all__ = ["Calendar"]


@dataclass(frozen=True, slots=True)
class Calendar:
    """A named set of dates. Schedules that say `except calendar(NAME)` are not due on them."""

    name: str
    dates: Sequence[str]
    """In order: `2026-12-24`, or `12-24` for every year, which come first."""
    note: str | None
    schedules: Sequence[str]
    """The names of those that use it."""
    made_by: str | None
    updated_by: str | None
    version: int
    created_at: datetime
    updated_at: datetime
    past: bool = False
    """Whether it has dates, and all of them have passed."""
    replanned: Sequence[str] = ()
    """The schedules that were planned anew by the change that this answers."""
