"""`ostinato schedule import-crontab`: a schedule for each line of a crontab. `crontab.py` reads it."""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ostinato.cli.console import Column, emit_json, say, table, warn
from ostinato.cli.open_database import opened, os_user
from ostinato.cli.options import NO_COMMON, Common
from ostinato.cli.policy import NO_POLICY, PolicyFlags, policy_options
from ostinato.cli.schedule.change import did_to
from ostinato.cli.schedule.crontab import names_of, read_crontab
from ostinato.cli.schedule.view import tell_next
from ostinato.errors import InvalidInput
from ostinato.plurals import counted

if TYPE_CHECKING:
    from ostinato.cli.schedule.crontab import Crontab, CrontabJob
    from ostinato.models.work import Shell

__all__ = ["import_crontab"]

_STDIN = "-"
_SYSTEM = (Path("/etc/crontab"), Path("/etc/cron.d"))
_OF_CRON = frozenset({"MAILTO", "MAILFROM", "CRON_TZ", "RANDOM_DELAY", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING"})
"""What is meant for cron itself, and not for commands."""
_SHELL = "/bin/sh"
_AS_CRON: dict[str, Any] = {"retry": 0, "timeout": None, "catch_up": "none", "break_after": 1_000_000}
"""What a job may rely on: cron tries nothing again, ends nothing, catches nothing up and switches nothing off."""


def import_crontab(
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    system: bool = False,
    prefix: str = "",
    tz: str | None = None,
    disabled: bool = False,
    dry_run: bool = False,
    policy: PolicyFlags = NO_POLICY,
    common: Common = NO_COMMON,
) -> None:
    """Add a schedule for each line of a crontab. Doing it twice changes nothing.

    They behave as under cron: no retry, no timeout, no catch-up, and no failure switches them off. Each of these flags
    changes that for all of them. A line whose command is still running is skipped, and not started again beside it.
    The crontab itself stays as it is: take the lines out of it, or both will run them.

    Parameters
    ----------
    file
        The crontab; '-' reads stdin, as in: crontab -l | ostinato schedule import-crontab -
    system
        Its lines name a user, as those of /etc/crontab and /etc/cron.d do, of which it is known.
    prefix
        What the names begin with, such as web1-. They are those of the programs.
    tz
        The zone of the lines that have no CRON_TZ. [default: the settings' own]
    disabled
        Add them switched off.
    dry_run
        Only show what would be added.
    """
    from ostinato.config import load_settings
    from ostinato.service.answers import schedule_answer

    zone = tz or load_settings().tz
    crontab = read_crontab(_text(file), zone, has_users=system or _is_systems(file))
    names = names_of(crontab.jobs, prefix)
    works = [_work(job) for job in crontab.jobs]
    options = _AS_CRON | policy_options(policy)
    if dry_run:
        _show(crontab, names, works, as_json=common.json)
    else:
        answers = []
        with opened(common) as database:
            for job, name, work in zip(crontab.jobs, names, works, strict=True):
                add = database.services.schedules.add
                given = {**options, "tz": job.zone or tz, "enabled": not disabled, "note": None, "project": None}
                did, schedule = did_to(database, name, add(name, job.timing, work, **given))
                answers.append({"line": job.line, "did": did, "schedule": schedule_answer(schedule)})
                if not common.json:
                    say(f"{did}: {tell_next(database, schedule)}")
        if common.json:
            emit_json(answers)
    _tell_rest(crontab, is_told="notify" in options)


def _text(file: str) -> str:
    try:
        if file == _STDIN:
            return sys.stdin.read()
        return Path(file).expanduser().read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise InvalidInput(f"the crontab {file} cannot be read: {error.strerror}", field="file") from None


def _is_systems(file: str) -> bool:
    place = Path(file).expanduser().absolute()
    return place in _SYSTEM or place.parent in _SYSTEM


def _work(job: CrontabJob) -> Shell:
    """Its command, with cron's shell and in cron's folder: the home of its user."""
    from ostinato.models.work import Shell

    said = job.variables
    env = {name: value for name, value in said.items() if name not in _OF_CRON and name != "SHELL"}
    shell = said.get("SHELL", _SHELL)
    command = job.command if shell == _SHELL else [shell, "-c", job.command]
    user = None if job.user == os_user() else job.user
    try:
        return Shell(command, env=env, folder=said.get("HOME") or _home(job.user), user=user)
    except InvalidInput as error:
        raise InvalidInput(f"line {job.line}: {error}", field="file") from None


def _home(user: str | None) -> str:
    if user is None:
        return os.path.expanduser("~")
    try:
        return pwd.getpwnam(user).pw_dir
    except KeyError:
        return "/"


def _show(crontab: Crontab, names: list[str], works: list[Shell], *, as_json: bool) -> None:
    found = list(zip(crontab.jobs, names, works, strict=True))
    if as_json:
        emit_json([{"line": job.line, "name": name, "timing": job.timing, "work": work} for job, name, work in found])
        return
    columns = [Column("LINE"), Column("NAME"), Column("TIMING"), Column("USER"), Column("COMMAND", flexible=True)]
    rows = [[str(job.line), name, job.timing, work.user or "", job.command] for job, name, work in found]
    table(columns, rows, otherwise="no jobs in this crontab")


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
