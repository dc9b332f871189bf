"""Lanes: list, get, get_or_create, set, pause, resume, clear; and `settle`, by which other services find theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from ostinato.clock import Clock, from_micros
from ostinato.command_hints import hint
from ostinato.errors import InvalidInput, NotFound
from ostinato.listeners import Listeners
from ostinato.logs import get_logger
from ostinato.models.app_event import AppEvent, AppEventKind
from ostinato.models.ids import RunId
from ostinato.models.lane import FALLBACK_LANE, Lane, parse_rate
from ostinato.models.policy import Policy, check_key, check_whole
from ostinato.service.audit import asked_by, audited, changed_by
from ostinato.stores.base import Store

__all__ = ["LaneService"]

log = get_logger("ostinato")

_CLEAR_STEP = 1_000


class LaneService:
    """What can be done with lanes. It remembers the names it has seen."""

    def __init__(self, store: Store, clock: Clock, listeners: Listeners) -> None:
        self._listeners = listeners
        self._store = store
        self._clock = clock
        self._known: set[str] = set()
        self._warned: set[str] = set()

    async def list(self) -> Sequence[Lane]:
        """Every lane and how full it is."""
        now = from_micros(self._clock.now())
        # What is ready later does not wait yet.
        return [
            replace(lane, oldest_at=None) if lane.oldest_at is not None and lane.oldest_at > now else lane
            for lane in await self._store.lanes.list_lanes()
        ]

    async def get(self, name: str) -> Lane:
        """The lane of this name."""
        for lane in await self.list():
            if lane.name == name:
                return lane
        raise NotFound(f"there is no lane {name!r}; 'ostinato lane ls' lists them")

    async def get_or_create(self, name: str, limit: int, *, rate: str | None = None) -> Lane:
        """The lane of this name; created with this limit and rate if it does not exist."""
        _check(name, limit)
        if name not in {lane.name for lane in await self._store.lanes.list_lanes()}:
            rates = {} if rate is None else {name: parse_rate(rate)}
            await self._store.lanes.ensure_lanes({name: limit}, [], rates)
        return await self.get(name)

    @audited("lane.set")
    async def set(self, name: str, limit: int | None = None, *, rate: str | None = None) -> Lane:
        """Change a lane's limit or rate, on all nodes at once; a missing lane is created with the limit.

        `rate` is text such as `10/m`; `none` removes it. Active runs go on, even above a smaller limit.
        """
        _check(name, 1 if limit is None else limit)
        if limit is None and rate is None:
            raise InvalidInput("there is nothing to set", field="limit", hint="give a limit, a rate, or both")
        unlimited = rate == "none"
        wanted = None if rate is None or unlimited else parse_rate(rate)
        if not await self._store.lanes.set_lane(name, limit, wanted, clear_rate=unlimited):
            raise NotFound(f"there is no lane {name!r} yet: give it a limit")
        return await self.get(name)

    @audited("lane.pause")
    async def pause(self, name: str, *, note: str | None = None) -> Lane:
        """Start nothing more in this lane, on any node, until it is resumed; active runs go on."""
        lane = await self._switch(name, True, note)
        if AppEventKind.LANE_PAUSED in self._listeners.wanted:
            at = from_micros(self._clock.now())
            self._listeners.tell([AppEvent(AppEventKind.LANE_PAUSED, at, reason=note, lane=name)])
        return lane

    @audited("lane.resume")
    async def resume(self, name: str) -> Lane:
        """Start its runs again."""
        return await self._switch(name, False, None)

    async def _switch(self, name: str, paused: bool, note: str | None) -> Lane:
        by, at = (changed_by(), self._clock.now()) if paused else (None, None)
        if not await self._store.lanes.pause_lane(name, paused, note, by, at):
            raise NotFound(f"there is no lane {name!r}; 'ostinato lane ls' lists them")
        return await self.get(name)

    @audited("lane.clear", answers="cleared")
    async def clear(self, name: str) -> int:
        """End everything that is queued in the lane as cancelled; returns how many. Active runs go on."""
        await self.get(name)
        total = 0
        until: RunId | None = None
        while True:
            step = await self._store.lanes.clear_lane(name, self._clock.now(), until, _CLEAR_STEP, asked_by())
            total += step.runs
            until = step.until
            if until is None:
                return total

    def knows(self, lane: str) -> bool:
        """Whether the lane has been seen, so that nothing is to be settled."""
        return lane in self._known

    async def check(self, name: str | None) -> None:
        """InvalidInput for a lane that does not exist, where whoever asks can be asked again."""
        if name is None or name in self._known:
            return
        self._known = {lane.name for lane in await self._store.lanes.list_lanes()}
        if name not in self._known:
            known = sorted(self._known)
            close = get_close_matches(name, known, 1)
            which = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
            raise InvalidInput(f"there is no lane {name!r}", field="lane", hint=which)

    async def settle(self, policy: Policy) -> Policy:
        """The policy with a lane that exists."""
        if policy.lane not in self._known:
            self._known = {lane.name for lane in await self._store.lanes.list_lanes()}
        if policy.lane in self._known:
            return policy
        if policy.lane not in self._warned:
            self._warned.add(policy.lane)
            # The environment has a word for it only if that is one.
            variable = f"OSTINATO_LANE_{policy.lane.upper()}"
            log.warning(
                "there is no lane %r, its runs go to %r; make it with %s, or in ostinato.toml%s",
                policy.lane,
                FALLBACK_LANE,
                hint("lane set", policy.lane, "LIMIT"),
                f", or with {variable}=LIMIT" if variable.isidentifier() and variable.isascii() else "",
            )
        return replace(policy, lane=FALLBACK_LANE)


def _check(name: Any, limit: Any) -> None:
    check_key(name, "name", "give a name such as reports")
    if name != name.strip():
        raise InvalidInput(f"a lane cannot be called {name!r}", field="name", hint="leave out the spaces around it")
    check_whole("limit", limit, 1)
