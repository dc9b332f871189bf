"""A run as a TaskResult of Django's tasks, and what is stored with it that only Django asks for.

`task_backend.py` enqueues and answers with these, `task_calls.py` shows them to running tasks and to signals.
"""

from __future__ import annotations

import builtins
import re
import sys
from dataclasses import fields
from datetime import datetime
from typing import Any, TypeVar

from django.conf import settings
from django.core.signing import BadSignature, Signer
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from ostinato import Function, NotExecuted, RunCancelled, RunFailed, Trigger
from ostinato.integrations.django.task_framework import (
    DEFAULT_ALIAS,
    DEFAULT_QUEUE,
    Task,
    TaskError,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
)
from ostinato.models.run import Attempt, Run
from ostinato.models.states import RunState

__all__ = [
    "ENQUEUE_METADATA",
    "aware",
    "class_path",
    "metadata_of",
    "moment",
    "read_id",
    "result_id",
    "result_of",
    "with_metadata",
]

ENQUEUE_METADATA = "django.task"
"""The keyword argument that holds what Django wants to know of the enqueueing. No parameter can have this name."""
_STATUS = {
    RunState.QUEUED: TaskResultStatus.READY,
    RunState.RUNNING: TaskResultStatus.RUNNING,
    RunState.SUCCEEDED: TaskResultStatus.SUCCESSFUL,
}
_NO_ERROR = frozenset({"succeeded", "running", "snoozed"})
_FAILURES = {RunState.FAILED: RunFailed, RunState.CANCELLED: RunCancelled, RunState.SUPERSEDED: RunCancelled}
_TRACEBACK = re.compile(r"(?:  \+ Exception Group )?Traceback \(most recent call last\):\n")
_LINKS = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)
_CLASS = re.compile(r"(?:  \| )?([^\W\d]\w*(?:\.(?:<locals>|[^\W\d]\w*))*)(?::|$)", re.MULTILINE)

T = TypeVar("T")


def result_id(run: int) -> str:
    """The id of a result: the run's number, signed. Whoever is given one cannot guess those of others."""
    return _signer().sign(str(run))  # type: ignore[no-any-return]


def read_id(id: str) -> int:
    """The number of the run; TaskResultDoesNotExist if the id is none of ours."""
    try:
        return int(_signer().unsign(id))
    except (BadSignature, TypeError, ValueError):
        raise TaskResultDoesNotExist(id) from None


def _signer() -> Signer:
    return Signer(sep=".", salt="ostinato.task_result")


def aware(at: datetime) -> datetime:
    """A time of Django as one with a zone."""
    return timezone.make_aware(at) if timezone.is_naive(at) else at


def moment(at: datetime | None) -> datetime | None:
    """A time of ours as Django has its times: without a zone, if USE_TZ is off."""
    return at if at is None or settings.USE_TZ else timezone.make_naive(at)


def metadata_of(task: Task[..., Any], alias: str, enqueued_at: datetime) -> dict[str, Any]:
    """What the row does not say by itself: nothing, for most runs."""
    metadata: dict[str, Any] = {}
    as_declared = declared(task)
    if alias != DEFAULT_ALIAS or as_declared.backend != alias:
        metadata["backend"] = alias
    if task.queue_name != DEFAULT_QUEUE or as_declared.queue_name != task.queue_name:
        metadata["queue_name"] = task.queue_name
    if task.run_after is not None:
        metadata["enqueued_at"] = enqueued_at.isoformat()
        metadata["run_after"] = aware(task.run_after).isoformat()
    return metadata


def with_metadata(task: Task[..., T], metadata: dict[str, Any], trigger: Trigger, **changes: Any) -> Task[..., T]:
    """The task as it was enqueued. Not by `using`, which would ask whether it could be enqueued so today."""
    as_declared = declared(task)
    # Those without it were enqueued as the task is declared, or by its name; others were started by a schedule or hand.
    stored = metadata if trigger is Trigger.API else {}
    changes |= {name: stored.get(name, getattr(as_declared, name)) for name in ("backend", "queue_name")}
    copy: Task[..., T] = object.__new__(type(task))
    for field in fields(task):
        object.__setattr__(copy, field.name, changes.get(field.name, getattr(task, field.name)))
    return copy


