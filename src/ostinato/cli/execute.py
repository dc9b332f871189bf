"""`ostinato exec`: run something once, in this process, recorded as every run, with live output and its exit code."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ostinato.cli.console import emit_json_line, keep_streams, say
from ostinato.cli.open_database import OpenDatabase, opened
from ostinato.cli.options import NO_COMMON, Common, Text
from ostinato.cli.output import print_result
from ostinato.cli.policy import budget_option, gate_option, limit_option
from ostinato.cli.run_view import tell
from ostinato.cli.work import NOTHING, placed, work_of
from ostinato.cli.work_flags import NO_WORK, WorkFlags
from ostinato.models.work_kinds import ProcessWork, is_task

if TYPE_CHECKING:
    from ostinato.cli.foreground_run import ForegroundRun
    from ostinato.models.run import NewRun, OuterRun, Run
    from ostinato.models.work_kinds import Work

__all__ = ["execute"]

FAILED = 1


def execute(
    *,
    work: WorkFlags = NO_WORK,
    project: str | None = None,
    timeout: str | None = None,
    silent: str | None = None,
    gate: Text = None,
    gate_timeout: str | None = None,
    budget: str | None = None,
    no_wait: bool = False,
    common: Common = NO_COMMON,
) -> int:
    """Run something once, here and now; `main.py` has the words for its help.

    Parameters
    ----------
    project
        The project in whose folder it runs. [default: none, it runs in the current folder]
    timeout
        How long it may take, such as 1h; 'none' for no limit. [default: shell 5m, agent 30m, http 1m, task none]
    silent
        End it if it prints and reports nothing for this long, such as 10m. [default: none]
    gate
        A command before it, whose last line {"wake": false} skips it; or a JSON array.
    gate_timeout
        How long the gate may take. [default: 30s]
    budget
        What an agent may cost: per_run_usd=1.
    no_wait
        Fail at once, instead of waiting for its turn, while its conversation is busy.
    """
    keep_streams()
    home = None if project == NOTHING else project
    what = _here(work_of(work), home)
    options: dict[str, Any] = {"retry": 0, **limit_option("timeout", timeout), **limit_option("silent", silent)}
    options |= gate_option(gate, gate_timeout)
    if budget is not None:
        options["budget"] = budget_option(budget)
    with opened(common, create=True) as database:
        from ostinato.cli.ending import FORCED
        from ostinato.cli.foreground_run import ForegroundRun
        from ostinato.models.run import outer_run_of

        _check_task(database, what)
        draft = database.ask(database.services.runs.draft(what, project=home, **options))
        foreground = ForegroundRun(as_json=common.json)
        run = _execute(database, foreground, draft, wait=not no_wait, outer=outer_run_of(os.environ))
        _tell_end(database, run, as_json=common.json)
    if foreground.is_unread:
        raise BrokenPipeError
    return FORCED if foreground.signals and run.state == "cancelled" else _exit_code(run)


def _execute(
    database: OpenDatabase, foreground: ForegroundRun, draft: NewRun, *, wait: bool, outer: OuterRun | None
) -> Run:
    """Until it has ended."""
    import asyncio

    try:
        return database.with_container(lambda container: foreground.execute(container, draft, wait=wait, outer=outer))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None  # it was forced, and the ledger did not take that


def _tell_end(database: OpenDatabase, run: Run, *, as_json: bool) -> None:
    if as_json:
        from ostinato.service.answers import run_answer

        emit_json_line(run_answer(run, database.zone))
        return
    if run.work.kind == "function" and run.result is not None:
        print_result(run.result)
    say(tell(run))


def _here(work: Work, project: str | None) -> Work:
    """The work in the current folder, which is recorded: a later retry may be elsewhere."""
    if project is None and isinstance(work, ProcessWork) and work.folder is None:
        return replace(work, folder=os.getcwd())
    return placed(work, project)


def _check_task(database: OpenDatabase, work: Work) -> None:
    """Only what this process knows can be run in it."""
    if work.needs is not None and is_task(work.needs):
        database.app.registry.task(work.needs)


def _exit_code(run: Run) -> int:
    if run.state == "succeeded":
        return 0
    code = run.result.get("exit_code") if isinstance(run.result, dict) else None
    return code if isinstance(code, int) and code else FAILED
