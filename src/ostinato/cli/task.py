"""`ostinato task`: which tasks there are, who knows them, which schedules call them, and whether they run now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cyclopts import App

from ostinato.cli.console import Cell, Column, emit_json, table
from ostinato.cli.open_database import opened
from ostinato.cli.options import NO_COMMON, Common
from ostinato.cli.times import brief
from ostinato.plurals import counted

if TYPE_CHECKING:
    from datetime import datetime

    from ostinato.models.task import TaskInfo

__all__ = ["app"]

app = App(name="task", help="List the tasks that can be run.")


@app.command
def ls(*, common: Common = NO_COMMON) -> None:
    """List tasks: those of --app, those that running nodes know, and those that schedules call; with their schedules,
    since when they run, and when next."""
    with opened(common) as database:
        tasks = database.ask(database.services.tasks.list())
        now, zone = database.now, database.zone
    if common.json:
        emit_json(tasks)
        return
    columns = [
        Column("NAME", True),
        Column("KIND"),
        Column("SCHEDULES", True),
        Column("RUNNING"),
        Column("NEXT"),
        Column("KNOWN BY", True),
        Column("WHAT", True, optional=True),
    ]
    rows = [_row(task, zone, now) for task in tasks]
    none = "no tasks: name your app with --app module:attr, or start a node with 'ostinato worker'"
    table(columns, rows, otherwise=none)


def _row(task: TaskInfo, zone: str, now: datetime) -> list[Cell]:
    return [
        task.name,
        task.kind or "-",
        _schedules(task),
        _running(task, zone, now),
        "-" if task.next_run_at is None else brief(task.next_run_at, zone, now),
        ", ".join((["--app"] if task.app else []) + list(task.nodes)) or "-",
        task.description or "",
    ]


def _schedules(task: TaskInfo) -> str:
    """One by its timing, several by how many they are."""
    if task.schedule_count > 1:
        return counted(task.schedule_count, "schedule")
    return ", ".join(one.timing + ("" if one.enabled else " (off)") for one in task.schedules) or "-"


def _running(task: TaskInfo, zone: str, now: datetime) -> str:
    if not task.running:
        return "-"
    since = "" if task.running_since is None else f"since {brief(task.running_since, zone, now)}"
    return since if since and task.running == 1 else f"{task.running} {since}".rstrip()
