"""The larger views as plain JSON: overview, timeline, history, and a timing explained. Beside it: `shapes.py`."""

from __future__ import annotations

from typing import Any

from ostinato.models.run import Run
from ostinato.service.forecast import DueTime
from ostinato.service.history import History
from ostinato.service.overview import BUCKET, Overview
from ostinato.service.shapes import rfc3339, run_shape, schedule_shape
from ostinato.service.timeline import Timeline
from ostinato.service.timings import Preview

__all__ = ["history_shape", "overview_shape", "preview_shape", "timeline_shape"]


def preview_shape(preview: Preview) -> dict[str, Any]:
    """A timing explained, as JSON."""
    return {
        "text": preview.text,
        "zone": preview.zone,
        "sentence": preview.sentence,
        "next": [rfc3339(due) for due in preview.next],
        "remarks": list(preview.remarks),
    }


def history_shape(history: History) -> dict[str, Any]:
    """The days of a schedule as JSON."""
    days = [{"date": day.date.isoformat(), "states": day.states, "seconds": day.seconds} for day in history.days]
    return {"zone": history.zone, "days": days}


def overview_shape(overview: Overview, *, is_here: bool) -> dict[str, Any]:
    """All at a glance, as JSON; `is_here` says that this process has an engine."""
    zone = overview.zone
    counts = overview.runs
    return {
        "now": rfc3339(overview.now),
        "zone": zone,
        "engine": {
            "alive": overview.alive > 0,
            "nodes": overview.alive,
            "lost": overview.lost,
            "here": is_here,
        },
        "counts": {
            **overview.schedules,
            "running": counts.running,
            "queued": counts.queued,
            "late": counts.late,
            "quarantined": overview.quarantined,
        },
        "running": [run_shape(run, zone) for run in overview.running],
        "late": [run_shape(run, zone) for run in overview.late],
        "broken": [schedule_shape(one.schedule, one.running) for one in overview.broken],
        "due": [_due_shape(due) for due in overview.due],
        "next24": [{"at": rfc3339(at), "count": count} for at, count in overview.hours.counts],
        "estimated": overview.hours.estimated,
        "failed": [run_shape(run, zone) for run in overview.failed],
        "activity": [{"at": rfc3339(one.at), "states": dict(one.states)} for one in overview.activity],
        "bucket_seconds": BUCKET // 1_000_000,
        # Without what the rows said: that may be a secret, and is for whoever has the database.
        "quarantine": [
            {"table": row.table, "row": row.row, "reason": row.reason, "at": rfc3339(row.at)}
            for row in overview.quarantine
        ],
    }


def timeline_shape(timeline: Timeline) -> dict[str, Any]:
    """A span and what is in it, as JSON."""
    return {
        "from": rfc3339(timeline.start),
        "to": rfc3339(timeline.end),
        "now": rfc3339(timeline.now),
        "zone": timeline.zone,
        "runs": [_bar_shape(run) for run in timeline.runs],
        "due": [_due_shape(due) for due in timeline.due],
        "truncated": timeline.truncated,
    }


def _due_shape(due: DueTime) -> dict[str, Any]:
    return {"schedule": due.schedule, "at": rfc3339(due.at), "zone": due.zone}


def _bar_shape(run: Run) -> dict[str, Any]:
    return {
        "id": run.id,
        "schedule": run.schedule,
        "task": run.task,
        "state": str(run.state),
        "trigger": str(run.trigger),
        "due_at": rfc3339(run.due_at),
        "last_due_at": None if run.last_due_at is None else rfc3339(run.last_due_at),
        "count": run.count,
        "started_at": None if run.started_at is None else rfc3339(run.started_at),
        "finished_at": None if run.finished_at is None else rfc3339(run.finished_at),
        "lane": run.lane,
        "node": run.node,
    }
