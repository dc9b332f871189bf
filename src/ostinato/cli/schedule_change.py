"""`ostinato schedule add` and `edit`: the two verbs that take a timing, a task with its arguments, and a policy."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ostinato.cli.console import say
from ostinato.cli.opening import Visit, opened
from ostinato.cli.options import NO_COMMON, NO_POLICY, Common, PolicyFlags
from ostinato.cli.policy import call_arguments, policy_options
from ostinato.cli.schedule_view import print_schedule, tell_next, warn_of_unknown_task
from ostinato.errors import Conflict, InvalidInput, NotFound

if TYPE_CHECKING:
    from ostinato.models.work import Function, Unreadable

__all__ = ["add", "edit"]


def add(
    name: str,
    timing: str,
    /,
    *,
    task: str,
    args: str | None = None,
    kwargs: str | None = None,
    arg: list[str] | None = None,
    tz: str | None = None,
    disabled: bool = False,
    note: str | None = None,
    policy: PolicyFlags = NO_POLICY,
    common: Common = NO_COMMON,
) -> None:
    """Add a schedule, or change the one of this name. Doing it twice changes nothing.

    Parameters
    ----------
    name
        What it is called.
    timing
        When: "every 5m", "daily 03:00", "30 9 * * 1-5", "at 2026-12-24T18:00"; see 'ostinato timing'.
    task
        The task to run, by its name.
    args
        Its arguments, as a JSON array.
    kwargs
        Its keyword arguments, as a JSON object.
    arg
        One keyword argument, name=value; may be given again.
    tz
        The zone of its wall clock, such as Europe/Berlin.
    disabled
        Add it switched off.
    note
        A remark that is shown with it.
    """
    from ostinato.models.work import Function

    options = policy_options(policy)
    work = Function(task, *call_arguments(args, kwargs, arg))
    with opened(common) as visit:
        schedules = visit.services.schedules
        before = _version(visit, name)
        schedule = visit.ask(schedules.add(name, timing, work, tz=tz, enabled=not disabled, note=note, **options))
        warn_of_unknown_task(visit, schedule)
        if common.json:
            print_schedule(visit, schedule, as_json=True)
            return
        did = "added" if before is None else "unchanged" if before == schedule.version else "changed"
        say(f"{did}: {tell_next(visit, schedule)}")


def _version(visit: Visit, name: str) -> int | None:
    with suppress(NotFound):
        return visit.ask(visit.services.schedules.get(name)).version
    return None


def edit(
    name: str,
    /,
    *,
    timing: str | None = None,
    task: str | None = None,
    args: str | None = None,
    kwargs: str | None = None,
    arg: list[str] | None = None,
    tz: str | None = None,
    note: str | None = None,
    policy: PolicyFlags = NO_POLICY,
    common: Common = NO_COMMON,
) -> None:
    """Change a schedule: only what is given. A new timing also clears what broke it.

    Parameters
    ----------
    name
        The schedule.
    timing
        When.
    task
        The task to run.
    args
        Its arguments, as a JSON array.
    kwargs
        Its keyword arguments, as a JSON object; replaces those there are.
    arg
        One keyword argument, name=value; the others stay.
    tz
        The zone of its wall clock.
    note
        A remark that is shown with it.
    """
    changes = {**policy_options(policy), **_given(timing=timing, tz=tz, note=note)}
    with opened(common) as visit:
        schedules = visit.services.schedules
        current = visit.ask(schedules.get(name))
        if task is not None or args is not None or kwargs is not None or arg:
            changes["work"] = _edited_work(current.work, task, args, kwargs, arg)
        if not changes:
            raise InvalidInput("nothing to change was given", hint="see 'ostinato schedule edit --help'")
        schedule = visit.ask(schedules.edit(name, **changes))
        warn_of_unknown_task(visit, schedule)
        if common.json:
            print_schedule(visit, schedule, as_json=True)
        else:
            unchanged = schedule.version == current.version
            say(f"{'unchanged' if unchanged else 'changed'}: {tell_next(visit, schedule)}")


def _given(**values: str | None) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _edited_work(
    current: Function | Unreadable, task: str | None, args: str | None, kwargs: str | None, arg: list[str] | None
) -> Function:
    """The work with what was given; another task starts with no arguments."""
    from ostinato.models.work import Function

    positional, keywords = call_arguments(args, kwargs, arg)
    if not isinstance(current, Function):
        if task is None:
            raise Conflict("the work of this schedule cannot be read: give it a new one with --task")
        return Function(task, positional, keywords)
    if task is not None and task != current.task:
        return Function(task, positional, keywords)
    if kwargs is None:
        keywords = {**current.kwargs, **keywords}
    return Function(current.task, current.args if args is None else positional, keywords)
