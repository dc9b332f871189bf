"""Django's tasks as tasks of Ostinato: registered under their module path, called with their context, told to signals.

`task_backend.py` registers each task that is defined; one that no node has imported is found by its path. What a task
itself ends, it tells right there, where the exception is at hand; whatever else ends a run is heard from the engine.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, update_wrapper
from traceback import format_exception
from typing import Any

from django.apps import apps
from django.conf import settings
from django.utils.module_loading import import_string

from ostinato import (
    Abort,
    AppEvent,
    AppEventKind,
    Cause,
    Covers,
    NotFound,
    Run,
    RunContext,
    RunState,
    Snooze,
    current_run,
)
from ostinato import Task as OstinatoTask
from ostinato.clock import from_micros
from ostinato.integrations.django.connections import around_call
from ostinato.integrations.django.scheduler import get_jobs
from ostinato.integrations.django.task_framework import (
    InvalidTaskBackendError,
    Task,
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultStatus,
    normalize_json,
    task_backends,
    task_finished,
    task_started,
)
from ostinato.integrations.django.task_results import (
    ENQUEUE_METADATA,
    moment,
    result_id,
    result_of,
    times_of,
    with_metadata,
)
from ostinato.integrations.django.task_source import may_hold_task
from ostinato.logs import get_logger
from ostinato.models.nesting import is_deeper
from ostinato.models.policy import load_policy

__all__ = ["find", "known_task", "listen", "registered"]

log = get_logger("ostinato")

_known: dict[str, Task[..., Any]] = {}
_handles: dict[str, OstinatoTask[..., Any]] = {}
_TOLD_BY_TASK = frozenset({Cause.RAISED, Cause.ABORTED})


def registered(task: Task[..., Any], options: Mapping[str, Any]) -> OstinatoTask[..., Any]:
    """The task of Ostinato for one of Django, made when it is first seen.

    Its handle has no policy, so that each backend can say all of it; runs by hand or by a schedule have these options.
    """
    path, jobs = task.module_path, get_jobs()
    if path not in _handles:
        _known[path] = task
        _handles[path] = jobs.task(path)(_callable(task))
        jobs.registry.tasks[path] = replace(jobs.registry.tasks[path], options=options)
    return _handles[path]


def known_task(path: str) -> Task[..., Any] | None:
    """The task of this path, imported if need be; None if there is none."""
    if path not in _known and _may_be_imported(path) and may_hold_task(path):
        try:
            found = import_string(path)
        except (Exception, SystemExit):  # whatever the module does
            log.exception("task %r cannot be imported", path)
            return None
        if isinstance(found, Task):
            _known.setdefault(path, found)
    return _known.get(path)


def find(path: str) -> bool:
    """Register the task of this path, if there is one."""
    task = known_task(path)
    if task is not None:
        registered(task, {})  # a backend of Ostinato has seen it already, with its policy, if it is declared with one
    return task is not None


def _may_be_imported(path: str) -> bool:
    """Only what belongs to the project: names come from the ledger, and an import executes code."""
    module = path.rpartition(".")[0]
    ours = {app.name for app in apps.get_app_configs()} | {(settings.SETTINGS_MODULE or "").partition(".")[0]}
    return any(app and (module == app or module.startswith(f"{app}.")) for app in ours)


def _callable(task: Task[..., Any]) -> Callable[..., Any]:
    """What a node calls: any arguments, as they were stored."""

    def call(*args: Any, **kwargs: Any) -> Any:
        jobs, run = get_jobs(), current_run()
        earlier = jobs.runs.get(run.id) if _was_tried(run) else None
        attempt = _Attempt(task, args, kwargs, run, earlier)
        task_started.send_robust(attempt.sender, task_result=attempt.result)
        try:
            value = attempt.checked(task.func(*attempt.args, **attempt.kwargs))
        except BaseException as error:
            if attempt.has_failed(error):
                task_finished.send_robust(attempt.sender, task_result=attempt.result)
            raise
        if attempt.has_succeeded(value, lambda: jobs.runs.get(run.id)):
            task_finished.send_robust(attempt.sender, task_result=attempt.result)
        return value

    async def acall(*args: Any, **kwargs: Any) -> Any:
        jobs, run = get_jobs(), current_run()
        earlier = await jobs.aio.runs.get(run.id) if _was_tried(run) else None
        attempt = _Attempt(task, args, kwargs, run, earlier)
        await task_started.asend_robust(attempt.sender, task_result=attempt.result)
        try:
            value = attempt.checked(await task.func(*attempt.args, **attempt.kwargs))
        except BaseException as error:
            if attempt.has_failed(error):
                await task_finished.asend_robust(attempt.sender, task_result=attempt.result)
            raise
        if attempt.has_succeeded(value):
            await task_finished.asend_robust(attempt.sender, task_result=attempt.result)
        return value

    made: Any = acall if inspect.iscoroutinefunction(task.func) else call
    # Its name and its words, but not its signature: Django's arguments are JSON, whatever the annotations say.
    update_wrapper(made, task.func, ("__module__", "__name__", "__qualname__", "__doc__"), ())
    del made.__wrapped__
    return made  # type: ignore[no-any-return]


def _was_tried(run: RunContext) -> bool:
    return run.claimed.token > 1


class _Attempt:
    """One call of a task, and its result as it changes."""

    def __init__(
        self, task: Task[..., Any], args: Any, kwargs: dict[str, Any], run: RunContext, earlier: Run | None
    ) -> None:
        self._run = run
        self._policy = load_policy(run.claimed.policy)
        metadata = kwargs.pop(ENQUEUE_METADATA, {})
        self.result = result_of(earlier, task) if earlier is not None else self._first(task, args, kwargs, metadata)
        self.args = (TaskContext(task_result=self.result), *args) if task.takes_context else args
        self.kwargs = kwargs

    def _first(
        self, task: Task[..., Any], args: Any, kwargs: dict[str, Any], metadata: dict[str, Any]
    ) -> TaskResult[Any]:
        """The result of the first attempt, for which nobody has to ask the ledger."""
        run = self._run.claimed
        enqueued_at, run_after = times_of(metadata, self._run.due_at)
        enqueued = with_metadata(
            task, metadata, run.trigger, priority=self._policy.priority, run_after=moment(run_after)
        )
        started_at = moment(_now() if run.started_at is None else from_micros(run.started_at))
        return TaskResult(
            task=enqueued,
            id=result_id(run.id),
            status=TaskResultStatus.RUNNING,
            enqueued_at=moment(enqueued_at),
            started_at=started_at,
            finished_at=None,
            last_attempted_at=started_at,
            args=list(args),
            kwargs=kwargs,
            backend=enqueued.backend,
            errors=[],
            worker_ids=[str(run.node)],
        )

    @property
    def sender(self) -> type[Any]:
        return sender_of(self.result)

    def checked(self, value: Any) -> Any:
        """What the task returned as it can be stored; raises if it cannot."""
        value = normalize_json(value)
        encoded = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
        most = get_jobs().settings.max_result
        if len(encoded) > most:
            raise Abort(
                f"returned {len(encoded):,} bytes of JSON, and a result may have {most:,} (the setting max_result); "
                "store it elsewhere, and return where it is"
            )
        if is_deeper(encoded):
            raise Abort("returned JSON that is nested too deep; return a flatter value")
        return value

    def has_failed(self, error: BaseException) -> bool:
        """Note it; answers whether this is the end of the run, as far as the task says."""
        if self._run.is_cancelled or isinstance(error, Snooze | asyncio.CancelledError):
            return False
        text = "".join(format_exception(type(error), error, error.__traceback__ and error.__traceback__.tb_next))
        path = f"{type(error).__module__}.{type(error).__qualname__}"
        self.result.errors.append(TaskError(exception_class_path=path, traceback=text))
        retry = self._policy.retry
        if not isinstance(error, Abort) and self._run.attempt <= retry.max and retry.covers is Covers.ALL:
            return False
        self._end(TaskResultStatus.FAILED)
        return True

    def has_succeeded(self, value: Any, stored: Callable[[], Run] | None = None) -> bool:
        """Note it; answers whether the run ends with that."""
        if self._run.saw_cancel:
            return False
        if self._run.is_cancelled and stored is not None and stored().state is not RunState.RUNNING:
            return False  # it was given up, which is told already
        object.__setattr__(self.result, "_return_value", value)
        self._end(TaskResultStatus.SUCCESSFUL)
        return True

    def _end(self, status: Any) -> None:
        object.__setattr__(self.result, "finished_at", moment(_now()))
        object.__setattr__(self.result, "status", status)


def sender_of(result: TaskResult[Any]) -> type[Any]:
    """The class of the backend that it was enqueued on."""
    try:
        return type(task_backends[result.backend])
    except InvalidTaskBackendError:  # its alias is not in TASKS any more
        from ostinato.integrations.django import OstinatoBackend

        return OstinatoBackend


def _now() -> Any:
    return from_micros(get_jobs().clock.now())


@cache
def listen() -> None:
    """Tell of ends that are not the task's own: cancelled, timed out, expired, a lost node, …"""
    for kind in (AppEventKind.RUN_FAILED, AppEventKind.RUN_CANCELLED, AppEventKind.RUN_SKIPPED):
        get_jobs().on(kind, _tell_end)


def _tell_end(event: AppEvent) -> None:
    task = _known.get(event.task or "")
    if task is None or event.run is None or event.cause in _TOLD_BY_TASK:
        return
    try:
        result = result_of(get_jobs().runs.get(event.run), task)
    except NotFound:
        return  # removed in the meantime
    with around_call():
        task_finished.send_robust(sender_of(result), task_result=result)
