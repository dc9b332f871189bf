"""`ostinato schedule add` and `edit`: the two verbs that take a timing, work and a policy."""

from __future__ import annotations

import os
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from ostinato.cli.open_database import OpenDatabase, opened
from ostinato.cli.options import NO_COMMON, Common, ScheduleName
from ostinato.cli.policy import NO_POLICY, PolicyFlags, policy_options
from ostinato.cli.schedule.view import tell_next, tell_schedule, warn_of_missing_interpreter, warn_of_unknown_task
from ostinato.cli.work import NOTHING, edited_work, placed, work_of
from ostinato.cli.work_flags import NO_WORK, WorkFlags
from ostinato.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from ostinato.models.schedule import Schedule

__all__ = ["add", "did_to", "edit"]


def add(
    name: str,
    timing: str,
    /,
    *,
    work: WorkFlags = NO_WORK,
    project: str | None = None,
    tz: str | None = None,
    disabled: bool = False,
    note: str | None = None,
    replace: bool = False,
    if_new: bool = False,
    policy: PolicyFlags = NO_POLICY,
    common: Common = NO_COMMON,
) -> None:
    """Add a schedule, or change the one of this name. Doing it twice changes nothing.

    Give what it does with one of --task, --shell, --agent, --http and --check-in, or with the flag of a package's
    kind of work.

    Parameters
    ----------
    name
        What it is called.
    timing
        When: "every 5m", "daily 03:00", "30 9 * * 1-5", "at 2026-12-24T18:00"; see 'ostinato timing'.
    project
        The project that it belongs to, in whose folder it runs; see 'ostinato project'.
    tz
        The zone of its wall clock, such as Europe/Berlin.
    disabled
        Add it switched off.
    note
        A remark that is shown with it.
    replace
        Also if another person, or something else than a person, made the one of this name.
    if_new
        Leave the one of this name as it is, if there is one.
    """
    home = None if project == NOTHING else project
    what = placed(work_of(work), home)
    options = {
        **policy_options(policy),
        "tz": tz or _zone_of_run(),
        "enabled": not disabled,
        "note": note,
        "project": home,
        "replace": replace,
        "if_new": if_new,
    }
    with opened(common, create=True) as database:
        before = _known(database, name)
        did, schedule = did_to(database, name, database.services.schedules.add(name, timing, what, **options))
        warn_of_unknown_task(database, schedule)
        warn_of_missing_interpreter(schedule)
        tell_schedule(database, schedule, f"{did}: {tell_next(database, schedule)}", before, as_json=common.json)


def did_to(
    database: OpenDatabase, name: str, adding: Coroutine[Any, Any, Schedule]
) -> tuple[Literal["added", "unchanged", "changed"], Schedule]:
    """Add a schedule, and say what that did."""
    before = _known(database, name)
    schedule = database.ask(adding)
    return "added" if before is None else "unchanged" if before.version == schedule.version else "changed", schedule


def _zone_of_run() -> str | None:
    """The zone of the run that this command is part of: it goes before an app's own, for whose user it speaks."""
    return os.environ.get("OSTINATO_TZ") or None if "OSTINATO_RUN_ID" in os.environ else None


def _known(database: OpenDatabase, name: str) -> Schedule | None:
    with suppress(NotFound):
        return database.ask(database.services.schedules.get(name))
    return None


def edit(
    name: ScheduleName,
    /,
    timing: str | None = None,
    *,
    work: WorkFlags = NO_WORK,
    project: str | None = None,
    tz: str | None = None,
    note: str | None = None,
    policy: PolicyFlags = NO_POLICY,
    common: Common = NO_COMMON,
) -> None:
    """Change a schedule: only the given fields. A new timing also clears what broke it.

    A flag of the kind of work that it does changes that part of it, and 'none' removes it; --arg, --env and
    --header keep the others. With another one of --task, --shell, --agent, --http and --check-in, its work is
    replaced.

    Parameters
    ----------
    timing
        When.
    project
        The project that it belongs to; 'none' takes it out of its project.
    tz
        The zone of its wall clock.
    note
        A remark that is shown with it.
    """
    with opened(common) as database:
        name = database.schedule_name(name)
        schedules = database.services.schedules
        current = database.ask(schedules.get(name))
        changes = policy_options(policy, current.policy.gate)
        changes |= _given(timing=timing, tz=tz, note=note, project=project)
        if (edited := edited_work(work, current.work)) is not None:
            home = current.project if project is None else None if project == NOTHING else project
            changes["work"] = placed(edited, home) if vars(work)["folder"] is not None else edited
        if not changes:
            raise InvalidInput("nothing to change was given", hint="see 'ostinato schedule edit --help'")
        schedule = database.ask(schedules.edit(name, **changes))
        warn_of_unknown_task(database, schedule)
        warn_of_missing_interpreter(schedule)
        did = "unchanged" if schedule.version == current.version else "changed"
        tell_schedule(database, schedule, f"{did}: {tell_next(database, schedule)}", current, as_json=common.json)


def _given(**values: str | None) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
