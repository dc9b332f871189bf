"""`manage.py task_schedule`: when what is due next, as the ledger has it, and what the code declares beside it."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ostinato.cli.open_database import database_exists
from ostinato.errors import OstinatoError
from ostinato.integrations.django import jobs
from ostinato.integrations.django.management.columns import write_json, write_table
from ostinato.models.schedule import Schedule
from ostinato.service.answers import schedule_answer

__all__ = ["Command"]

_NOT_STORED = "declared; it is stored when an engine starts"


class Command(BaseCommand):
    """Schedules."""

    help = "List the schedules: their timings, when they are due next, and how they ended last."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", dest="as_json", action="store_true", help="Print one JSON array.")

    def handle(self, *, as_json: bool = False, **_: Any) -> None:
        try:
            found = jobs.schedules.list() if database_exists(jobs) else []
        except OstinatoError as error:
            raise CommandError(str(error)) from error
        new = sorted(jobs.declared.keys() - {schedule.name for schedule in found})
        if as_json:
            write_json(self.stdout, [*map(schedule_answer, found), *map(_declared, new)])
            return
        rows = [_row(schedule) for schedule in found]
        rows += [(name, jobs.declared[name].bound(jobs.settings.tz).text, _NOT_STORED, "-", "-") for name in new]
        write_table(self.stdout, ("NAME", "TIMING", "STATE", "NEXT", "LAST"), rows, "no schedules")
        if rows:
            self.stdout.write(f"times in {jobs.settings.tz}")


def _declared(name: str) -> dict[str, Any]:
    """What the code says of a schedule that the ledger does not have yet."""
    declared = jobs.declared[name]
    timing = declared.bound(jobs.settings.tz)
    zone, enabled = timing.zone, declared.enabled
    return {
        "name": name,
        "timing": timing.text_within(timing.zone),
        "zone": zone,
        "enabled": enabled,
        "state": "declared",
    }


def _row(schedule: Schedule) -> tuple[str, str, str, str, str]:
    last = schedule.last_run
    next_at = "-" if schedule.next_run_at is None else _time(schedule.next_run_at)
    return (
        schedule.name,
        schedule.timing,
        str(schedule.state),
        next_at,
        "-" if last is None else f"{last.state} {_time(last.finished_at or last.due_at)}",
    )


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(ZoneInfo(jobs.settings.tz)):%Y-%m-%d %H:%M:%S}"
