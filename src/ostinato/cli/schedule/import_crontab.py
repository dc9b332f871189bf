"""`ostinato schedule import-crontab`: a schedule for each line of a crontab. `crontab.py` reads it, and
`crontab_plan.py` says which schedules its lines are."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from ostinato.cli.console import Column, emit_json, say, table, warn
from ostinato.cli.open_database import OpenDatabase, database_exists, load_app, opened, os_user
from ostinato.cli.options import NO_COMMON, Common
from ostinato.cli.policy import policy_options, with_policy_flags
from ostinato.cli.schedule.change import did_to
from ostinato.cli.schedule.view import tell_next
from ostinato.errors import InvalidInput
from ostinato.plurals import counted

if TYPE_CHECKING:
    from ostinato.cli.schedule.crontab import Crontab, CrontabJob
    from ostinato.cli.schedule.crontab_plan import Plan
    from ostinato.models.schedule import Schedule
    from ostinato.models.work import Shell

__all__ = ["import_crontab"]

_STDIN = "-"
_SYSTEM = (Path("/etc/crontab"), Path("/etc/cron.d"))
_SHELL = "/bin/sh"
_AS_CRON: dict[str, Any] = {"retry": 0, "timeout": None, "catch_up": "none", "break_after": 1_000_000}
"""What a job may rely on: cron tries nothing again, ends nothing, catches nothing up and switches nothing off."""
_FOR_ONE = ("remaining", "delete_after_run")
"""What makes no sense for a line of a crontab, which is due for ever."""
_MISSING = "its line is no longer in the crontab"


@Parameter(name="*", group=Group("Policy", sort_key=6))
@with_policy_flags(
    without=_FOR_ONE, defaults={"retry": "0", "timeout": "none", "catch_up": "none", "break_after": "1000000"}
)
class CronPolicyFlags:
    """How to treat all of them and their runs; 'none' takes a limit away."""


_NO_POLICY = CronPolicyFlags()


def import_crontab(
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    system: Annotated[bool | None, Parameter(negative="--no-system")] = None,
    prefix: str = "",
    source: str | None = None,
    tz: str | None = None,
    disabled: bool = False,
    disable_missing: Annotated[bool | None, Parameter(negative="--keep-missing")] = None,
    dry_run: bool = False,
    policy: CronPolicyFlags = _NO_POLICY,
    common: Common = NO_COMMON,
) -> None:
    """Add a schedule for each line of a crontab. Doing it twice changes nothing.

    They behave as under cron: no retry, no timeout, no catch-up, and no failure switches them off. Each of these flags
    changes that for all of them. A line whose command is still running is skipped, and not started again beside it.
    A schedule that was made by other means is never changed. The crontab itself stays as it is: take the lines out of
    it, or both will run them.

    Parameters
    ----------
    file
        The crontab; '-' reads stdin, as in: crontab -l | ostinato schedule import-crontab -
    system
        Its lines name a user. [default: known of /etc/crontab and the files of /etc/cron.d]
    prefix
        What the names begin with, such as web1-. They are those of the programs, with a few letters.
    source
        What this crontab is called, by which its schedules are known when it is imported again.
        [default: HOST:PATH, or USER@HOST for stdin]
    tz
        The zone of the lines that have no CRON_TZ. [default: the settings' own]
    disabled
        Add them switched off.
    disable_missing
        Switch off, or leave on, schedules of an earlier import of this crontab that no line is any more.
        [default: leave on; refused if a new line may be the same job, which would run twice]
    dry_run
        Only show what would be added, changed and missing.
    """
    loaded = load_app(common)
    zone = tz or loaded.settings.tz
    crontab = _read(file, zone, system)
    given = {**_AS_CRON, **policy_options(policy), "owner": _owner(file, source)}
    plan = partial(_plan, crontab.jobs, _works(crontab.jobs), given, zone=zone, prefix=prefix)
    if dry_run and not database_exists(loaded):
        _show(plan([]), as_json=common.json)
    else:
        with opened(common, create=True) as database:
            planned = plan(database.ask(database.services.schedules.list()))
            told = {**given, "enabled": not disabled, "note": None}
            _import(database, planned, told, dry_run=dry_run, disable_missing=disable_missing, as_json=common.json)
    _tell_rest(crontab, is_told="notify" in given)


def _plan(
    jobs: Sequence[CrontabJob],
    works: Sequence[Shell],
    given: Mapping[str, Any],
    existing: Sequence[Schedule],
    *,
    zone: str,
    prefix: str,
) -> Plan:
    from ostinato.cli.schedule.crontab_plan import make_plan
    from ostinato.models.policy import make_policy
    from ostinato.models.work import default_policy
    from ostinato.service.schedules.drafts import check_name

    owner, options = given["owner"], {name: value for name, value in given.items() if name != "owner"}
    policy = make_policy({**default_policy("shell"), **options})
    plan = make_plan(jobs, works, existing, zone=zone, prefix=prefix, owner=owner, policy=policy)
    for line in plan.lines:  # before anything is written
        check_name(line.name)
    return plan


def _import(
    database: OpenDatabase,
    plan: Plan,
    given: dict[str, Any],
    *,
    dry_run: bool,
    disable_missing: bool | None,
    as_json: bool,
) -> None:
    """Carry the plan out, or only show it; refused if that would change what is not its own, or run a job twice."""
    wrong = plan.taken() or (plan.twice() if disable_missing is None and given["enabled"] else None)
    if dry_run:
        _show(plan, as_json=as_json)
        if wrong is not None:
            warn(f"without --dry-run this is refused: {wrong}")
    elif wrong is not None:
        raise wrong
    else:
        _carry_out(database, plan, given, disable_missing=bool(disable_missing), as_json=as_json)
    if plan.missing and (dry_run or not disable_missing):
        _tell_missing(plan.missing)


def _owner(file: str, source: str | None) -> str:
    """Whose the schedules are: what says that an import of this crontab has made them."""
    from ostinato.cli.schedule.crontab_plan import OWNER
    from ostinato.models.policy import check_key

    host = socket.gethostname()  # of several, which import into one database, each has its own /etc/crontab
    place = f"{os_user()}@{host}" if file == _STDIN else f"{host}:{Path(file).expanduser().resolve()}"
    return check_key(f"{OWNER}{source or place}", "source", "give a name, such as --source web1")


def _carry_out(
    database: OpenDatabase, plan: Plan, given: dict[str, Any], *, disable_missing: bool, as_json: bool
) -> None:
    from ostinato.service.answers import schedule_answer

    schedules = database.services.schedules
    answers: list[dict[str, Any]] = []
    if disable_missing:  # before what may be the same job under another name
        for one in plan.missing:
            schedule = database.ask(schedules.disable(one.name, note=_MISSING))
            answers.append({"line": None, "did": "disabled", "schedule": schedule_answer(schedule)})
            if not as_json:
                say(f"disabled: {one.name!r}, {_MISSING}")
    for line in plan.lines:
        # Somebody may have added one of this name just now: that one is theirs.
        adding = schedules.add(
            line.name, line.job.timing, line.work, **{**given, "tz": line.zone, "only_new": line.did == "added"}
        )
        did, schedule = did_to(database, line.name, adding)
        answers.append({"line": line.job.line, "did": did, "schedule": schedule_answer(schedule)})
        if not as_json:
            say(f"{did}: {tell_next(database, schedule)}")
    if as_json:
        emit_json(answers)


def _read(file: str, zone: str, system: bool | None) -> Crontab:
    from ostinato.cli.schedule.crontab import read_crontab

    has_users = _is_systems(file) if system is None else system
    crontab = read_crontab(_text(file), zone, has_users=has_users)
    if system is None and not has_users and crontab.jobs and all(map(_names_user, crontab.jobs)):
        named = ", ".join(sorted({job.command.split()[0] for job in crontab.jobs}))
        raise InvalidInput(
            f"every command begins with the name of a user ({named}), as in a system crontab",
            field="file",
            hint="give --system if its lines name a user, or --no-system if these are programs",
        )
    return crontab


def _names_user(job: CrontabJob) -> bool:
    """Whether its command begins with a user of this machine, and not with a program."""
    word, *rest = job.command.split()
    if not rest or shutil.which(word, path=job.variables.get("PATH")) is not None:
        return False
    try:
        pwd.getpwnam(word)
    except KeyError:
        return False
    return True


def _text(file: str) -> str:
    try:
        if file != _STDIN:
            data = Path(file).expanduser().read_bytes()
        elif (stream := getattr(sys.stdin, "buffer", None)) is not None:
            data = stream.read()
        else:
            return sys.stdin.read()
    except OSError as error:
        raise InvalidInput(f"the crontab {file} cannot be read: {error.strerror}", field="file") from None
    return bytes(data).decode("utf-8", errors="surrogateescape")


def _is_systems(file: str) -> bool:
    place = Path(file).expanduser().absolute()
    return place in _SYSTEM or place.parent in _SYSTEM


def _works(jobs: Sequence[CrontabJob]) -> list[Shell]:
    from ostinato.cli.schedule.crontab import wrong_lines

    works, wrong = [], []
    for job in jobs:
        try:
            works.append(_work(job))
        except InvalidInput as error:
            wrong.append(InvalidInput(f"line {job.line}: {error}", field="file"))
    if wrong:
        raise wrong_lines(wrong)
    return works


def _work(job: CrontabJob) -> Shell:
    """Its command, with cron's shell and in cron's folder: the home of its user."""
    from ostinato.cli.schedule.crontab import OF_CRON
    from ostinato.models.interpreters import calling
    from ostinato.models.work import Shell

    said = job.variables
    env = {name: value for name, value in said.items() if name not in OF_CRON and name != "SHELL"}
    shell, folder = said.get("SHELL") or _SHELL, said.get("HOME") or _home(job.user)
    if PurePath(shell).is_absolute() and calling(shell).is_as_shells:
        return Shell(job.command, interpreter=shell, env=env, folder=folder, user=job.user)
    return Shell([shell, "-c", job.command], env=env, folder=folder, user=job.user)


def _home(user: str | None) -> str:
    if user is None:
        return os.path.expanduser("~")
    try:
        return pwd.getpwnam(user).pw_dir
    except KeyError:
        return "/"


def _show(plan: Plan, *, as_json: bool) -> None:
    if as_json:
        found = [
            {"line": line.job.line, "did": line.did, "name": line.name, "timing": line.timing, "zone": line.zone}
            | {"work": line.work}
            for line in plan.lines
        ]
        missing = [
            {"line": None, "did": "missing", "name": one.name, "timing": one.timing, "zone": one.zone}
            | {"work": one.work}
            for one in plan.missing
        ]
        emit_json(found + missing)
        return
    columns = [Column(title) for title in ("LINE", "WHAT", "NAME", "TIMING", "ZONE", "USER")]
    columns.append(Column("COMMAND", flexible=True))
    rows = [
        [str(line.job.line), line.did, line.name, line.timing, line.zone, line.work.user or "", line.job.command]
        for line in plan.lines
    ]
    table(columns, rows, otherwise="no jobs in this crontab")


def _tell_missing(missing: Sequence[Schedule]) -> None:
    names = ", ".join(repr(one.name) for one in missing)
    many = counted(len(missing), "schedule")
    warn(f"{many} of an earlier import, still on, no line is any more: {names}. --disable-missing switches them off")


def _tell_rest(crontab: Crontab, *, is_told: bool) -> None:
    """What was not taken over, on stderr."""
    for number, reason in crontab.left_out:
        warn(f"line {number} is left out: {reason}")
    mailed = {job.variables.get("MAILTO") or "" for job in crontab.jobs} - {""}
    if mailed and not is_told:
        warn(
            f"nobody is told: cron mailed what the jobs print to {', '.join(sorted(mailed))}. Here it is kept "
            "('ostinato run logs'), and --notify CHANNEL names who hears of failures"
        )
    others = sorted({job.user for job in crontab.jobs if job.user not in (None, os_user())} - {None})
    if others:
        many = counted(len(others), "other user")
        warn(f"jobs of {many} ({', '.join(map(str, others))}) are run as that user: the engine must run as root")
