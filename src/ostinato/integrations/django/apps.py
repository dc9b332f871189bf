"""The app of Django: when all apps are loaded, it imports their `tasks.py` and watches for the process to serve."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules

__all__ = ["OstinatoConfig"]


class OstinatoConfig(AppConfig):
    """What `ostinato.integrations.django` in INSTALLED_APPS means."""

    name = "ostinato.integrations.django"
    label = "ostinato"
    verbose_name = "Ostinato"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from ostinato.integrations.django.router import install_router
        from ostinato.integrations.django.scheduler import get_jobs
        from ostinato.integrations.django.serving import watch
        from ostinato.integrations.django.task_discovery import make_backends

        jobs = get_jobs()  # wrong settings are told by every command
        install_router()
        make_backends()
        autodiscover_modules("tasks")
        watch(jobs)
