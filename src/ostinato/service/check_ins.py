"""What the keys of schedules open, without a login: machines check in, and badges are shown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ostinato.announcer import Announcer
from ostinato.clock import Clock
from ostinato.models.check_in import KeyPurpose, Ping
from ostinato.models.run import RunFilter
from ostinato.models.schedule import Schedule
from ostinato.models.states import Cause, RunState
from ostinato.service.schedules.keys import hash_key
from ostinato.stores.base import CheckedIn, Store

__all__ = ["Badge", "BadgeState", "CheckInService"]

_TELLING = (RunState.SUCCEEDED, RunState.FAILED, RunState.MISSED, RunState.EXPIRED)
"""The ends that say how a schedule is."""


class BadgeState(StrEnum):
    """How a schedule is, in a word."""

    OK = "ok"
    ERRORS = "with errors"
    """Its last run succeeded, and counted errors."""
    FAILING = "failing"
    LATE = "late"
    BROKEN = "broken"
    OFF = "off"
    NEW = "no runs yet"


@dataclass(frozen=True, slots=True)
class Badge:
    """What a badge says."""

    name: str
    state: BadgeState


class CheckInService:
    """Asks for a key, and for nothing else."""

    def __init__(self, store: Store, clock: Clock, announcer: Announcer) -> None:
        self._store = store
        self._clock = clock
        self._announcer = announcer

    async def knows(self, key: str) -> bool:
        """Whether this is the key of a ping address: asked before a body is read."""
        return await self._schedule_of(key, KeyPurpose.PING) is not None

    async def check_in(self, key: str, ping: Ping) -> CheckedIn | None:
        """Note what a machine says; None if nobody has this key."""
        hash = hash_key(key)
        if hash is None:
            return None
        now = self._clock.now()
        checked_in = await self._store.check_ins.check_in(hash, ping, now)
        if checked_in is not None:
            # The write has woken the notifiers, wherever they are.
            self._announcer.checked_in(checked_in, now)
        return checked_in

    async def badge(self, key: str) -> Badge | None:
        """How the schedule is that this is the badge of; None if nobody has this key."""
        name = await self._schedule_of(key, KeyPurpose.BADGE)
        schedule = None if name is None else await self._store.schedules.get_schedule(name)
        return None if schedule is None else Badge(schedule.name, await self._state(schedule))

    async def _schedule_of(self, key: str, purpose: KeyPurpose) -> str | None:
        hash = hash_key(key)
        return None if hash is None else await self._store.check_ins.schedule_of_key(hash, purpose)

    async def _state(self, schedule: Schedule) -> BadgeState:
        if schedule.broken is not None:
            return BadgeState.BROKEN
        if schedule.late:
            return BadgeState.LATE
        if not schedule.enabled and schedule.remaining != 0:
            return BadgeState.OFF
        last = await self._store.runs.list_runs(RunFilter(schedule_id=schedule.id, states=_TELLING, limit=1))
        if not last:
            return BadgeState.NEW
        if last[0].cause is Cause.LATE:
            return BadgeState.LATE
        if last[0].state is not RunState.SUCCEEDED:
            return BadgeState.FAILING
        return BadgeState.ERRORS if last[0].cause is Cause.ERRORS else BadgeState.OK
