"""Why due times passed unseen, as far as the ticker knows: nobody was there, or somebody was and could not look.

The ticker tells of each look and asks for the words of a missed row; plan.py writes them down.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from ostinato.clock import SECOND, Micros, uptime
from ostinato.durations import duration_text
from ostinato.engine.plan import NOBODY

__all__ = ["Attendance", "Instant"]

T = TypeVar("T")
Instant = tuple[Micros, Micros]
"""When a look was: by the wall clock, and by the steady one."""

JUMP: Micros = SECOND
"""How far the wall clock and the steady one may drift apart between two looks."""
SLOW: Micros = SECOND
"""A question to the database that takes longer held up the ticker."""


class Attendance:
    """Remembers the last look for what is due, and what came between."""

    def __init__(self, turning: Callable[[], float]) -> None:
        self._turning = turning
        """For how many seconds the event loop has turned so far: while it stands, nobody waits for a database."""
        self._looked: Instant | None = None
        """The last look whose finds are all recorded; None if nobody looked before."""
        self._held_up_by: str | None = None
        self._will_have_held_up: str | None = None
        """What came after the instant of the look that follows: only the one after that may have missed something."""

    def forget(self) -> None:
        """From now until the next look no engine runs."""
        self._looked = self._held_up_by = self._will_have_held_up = None

    async def ask(self, answer: Awaitable[T]) -> T:
        """Wait for an answer of the database, and note if it held up the ticker."""
        asked_at, turned = uptime(), self._turning()
        try:
            found = await answer
        except Exception:
            self._held_up_by = "the database could not be reached"
            raise
        took = uptime() - asked_at
        if took > SLOW and (self._turning() - turned) * SECOND > took // 2:
            self._will_have_held_up = "the database did not answer"
        return found

    def why(self, look: Instant, since: Instant | None = None) -> str:
        """Why this look did not see in time what was due since the last one whose finds are all recorded; or since
        one before it, of the same tick."""
        before, held_up_by = (self._looked, self._held_up_by) if since is None else (since, self._will_have_held_up)
        if before is None:
            return NOBODY
        passed = look[1] - before[1]
        jumped = look[0] - before[0] - passed
        if jumped > JUMP:
            return f"the clock was set forward by {_text(jumped)}"
        return f"{held_up_by or 'the engine was held up (stopped, blocked or suspended)'} for about {_text(passed)}"

    def recorded(self, look: Instant) -> None:
        """All that was due at this look is recorded."""
        self._looked = look
        self._held_up_by, self._will_have_held_up = self._will_have_held_up, None


def _text(length: Micros) -> str:
    return duration_text(timedelta(seconds=max(1, round(length / SECOND))))
