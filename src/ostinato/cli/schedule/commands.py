"""`ostinato schedule`: the verbs of a schedule. Beside it: `change.py` (add, edit), `backfill.py`,
`import_crontab.py`, `keys.py` (ping-key, badge) and `view.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import App, Parameter

from ostinato.cli.console import confirmed, emit, say, tell
from ostinato.cli.next_page import say_next, skipped_by
from ostinato.cli.open_database import OpenDatabase, opened
from ostinato.cli.options import (
    NO_COMMON,
    Causes,
    Common,
    Limit,
    PageNumber,
    RunAfter,
    ScheduleName,
    Wait,
    WaitTime,
    Yes,
)
from ostinato.cli.run import ended, list_runs
from ostinato.cli.run_view import print_run
from ostinato.cli.schedule.backfill import backfill
from ostinato.cli.schedule.change import add, edit
from ostinato.cli.schedule.import_crontab import import_crontab
from ostinato.cli.schedule.keys import badge, ping_key
from ostinato.cli.schedule.view import (
    print_schedule,
    print_schedules,
    tell_next,
    tell_schedule,
    warn_of_no_engine,
    warn_of_unknown_task,
)
from ostinato.models.states import ACTIVE

__all__ = ["app"]

_ALL, _PAGE = 1_000_000_000, 20
"""How many schedules are listed where nothing is said, and where only a page is named."""

app = App(name="schedule", help="Add, list, change, trigger and remove schedules.")
app.command(add)
app.command(edit)
app.command(backfill)
app.command(import_crontab)
app.command(ping_key)
app.command(badge)


@app.command
def ls(
    *,
    search: str | None = None,
    project: str | None = None,
    state: str | None = None,
    all: bool = False,
    limit: int | None = None,
    page: PageNumber = 1,
    common: Common = NO_COMMON,
) -> None:
    """List schedules, the soonest first.

    Parameters
    ----------
    search
        Only those whose name, task, note or project has this in it.
    project
        Only those of this project; 'none' for those without a project.
    state
        Only those that are on, off, broken, running, paused, finished or orphaned; or failing: of their runs that
        succeeded or failed, the last one failed.
    all
        Also those that are finished.
    limit
        At most this many.
    """
    size = limit if limit is not None else _PAGE if page > 1 else _ALL
    skipped = 0 if size == _ALL else skipped_by(page, size)
    with opened(common) as database:
        schedules = database.services.schedules
        wanted: dict[str, Any] = {"search": search, "project": project, "state": state}
        found = database.ask(schedules.page(**wanted, limit=skipped + size))
        shown = [one.schedule for one in found.items[skipped:]]
        everything = all or state == "finished"
        print_schedules(database, shown, as_json=common.json, everything=everything)
    if found.next is not None and not common.json:
        say_next("schedule ls", (), {**wanted, "all": all, "limit": limit, "page": page + 1})


@app.command
def show(name: ScheduleName, /, *, common: Common = NO_COMMON) -> None:
    """Show a schedule: when, what, its policy, its state and its last run."""
    with opened(common) as database:
        name = database.schedule_name(name)
        schedule = database.ask(database.services.schedules.get(name))
        print_schedule(database, schedule, as_json=common.json)
        warn_of_unknown_task(database, schedule)


@app.command
def enable(name: ScheduleName, /, *, common: Common = NO_COMMON) -> None:
    """Switch a schedule on and clear what broke it. Its checks must pass."""
    with opened(common) as database:
        name = database.schedule_name(name)
        before = database.ask(database.services.schedules.get(name))
        schedule = database.ask(database.services.schedules.enable(name))
        warn_of_unknown_task(database, schedule)
        tell_schedule(database, schedule, f"on: {tell_next(database, schedule)}", before, as_json=common.json)


@app.command
def disable(
    name: ScheduleName,
    /,
    *,
    note: str | None = None,
    keep_retries: Annotated[bool, Parameter(negative=())] = False,
    common: Common = NO_COMMON,
) -> None:
    """Switch a schedule off. What runs goes on; what waits for another attempt is cancelled.

    Parameters
    ----------
    note
        Why; shown by 'show' and 'why'.
    keep_retries
        Let what waits for another attempt go on.
    """
    with opened(common) as database:
        name = database.schedule_name(name)
        before = database.ask(database.services.schedules.get(name))
        schedule = database.ask(database.services.schedules.disable(name, note=note, keep_retries=keep_retries))
        text = f"off: {name!r}" + (f" ({schedule.off_note})" if schedule.off_note else "")
        tell_schedule(database, schedule, text, before, as_json=common.json)
        if not common.json:
            _tell_what_goes_on(database, name)


def _tell_what_goes_on(database: OpenDatabase, name: str) -> None:
    """Which runs of a schedule that was switched off go on or stay queued, and how to end one."""
    active = database.ask(database.services.runs.list(schedule=name, state=sorted(ACTIVE)))
    begun = [run.id for run in reversed(active) if run.attempt]
    waiting = [run.id for run in reversed(active) if not run.attempt]
    told = []
    if begun:
        told.append(f"{_named(begun)} {'goes' if len(begun) == 1 else 'go'} on, with the retries that are left")
    if waiting:
        told.append(f"{_named(waiting)} {'stays' if len(waiting) == 1 else 'stay'} queued")
    if told:
        say(f"{'; '.join(told)}; 'ostinato run cancel ID' ends one")


def _named(ids: Sequence[int]) -> str:
    return f"{'run' if len(ids) == 1 else 'runs'} {', '.join(map(str, ids))}"


@app.command
def revert(name: ScheduleName, /, *, field: list[str] | None = None, common: Common = NO_COMMON) -> None:
    """Give a schedule that code declares back what the code says; 'show' lists what people changed.

    Parameters
    ----------
    field
        Only this one: timing, work, project, enabled, or a policy such as timeout; may be given again.
    """
    with opened(common) as database:
        name = database.schedule_name(name)
        schedules = database.services.schedules
        before = database.ask(schedules.get(name)).version
        schedule = database.ask(schedules.revert(name, field))
        did = "unchanged" if schedule.version == before else "as the code says"
        tell_schedule(database, schedule, f"{did}: {tell_next(database, schedule)}", as_json=common.json)


@app.command
def trigger(
    name: ScheduleName,
    /,
    *,
    force: bool = False,
    wait: Wait = False,
    timeout: WaitTime = None,
    common: Common = NO_COMMON,
) -> int:
    """Run a schedule now. Prints the number of the run.

    Parameters
    ----------
    force
        Even if a run of it is under way and its overlap policy forbids it.
    """
    with opened(common) as database:
        name = database.schedule_name(name)
        schedule = database.ask(database.services.schedules.get(name))
        run = database.ask(database.services.schedules.trigger(name, force=force))
        warn_of_unknown_task(database, schedule)
        warn_of_no_engine(database)
        if wait:
            if not common.json:
                emit(str(run.id))
            return ended(database, run.id, timeout, as_json=common.json)
        if common.json:
            print_run(database, run, as_json=True)
        else:
            emit(str(run.id))
            say(f"run {run.id} of {name!r} is {run.state}; 'ostinato run wait {run.id}' waits for it")
    return 0


@app.command
def rm(name: ScheduleName, /, *, yes: Yes = False, force: bool = False, common: Common = NO_COMMON) -> int:
    """Remove a schedule with its runs and their output. It waits until active runs, told to stop, have ended.

    One that code declares would come back when its app starts the next time: disable it, or remove it from the code.

    Parameters
    ----------
    force
        Remove it even if a run does not stop, and say what is still running; and even if code declares it.
    """
    with opened(common) as database:
        name = database.schedule_name(name)
        schedule = database.ask(database.services.schedules.get(name))
        if schedule.is_declared and not force:
            from ostinato.service.schedules.declared import still_declared

            raise still_declared(schedule, "--force")
        question = f"Remove schedule {name!r} with its runs and their output?"
        if not yes and not confirmed(question, f"removing {name!r} removes its runs too"):
            say("nothing was removed")
            return 1
        related = database.ask(database.services.schedules.relations(name))
        running = database.ask(database.services.schedules.remove(name, force=force))
    left = [one.name for one in related.dependents if one.state == "on"]
    behind = "".join(f"; {one!r} ran after it, and is switched off as broken" for one in left)
    back = f"; it comes back when app {schedule.origin!r} starts the next time" if schedule.is_declared else ""
    going_on = "".join(f"; the work of run {id} was told to stop and is still running" for id in running)
    answer = {
        "name": name,
        "removed": True,
        "broken": left,
        "still_running": list(running),
        "comes_back": schedule.is_declared,
    }
    tell(answer, f"removed: {name!r}{back}{behind}{going_on}", as_json=common.json)
    return 0


@app.command
def runs(
    name: ScheduleName,
    /,
    *,
    state: list[str] | None = None,
    cause: Causes = None,
    limit: Limit = 20,
    after: RunAfter = None,
    page: PageNumber = 1,
    common: Common = NO_COMMON,
) -> None:
    """List the runs of a schedule, the newest first.

    Parameters
    ----------
    state
        Only runs in this state; may be given again.
    """
    of = {"schedule": name, "state": state, "cause": cause}
    list_runs(common, "schedule runs", (name,), of, limit=limit, after=after, page=page)
