"""What `ostinato up` tells of its runs, read from the ledger: each run once when it starts and once when it ends.

A look costs one small query while nothing happens. When more happens than a person can read, the rest is counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ostinato.errors import NotFound, StoreError
from ostinato.logs import get_logger
from ostinato.plurals import counted

if TYPE_CHECKING:
    from ostinato.models.ids import RunId
    from ostinato.models.run import Run
    from ostinato.service.services import Services

__all__ = ["Event", "Feed"]

log = get_logger("ostinato")

LOOK_SECONDS, LONG_PAUSE = 0.25, 5.0
LAST_SECONDS = 2.0
"""How long the last look may take: the engine has stopped, and the process shall end."""
WINDOW = 100
"""How many runs one look reads, and how many it keeps an eye on."""


@dataclass(frozen=True, slots=True)
class Event:
    """A run that moved: `started`, its end, `retrying`, `broken` with its schedule's reason, or `more` of them."""

    kind: str
    run: Run | None = None
    text: str = ""


class Feed:
    """Follows the ledger from the moment of `begin`."""

    def __init__(self, services: Services, tell: Callable[[Event], None], is_lost: Callable[[], bool]) -> None:
        self._services = services
        self._is_lost = is_lost
        """Whether the database is lost for good, which somebody else says."""
        self._tell = tell
        self._last = 0
        self._active: dict[RunId, Run] = {}
        self._broken: dict[str, int] = {}
        """Schedules that were told to be broken, with their version then."""

    async def begin(self) -> None:
        """Everything up to now is past."""
        newest = await self._services.runs.list(limit=1)
        self._last = newest[0].id if newest else 0
        for run in await self._services.runs.list(state=("queued", "running"), limit=WINDOW):
            self._active[run.id] = run

    async def follow(self) -> None:
        """Look, and again, for as long as there is a database."""
        while True:
            try:
                await self.look()
            except StoreError as error:
                if self._is_lost():
                    return
                # The engine waits for the database too, and goes on when it is back.
                log.warning("the ledger cannot be read right now: %s", error)
                await asyncio.sleep(LONG_PAUSE)
            await asyncio.sleep(LOOK_SECONDS)

    async def end(self) -> None:
        """Tell how the last runs ended, if the database is there."""
        if self._is_lost():
            return
        try:
            async with asyncio.timeout(LAST_SECONDS):
                await self.look()
        except (StoreError, TimeoutError) as error:
            reason = str(error) or f"no answer within {LAST_SECONDS:g} s"
            log.warning("the ledger cannot be read, so the last runs are not shown here: %s", reason)

    async def look(self) -> None:
        """Tell what has happened since the last look."""
        newest = await self._services.runs.list(limit=1)
        if not self._active and (not newest or newest[0].id <= self._last):
            return
        seen = {run.id: run for run in await self._services.runs.list(limit=WINDOW)}
        fresh = sorted(id for id in seen if id > self._last)
        if len(fresh) == WINDOW and fresh[0] > self._last + 1:
            missed = fresh[0] - self._last - 1
            self._tell(Event("more", text=f"{counted(missed, 'more run')}; see 'ostinato run ls'"))
        for id in sorted({*self._active, *fresh}):
            before = self._active.pop(id, None)
            run = seen.get(id) or await self._read(id)
            if run is not None:
                await self._tell_move(before, run)
        self._last = max([self._last, *fresh])

    async def _read(self, id: RunId) -> Run | None:
        with suppress(NotFound):  # pruned, or removed with its schedule
            return await self._services.runs.get(id)
        return None

    async def _tell_move(self, before: Run | None, run: Run) -> None:
        if not run.ended and len(self._active) < WINDOW:
            self._active[run.id] = run
        if run.ended:
            self._tell(Event(str(run.state), run))
            # What counts towards the breaker: also a gate that fails, and errors.
            if run.schedule is not None and (run.state in ("failed", "skipped") or run.cause == "errors"):
                await self._tell_broken(run, run.schedule)
        elif run.state == "running" and (before is None or (before.state, before.attempt) != (run.state, run.attempt)):
            self._tell(Event("started", run))
        elif run.state == "queued" and len(run.attempts) > _tries_told(before):
            self._tell(Event("retrying", run))

    async def _tell_broken(self, run: Run, name: str) -> None:
        with suppress(NotFound):
            schedule = await self._services.schedules.get(name)
            if schedule.broken is not None and self._broken.get(name) != schedule.version:
                self._broken[name] = schedule.version  # what else of it ends, breaks nothing anew
                self._tell(Event("broken", run, schedule.broken))


def _tries_told(before: Run | None) -> int:
    """How many attempts had ended when the run was looked at last; the one under way is in the list, too."""
    return 0 if before is None else len(before.attempts) - (before.state == "running")
