"""Code that was told to stop, did not, and goes on although its run has ended: it occupies its schedule's name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ostinato.models.ids import NodeId, RunId

__all__ = ["GivenUp"]


@dataclass(frozen=True, slots=True)
class GivenUp:
    """What a node gave up, and what still runs in a thread or a coroutine of it."""

    run: RunId
    token: int
    """Of the attempt: the run may have another one by now."""
    schedule: str | None
    """The name that it occupies, also if another schedule has it by now."""
    name: str
    """What people call it: its schedule, its task, or its kind of work."""
    node: NodeId
    at: datetime

    @property
    def sentence(self) -> str:
        """What holds as long as it is listed."""
        return f"run {self.run} was given up and its code still runs on node {self.node}"
