"""Lanes as the other services need them: a name is known, or falls back to main with one warning."""

from __future__ import annotations

import logging
from dataclasses import replace

from ostinato.models.lane import FALLBACK_LANE, Lane
from ostinato.models.policy import Policy
from ostinato.stores.base import Store

__all__ = ["LaneService"]

log = logging.getLogger("ostinato")


class LaneService:
    """Looks lanes up, and remembers the ones it has seen."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: set[str] = set()
        self._warned: set[str] = set()

    async def list(self) -> list[Lane]:
        """Every lane and how full it is."""
        return await self._store.lanes.list_lanes()

    def knows(self, lane: str) -> bool:
        """Whether the lane has been seen, so that nothing is to be settled."""
        return lane in self._known

    async def settle(self, policy: Policy) -> Policy:
        """The policy with a lane that exists."""
        if policy.lane not in self._known:
            self._known = {lane.name for lane in await self._store.lanes.list_lanes()}
        if policy.lane in self._known:
            return policy
        if policy.lane not in self._warned:
            self._warned.add(policy.lane)
            log.warning(
                "there is no lane %r, its runs go to %r; make it with OSTINATO_LANE_%s=LIMIT or in ostinato.toml",
                policy.lane,
                FALLBACK_LANE,
                policy.lane.upper(),
            )
        return replace(policy, lane=FALLBACK_LANE)
