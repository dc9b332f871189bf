"""`ostinato project`: names for folders, which schedules belong to and run in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cyclopts import App

from ostinato.cli.console import Cell, Column, Styled, emit_json, fields, table, tell
from ostinato.cli.open_database import opened
from ostinato.cli.options import NO_COMMON, Common, ProjectName, ScheduleName, Texts
from ostinato.cli.schedule.view import tell_schedule
from ostinato.cli.times import full
from ostinato.cli.work import NOTHING, work_env
from ostinato.errors import InvalidInput

if TYPE_CHECKING:
    from ostinato.models.project import Project

__all__ = ["app"]

app = App(name="project", help="Add, list and remove projects, and put schedules into them.")

_FILLER = "project"
"""What may stand between the schedule and its project: `project set nightly project blog`."""


@app.command
def add(name: str, folder: str, /, *, env: Texts = None, common: Common = NO_COMMON) -> None:
    """Add a project, or give the one of this name another folder. Doing it twice changes nothing.

    Parameters
    ----------
    name
        What it is called.
    folder
        Where its schedules run: an existing folder, relative to the current one.
    env
        A variable for its schedules, NAME=VALUE; VALUE may be env:NAME or file:PATH, read at each start. May be given
        again; replaces the existing ones, and 'none' removes them.
    """
    variables = None if env is None else work_env(env, {})
    with opened(common, create=True) as database:
        project = database.ask(database.services.projects.add(name, folder, env=variables))
    tell(project, f"project {name!r} is {project.folder}", as_json=common.json)


@app.command
def ls(*, common: Common = NO_COMMON) -> None:
    """List projects, with their folders and how many schedules belong to them."""
    with opened(common) as database:
        projects = database.ask(database.services.projects.list())
    if common.json:
        emit_json(projects)
        return
    columns = [Column("NAME", flexible=True), Column("SCHEDULES"), Column("FOLDER", flexible=True)]
    rows: list[list[Cell]] = [[project.name, str(project.schedules), _folder(project)] for project in projects]
    table(columns, rows, otherwise="no projects: add one with 'ostinato project add NAME FOLDER'")


def _folder(project: Project) -> Cell:
    from pathlib import Path

    return project.folder if Path(project.folder).is_dir() else Styled(f"missing: {project.folder}", "red")


@app.command
def show(name: ProjectName, /, *, common: Common = NO_COMMON) -> None:
    """Show a project: its folder, its variables and its schedules."""
    with opened(common) as database:
        project = database.ask(database.services.projects.get(name))
        if common.json:
            emit_json(project)
            return
        schedules = database.ask(database.services.schedules.list(project=name))
        fields(
            [
                ("name", project.name),
                ("folder", _folder(project)),
                ("env", "\n".join(f"{variable}={value}" for variable, value in project.env.items())),
                ("schedules", ", ".join(schedule.name for schedule in schedules) or "none"),
                ("created", full(project.created_at, database.zone)),
            ]
        )


@app.command
def rm(name: ProjectName, /, *, common: Common = NO_COMMON) -> None:
    """Remove a project; its folder stays. Refused while schedules belong to it."""
    with opened(common) as database:
        database.ask(database.services.projects.remove(name))
    text = f"removed: project {name!r}; its folder stays"
    tell({"name": name, "removed": True}, text, as_json=common.json)


@app.command(name="set")
def set_project(schedule: ScheduleName, /, *project: str, common: Common = NO_COMMON) -> None:
    """Put a schedule into a project, or take it out of its project.

    Parameters
    ----------
    project
        The project; 'none' for none.
    """
    wanted = list(project)
    if len(wanted) == 2 and wanted[0] == _FILLER:
        del wanted[0]
    if len(wanted) != 1:
        raise InvalidInput(
            "give a schedule and a project", field="project", hint="as in 'ostinato project set nightly blog', or none"
        )
    with opened(common) as database:
        schedule = database.schedule_name(schedule)
        changed = database.ask(database.services.schedules.edit(schedule, project=wanted[0]))
        place = "no project" if wanted[0] == NOTHING else f"project {wanted[0]!r}"
        tell_schedule(database, changed, f"schedule {schedule!r} belongs to {place}", as_json=common.json)
