"""Flags that many commands share: only their names and types. `opening.py` and `policy.py` read what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Group, Parameter

__all__ = ["NO_COMMON", "NO_ENGINE", "NO_POLICY", "Common", "EngineFlags", "PolicyFlags"]

_COMMON = Group("Common", sort_key=10)
_POLICY = Group("Policy", sort_key=5)


@Parameter(name="*", group=_COMMON)
@dataclass(frozen=True)
class Common:
    """Where the database is, which app to load, and how to print."""

    db: str | None = None
    """The database: a file, sqlite:///jobs.db or postgresql://… [env: OSTINATO_DB, default: ./ostinato.db]"""
    app: str | None = None
    """Load tasks and checks from module:attr, found from the current folder. [env: OSTINATO_APP]"""
    json: bool = False
    """Print JSON."""


@Parameter(name="*")
@dataclass(frozen=True)
class EngineFlags:
    """Settings of the engine that a command starts."""

    slots: int | None = None
    """How many runs this node executes at once. [default: 256]"""
    lane: list[str] | None = None
    """A lane and its limit on all nodes together, as NAME=LIMIT; may be given again."""
    rate: list[str] | None = None
    """How many runs of a lane may start in a time, as NAME=10/m; may be given again."""
    tz: str | None = None
    """The zone of schedules that name none. [default: the machine's]"""


@Parameter(name="*", group=_POLICY)
@dataclass(frozen=True)
class PolicyFlags:
    """How to treat a schedule and its runs; 'none' takes a limit away."""

    overlap: Literal["skip", "queue_one", "queue_all", "cancel_running", "allow"] | None = None
    """When it is due and its last run still is under way. [default: skip]"""
    catch_up: Literal["none", "latest", "all"] | None = None
    """Which due times of a downtime are run afterwards. [default: latest]"""
    catch_up_window: str | None = None
    """How far back catch-up looks. [default: 24h]"""
    catch_up_cap: int | None = None
    """How many due times 'all' catches up at most, the newest. [default: 1000]"""
    retry: str | None = None
    """How many more attempts, such as 5, or 5,base=1s,longest=1m. [default: 3]"""
    timeout: str | None = None
    """How long an attempt may take, such as 5m. [default: none]"""
    max_age: str | None = None
    """A run that waited longer than this is expired. [default: none]"""
    break_after: int | None = None
    """So many failures in a row disable the schedule. [default: 3]"""
    lane: str | None = None
    """The lane that its runs go through. [default: cron]"""
    priority: int | None = None
    """Higher goes first in its lane. [default: 0]"""
    session: str | None = None
    """Its runs wait their turn in this session, such as dm:42. [default: none]"""
    check: list[str] | None = None
    """A check that must pass before it is enabled and before each run; may be given again."""
    keep: str | None = None
    """How long ended runs stay: an age, a count, or both: 30d,1000. [default: 30d,1000]"""
    once: bool = False
    """Run once, then it is finished."""
    remaining: str | None = None
    """Run so many times, then it is finished. [default: none]"""
    delete_after_run: Annotated[bool | None, Parameter(negative="--no-delete-after-run")] = None
    """Remove the schedule after its last run."""


NO_COMMON = Common()
NO_ENGINE = EngineFlags()
NO_POLICY = PolicyFlags()