def declared(task: Task[..., T]) -> Task[..., T]:
    """The task as its module has it: `using` may have changed this one."""
    found = getattr(sys.modules.get(task.func.__module__), task.func.__name__, None)
    return found if isinstance(found, Task) and found.func is task.func else task


def times_of(metadata: dict[str, Any], due_at: datetime) -> tuple[datetime, datetime | None]:
    """When it was enqueued, and what it had to wait for. A run that repeats another one is as new as its due time."""
    run_after = parse_datetime(metadata.get("run_after", ""))
    if run_after != due_at:
        return due_at, None
    return parse_datetime(metadata["enqueued_at"]) or due_at, run_after


def result_of(run: Run, task: Task[..., T]) -> TaskResult[T]:
    """The result of a run of this task."""
    work = run.work
    assert isinstance(work, Function)
    kwargs = dict(work.kwargs)
    metadata = kwargs.pop(ENQUEUE_METADATA, {})
    enqueued_at, run_after = times_of(metadata, run.due_at)
    enqueued = with_metadata(task, metadata, run.trigger, priority=run.priority, run_after=moment(run_after))
    result: TaskResult[T] = TaskResult(
        task=enqueued,
        id=result_id(run.id),
        status=_STATUS.get(run.state, TaskResultStatus.FAILED),
        enqueued_at=moment(enqueued_at),
        started_at=moment(run.attempts[0].started_at) if run.attempts else None,
        finished_at=moment(run.finished_at) if run.ended else None,
        last_attempted_at=moment(run.attempts[-1].started_at) if run.attempts else None,
        args=list(work.args),
        kwargs=kwargs,
        backend=enqueued.backend,
        errors=_errors(run),
        worker_ids=[str(attempt.node) for attempt in run.attempts],
    )
    if run.state is RunState.SUCCEEDED:
        object.__setattr__(result, "_return_value", run.result)
    return result


def _errors(run: Run) -> list[TaskError]:
    """One for each attempt that failed, and one for a run that ended without having been tried."""
    earlier = run.attempts[:-1] if run.ended else run.attempts
    errors = [_error_of(attempt) for attempt in earlier if attempt.state not in _NO_ERROR]
    if not run.ended or run.state is RunState.SUCCEEDED:
        return errors
    text = run.error or run.reason or str(run.cause)
    kind = _FAILURES.get(run.state, NotExecuted)
    return [*errors, TaskError(exception_class_path=class_path(text) or _path(kind), traceback=text)]


def _error_of(attempt: Attempt) -> TaskError:
    text = attempt.error or attempt.state
    return TaskError(exception_class_path=class_path(text) or _path(RunFailed), traceback=text)


def _path(kind: type[BaseException]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def class_path(traceback: str) -> str | None:
    """The path of the class of the exception that a traceback ends with; None if the text is no traceback.

    The ledger keeps the text alone. The exception is on the first line below the frames, which are indented; of several
    that belong together, the last was raised. A message may hold a traceback, too: that begins no new one.
    """
    found: str | None = None
    # Without a header, it has no frames but our own, which are left out.
    is_due = _TRACEBACK.match(traceback) is not None or _is_exception(_CLASS.match(traceback))
    for line in traceback.splitlines():
        if line in _LINKS:
            is_due = True
        elif is_due and (match := _CLASS.match(line)):
            found, is_due = _full_path(match), False
    return found


def _full_path(match: re.Match[str]) -> str:
    return match[1] if "." in match[1] else f"builtins.{match[1]}"


def _is_exception(match: re.Match[str] | None) -> bool:
    """Whether it names a class, and is no other word at the beginning of a reason."""
    return match is not None and ("." in match[1] or isinstance(getattr(builtins, match[1], None), type))
