"""What `ostinato doctor` finds in the work of schedules: folders, agents, interpreters, holidays and tasks that are
not there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ostinato.cli.finding import Finding, named
from ostinato.command_hints import hint
from ostinato.models.work_kinds import is_task
from ostinato.plurals import counted

if TYPE_CHECKING:
    from ostinato.cli.open_database import OpenDatabase
    from ostinato.config import Settings
    from ostinato.models.node import Node
    from ostinato.models.schedule import Schedule
    from ostinato.models.work import Unreadable
    from ostinato.models.work_kinds import Work

__all__ = ["examine_work", "missing_interpreter"]

_MOST = 1_000
"""How many queued runs are looked at."""


def examine_work(
    database: OpenDatabase, schedules: Sequence[Schedule], alive: Sequence[Node], known: set[str]
) -> Iterator[Finding]:
    """Everything that schedules need besides the database; known are the tasks that a node, or this app, has."""
    yield _tasks(schedules, known, alive)
    yield from _queued(database, known, alive)
    yield from _projects(database)
    yield from _agents(schedules, database.app.settings)
    yield from _interpreters(schedules)
    yield from _holidays(schedules)
    yield from _kinds()


def _tasks(schedules: Sequence[Schedule], known: set[str], alive: Sequence[Node]) -> Finding:
    wanted = {one.work.needs for one in schedules if one.work.needs is not None and one.next_run_at is not None}
    missing = sorted(wanted - known)
    if not missing:
        return Finding(
            "tasks", "ok", counted(len(wanted), "is scheduled, and known", "are scheduled, all of them known")
        )
    fix = f"{_start(missing)}, or edit the schedules"
    return Finding("tasks", "warn", f"not registered on {_where(alive)}: {named(missing)}", fix)


def _start(missing: Sequence[str]) -> str:
    """How a node comes to know these."""
    packages = "" if all(map(is_task, missing)) else ", with the packages of kind:NAME installed"
    return f"start a node whose --app registers them{packages}"


def _where(alive: Sequence[Node]) -> str:
    return "any running node" if alive else "this app, and no engine is running"


def _queued(database: OpenDatabase, known: set[str], alive: Sequence[Node]) -> Iterator[Finding]:
    """Runs that wait for a task that nobody has."""
    queued = database.ask(database.services.runs.list(state="queued", limit=_MOST))
    waiting = [run for run in queued if run.task is not None and run.task not in known]
    if waiting:
        missing = sorted({str(run.task) for run in waiting})
        many = f"{len(waiting)} queued runs wait" if len(waiting) > 1 else f"run {waiting[0].id} waits"
        fix = f"{_start(missing)}, or cancel the runs with 'ostinato run cancel ID'"
        text = f"{many} for tasks that are not registered on {_where(alive)}: {named(missing)}"
        yield Finding("queue", "warn", text, fix)


def _projects(database: OpenDatabase) -> Iterator[Finding]:
    projects = database.ask(database.services.projects.list())
    missing = [project for project in projects if not os.path.isdir(project.folder)]
    for project in missing:
        fix = f"create it, or correct it with {hint('project add', project.name, 'FOLDER')}"
        text = f"the folder of {project.name!r}, {project.folder}, does not exist on this machine"
        yield Finding("projects", "warn", text, fix)
    if projects and not missing:
        yield Finding("projects", "ok", f"{len(projects)}, all of their folders exist")


def _agents(schedules: Sequence[Schedule], settings: Settings) -> Iterator[Finding]:
    """Agents that schedules name: each must be set, and its program be found."""
    from ostinato.models.work import Agent

    wanted: dict[str, list[str]] = {}
    for schedule in schedules:
        if isinstance(schedule.work, Agent) and schedule.next_run_at is not None:
            wanted.setdefault(schedule.work.cli, []).append(schedule.name)
    good = 0
    for name, users in sorted(wanted.items()):
        cli = settings.agent_clis.get(name)
        if cli is None:
            fix = f"write [agents.{name}] with its command into ostinato.toml, or edit the schedules"
            yield Finding("agents", "warn", f"{name!r}, used by {named(users)}, is not configured", fix)
        elif shutil.which(cli.command[0]) is None:
            fix = f"install it, or set its full path as the command of [agents.{name}] in ostinato.toml"
            text = f"{name!r}, used by {named(users)}: its program {cli.command[0]!r} is not in PATH here"
            yield Finding("agents", "warn", text, fix)
        else:
            good += 1
    if wanted and good == len(wanted):
        yield Finding("agents", "ok", f"found {named(sorted(wanted))}")


def missing_interpreter(work: Work | Unreadable) -> str | None:
    """The interpreter that a command names, if it is not there on this machine."""
    from ostinato.models.work import Shell

    if not isinstance(work, Shell) or work.interpreter is None:
        return None
    path = work.env.get("PATH", os.environ.get("PATH", os.defpath))
    is_reference = path.startswith(("env:", "file:"))  # which the node reads
    return None if is_reference or shutil.which(work.interpreter, path=path) else work.interpreter


def _interpreters(schedules: Sequence[Schedule]) -> Iterator[Finding]:
    """Interpreters that commands name."""
    missing: dict[str, list[str]] = {}
    for schedule in schedules:
        if schedule.next_run_at is not None and (name := missing_interpreter(schedule.work)) is not None:
            missing.setdefault(name, []).append(schedule.name)
    for name, users in sorted(missing.items()):
        fix = "install it, or edit the schedules with 'ostinato schedule edit NAME --interpreter …'"
        yield Finding("interpreters", "warn", f"{name!r}, used by {named(users)}, is not on this machine", fix)


def _holidays(schedules: Sequence[Schedule]) -> Iterator[Finding]:
    """Holidays that timings name, without the package that knows them."""
    from ostinato.timing.public_holidays import lacks_package

    if users := [one.name for one in schedules if lacks_package(one.timing)]:
        text = (
            f"the package that computes them, for {named(users)}, is not installed here; a node without it breaks them"
        )
        yield Finding("holidays", "warn", text, "pip install 'ostinato[holidays]', on each node")


def _kinds() -> Iterator[Finding]:
    """Kinds of work that packages add."""
    from ostinato.models.installed_kinds import GROUP, added_kinds, kind_faults

    for name, why in kind_faults():
        fix = f"fix or uninstall it; its entry point is {name!r} of {GROUP}"
        yield Finding("kinds", "warn", f"{name} work cannot be loaded: {why}", fix)
    if added_kinds():
        yield Finding("kinds", "ok", f"packages add {named(sorted(added_kinds()))}")
