"""Finds tasks that queued runs need and that no node knows: a framework may know where their code is.

The registry's `find_task` imports and registers such a task, if a framework has set it (Django names a task by its
module path); then this node claims its runs. Neighbours: `rescuer.py` says so on runs that have waited long for a task
that nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ostinato.clock import SECOND, Clock, Micros, Signal
from ostinato.engine.quarantine import Quarantine
from ostinato.execution.threads import on_own_thread
from ostinato.stores.base import RunStore

__all__ = ["TaskFinder"]

LOOK_AGAIN: Micros = 2 * SECOND
FORGET_AFTER: Micros = 300 * SECOND
"""How long a task is not looked for again: its code may have been added meanwhile, and names are kept no longer."""
_SHARE = 50
"""A look reads everything that is queued: it takes at most one part in so many of the time."""


class TaskFinder:
    """Asks, from time to time, which tasks nobody knows, and looks for each of them, now and then."""

    def __init__(
        self, runs: RunStore, clock: Clock, quarantine: Quarantine, find: Callable[[str], bool] | None
    ) -> None:
        self._runs = runs
        self._clock = clock
        self._quarantine = quarantine
        self._find = find
        self._not_found: dict[str, Micros] = {}
        """When a task was looked for in vain."""
        self.signal = Signal()

    async def run(self) -> None:
        """Look, sleep, and again."""
        while True:
            began = self._clock.steady()
            await self.look()
            pause = max(LOOK_AGAIN, _SHARE * (self._clock.steady() - began))
            await self._clock.wait(self.signal, self._clock.now() + pause)

    async def look(self) -> int:
        """Find the tasks of runs that are ready; answers how many were found."""
        ready_before = self._clock.now() + 1
        waiting = await self._quarantine.attempt(lambda: self._runs.unclaimable_runs(ready_before))
        count, now = 0, self._clock.steady()
        self._not_found = {task: at for task, at in self._not_found.items() if now - at < FORGET_AFTER}
        for task in {str(run.task) for run in waiting} - self._not_found.keys():
            # On a thread: to import a module may take its time.
            if await on_own_thread(partial(self._is_found, task), "ostinato-find-task"):
                count += 1
            else:
                self._not_found[task] = now
        return count

    def _is_found(self, task: str) -> bool:
        return self._find is not None and self._find(task)
