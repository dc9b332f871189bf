"""`manage.py list_tasks`: the tasks of the project, and the schedules that its code gives them. Opens no database."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from ostinato.integrations.django import jobs
from ostinato.integrations.django.management.columns import write_json, write_table

__all__ = ["Command"]


class Command(BaseCommand):
    """What was registered."""

    help = "List the tasks of this project, with the schedules that its code declares."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", dest="as_json", action="store_true", help="Print one JSON array.")

    def handle(self, *, as_json: bool = False, **_: Any) -> None:
        tasks = [_task(name) for name in sorted(jobs.registry.tasks)]
        if as_json:
            write_json(self.stdout, tasks)
            return
        rows = [
            (task["name"], task["kind"], _schedule(task["schedule"]), task["module"], task["description"] or "")
            for task in tasks
        ]
        otherwise = "no tasks: register functions in the tasks.py of an app, with ostinato.integrations.django.register"
        write_table(self.stdout, ("NAME", "KIND", "SCHEDULE", "MODULE", "WHAT"), rows, otherwise)


def _task(name: str) -> dict[str, Any]:
    definition, declared = jobs.registry.tasks[name], jobs.declared.get(name)
    kind = "process" if definition.isolation == "process" else "async" if definition.is_async else "sync"
    schedule = None
    if declared is not None:
        timing = declared.bound(jobs.settings.tz)
        schedule = {"timing": timing.text_within(timing.zone), "zone": timing.zone, "enabled": declared.enabled}
    return {
        "name": name,
        "kind": kind,
        "module": definition.function.__module__,
        "description": (definition.function.__doc__ or "").strip().partition("\n")[0] or None,
        "schedule": schedule,
    }


def _schedule(schedule: dict[str, Any] | None) -> str:
    if schedule is None:
        return "-"
    return str(schedule["timing"]) + ("" if schedule["enabled"] else " (off)")
