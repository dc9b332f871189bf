"""What scripts may rely on: schedules, runs and the rest as plain JSON, the same from every door.

The names are those of the models; times are RFC 3339 in UTC, durations are text.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from ostinato.models.access import AuditEntry, Browser, Token
from ostinato.models.event import Event
from ostinato.models.lane import Lane
from ostinato.models.node import Node
from ostinato.models.output import OutputLine
from ostinato.models.policy import Policy, policy_json
from ostinato.models.project import Project
from ostinato.models.quarantine import BadRow, Quarantined
from ostinato.models.run import Attempt, Progress, Run
from ostinato.models.schedule import RecentRun, Schedule
from ostinato.models.session import Session
from ostinato.models.work import work_json
from ostinato.service.backfill import Backfill
from ostinato.service.why import Why

__all__ = [
    "audit_shape",
    "backfill_shape",
    "event_shape",
    "lane_shape",
    "line_shape",
    "login_shape",
    "node_shape",
    "project_shape",
    "quarantined_shape",
    "rfc3339",
    "run_shape",
    "schedule_shape",
    "session_shape",
    "token_shape",
    "why_shape",
]


def rfc3339(moment: datetime) -> str:
    """`2026-03-01T08:00:00Z`, with microseconds where there are some."""
    if moment.tzinfo is UTC:
        return f"{moment.isoformat()[:-6]}Z"
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else rfc3339(moment)


def schedule_shape(
    schedule: Schedule, running: int | None = None, recent: Sequence[RecentRun] | None = None
) -> dict[str, Any]:
    """A schedule as JSON; with how many of its runs are active, and its last ones, where these are known."""
    shape = {
        "id": schedule.id,
        "name": schedule.name,
        "timing": schedule.timing,
        "zone": schedule.zone,
        "sentence": schedule.sentence,
        "work": work_json(schedule.work),
        "policy": _policy_shape(schedule.policy),
        "project": schedule.project,
        "owner": schedule.owner,
        "state": str(schedule.state),
        "enabled": schedule.enabled,
        "broken": schedule.broken,
        "orphaned": schedule.orphaned,
        "note": schedule.note or None,
        "off_note": schedule.off_note,
        "next_run_at": _time(schedule.next_run_at),
        "next_run_reason": schedule.next_run_reason,
        "held_since": _time(schedule.held_since),
        "remaining": schedule.remaining,
        "failures": schedule.failures,
        "last_run": None if schedule.last_run is None else run_shape(schedule.last_run),
        "version": schedule.version,
        "created_at": rfc3339(schedule.created_at),
        "updated_at": rfc3339(schedule.updated_at),
    }
    if running is not None:
        shape["running"] = running
    if recent is not None:
        # A page has thousands of them: msgspec writes them as they are, and three times as fast.
        shape["recent"] = recent
    return shape


@lru_cache(maxsize=1024)
def _policy_shape(policy: Policy) -> dict[str, Any]:
    """Most schedules of a list share a policy. Nobody may change it."""
    return policy_json(policy)


def run_shape(run: Run, zone: str | None = None) -> dict[str, Any]:
    """A run as JSON; `zone` is told for one that has no schedule, `cut` for one that is not here as a whole."""
    shape = {
        "id": run.id,
        "schedule": run.schedule,
        "task": run.task,
        "state": str(run.state),
        "cause": None if run.cause is None else str(run.cause),
        "reason": run.reason,
        "cancelling": run.cancelling,
        "trigger": str(run.trigger),
        "due_at": rfc3339(run.due_at),
        "last_due_at": _time(run.last_due_at),
        "count": run.count,
        "ready_at": rfc3339(run.ready_at),
        "started_at": _time(run.started_at),
        "finished_at": _time(run.finished_at),
        "attempt": run.attempt,
        "attempts": [_attempt_shape(attempt) for attempt in run.attempts],
        "totals": dict(run.totals),
        "progress": None if run.progress is None else _progress_shape(run.progress),
        "result": run.result,
        "error": run.error,
        "lane": run.lane,
        "priority": run.priority,
        "session": run.session,
        "project": run.project,
        "key": run.key,
        "node": run.node,
        "work": work_json(run.work),
        "schedule_id": run.schedule_id,
        "zone": run.zone or zone,
    }
    if run.cut:
        shape["cut"] = list(run.cut)
    return shape


def _attempt_shape(attempt: Attempt) -> dict[str, Any]:
    return {
        "started_at": rfc3339(attempt.started_at),
        "finished_at": _time(attempt.finished_at),
        "state": attempt.state,
        "error": attempt.error,
        "node": attempt.node,
    }


def _progress_shape(progress: Progress) -> dict[str, Any]:
    return {"done": progress.done, "total": progress.total, "text": progress.text}


def quarantined_shape(row: Quarantined | BadRow) -> dict[str, Any]:
    """A row that was set aside, as JSON; `at` and `content` are null for one that waits for it."""
    shape = {"table": row.table, "row": row.row, "reason": row.reason}
    if isinstance(row, Quarantined):
        return {**shape, "at": rfc3339(row.at), "content": row.content}
    return {**shape, "at": None, "content": None}


def project_shape(project: Project) -> dict[str, Any]:
    """A project as JSON."""
    return {
        "name": project.name,
        "folder": project.folder,
        "env": dict(project.env),
        "schedules": project.schedules,
        "created_at": rfc3339(project.created_at),
    }


def line_shape(line: OutputLine) -> dict[str, Any]:
    """A line of a run's output as JSON."""
    return {"number": line.number, "at": _time(line.at), "line": line.text}


