"""Rows to what is told of them, the same for every store: without what may be large and is not told. As rows.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.clock import Micros, from_micros
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.live import ChangedSchedule, ToldRun
from ostinato.stores.rows import known_cause, known_words, load_progress, load_totals

__all__ = ["CHANGED_COLUMNS", "TOLD_COLUMNS", "load_changed", "load_told"]

Row = Sequence[Any]

TOLD_COLUMNS = (
    "r.id, s.name, r.task, r.state, r.cause, r.reason, r.cancel, r.trigger, r.due_at, r.last_due_at, r.count, "
    "r.ready_at, r.started_at, r.finished_at, r.attempt, r.totals, r.progress, r.error, r.lane, r.priority, r.session, "
    "r.project, r.key, r.node, r.schedule_id, s.zone"
)
CHANGED_COLUMNS = "s.id, s.name, s.version, s.enabled, s.broken, s.updated_at"


def load_told(row: Row) -> ToldRun:
    """A run, from TOLD_COLUMNS; of one that is not under way nobody wants any more that it stops."""
    # fmt: off
    (id, schedule, task, state, cause, reason, cancel, trigger, due_at, last_due_at, count, ready_at, started_at,
     finished_at, attempt, totals, progress, error, lane, priority, session, project, key, node, schedule_id,
     zone) = row
    state, trigger, reason = known_words(state, trigger, reason)
    return ToldRun(
        RunId(id), schedule, task, state, known_cause(cause), reason, cancel if state == "running" else None, trigger,
        from_micros(due_at), _moment(last_due_at), count, from_micros(ready_at), _moment(started_at),
        _moment(finished_at), attempt, load_totals(totals), load_progress(progress), error, lane, priority, session,
        project, key or f"run-{id}", node, None if schedule_id is None else ScheduleId(schedule_id), zone,
    )
    # fmt: on


def load_changed(row: Row) -> ChangedSchedule:
    """A changed schedule, from CHANGED_COLUMNS."""
    id, name, version, enabled, broken, updated_at = row
    return ChangedSchedule(ScheduleId(id), name, version, bool(enabled), broken, from_micros(updated_at))


def _moment(instant: Micros | None) -> Any:
    return None if instant is None else from_micros(instant)
