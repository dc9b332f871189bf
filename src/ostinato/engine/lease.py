"""A node's lease: renewed by a heartbeat, so that others know it lives. All of a node's runs hang on its one lease.

A node that was declared lost stops what it runs and writes nothing of it: its runs belong to others. It also looks
whether the wall clock jumped, which a sleep that was computed before the jump would not notice. With each beat the node
learns whether somebody asks it to take no more work.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable

from ostinato import failpoints
from ostinato.clock import SECOND, Clock, Micros, Signal
from ostinato.models.ids import NodeId
from ostinato.models.node import NodeBeat
from ostinato.stores.base import NodeStore, Renewed

__all__ = ["Lease", "new_node_id"]


def new_node_id() -> NodeId:
    """A name that no other start of any process has."""
    return NodeId(f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}")


class Lease:
    """Renews the lease three times within its length."""

    def __init__(
        self,
        nodes: NodeStore,
        clock: Clock,
        length: Micros,
        beat: Callable[[Micros, Micros], NodeBeat],
        lost: Callable[[], None],
        joined: Callable[[], None],
        jumped: Callable[[Micros], None],
        asked: Callable[[bool], object],
        compare: Callable[[Renewed], object],
        renewed: Callable[[Micros], None],
        jump_seconds: float,
    ) -> None:
        self._nodes = nodes
        self._clock = clock
        self._length = length
        self._beat = beat
        self._lost = lost
        self._joined = joined
        self._jumped = jumped
        self._asked = asked
        """Called with every beat: whether the node shall take no more work."""
        self._compare = compare
        """Called with every beat: what runs on the node and is queued for it, as the database has it."""
        self._renewed = renewed
        """Called after every beat that succeeded: when, by `clock.uptime`, it was sent."""
        self._least_jump = round(jump_seconds * SECOND)
        self.is_lost = False
        """The old name is lost, and the new one not in the database yet: a beat that fails leaves it so."""
        self._offset = self._wall_offset()
        self.signal = Signal()

    async def run(self) -> None:
        """Renew, wait, and again."""
        while True:
            await self.renew()
            await self._clock.wait(self.signal, self._clock.now() + self._length // 3)
            offset = self._wall_offset()
            if abs(offset - self._offset) > self._least_jump:
                self._jumped(offset - self._offset)
            self._offset = offset

    async def renew(self) -> None:
        """One heartbeat. After a lost lease, the next one is the first of a new node."""
        sent_at = self._clock.uptime()
        while not (renewed := await self._renew()).held:
            self.is_lost = True
            self._lost()
            sent_at = self._clock.uptime()
        self._asked(renewed.drain)
        self._renewed(sent_at)
        self._compare(renewed)
        if self.is_lost:
            self.is_lost = False
            self._joined()

    async def _renew(self) -> Renewed:
        now = self._clock.now()
        failpoints.reach("lease.beat")
        return await self._nodes.renew(self._beat(now, now + self._length))

    def _wall_offset(self) -> Micros:
        return self._clock.now() - self._clock.steady()
