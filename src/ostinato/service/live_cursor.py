"""Where somebody is in the live stream: a text that the same hub answers exactly, and any other from the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from ostinato.clock import Micros
from ostinato.errors import InvalidInput
from ostinato.service.live_events import MARGIN, SETTLED, Known, Row

__all__ = ["Cursor"]

_DIGITS = 18
"""Of the largest number that a database takes, and that is short enough to be read."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The number of the last event at its hub, and how far the ledger had been looked at before it."""

    hub: str
    number: int
    run: int
    event: int
    audit: int
    instant: Micros

    @classmethod
    def of(cls, hub: str, number: int, known: Known) -> Cursor:
        """Behind everything that is known; what may still be committed with a lower id is left before it."""
        late = [id for id, since in known.missing.items() if since + SETTLED > known.looked_at]
        run = min(late) - 1 if late else known.run
        return cls(hub, number, run, known.events.mark, known.audit.mark, known.settled_at)

    @classmethod
    def read(cls, text: str) -> Cursor:
        """The cursor of a text that `str` made."""
        hub, *numbers = text.split(".")
        if len(numbers) != 5 or not all(number.isdecimal() and len(number) <= _DIGITS for number in numbers):
            raise InvalidInput(f"{text[:80]!r} is not a cursor", field="cursor", hint="take it from a message")
        return cls(hub, *map(int, numbers))

    def __str__(self) -> str:
        return self.behind(self.number)

    def behind(self, number: int) -> str:
        """The text of this place, behind the event of this number at its hub."""
        return f"{self.hub}.{number}.{self.run}.{self.event}.{self.audit}.{self.instant}"

    def known(self) -> Known:
        """What whoever has this cursor was told, as far as the ledger can say."""
        return Known(
            run=self.run,
            looked_at=self.instant,
            changed_at=self.instant - MARGIN,
            events=Row(self.event),
            audit=Row(self.audit),
            is_partial=True,
        )
