"""Rows as the engine reads them, for tests without a store: each with everything in place, so that a test names only
what it is about."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ostinato.clock import SECOND, Micros, to_micros
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.run import ClaimedRun
from ostinato.models.schedule import DueSchedule
from ostinato.models.states import Trigger

__all__ = ["HOUR", "START", "claimed_run", "due_schedule"]

START: Micros = to_micros(datetime(2026, 1, 1, tzinfo=UTC))
HOUR: Micros = 3_600 * SECOND

_DUE = DueSchedule(
    id=ScheduleId(1),
    name="job",
    timing="every 1h",
    zone="UTC",
    work='{"kind":"function","task":"job","args":[],"kwargs":{}}',
    kind="function",
    task="job",
    policy="{}",
    anchor_at=START,
    next_at=START + HOUR,
    remaining=None,
    version=1,
    project=None,
    paused_since=None,
    paused_reason=None,
    paused_cause=None,
    follows=False,
    active=(),
    waiting=(),
)
_CLAIMED = ClaimedRun(
    id=RunId(1),
    token=1,
    kind="function",
    task="job",
    work="{}",
    policy="{}",
    trigger=Trigger.SCHEDULE,
    due_at=START,
    ready_at=START,
    attempt=1,
    schedule_id=None,
    schedule=None,
    session=None,
    key=None,
)


def due_schedule(**fields: Any) -> DueSchedule:
    """A schedule of each hour since START, whose first due time comes."""
    return replace(_DUE, **fields)


def claimed_run(**fields: Any) -> ClaimedRun:
    return replace(_CLAIMED, **fields)