def lane_shape(lane: Lane) -> dict[str, Any]:
    """A lane and how full it is, as JSON."""
    return {
        "name": lane.name,
        "limit": lane.limit,
        "rate": lane.rate,
        "used": lane.used,
        "queued": lane.queued,
        "oldest_at": _time(lane.oldest_at),
        "paused": lane.paused,
        "note": lane.note,
    }


def backfill_shape(backfill: Backfill) -> dict[str, Any]:
    """What a backfill did, or would do, as JSON."""
    due = [rfc3339(due) for due in backfill.due]
    return {"due": due, "runs": list(backfill.runs), "left_out": backfill.left_out}


def session_shape(session: Session) -> dict[str, Any]:
    """A session as JSON."""
    return {
        "key": session.key,
        "running": session.running,
        "queued": session.queued,
        "oldest_at": _time(session.oldest_at),
        "max_concurrent": session.max_concurrent,
        "throttled": session.throttled,
        "stopped_at": _time(session.stopped_at),
        "sent_at": rfc3339(session.sent_at),
    }


def event_shape(event: Event) -> dict[str, Any]:
    """What happened in a session, as JSON."""
    return {
        "id": event.id,
        "at": rfc3339(event.at),
        "kind": str(event.kind),
        "session": event.session,
        "run": event.run,
        "data": dict(event.data),
    }


def node_shape(node: Node) -> dict[str, Any]:
    """A node as JSON."""
    return {
        "id": node.id,
        "host": node.host,
        "pid": node.pid,
        "state": node.state,
        "draining": node.drain or node.state == "draining",
        "slots": node.slots,
        "running": node.running,
        "tasks": list(node.tasks),
        "started_at": rfc3339(node.started_at),
        "seen_at": rfc3339(node.seen_at),
        "services": node.services,
    }


def why_shape(why: Why, zone: str | None = None) -> dict[str, Any]:
    """An answer as JSON, with the run that it rests on."""
    return {
        "schedule": why.schedule,
        "at": _time(why.at),
        "answer": why.answer,
        "due_at": _time(why.due_at),
        "run": None if why.run is None else run_shape(why.run, zone),
        "facts": list(why.facts),
    }


def token_shape(token: Token) -> dict[str, Any]:
    """A token as JSON, without its secret."""
    return {
        "id": token.id,
        "name": token.name,
        "role": str(token.role),
        "owner": token.owner,
        "created_at": rfc3339(token.created_at),
        "used_at": _time(token.used_at),
        "expires_at": _time(token.expires_at),
    }


def login_shape(login: Browser) -> dict[str, Any]:
    """A browser that is logged in, as JSON."""
    return {
        "id": login.id,
        "who": login.who,
        "role": str(login.role),
        "token": login.token,
        "created_at": rfc3339(login.created_at),
        "used_at": _time(login.used_at),
        "expires_at": rfc3339(login.expires_at),
        "current": login.current,
    }


def audit_shape(entry: AuditEntry) -> dict[str, Any]:
    """One entry of the audit log as JSON."""
    return {
        "id": entry.id,
        "at": rfc3339(entry.at),
        "who": entry.who,
        "door": entry.door,
        "address": entry.address,
        "verb": entry.verb,
        "object": entry.object,
        "detail": dict(entry.detail),
    }
