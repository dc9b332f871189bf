"""What the bot says: short plain texts. Nothing is markup, so nothing that people wrote can break it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ostinato.models.run import Run
from ostinato.models.schedule import Schedule
from ostinato.models.telegram import Button
from ostinato.models.work import Agent, Function, Shell, Unreadable, Work
from ostinato.models.work_kinds import line_of
from ostinato.plurals import counted
from ostinato.service.overview import Overview
from ostinato.service.why import Why
from ostinato.timing.zones import local_text

__all__ = ["HELP", "Reply", "cut", "run_line", "schedule_lines", "schedule_page", "status_text", "why_text"]

NAME, RESULT = 50, 500
"""How much is shown of a name or a command, and of a result."""
_LISTED = 20
_FEW = 3

HELP = """\
/status: what runs, what is broken, what comes next
/why NAME: why a schedule did or did not run
/schedule list [all]
/schedule get NAME
/schedule runs NAME
/schedule run NAME
/schedule enable NAME, /schedule disable NAME
/schedule delete NAME
/schedule set NAME project P (or none)
/schedule add [--type agent|shell] [--once] [--project P] "*/5 * * * *" text
/cancel RUN
/stop: stop what is under way in this chat; /stopall: and drop what waits
A schedule goes by its name or its number."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A message back, with rows of buttons."""

    text: str
    buttons: Sequence[Sequence[Button]] = ()


def cut(text: str, most: int = NAME) -> str:
    """On one line, and no longer than this."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def schedule_lines(schedules: Sequence[Schedule], zone: str, *, total: int, everything: bool) -> str:
    """A list, one line each."""
    if not schedules:
        return "There is no schedule." if everything else "No schedule is on; /schedule list all shows the others."
    lines = [_schedule_line(one, zone) for one in schedules[:_LISTED]]
    if total > len(lines):
        lines.append(f"and {total - len(lines)} more")
    return "\n".join(lines)


def _schedule_line(schedule: Schedule, zone: str) -> str:
    at = "" if schedule.next_run_at is None else f", next {local_text(zone, schedule.next_run_at)}"
    return f"{schedule.id}. {cut(schedule.name)}: {schedule.state}{at}"


def schedule_page(schedule: Schedule, zone: str) -> str:
    """All that matters of one."""
    last = schedule.last_run
    lines = [
        f"{schedule.id}. {cut(schedule.name)}: {schedule.state}",
        schedule.sentence or schedule.timing,
        _work_line(schedule.work),
        "" if schedule.project is None else f"project {cut(schedule.project)}",
        "" if schedule.next_run_at is None else f"next {local_text(zone, schedule.next_run_at)}",
        cut(schedule.next_run_reason or "", 200),
        "" if last is None else f"last {run_line(last, zone)}",
        cut(schedule.note or "", 200),
    ]
    return "\n".join(line for line in lines if line)


def _work_line(work: Work | Unreadable) -> str:
    """What a viewer may see: an address may hold a secret, and so may the line of a package's kind."""
    if isinstance(work, Unreadable):
        return "work that cannot be read"
    return f"{work.kind}: {cut(line_of(work))}" if isinstance(work, (Agent, Function, Shell)) else f"{work.kind} work"


def run_line(run: Run, zone: str) -> str:
    """`run 12: failed at …; why`."""
    at = run.finished_at or run.started_at or run.due_at
    took = _took(run.started_at, run.finished_at)
    why = f"; {cut(run.reason, 120)}" if run.reason else ""
    return f"run {run.id}: {run.state} {local_text(zone, at)}{took}{why}"


def _took(started: datetime | None, finished: datetime | None) -> str:
    return "" if started is None or finished is None else f" in {(finished - started).total_seconds():.1f} s"


def why_text(why: Why) -> str:
    """The answer, and what it rests on."""
    blocked = [] if why.blocked_by is None else [f"Blocked: {why.blocked_by.told}"]
    return "\n".join([why.answer, *blocked, *(f"· {cut(fact, 200)}" for fact in why.facts)])


def status_text(
    overview: Overview, running: Sequence[Run], broken: Sequence[Schedule], failed: Sequence[Run], zone: str
) -> str:
    """Everything at a glance, a few of each."""
    counts, engine = overview.counts, overview.engine
    lines = [
        f"{counted(engine.nodes, 'node')} alive" if engine.alive else "No engine is running.",
        f"{counted(counts.schedules, 'schedule')}: {counts.on} on, {counts.off} off, {counts.broken} broken",
        f"{counted(counts.running, 'run')} running, {counts.queued} queued, {counts.late} late",
    ]
    lines += [f"running: {_of_run(run)}" for run in running]
    lines += [f"broken: {cut(one.name)}: {cut(one.broken or '', 120)}" for one in broken]
    lines += [f"failed: {_of_run(run)}: {cut(run.reason or '', 120)}" for run in failed]
    lines += [f"next: {cut(one.schedule)} {local_text(zone, one.at)}" for one in overview.due[:_FEW]]
    return "\n".join(lines)


def _of_run(run: Run) -> str:
    return f"{cut(run.schedule or run.task or 'a run')} (run {run.id})"
