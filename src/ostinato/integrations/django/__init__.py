"""Django: add `ostinato.integrations.django` to INSTALLED_APPS, and register tasks in the `tasks.py` of any app.

`jobs` is the project's Ostinato. It is made at its first use, of Django's settings; `apps.py` finds the tasks, and
`serving.py` starts the engine in the processes that serve.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ostinato.app import Ostinato
    from ostinato.integrations.django.asgi import mount
    from ostinato.integrations.django.configuration import database_url
    from ostinato.integrations.django.task_backend import OstinatoBackend

    jobs = Ostinato()
    register = jobs.task

__all__ = ["OstinatoBackend", "database_url", "jobs", "mount", "register"]

_PLACES = {"OstinatoBackend": "task_backend", "database_url": "configuration", "mount": "asgi"}


def __getattr__(name: str) -> Any:
    # Lazily: Django imports this package before its models, and settings may be read only when they are complete.
    if name in ("jobs", "register"):
        from ostinato.integrations.django.scheduler import get_jobs

        return get_jobs() if name == "jobs" else get_jobs().task
    if name in _PLACES:
        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
