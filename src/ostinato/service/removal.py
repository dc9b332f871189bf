"""Removing a schedule: what runs of it is told to stop and waited for, so that nothing of it goes on under its name.

schedules.py above finds the schedule and is asked by every door; the store removes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ostinato.clock import Clock
from ostinato.errors import Conflict
from ostinato.models.ids import RunId
from ostinato.models.run import RunFilter
from ostinato.models.schedule import Schedule
from ostinato.models.states import RunState
from ostinato.service.drafts import Code
from ostinato.stores.base import Store

__all__ = ["Removal"]

STOP_SECONDS = 15.0
"""How long a removal waits for what runs: a command has 10 s between SIGTERM and SIGKILL, and its node hears of it."""
_LOOK_SECONDS = 0.05


class Removal:
    """Removes schedules."""

    def __init__(self, store: Store, clock: Clock, code: Code) -> None:
        self._store = store
        self._clock = clock
        self._code = code

    async def remove(self, schedule: Schedule, *, is_expected: bool, force: bool) -> Sequence[RunId] | None:
        """Delete it with its runs, attempts and output; `is_expected`: only if it still is what was read.

        Answers the runs whose work goes on, None if it is not what was read.
        """
        name = schedule.name
        wanted = schedule.version if is_expected else None
        ends_at = asyncio.get_running_loop().time() + STOP_SECONDS
        asked: set[RunId] = set()
        while True:
            running, spared = await self._running(schedule)
            if force or not running:
                is_removed = await self._store.schedules.remove_schedule(schedule.id, wanted, None if force else spared)
                if is_removed:
                    return running
                current = await self._store.schedules.get_schedule(name)
                if is_expected and (current is None or current.revision != schedule.revision):
                    return None
                if current is None or current.id != schedule.id:
                    return ()
                continue  # something has started just now
            new = [id for id in running if id not in asked]
            if new:
                asked.update(new)
                await self._store.runs.cancel_runs(new, "its schedule is to be removed", self._clock.now())
            elif asyncio.get_running_loop().time() >= ends_at:
                raise _still_running(name, running)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _running(self, schedule: Schedule) -> tuple[Sequence[RunId], Sequence[RunId]]:
        """Its runs under way, and those that need not be waited for: of lost nodes, and the one that asks."""
        wanted = RunFilter(schedule_id=schedule.id, states=(RunState.RUNNING,), limit=1_000)
        runs = await self._store.runs.list_runs(wanted)
        if not runs:
            return [], []
        # Not only engines: `ostinato exec` has a lease, too.
        living = {id for id, _ in await self._store.nodes.signs_of_life()}
        living -= {node.id for node in await self._store.nodes.list_nodes(self._clock.now()) if node.state == "lost"}
        own = self._code.own_run()
        spared = [run.id for run in runs if run.id == own or run.node not in living]
        return [run.id for run in runs if run.id not in spared], spared


def _still_running(name: str, ids: Sequence[RunId]) -> Conflict:
    listed = ", ".join(map(str, ids[:10])) + (", …" if len(ids) > 10 else "")
    runs = f"run {listed} of it was" if len(ids) == 1 else f"runs {listed} of it were"
    return Conflict(
        f"schedule {name!r} is not removed: {runs} told to stop and did not end within {STOP_SECONDS:g} s; "
        "try again, or force it: then its work goes on without a row"
    )
