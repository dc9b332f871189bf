"""A backend for Django's own tasks: what they enqueue is a run of the ledger, and its result is read from there.

    TASKS = {"default": {"BACKEND": "ostinato.integrations.django.OstinatoBackend"}}

`task_calls.py` makes tasks of Ostinato of them, `task_results.py` results of their runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.apps import apps
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, transaction

from ostinato import Function, InvalidInput, NotFound, Run
from ostinato.clock import from_micros
from ostinato.config import is_in_memory
from ostinato.integrations.django.configuration import configured_ledger, is_testing
from ostinato.integrations.django.scheduler import DjangoOstinato, get_jobs
from ostinato.integrations.django.task_calls import find, known_task, listen, registered
from ostinato.integrations.django.task_framework import (
    DEFAULT_QUEUE,
    BaseTaskBackend,
    InvalidTaskBackendError,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    normalize_json,
    task_enqueued,
)
from ostinato.integrations.django.task_results import (
    ENQUEUE_METADATA,
    aware,
    metadata_of,
    moment,
    read_id,
    result_id,
    result_of,
)
from ostinato.models.lane import FALLBACK_LANE
from ostinato.models.policy import make_policy

__all__ = ["OstinatoBackend"]

_APP = "ostinato.integrations.django"
_OF_DJANGO = {"lane": "the queue_name of a task says it, and OPTIONS['lanes']", "priority": "the task says it"}
"""Policies that are no options."""
_lanes: set[tuple[str, str]] = set()
"""Those that were seen, by the database that they are in."""


class OstinatoBackend(BaseTaskBackend):
    """Runs of Django's tasks."""

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        try:
            options = _checked(self.options)
        except InvalidInput as error:
            raise InvalidTaskBackendError(f"OPTIONS of TASKS[{alias!r}]: {error}") from error
        self._lane_of: Mapping[str, str] = {DEFAULT_QUEUE: FALLBACK_LANE, **options.pop("lanes", {})}
        self._database: str | None = options.pop("transaction", None)
        self._policy: dict[str, Any] = {"retry": 0, **options}
        self._jobs.registry.find_task = find
        listen()

    @property
    def _jobs(self) -> DjangoOstinato:
        return get_jobs()

    def validate_task(self, task: Task[..., Any]) -> None:
        """Also where a task is defined, which registers it."""
        super().validate_task(task)
        registered(task, self._options_of(task))

    def enqueue(self, task: Task[..., Any], args: Any, kwargs: Any) -> TaskResult[Any]:
        self.validate_task(task)
        now = from_micros(self._jobs.clock.now())
        result, options = self._new_result(task, args, kwargs, now), self._options_of(task)
        if self._needs_lane(options["lane"]):
            self._jobs.lanes.get_or_create(options["lane"], self._limit_of(options["lane"]))
            self._note_lane(options["lane"])
        if self._database is not None:
            return self._enqueue_in_transaction(self._database, result, options, now)
        calls = registered(task, options).using(at=_due_at(task, now), **options)
        self._set_id(result, calls.enqueue(*result.args, **self._stored_kwargs(result, now)).id)
        task_enqueued.send(type(self), task_result=result)
        if self._may_have_run:
            result.refresh()
        return result

    async def aenqueue(self, task: Task[..., Any], args: Any, kwargs: Any) -> TaskResult[Any]:
        if self._database is not None:  # which belongs to the thread of the sync code
            return await super().aenqueue(task, args, kwargs)
        self.validate_task(task)
        now = from_micros(self._jobs.clock.now())
        result, options = self._new_result(task, args, kwargs, now), self._options_of(task)
        if self._needs_lane(options["lane"]):
            await self._jobs.aio.lanes.get_or_create(options["lane"], self._limit_of(options["lane"]))
            self._note_lane(options["lane"])
        calls = registered(task, options).using(at=_due_at(task, now), **options)
        self._set_id(result, await calls.aio.enqueue(*result.args, **self._stored_kwargs(result, now)))
        await task_enqueued.asend(type(self), task_result=result)
        if self._may_have_run:
            await result.arefresh()
        return result

    def get_result(self, result_id: str) -> TaskResult[Any]:
        try:
            return self._read(self._jobs.runs.get(read_id(result_id)), result_id)
        except NotFound:
            raise TaskResultDoesNotExist(result_id) from None

    async def aget_result(self, result_id: str) -> TaskResult[Any]:
        try:
            return self._read(await self._jobs.aio.runs.get(read_id(result_id)), result_id)
        except NotFound:
            raise TaskResultDoesNotExist(result_id) from None

    def check(self, **kwargs: Any) -> Iterable[checks.CheckMessage]:
        """Told by `manage.py check` and by every command that checks the project."""
        where = f"TASKS[{self.alias!r}]"
        if not apps.is_installed(_APP):
            yield checks.Error(
                f"{where} is OstinatoBackend, and {_APP!r} is not installed: nothing runs its tasks.",
                hint=f"Add {_APP!r} to INSTALLED_APPS.",
                id="ostinato.E001",
            )
        ledger = configured_ledger() if self._is_rehearsed else self._jobs.settings.db
        if (why := self._why_no_transaction(ledger)) is not None:
            yield checks.Error(
                f"OPTIONS['transaction'] of {where} {why}.",
                hint="Name the database whose PostgreSQL the ledger is in, or leave it out and use on_commit().",
                id="ostinato.E002",
            )
        unknown = sorted(self._lane_of.keys() - {DEFAULT_QUEUE} - self.queues) if self.queues else []
        if unknown:
            yield checks.Warning(
                f"OPTIONS['lanes'] of {where} names queues that are not in QUEUES: {', '.join(unknown)}.",
                hint="Add them to QUEUES, or leave them out.",
                id="ostinato.W001",
            )

    def _new_result(self, task: Task[..., Any], args: Any, kwargs: Any, now: datetime) -> TaskResult[Any]:
        """What cannot be JSON is refused here, by Django's own rules."""
        return TaskResult(
            task=task,
            id="",
            status=TaskResultStatus.READY,
            enqueued_at=moment(now),
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            args=normalize_json(list(args)),
            kwargs=kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )

    def _stored_kwargs(self, result: TaskResult[Any], now: datetime) -> dict[str, Any]:
        metadata = metadata_of(result.task, self.alias, now)
        return {**result.kwargs, ENQUEUE_METADATA: metadata} if metadata else result.kwargs

    def _set_id(self, result: TaskResult[Any], run: int) -> None:
        object.__setattr__(result, "id", result_id(run))

    def _enqueue_in_transaction(
        self, alias: str, result: TaskResult[Any], options: dict[str, Any], now: datetime
    ) -> TaskResult[Any]:
        """Through Django's own connection: committed or rolled back with what it does.

        No transaction reaches the ledger of tests, which is in memory: it is enqueued there at once.
        """
        if (why := self._why_no_transaction(None if self._is_rehearsed else self._jobs.settings.db)) is not None:
            raise ImproperlyConfigured(f"OPTIONS['transaction'] of TASKS[{self.alias!r}] {why}")
        at = _due_at(result.task, now)
        through: dict[str, Any] = {} if self._is_rehearsed else {"connection": connections[alias]}
        calls = registered(result.task, options).using(at=at, **through, **options)
        with transaction.atomic(using=alias):  # so that a refusal leaves nothing behind
            pending = calls.enqueue(*result.args, **self._stored_kwargs(result, now))
            if pending.id is None:
                raise ImproperlyConfigured(f"the ledger is in another PostgreSQL than DATABASES[{alias!r}]")
        self._set_id(result, pending.id)
        transaction.on_commit(lambda: task_enqueued.send(type(self), task_result=result), using=alias)
        if self._may_have_run:
            result.refresh()
        return result

    @property
    def _may_have_run(self) -> bool:
        """Whether this is a rehearsal, in which tasks may be executed where they are enqueued."""
        return self._jobs._enqueuer.at_once

    @property
    def _is_rehearsed(self) -> bool:
        """Whether a test has put the ledger where no transaction of Django can reach it."""
        jobs = self._jobs
        return self._may_have_run or (is_testing() and not _is_postgres(jobs.settings.db))

    def _why_no_transaction(self, ledger: str | None) -> str | None:
        alias = self._database
        if alias is None:
            return None
        if alias not in connections:
            return f"is {alias!r}, which is not in DATABASES"
        if connections[alias].vendor != "postgresql":
            return f"is {alias!r}, which is {connections[alias].vendor}: a ledger can share PostgreSQL alone"
        if ledger is not None and not _is_postgres(ledger):
            return f"is {alias!r}, and the ledger is not in PostgreSQL"
        return None

    def _options_of(self, task: Task[..., Any]) -> dict[str, Any]:
        lane = self._lane_of.get(task.queue_name, task.queue_name)
        return {**self._policy, "lane": lane, "priority": int(task.priority)}

    def _needs_lane(self, lane: str) -> bool:
        """Whether a lane may have to be made: that of a queue which nobody has used yet."""
        return lane != FALLBACK_LANE and (self._jobs.settings.db, lane) not in _lanes

    def _note_lane(self, lane: str) -> None:
        """It is there: nobody has to ask again."""
        database = self._jobs.settings.db
        if not is_in_memory(database):  # which is a new one, each time that it is opened
            _lanes.add((database, lane))

    def _limit_of(self, lane: str) -> int:
        limits = self._jobs.settings.lane_limits
        return limits.get(lane, limits[FALLBACK_LANE])

    def _read(self, run: Run, id: str) -> TaskResult[Any]:
        task = None if run.task is None else known_task(run.task)
        if task is None or not isinstance(run.work, Function):
            raise TaskResultDoesNotExist(id)
        return result_of(run, task)


def _checked(given: Any) -> dict[str, Any]:
    """The options; InvalidInput says what is wrong with them."""
    if not isinstance(given, Mapping):
        raise InvalidInput(f"they cannot be {given!r}: give a dict")
    options = dict(given)
    lanes, alias = options.pop("lanes", {}), options.pop("transaction", None)
    if not isinstance(lanes, Mapping) or not all(isinstance(name, str) for pair in lanes.items() for name in pair):
        raise InvalidInput(f"lanes cannot be {lanes!r}", hint='give the lanes of queues, such as {"letters": "team"}')
    if alias is not None and not isinstance(alias, str):
        raise InvalidInput(f"transaction cannot be {alias!r}", hint="give an alias of DATABASES, such as 'default'")
    for name in _OF_DJANGO.keys() & options.keys():
        raise InvalidInput(f"{name} is no option: {_OF_DJANGO[name]}")
    make_policy(options)
    return dict(given)


def _is_postgres(url: str) -> bool:
    return url.startswith(("postgresql:", "postgres:"))


def _due_at(task: Task[..., Any], now: datetime) -> datetime:
    """When it may start. The row has no other time of the enqueueing, so that it must be this very one."""
    return now if task.run_after is None else aware(task.run_after)
