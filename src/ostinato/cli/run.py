"""`ostinato run`: every verb of a run. Printing is in `run_view.py`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from ostinato.cli.console import emit, emit_json, emit_json_line, say
from ostinato.cli.opening import Visit, opened
from ostinato.cli.options import NO_COMMON, Common
from ostinato.cli.run_view import print_run, print_runs

if TYPE_CHECKING:
    from ostinato.models.run import Run

__all__ = ["app", "ended", "list_runs", "tell_end"]

app = App(name="run", help="List, show, cancel, retry and wait for runs.")

_LOOK_SECONDS = 0.25


@app.command
def ls(
    *,
    schedule: str | None = None,
    state: list[str] | None = None,
    task: str | None = None,
    session: str | None = None,
    limit: Annotated[int, Parameter(alias="-n", show_default=True)] = 20,
    common: Common = NO_COMMON,
) -> None:
    """List runs, the newest first.

    Parameters
    ----------
    schedule
        Only runs of this schedule.
    state
        Only runs in this state, such as failed; may be given again.
    task
        Only runs of this task.
    session
        Only runs of this session, such as dm:42.
    limit
        At most so many.
    """
    list_runs(common, schedule=schedule, state=state, task=task, session=session, limit=limit)


def list_runs(
    common: Common,
    *,
    schedule: str | None = None,
    state: list[str] | None,
    task: str | None = None,
    session: str | None = None,
    limit: int,
) -> None:
    """The list of `run ls` and of `schedule runs`."""
    with opened(common) as visit:
        wanted = visit.services.runs.list(schedule=schedule, task=task, session=session, state=state, limit=limit)
        found = visit.ask(wanted)
        print_runs(visit, found, as_json=common.json)


@app.command
def show(id: int, /, *, common: Common = NO_COMMON) -> None:
    """Show a run: state, reason, attempts, totals, progress, result and error.

    Parameters
    ----------
    id
        The number of the run.
    """
    with opened(common) as visit:
        print_run(visit, visit.ask(visit.services.runs.get(id)), as_json=common.json)


@app.command
def logs(id: int, /, *, follow: Annotated[bool, Parameter(alias="-f")] = False, common: Common = NO_COMMON) -> None:
    """Print what a run has printed and logged so far.

    Parameters
    ----------
    id
        The number of the run.
    follow
        Go on until it has ended.
    """
    with opened(common) as visit:
        if follow:
            _follow(visit, id, as_json=common.json)
            return
        output = visit.ask(visit.services.runs.output(id))
        if common.json:
            emit_json({"id": id, "output": output})
        elif output:
            emit(output.removesuffix("\n"))


def _follow(visit: Visit, id: int, *, as_json: bool) -> None:
    """Print what is new at each look; all of it again when output past its cap has lost its middle."""
    seen = ""
    while True:
        # The state first: what is printed before an end is in the output that is read after it.
        run = visit.ask(visit.services.runs.get(id))
        output = visit.ask(visit.services.runs.output(id))
        new = output.removeprefix(seen)
        seen = output
        for line in new.splitlines():
            if as_json:
                emit_json_line({"id": id, "line": line})
            else:
                emit(line)
        if run.ended:
            if not as_json:
                say(f"run {id} {run.state}" + (f": {run.reason}" if run.reason else ""))
            return
        time.sleep(_LOOK_SECONDS)


@app.command
def cancel(id: int, /, *, common: Common = NO_COMMON) -> None:
    """Cancel a run: a queued one ends at once, a running one is told to stop.

    Parameters
    ----------
    id
        The number of the run.
    """
    with opened(common) as visit:
        run = visit.ask(visit.services.runs.cancel(id))
        if common.json:
            print_run(visit, run, as_json=True)
        elif run.ended:
            say(f"run {id} is cancelled")
        else:
            say(f"run {id} was told to stop on node {run.node}; 'ostinato run wait {id}' waits for its end")


@app.command
def retry(id: int, /, *, common: Common = NO_COMMON) -> None:
    """Do the work of an ended run again, now, as a new run. Prints its number.

    Parameters
    ----------
    id
        The number of the run.
    """
    with opened(common) as visit:
        run = visit.ask(visit.services.runs.retry(id))
        if common.json:
            print_run(visit, run, as_json=True)
        else:
            emit(str(run.id))
            say(f"run {run.id} does the work of run {id} again")


@app.command
def wait(id: int, /, *, timeout: str | None = None, common: Common = NO_COMMON) -> int:
    """Wait until a run has ended: exit code 0 if it succeeded, 1 if not, 5 if the wait timed out.

    Parameters
    ----------
    id
        The number of the run.
    timeout
        Wait at most so long, such as 30s.
    """
    with opened(common) as visit:
        return ended(visit, id, timeout, as_json=common.json)


def ended(visit: Visit, id: int, timeout: str | None, *, as_json: bool) -> int:
    """Wait for the end of a run and tell it; the exit code says whether it succeeded."""
    if not as_json:
        say(f"waiting for run {id} to end")
    return tell_end(visit, visit.ask(visit.services.runs.wait(id, timeout=timeout)), as_json=as_json)


def tell_end(visit: Visit, run: Run, *, as_json: bool) -> int:
    """Say how a run ended; the exit code says whether it succeeded."""
    if as_json:
        print_run(visit, run, as_json=True)
    else:
        say(f"run {run.id} {run.state}" + (f": {run.reason}" if run.reason else ""))
    return 0 if run.state == "succeeded" else 1
