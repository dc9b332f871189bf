"""Why due times passed unseen, as far as the ticker knows: nobody was there, or somebody was and could not look.

The ticker tells of each look and asks for the words of a missed row; plan.py writes them down.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, TypeVar

from ostinato.clock import SECOND, Micros
from ostinato.durations import duration_text
from ostinato.engine.plan import NOBODY

__all__ = ["Attendance", "Look"]

T = TypeVar("T")

JUMP: Micros = SECOND
"""How far the wall clock and the steady one may drift apart between two looks."""
SLOW: Micros = SECOND
"""A question to the database that takes longer held up the ticker."""


class Look(NamedTuple):
    """When the ticker looked for what is due: by the wall clock and by the steady one."""

    wall: Micros
    steady: Micros
    stood: Micros
    """For how long the event loop had stood by then."""


@dataclass(frozen=True, slots=True)
class _Outage:
    """The database held up the ticker."""

    what: str
    since: Micros
    over_at: Micros | None
    """None if nobody has seen its end. Both by the steady clock."""

    def explains(self, look: Look) -> bool:
        return self.over_at is None or look.steady <= self.over_at + SLOW


class Attendance:
    """Remembers the last look for what is due, and what came between."""

    def __init__(self, uptime: Callable[[], Micros], stood: Callable[[], float]) -> None:
        self._uptime = uptime
        self._stood = stood
        """For how many seconds the event loop has stood so far: while it stands, nobody waits for a database."""
        self._looked: Look | None = None
        """The last look whose finds are all recorded; None if nobody looked before."""
        self._held_up_by: _Outage | None = None
        self._will_have_held_up: _Outage | None = None
        """What came after the instant of the look that follows: only the one after that may have missed something."""

    def look(self, wall: Micros, steady: Micros) -> Look:
        """The ticker looks now."""
        return Look(wall, steady, round(self._stood() * SECOND))

    def forget(self) -> None:
        """From now until the next look no engine runs."""
        self._looked = self._held_up_by = self._will_have_held_up = None

    async def ask(self, answer: Awaitable[T], look: Look) -> T:
        """Wait for an answer of the database, and note if it held up the ticker."""
        asked_at, stood = self._uptime(), self._stood()
        try:
            found = await answer
        except Exception:
            self._held_up_by = _Outage("the database could not be reached", self._since(look), None)
            raise
        took = self._uptime() - asked_at
        if took > SLOW and (self._stood() - stood) * SECOND < took // 2:
            over_at = look.steady + took
            self._will_have_held_up = _Outage("the database did not answer", self._since(look), over_at)
        return found

    def _since(self, look: Look) -> Micros:
        """When the outage began: one that goes on is counted from its beginning, not from the last question."""
        before = self._will_have_held_up or self._held_up_by
        return before.since if before is not None and before.explains(look) else look.steady

    def why(self, look: Look, since: Look | None = None) -> str:
        """Why this look did not see in time what was due since the last one whose finds are all recorded; or since
        one before it, of the same tick."""
        before, outage = (self._looked, self._held_up_by) if since is None else (since, self._will_have_held_up)
        if before is None:
            return NOBODY
        passed = look.steady - before.steady
        jumped = look.wall - before.wall - passed
        if jumped > JUMP:
            return f"the clock was set forward by {_text(jumped)}"
        if outage is not None and outage.explains(look):
            longer = " or longer" if outage.over_at is None else ""
            return f"{outage.what} for about {_text(look.steady - outage.since)}{longer}"
        # The last look may be hours ago: what counts is for how long the loop stood since, if it did.
        stood = look.stood - before.stood
        return f"the engine was held up (stopped, blocked or suspended) for about {_text(stood or passed)}"

    def recorded(self, look: Look) -> None:
        """All that was due at this look is recorded."""
        self._looked = look
        self._held_up_by, self._will_have_held_up = self._will_have_held_up, None


def _text(length: Micros) -> str:
    return duration_text(timedelta(seconds=max(1, round(length / SECOND))))
