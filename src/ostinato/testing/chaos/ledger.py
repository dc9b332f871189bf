"""The ledger, read by plain SQL as docs/reference/ledger.md describes it, and not by the code that writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from ostinato.models.policy import load_policy
from ostinato.testing.chaos.evidence import Attempt, Row, ScheduleRow

__all__ = ["read_rows", "read_schedules"]

Select = Callable[[str], Iterable[tuple[Any, ...]]]

_ROWS = """
SELECT runs.id, coalesce(runs.schedule_name, schedules.name), runs.task, runs.policy, state, cause, reason, trigger,
       due_at, last_due_at, count, ready_at, started_at, finished_at, attempt, token, lane, session, node
FROM runs LEFT JOIN schedules ON schedules.id = runs.schedule_id ORDER BY runs.id
"""
_ATTEMPTS = "SELECT run_id, started_at, finished_at, state, node FROM attempts ORDER BY run_id, number"
_SCHEDULES = "SELECT name, enabled, broken, next_at FROM schedules"


def read_rows(select: Select) -> list[Row]:
    """Every run."""
    attempts: dict[int, list[Attempt]] = {}
    for run, *attempt in select(_ATTEMPTS):
        attempts.setdefault(run, []).append(Attempt(*attempt))
    return [
        Row(*(id, schedule, task, _retries(policy), *rest, attempts.get(id, ())))
        for id, schedule, task, policy, *rest in select(_ROWS)
    ]


@lru_cache
def _retries(policy: str) -> int:
    return load_policy(policy).retry.max


def read_schedules(select: Select) -> dict[str, ScheduleRow]:
    """Every schedule, by its name."""
    return {row[0]: ScheduleRow(row[0], bool(row[1]), *row[2:]) for row in select(_SCHEDULES)}
