"""Runs that wait and what they may wait for, as plain values: what is not named holds nothing up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ostinato.clock import Micros, to_micros
from ostinato.models.ids import NodeId, RunId, ScheduleId
from ostinato.models.lane import Lane
from ostinato.models.node import Node
from ostinato.models.run import Run
from ostinato.models.states import RunState, Trigger
from ostinato.models.work import Function
from ostinato.service.blocked_runs import Facts

__all__ = ["NOW", "START", "facts", "lane", "node", "run", "running"]

START = datetime(2026, 1, 1, tzinfo=UTC)
NOW = to_micros(START)


def run(**values: Any) -> Run:
    fields: dict[str, Any] = {
        "id": RunId(7), "state": RunState.QUEUED, "schedule": "nightly", "schedule_id": ScheduleId(1), "task": "t",
        "cause": None, "reason": None, "trigger": Trigger.SCHEDULE, "due_at": START, "last_due_at": None, "count": 1,
        "ready_at": START, "started_at": None, "finished_at": None, "attempt": 0, "attempts": (), "totals": {},
        "progress": None, "result": None, "error": None, "lane": "cron", "priority": 0, "session": None, "key": "7",
        "node": None, "work": Function("t"),
    }  # fmt: skip
    return Run(**{**fields, **values})


def running(id: int, **values: Any) -> Run:
    """One that is under way on node one."""
    return run(id=RunId(id), **{"state": RunState.RUNNING, "started_at": START, "node": "one", **values})


def node(id: str = "one", *, state: str = "alive", running: int = 0, drain: bool = False, task: str = "t") -> Node:
    return Node(NodeId(id), "here", 1, state, 4, running, (task,), START, START, drain=drain)


def lane(**values: Any) -> Lane:
    return Lane(**{"name": "cron", "limit": 30, **values})


def facts(
    *,
    lanes: Sequence[Lane] | None = None,
    nodes: Sequence[Node] | None = None,
    now: Micros = NOW,
    zone: str = "UTC",
    **more: Any,
) -> Facts:
    """One node that knows the task, as the code of this process does, and a lane with room."""
    known = {one.name: one for one in ([lane()] if lanes is None else lanes)}
    here: dict[str, Any] = {"app": "jobs:app", "is_known_here": "t".__eq__}
    return Facts(now, zone, known, [node()] if nodes is None else nodes, **{**here, **more})
