"""`ostinato run`: every verb of a run. Printing is in `run_view.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from ostinato.cli.console import emit, say
from ostinato.cli.next_page import say_next, skipped_by
from ostinato.cli.open_database import OpenDatabase, opened
from ostinato.cli.options import NO_COMMON, Causes, Common, Limit, PageNumber, RunAfter, RunNumber, WaitTime
from ostinato.cli.output import OutputPrinter
from ostinato.cli.run_view import print_run, print_runs, tell

if TYPE_CHECKING:
    from ostinato.models.run import Run

__all__ = ["app", "ended", "list_runs", "tell_end"]

app = App(name="run", help="List, show, follow, cancel, retry and wait for runs.")


@app.command
def ls(
    *,
    search: str | None = None,
    schedule: str | None = None,
    state: list[str] | None = None,
    cause: Causes = None,
    task: str | None = None,
    session: str | None = None,
    project: str | None = None,
    limit: Limit = 20,
    after: RunAfter = None,
    page: PageNumber = 1,
    common: Common = NO_COMMON,
) -> None:
    """List runs, the newest first.

    Parameters
    ----------
    search
        Only runs whose schedule, task or session has this in its name.
    schedule
        Only runs of this schedule, by its name or its number.
    state
        Only runs in this state, such as failed; may be given again.
    task
        Only runs of this task.
    session
        Only runs of this session, such as dm:42.
    project
        Only runs of this project; 'none' for those without a project.
    """
    of = {"search": search, "schedule": schedule, "task": task, "session": session, "project": project}
    list_runs(common, "run ls", (), of | {"state": state, "cause": cause}, limit=limit, after=after, page=page)


def list_runs(
    common: Common,
    verb: str,
    names: Sequence[str],
    of: Mapping[str, Any],
    *,
    limit: int,
    after: int | None,
    page: int,
) -> None:
    """The list of `run ls` and of `schedule runs`, with the command for its next page."""
    skipped = skipped_by(page, limit, after)
    with opened(common) as database:
        asked = dict(of)
        if asked.get("schedule") is not None:
            asked["schedule"] = database.schedule_name(asked["schedule"])
        found = database.ask(database.services.runs.list(**asked, before=after, limit=skipped + limit + 1))
        shown = found[skipped : skipped + limit]
        print_runs(database, shown, as_json=common.json)
    if len(found) > skipped + limit and not common.json:
        flags = of if not names else {name: value for name, value in of.items() if name != "schedule"}
        say_next(verb, names, {**flags, "limit": limit, "after": shown[-1].id})


@app.command
def show(id: RunNumber, /, *, common: Common = NO_COMMON) -> None:
    """Show a run: state, cause, reason, attempts, totals, progress, result and error."""
    with opened(common) as database:
        print_run(database, database.ask(database.services.runs.look(id)), as_json=common.json, explain=True)


@app.command
def logs(
    id: RunNumber,
    /,
    *,
    follow: Annotated[bool, Parameter(alias="-f")] = False,
    timestamps: Annotated[bool, Parameter(alias="-t")] = False,
    common: Common = NO_COMMON,
) -> None:
    """Print what a run has printed and logged so far.

    Parameters
    ----------
    follow
        Go on until it has ended.
    timestamps
        Start each line with its time, in UTC.
    """
    from ostinato.models.ids import RunId

    printed = OutputPrinter(RunId(id), as_json=common.json, stamps=timestamps)
    with opened(common) as database:
        runs = database.services.runs
        if not follow:
            for line in database.ask(runs.lines(id)):
                printed(line)
            return

        _warn_of_no_engine(database, id)

        async def tell_lines() -> None:
            async for line in runs.follow(id):
                printed(line)

        database.ask(tell_lines())
        if not common.json:
            say(tell(database.ask(runs.get(id))))


@app.command
def cancel(id: RunNumber, /, *, common: Common = NO_COMMON) -> None:
    """Cancel a run: a queued one ends at once, a running one is told to stop."""
    with opened(common) as database:
        run = database.ask(database.services.runs.cancel(id))
        if common.json:
            print_run(database, run, as_json=True)
        elif run.ended:
            say(f"run {id} is cancelled")
        else:
            say(f"run {id} was told to stop on node {run.node}; 'ostinato run wait {id}' waits for its end")


@app.command
def retry(id: RunNumber, /, *, common: Common = NO_COMMON) -> None:
    """Do the work of an ended run again, now, as a new run. Prints its number."""
    with opened(common) as database:
        run = database.ask(database.services.runs.retry(id))
        if common.json:
            print_run(database, run, as_json=True)
        else:
            emit(str(run.id))
            say(f"run {run.id} does the work of run {id} again")


@app.command
def wait(id: RunNumber, /, *, timeout: WaitTime = None, common: Common = NO_COMMON) -> int:
    """Wait until a run has ended: exit code 0 if it succeeded, 1 if not, 5 if the wait timed out."""
    with opened(common) as database:
        _warn_of_no_engine(database, id)
        return ended(database, id, timeout, as_json=common.json)


def _warn_of_no_engine(database: OpenDatabase, id: int) -> None:
    """Say why nothing happens to a run that somebody begins to wait for."""
    from ostinato.cli.schedule.view import warn_of_no_engine

    if not database.ask(database.services.runs.get(id)).ended:
        warn_of_no_engine(database)


def ended(database: OpenDatabase, id: int, timeout: str | None, *, as_json: bool) -> int:
    """Wait for the end of a run and tell it; the exit code says whether it succeeded."""
    if not as_json:
        say(f"waiting for run {id} to end")
    return tell_end(database, database.ask(database.services.runs.wait(id, timeout=timeout)), as_json=as_json)


def tell_end(database: OpenDatabase, run: Run, *, as_json: bool) -> int:
    """Say how a run ended; the exit code says whether it succeeded."""
    if as_json:
        print_run(database, run, as_json=True)
    else:
        say(tell(run))
    return 0 if run.state == "succeeded" else 1
