"""What keeps a run or a schedule from going on: the root of it, in one sentence, and what ends it.

service/blocking.py finds it, and nothing of it is stored: a moment later it may be another thing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

__all__ = ["Action", "BlockedBy", "BlockedCause", "Link", "Verb"]


class BlockedCause(StrEnum):
    """The root of a wait, for programs; `sentence` says it for people."""

    OFF = "off"
    """The schedule is switched off."""
    BROKEN = "broken"
    """The schedule was switched off because it cannot go on like this."""
    FINISHED = "finished"
    """The schedule is broken, and its timing has no further due time: its last run failed."""
    ORPHANED = "orphaned"
    """The code no longer declares the schedule."""
    BUDGET = "budget"
    """The budget of the schedule, or the run's own, is used up."""
    REMOVING = "removing"
    """The schedule is being removed."""
    CHECK = "check"
    """A check of the schedule failed when it was due last."""
    UPSTREAM_GONE = "upstream_gone"
    """The schedule that it runs after does not exist, or has no further due time."""
    RETRY = "retry"
    """The run waits for its next attempt."""
    DELAYED = "delayed"
    """The run is to start later: by a delay, by jitter, or because the work asked for that."""
    CHECK_IN = "check_in"
    """The run waits for its machine to check in."""
    UPSTREAM = "upstream"
    """The run is a step of a chain, and one before it has not ended."""
    SESSION_BUSY = "session_busy"
    """Another run has the turn in its session."""
    RUN_ACTIVE = "run_active"
    """An earlier run of its schedule has not ended."""
    GIVEN_UP = "given_up"
    """The code of an earlier run was given up and goes on."""
    LANE_PAUSED = "lane_paused"
    """Its lane is paused."""
    LANE_FULL = "lane_full"
    """As many runs of its lane are under way as may be."""
    LANE_RATE = "lane_rate"
    """As many runs of its lane have started as may in this time."""
    NO_ENGINE = "no_engine"
    """No engine is running on this database."""
    UNKNOWN_TASK = "unknown_task"
    """No running node knows its task, or can execute its kind of work."""
    DRAINING = "draining"
    """Every node that could take it was asked to take no more work."""
    SHUTTING_DOWN = "shutting_down"
    """Every node that could take it is being stopped."""
    NODE_FULL = "node_full"
    """The slots of every node that could take it are full."""
    NODE_LOST = "node_lost"
    """The node of the run that is before it was lost, and nobody has taken it over yet."""


class Verb(StrEnum):
    """What an action does, by the words of the audit log."""

    ENABLE_SCHEDULE = "schedule.enable"
    EDIT_SCHEDULE = "schedule.edit"
    CANCEL_RUN = "run.cancel"
    RESUME_LANE = "lane.resume"
    SET_LANE = "lane.set"
    RESUME_NODE = "node.resume"


@dataclass(frozen=True, slots=True)
class Action:
    """What the page's button does; an operator may."""

    verb: Verb
    target: str
    """The name of the schedule, lane or node, or the number of the run."""
    label: str
    """What the button says."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """The body of the request, where it has one."""


@dataclass(frozen=True, slots=True)
class Link:
    """One step on the way to the root."""

    kind: str
    """schedule, run, session, lane or node."""
    name: str


@dataclass(frozen=True, slots=True)
class BlockedBy:
    """The root of a wait."""

    cause: BlockedCause
    sentence: str
    """The same from every door. Times are in the zone of the settings."""
    since: datetime | None = None
    """Since when it is so, if that is known."""
    until: datetime | None = None
    """When it ends by itself, if it does and that is known."""
    command: str | None = None
    """What ends it, to be typed; null if nothing that can be typed does."""
    action: Action | None = None
    """The same as the page's button; null if there is none."""
    chain: tuple[Link, ...] = ()
    """The runs, sessions, lanes and nodes on the way to it, the nearest first."""

    def behind(self, *links: Link) -> BlockedBy:
        """The same root, a few steps farther away."""
        return replace(self, chain=(*links, *self.chain))

    @property
    def told(self) -> str:
        """The sentence, and the command that ends it."""
        return self.sentence if self.command is None else f"{self.sentence}; this ends it: '{self.command}'"
