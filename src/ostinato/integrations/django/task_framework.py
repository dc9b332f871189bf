"""Django's own tasks, by whichever module has them: `django.tasks` of Django 6, or the package `django-tasks` before.

The two have the same classes; the names that differ are settled here. Nothing else imports either of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ImproperlyConfigured

from ostinato.integrations.django.task_discovery import framework_name

if TYPE_CHECKING:
    from django_tasks import task_backends
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import DEFAULT_TASK_BACKEND_ALIAS as DEFAULT_ALIAS
    from django_tasks.base import DEFAULT_TASK_QUEUE_NAME as DEFAULT_QUEUE
    from django_tasks.base import Task, TaskContext, TaskError, TaskResult
    from django_tasks.exceptions import InvalidTaskBackendError, TaskResultDoesNotExist
    from django_tasks.signals import task_enqueued, task_finished, task_started
    from django_tasks.utils import normalize_json

    TaskResultStatus: Any
    """An enum of Django, which has no types."""

__all__ = [
    "DEFAULT_ALIAS",
    "DEFAULT_QUEUE",
    "BaseTaskBackend",
    "InvalidTaskBackendError",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultStatus",
    "normalize_json",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]

if not TYPE_CHECKING:
    _found = framework_name()
    if _found is None:
        raise ImproperlyConfigured(
            "OstinatoBackend is a backend for Django's tasks, which Django has from 6.0 on: install django-tasks"
        )
    task_backends = import_module(_found).task_backends
    BaseTaskBackend = import_module(f"{_found}.backends.base").BaseTaskBackend
    _base = import_module(f"{_found}.base")
    DEFAULT_ALIAS, DEFAULT_QUEUE = _base.DEFAULT_TASK_BACKEND_ALIAS, _base.DEFAULT_TASK_QUEUE_NAME
    Task, TaskContext, TaskError = _base.Task, _base.TaskContext, _base.TaskError
    TaskResult, TaskResultStatus = _base.TaskResult, _base.TaskResultStatus
    _exceptions = import_module(f"{_found}.exceptions")
    TaskResultDoesNotExist = _exceptions.TaskResultDoesNotExist
    InvalidTaskBackendError = getattr(_exceptions, "InvalidTaskBackendError", None) or _exceptions.InvalidTaskBackend
    _signals = import_module(f"{_found}.signals")
    task_enqueued, task_started = _signals.task_enqueued, _signals.task_started
    task_finished = _signals.task_finished
    normalize_json = import_module(
        "django.utils.json" if _found == "django.tasks" else f"{_found}.utils"
    ).normalize_json
