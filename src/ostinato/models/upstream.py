"""Schedules that run after others: the ends that they follow, and whether their order has a circle. Pure.

The stores record an `UpstreamEnd` with the end itself; engine/after.py decides what becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from ostinato.clock import Micros
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.states import RunState
from ostinato.timing import On

__all__ = [
    "FOLLOWED",
    "EndedRun",
    "RelatedRun",
    "RunRelations",
    "Upstream",
    "UpstreamEnd",
    "ended_text",
    "find_circle",
    "last_to_end",
    "left_out",
]

FOLLOWED: Mapping[On, frozenset[RunState]] = {
    On.SUCCESS: frozenset({RunState.SUCCEEDED}),
    On.FAILURE: frozenset({RunState.FAILED, RunState.EXPIRED}),
    On.END: frozenset(RunState),
}
"""Which ends each `on` means."""


class EndedRun(NamedTuple):
    """The end of a run of a schedule."""

    run: RunId
    schedule: ScheduleId
    state: RunState
    at: Micros


@dataclass(frozen=True, slots=True)
class UpstreamEnd:
    """The end of a run that a schedule follows, which has no row of its own there yet."""

    run: RunId
    schedule: str
    state: RunState
    ended_at: Micros
    held: bool = False
    """Whether it waits for the ends of others."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """The run that a run came after, as its work sees it."""

    run: RunId
    schedule: str | None
    """The name of its schedule; None for a step of a chain."""
    state: RunState
    ended_at: datetime
    result: Any = None
    """What it returned; None if it is no longer in the ledger."""
    error: str | None = None
    task: str | None = None
    """Of a step of a chain: its task, or its kind of work if it has none."""


@dataclass(frozen=True, slots=True)
class RelatedRun:
    """A run that comes before or after another one."""

    id: RunId
    schedule: str | None
    """The name of its schedule, if it has one."""
    task: str | None
    """Of a step of a chain: its task, or its kind of work if it has none."""
    state: RunState | None
    """For a moment null, if it was removed before it had ended: then it is cancelled."""


@dataclass(frozen=True, slots=True)
class RunRelations:
    """Which runs come right before and right after one."""

    upstreams: Sequence[RelatedRun] = ()
    """Those that it came after, or waits for."""
    dependents: Sequence[RelatedRun] = ()
    """Those that came after it, or wait for it."""


def last_to_end(upstreams: Sequence[Upstream]) -> Upstream | None:
    """The one of them that ended last."""
    return max(reversed(upstreams), key=lambda one: one.ended_at, default=None)


def ended_text(run: RunId, name: str, state: RunState | None) -> str:
    """What became of a run, as the beginning of a sentence: `run 17 of 'import' failed`; without a state, it was
    removed."""
    ended = state if state in (RunState.SUCCEEDED, RunState.FAILED) else f"was {state or 'removed'}"
    return f"run {run} of {name!r} {ended}"


def left_out(what: str, on: On = On.SUCCESS) -> str:
    """Why nothing is run after this end."""
    return f"{what}, and this runs on {on}"


def find_circle(edges: Iterable[tuple[str, str]], names: Iterable[str]) -> list[str] | None:
    """A circle through one of these schedules, as a list that ends where it begins. Edges go from upstream to
    dependent."""
    upstreams: dict[str, list[str]] = {}
    for upstream, dependent in edges:
        upstreams.setdefault(dependent, []).append(upstream)
    for name in sorted(set(names)):
        came_from = {name: ""}
        waiting = [name]
        while waiting:
            current = waiting.pop()
            for upstream in sorted(upstreams.get(current, ())):
                if upstream == name:
                    return _path(came_from, current, name)
                if upstream not in came_from:
                    came_from[upstream] = current
                    waiting.append(upstream)
    return None


def _path(came_from: Mapping[str, str], last: str, name: str) -> list[str]:
    """From `name` over the way that was gone, in the order in which they would run."""
    path = [name]
    current = last
    while current != name:
        path.append(current)
        current = came_from[current]
    return [*path, name]
