"""Whether this project has Django's own tasks, and backends of ours for them; `apps.py` asks when it starts.

It imports neither of the modules that may have them: most projects have none.
"""

from __future__ import annotations

from importlib.util import find_spec

from django.conf import settings
from django.utils.module_loading import import_string

__all__ = ["framework_name", "make_backends"]

_PACKAGE, _OF_DJANGO = "django_tasks", "django.tasks"


def framework_name() -> str | None:
    """The module that this project has its tasks of; None if there is none."""
    is_chosen = any(app == _PACKAGE or app.startswith(f"{_PACKAGE}.") for app in settings.INSTALLED_APPS)
    names = (_PACKAGE, _OF_DJANGO) if is_chosen else (_OF_DJANGO, _PACKAGE)
    return next((name for name in names if find_spec(name) is not None), None)


def make_backends() -> None:
    """Make those of TASKS that are ours, so that a node can find their tasks before any of them is defined."""
    given = getattr(settings, "TASKS", None)
    if not isinstance(given, dict) or framework_name() is None:
        return
    from ostinato.integrations.django.task_backend import OstinatoBackend
    from ostinato.integrations.django.task_framework import task_backends

    for alias, params in given.items():
        try:
            found = import_string(params["BACKEND"])
        except (ImportError, KeyError, TypeError):
            continue  # told by whoever asks for it
        if isinstance(found, type) and issubclass(found, OstinatoBackend):
            task_backends[alias]
