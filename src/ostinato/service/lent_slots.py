"""A run that waits for another one of its own lane: while that lane is full, it lends its slot to what it waits for.

Else a lane full of such runs would wait until their timeouts. `runs.py` waits with it.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from ostinato.logs import get_logger
from ostinato.models.ids import RunId
from ostinato.models.run import OuterRun, Run
from ostinato.stores.base import RunStore

__all__ = ["LentSlot"]

log = get_logger("ostinato")

_LEND_AGAIN = 1.0
"""Seconds between two tries: the lane may fill up meanwhile, or the slot come back."""


class LentSlot:
    """The slot of one waiting run, for the time of one wait."""

    def __init__(self, runs: RunStore, outer: OuterRun, told: set[tuple[str | None, str]]) -> None:
        self._runs = runs
        self._outer = outer
        self._told = told
        """Of which tasks and lanes the log has said it."""
        self._wanted: RunId | None = None
        """Which run waits for it."""
        self._run: Run | None = None
        self._lend_at = 0.0

    async def __aenter__(self) -> Self:
        return self

    async def lend(self, run: Run) -> None:
        """Let this run start by the slot, if there is no other; the one before it has ended."""
        if run.id != self._wanted:
            self._wanted, self._run, self._lend_at = run.id, None, 0.0
        if self._run is not None or time.monotonic() < self._lend_at:
            return
        self._lend_at = time.monotonic() + _LEND_AGAIN
        lane = await self._runs.lend_slot(self._outer, run.id)
        if lane is None:
            return
        self._run = run
        if (run.task, lane) not in self._told:
            self._told.add((run.task, lane))
            outer = await self._runs.get_run(self._outer.id)
            log.warning(
                "run %s of %s waits for run %s of %s in its own lane %r, which is full: it lends it its slot; "
                "give one of the two a lane of its own",
                self._outer.id, _name(outer), run.id, _name(run), lane,
            )  # fmt: skip

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._run is not None:  # what has ended has given it back
            await self._runs.take_back_slot(self._outer, self._run.id)


def _name(run: Run | None) -> str:
    return "a run that is gone" if run is None else repr(run.task or run.schedule or run.work.kind)
