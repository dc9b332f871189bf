"""Between claim and start: what was claimed of a session whose window is full waits here until it may start.

The dispatcher asks the throttle through this before it starts what it has claimed, and counts what waits here as
claimed and not started. The store decides which may start, for all nodes, and takes the others back. While the database
is away, they wait. Where no throttle is set, this costs one test for each claim.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import NamedTuple

from ostinato.clock import Clock
from ostinato.execution.outcome import ended
from ostinato.execution.runner import ActiveRun, Runner
from ostinato.execution.throttle import Throttle
from ostinato.models.ids import RunId
from ostinato.models.run import ClaimedRun, Ending
from ostinato.stores.sessions import SessionStore

__all__ = ["Admission", "Settled"]


class Settled(NamedTuple):
    """What the store said: which runs may start, and how many others are no longer this node's."""

    allowed: Sequence[ActiveRun] = ()
    gone: int = 0


class Admission:
    """Asks how full sessions are, and keeps the runs of full ones."""

    def __init__(self, sessions: SessionStore, throttle: Throttle, runner: Runner, clock: Clock) -> None:
        self._sessions = sessions
        self._throttle = throttle
        self._runner = runner
        self._clock = clock
        self._held: dict[RunId, ActiveRun] = {}
        self._with_room: set[str] = set()
        """Sessions that are not full, of which the store may have heard otherwise."""
        self._turn = asyncio.Lock()
        """Held while the store is asked."""
        self._cancelled: dict[RunId, Ending] = {}
        """What was to be stopped while the store was asked about it."""

    def look_at_sessions(self, runs: Sequence[ClaimedRun]) -> Collection[str]:
        """Ask once for each session of these runs, and remember those with room; answers the full ones: hold theirs."""
        if self._throttle.usage is None:
            return ()
        full: set[str] = set()
        for session in dict.fromkeys(run.session for run in runs if run.session is not None):
            is_full = self._throttle.look(session)
            if is_full:
                full.add(session)
            elif is_full is not None:
                self._with_room.add(session)
        self._with_room -= full
        return full

    def hold(self, loaded: ActiveRun) -> None:
        """Keep a run of a full session until the store says what becomes of it."""
        self._held[loaded.claimed.id] = loaded

    def __len__(self) -> int:
        """How many runs wait here."""
        return len(self._held)

    def has(self, id: RunId) -> bool:
        """Whether this run waits here."""
        return id in self._held

    @property
    def is_unsettled(self) -> bool:
        """Whether there is something to ask or to tell the store."""
        return bool(self._held or self._with_room)

    async def settle(self) -> Settled:
        """One step: ask the store which runs may start; or, when none waits, tell it which sessions have room.

        After an error all is as before.
        """
        async with self._turn:
            if self._held:
                return await self._ask()
            with_room = tuple(self._with_room)
            await self._sessions.unthrottle(with_room)
            self._with_room.difference_update(with_room)
            return Settled()

    async def _ask(self) -> Settled:
        asked = tuple(self._held.values())
        allowed = set(await self._sessions.hold_back([loaded.claimed for loaded in asked], self._clock.now()))
        cancelled, self._cancelled = self._cancelled, {}
        ours = [loaded for loaded in asked if self._held.get(loaded.claimed.id) is loaded]
        starting: list[ActiveRun] = []
        for loaded in ours:
            id = loaded.claimed.id
            del self._held[id]
            if id not in allowed:
                continue
            if id in cancelled:
                self._runner.refuse(loaded.claimed, ended(cancelled[id]))
            else:
                starting.append(loaded)
        return Settled(starting, len(ours) - len(starting))

    def cancel(self, id: RunId, ending: Ending) -> bool:
        """End a run that waits here; False if it does not."""
        if id not in self._held:
            return False
        if self._turn.locked():
            self._cancelled[id] = ending  # the store may be ending it itself
        else:
            self._runner.refuse(self._held.pop(id).claimed, ended(ending))
        return True

    async def rest(self) -> None:
        """Return when the store is not being asked."""
        async with self._turn:
            return

    def take_all(self) -> list[ClaimedRun]:
        """What waits here, which then is no longer held."""
        held, self._held = self._held, {}
        self._cancelled.clear()
        return [loaded.claimed for loaded in held.values()]
