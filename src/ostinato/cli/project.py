"""`ostinato project`: names for folders, which schedules belong to and run in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cyclopts import App

from ostinato.cli.console import Cell, Column, Styled, emit_json, fields, say, table
from ostinato.cli.open_database import opened
from ostinato.cli.options import NO_COMMON, Common, Texts
from ostinato.cli.schedule.view import print_schedule
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
    with opened(common) as database:
        project = database.ask(database.services.projects.add(name, folder, env=variables))
    if common.json:
        _print(project)
    else:
        say(f"project {name!r} is {project.folder}")


@app.command
def ls(*, common: Common = NO_COMMON) -> None:
    """List projects, with their folders and how many schedules belong to them."""
    with opened(common) as database:
        projects = database.ask(database.services.projects.list())
    if common.json:
        emit_json(projects)
        return
    columns = [Column("NAME", flexible=True), Column("SCHEDULES"), Column("FOLDER", flexible=True)]
    if projects:
        table(columns, [_row(project) for project in projects])
    else:
        say("no projects: add one with 'ostinato project add NAME FOLDER'")


def _row(project: Project) -> list[Cell]:
    return [project.name, str(project.schedules), _folder(project)]


def _folder(project: Project) -> Cell:
    from pathlib import Path

    return project.folder if Path(project.folder).is_dir() else Styled(f"missing: {project.folder}", "red")


@app.command
def show(name: str, /, *, common: Common = NO_COMMON) -> None:
    """Show a project: its folder, its variables and its schedules.

    Parameters
    ----------
    name
        The project.
    """
    with opened(common) as database:
        project = database.ask(database.services.projects.get(name))
        if common.json:
            _print(project)
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
def rm(name: str, /, *, common: Common = NO_COMMON) -> None:
    """Remove a project; its folder stays. Refused while schedules belong to it.

    Parameters
    ----------
    name
        The project.
    """
    with opened(common) as database:
        database.ask(database.services.projects.remove(name))
    if common.json:
        emit_json({"name": name, "removed": True})
    else:
        say(f"removed: project {name!r}; its folder stays")


@app.command(name="set")
def set_project(schedule: str, /, *project: str, common: Common = NO_COMMON) -> None:
    """Put a schedule into a project, or take it out of its project.

    Parameters
    ----------
    schedule
        The schedule.
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
        changed = database.ask(database.services.schedules.edit(schedule, project=wanted[0]))
        if common.json:
            print_schedule(database, changed, as_json=True)
        elif wanted[0] == NOTHING:
            say(f"schedule {schedule!r} belongs to no project")
        else:
            say(f"schedule {schedule!r} belongs to project {wanted[0]!r}")


def _print(project: Project) -> None:
    emit_json(project)
