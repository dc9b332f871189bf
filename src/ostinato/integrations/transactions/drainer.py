"""Takes what is in an outbox into the ledger: the ledger commits first, then the row is deleted.

Whatever happens in between, the row is still there and comes again, and the ledger knows it by its id. So several nodes
may drain one outbox. A service of the node under its watchdog, one for each outbox.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from ostinato import failpoints
from ostinato.clock import SECOND, Clock, Micros, Signal
from ostinato.integrations.transactions.outbox import Outbox
from ostinato.logs import get_logger
from ostinato.models.outbox import OutboxRow, Refusal, Taken

__all__ = ["Drainer"]

log = get_logger("ostinato.outbox")

_BATCH = 200
_IDLE: Micros = SECOND
_QUICK: tuple[Micros, ...] = (5_000, 20_000, 80_000, 320_000)
"""Between the looks after a commit of this process: SQLAlchemy tells of one a moment before it is done."""
_LONGEST_PAUSE = 30.0
_TRIES = 6
"""How often a row is tried that the ledger refuses: in the first minutes of a deployment a newer node may take it."""
_FIRST_RETRY: Micros = 10 * SECOND


class _TellStatus(Protocol):
    def __call__(self, status: str, well: bool, /) -> None: ...


class Drainer:
    """Looks into one outbox, again and again."""

    def __init__(
        self,
        outbox: Outbox,
        take: Callable[[Sequence[OutboxRow]], Awaitable[Taken]],
        clock: Clock,
        tell: _TellStatus,
    ) -> None:
        self.signal = Signal()
        """Something was committed here that may be in it."""
        self._outbox = outbox
        self._take = take
        self._clock = clock
        self._tell = tell
        self._failures = 0
        self._said: str | None = None

    async def run(self) -> None:
        """Until it is cancelled."""
        looks = iter(_QUICK)
        try:
            while True:
                try:
                    while await self.drain():
                        pass
                    self._say("is drained", well=True)
                    self._failures = 0
                except Exception as error:  # of whatever library it is: the database is away, or the ledger
                    await self._pause(error)
                    continue
                if await self._clock.wait(self.signal, self._clock.now() + next(looks, _IDLE)):
                    looks = iter(_QUICK)
        finally:
            await self._outbox.close()

    async def drain(self) -> int:
        """One batch, if there is something; answers how many rows it was."""
        rows = await self._outbox.due(self._clock.now(), _BATCH)
        if not rows:
            return 0
        taken = await self._take(rows)
        failpoints.reach("outbox.taken")
        await self._outbox.settle(taken.done, [self._refused(refusal) for refusal in taken.refused])
        return len(rows)

    def _refused(self, refusal: Refusal) -> tuple[OutboxRow, str, Micros | None]:
        row, tries = refusal.row, refusal.row.tries + 1
        if tries >= _TRIES:
            log.error("outbox %s: row %s is given up: %s", self._outbox.name, row.id, refusal.error)
            return row, refusal.error, None
        log.warning("outbox %s: row %s is refused, and tried again: %s", self._outbox.name, row.id, refusal.error)
        return row, refusal.error, self._clock.now() + _FIRST_RETRY * 2**row.tries

    async def _pause(self, error: Exception) -> None:
        seconds = min(2.0 ** min(self._failures, 10), _LONGEST_PAUSE) * random.uniform(0.75, 1.25)
        self._failures += 1
        lines = str(error).strip().splitlines() or [type(error).__name__]
        if self._say(lines[0], well=False):
            log.warning("outbox %s cannot be drained: %s; it is tried again", self._outbox.name, lines[0])
        await asyncio.sleep(seconds)

    def _say(self, status: str, *, well: bool) -> bool:
        """Tell how it is; whether that is new."""
        is_new, self._said = status != self._said, status
        self._tell(status, well)
        return is_new
