"""Removing a schedule: what runs of it is told to stop and waited for, so that nothing of it goes on under its name.

Meanwhile nothing of it starts: it is paused, and what is queued is cancelled. schedules.py above finds the schedule and
is asked by every door; the store removes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from ostinato.announcer import Announcer
from ostinato.clock import SECOND, Clock, Micros, from_micros, to_micros
from ostinato.errors import Conflict
from ostinato.models.given_up import GivenUp
from ostinato.models.ids import RunId
from ostinato.models.pause import resumes_at
from ostinato.models.run import Ending, RunFilter
from ostinato.models.schedule import Pause, Schedule
from ostinato.models.states import Cause, RunState
from ostinato.service.schedules.drafts import Code
from ostinato.stores.base import Store

__all__ = ["Removal"]

_LOOK_SECONDS = 0.05
_PAUSE_TRIES = 5
_ENDING = Ending(Cause.REMOVED, "its schedule is to be removed")
_PAUSED = "it is being removed: nothing starts while its active runs end"


class Removal:
    """Removes schedules."""

    def __init__(self, store: Store, clock: Clock, code: Code, stop_seconds: float, announcer: Announcer) -> None:
        self._store = store
        self._clock = clock
        self._code = code
        self._stop_seconds = stop_seconds
        """How long what runs is waited for."""
        self._announcer = announcer

    async def remove(self, schedule: Schedule, *, is_expected: bool, force: bool) -> Sequence[RunId] | None:
        """Delete it with its runs, attempts and output; `is_expected`: only if it still is what was read.

        What runs is told to stop and waited for. What has not ended then makes it a Conflict, unless forced. Answers
        the runs whose work goes on, None if it is not what was read.
        """
        wanted = schedule.version if is_expected else None
        ends_at = asyncio.get_running_loop().time() + self._stop_seconds
        until = self._clock.now() + round(self._stop_seconds * SECOND)
        asked: set[RunId] = set()
        while True:
            running, spared = await self._running(schedule)
            # In this order: what ran a moment ago and was given up since is found.
            given_up = await self._given_up(schedule)
            is_late = asyncio.get_running_loop().time() >= ends_at
            if not (running or given_up) or (force and (is_late or not running)):
                now, spares = self._clock.now(), None if force else spared
                removed = await self._store.schedules.remove_schedule(schedule.id, now, wanted, spares)
                if removed is not None:
                    self._announcer.removed(removed, now)
                    return sorted({*running, *(one.run for one in given_up)})
                current = await self._store.schedules.get_schedule(schedule.name)
                if is_expected and (current is None or current.revision != schedule.revision):
                    return None
                if current is None or current.id != schedule.id:
                    return ()
                continue  # something has started just now
            new = [id for id in running if id not in asked]
            if is_late and not new:
                raise _still_running(schedule.name, running, given_up, self._stop_seconds)
            asked.update(new)
            if asked:
                await self._pause(schedule, until)
                await self._cancel(schedule, new)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _running(self, schedule: Schedule) -> tuple[Sequence[RunId], Sequence[RunId]]:
        """Its runs under way, and those that need not be waited for: of lost nodes, and the one that asks."""
        runs = await self._store.runs.list_runs(_of(schedule, RunState.RUNNING))
        if not runs:
            return [], []
        # Not only engines: `ostinato exec` has a lease, too.
        living = {id for id, _ in await self._store.nodes.signs_of_life()}
        living -= {node.id for node in await self._store.nodes.list_nodes(self._clock.now()) if node.state == "lost"}
        own = self._code.own_run()
        spared = [run.id for run in runs if run.id == own or run.node not in living]
        return [run.id for run in runs if run.id not in spared], spared

    async def _given_up(self, schedule: Schedule) -> Sequence[GivenUp]:
        """Code of its name that goes on although its run has ended; not the one that asks."""
        own = self._code.own_run()
        found = await self._store.runs.list_given_up()
        return [one for one in found if one.schedule == schedule.name and one.run != own]

    async def _pause(self, schedule: Schedule, until: Micros) -> None:
        """Its due times while it is waited for start nothing. If it stays, they get their skipped row.

        Asked at every look, for somebody may end the pause; and again if an engine moves the schedule on between the
        read and the write.
        """
        schedules = self._store.schedules
        for _ in range(_PAUSE_TRIES):
            current = await schedules.get_schedule(schedule.name)
            if current is None or current.id != schedule.id:
                return
            pause = _pause_until(current, until)
            if pause is None or await schedules.pause_schedule(current.id, current.version, pause, self._clock.now()):
                return

    async def _cancel(self, schedule: Schedule, running: Sequence[RunId]) -> None:
        """Tell these to stop, and cancel all that is queued, page by page."""
        if running:
            await self._store.runs.cancel_runs(running, _ENDING, self._clock.now())
        wanted = _of(schedule, RunState.QUEUED)
        while queued := [run.id for run in await self._store.runs.list_runs(wanted)]:
            await self._store.runs.cancel_runs(queued, _ENDING, self._clock.now())
            wanted = replace(wanted, before_id=queued[-1])


def _of(schedule: Schedule, state: RunState) -> RunFilter:
    return RunFilter(schedule_id=schedule.id, states=(state,), limit=1_000, brief=True)


def _pause_until(schedule: Schedule, until: Micros) -> Pause | None:
    """Up to the first due time from this instant on; None if nothing is due before, or nothing more after it."""
    resumes = resumes_at(schedule, from_micros(until))
    if resumes is None or schedule.next_run_at is None:
        return None
    return Pause(to_micros(schedule.next_run_at), to_micros(resumes), Cause.REMOVED, _PAUSED)


def _still_running(name: str, running: Sequence[RunId], given_up: Sequence[GivenUp], seconds: float) -> Conflict:
    parts = []
    if running:
        listed = ", ".join(map(str, running[:10])) + (", …" if len(running) > 10 else "")
        runs = f"run {listed} of it was" if len(running) == 1 else f"runs {listed} of it were"
        parts.append(f"{runs} told to stop and did not end within {seconds:g} s")
    parts += [one.sentence for one in given_up[:10]]
    end = "restart that node to end it" if given_up else "try again"
    return Conflict(
        f"schedule {name!r} is not removed: {'; '.join(parts)}; {end}, or force it: then its work goes on without a "
        "row, and a new schedule of this name starts nothing before that has ended"
    )
