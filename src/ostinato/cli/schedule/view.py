"""How schedules look: the table of `schedule ls`, the page of `schedule show`, and what is said of their next time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ostinato.cli.blocked import blocked_fields
from ostinato.cli.console import Cell, Column, Styled, emit_json, fields, say, table, warn
from ostinato.cli.doctor_work import missing_interpreter
from ostinato.cli.run_view import state_cell, state_text
from ostinato.cli.times import brief, full, span
from ostinato.cli.work_view import policy_line, work_cell, work_page
from ostinato.command_hints import hint
from ostinato.models.work_kinds import is_task, unserved
from ostinato.plurals import counted, totals_text

if TYPE_CHECKING:
    from ostinato.cli.open_database import OpenDatabase
    from ostinato.models.schedule import Schedule
    from ostinato.service.schedules.upstreams import RelatedSchedule

__all__ = [
    "print_schedule",
    "print_schedules",
    "tell_next",
    "tell_schedule",
    "unknown_task",
    "warn_of_missing_interpreter",
    "warn_of_no_engine",
    "warn_of_unknown_task",
    "warn_of_unserved",
]

_STYLES = {"on": "green", "off": "dim", "paused": "yellow", "broken": "red", "orphaned": "yellow", "finished": "dim"}


def tell_next(database: OpenDatabase, schedule: Schedule) -> str:
    """One line: what it is called, when it runs, and when next."""
    if schedule.next_run_at is None:
        is_told = schedule.follows and schedule.state == "on"  # its timing says when: there is no other reason
        why = "" if is_told else f" It is {schedule.next_run_reason}."
        return f"{schedule.name!r}. {schedule.sentence}{why}"
    left = span((schedule.next_run_at - database.now).total_seconds())
    held = f"It is {schedule.next_run_reason}. " if schedule.next_run_reason else ""
    return (
        f"{schedule.name!r}. {schedule.sentence} {held}Next at {full(schedule.next_run_at, database.zone)}, in {left}."
    )


def unknown_task(database: OpenDatabase, task: str) -> str | None:
    """What is wrong if nobody could execute it: no running node, and no app named here, knows this task."""
    if task in database.app.registry.tasks:
        return None
    nodes = [node for node in database.ask(database.services.nodes.list()) if node.state != "lost"]
    if any(task in node.tasks for node in nodes):
        return None
    if not nodes:
        so = f"no engine is running on this database, so it is unknown whether task {task!r} exists"
        return so if is_task(task) else None
    return f"{unserved(task)}; its runs wait until it is"


def warn_of_no_engine(database: OpenDatabase) -> bool:
    """Say it on stderr where somebody asks for a run: it would wait without a word."""
    is_alone = all(node.state == "lost" for node in database.ask(database.services.nodes.list()))
    if is_alone:
        off = "" if database.switched_off is None else f" ({database.switched_off})"
        warn(f"no engine is running on this database: the run waits until one is started with 'ostinato worker'{off}")
    return is_alone


def warn_of_unserved(database: OpenDatabase, task: str) -> None:
    """Say that no engine is there, or that none of those that are knows the task."""
    if not warn_of_no_engine(database) and (missing := unknown_task(database, task)) is not None:
        warn(missing)


def warn_of_unknown_task(database: OpenDatabase, schedule: Schedule) -> None:
    """Say it on stderr: it is no error, since a node that knows the task may come."""
    missing = None if schedule.work.needs is None else unknown_task(database, schedule.work.needs)
    if missing is not None:
        warn(missing)


def warn_of_missing_interpreter(schedule: Schedule) -> None:
    """Say it on stderr: it is no error, since it may be there on the node."""
    if (missing := missing_interpreter(schedule.work)) is not None:
        warn(f"there is no interpreter {missing!r} on this machine; runs fail on a node that lacks it")


def print_schedules(database: OpenDatabase, schedules: Sequence[Schedule], *, as_json: bool, everything: bool) -> None:
    """A table like that of `systemctl list-timers`; JSON is the whole list."""
    if as_json:
        from ostinato.service.answers import schedule_answer

        emit_json([schedule_answer(schedule) for schedule in schedules])
        return
    shown = [schedule for schedule in schedules if everything or schedule.state != "finished"]
    now, zone = database.now, database.zone
    columns = [Column(title) for title in ("NEXT", "LEFT", "LAST", "PASSED", "STATE")]
    columns += [Column("NAME", flexible=True), Column("TIMING", flexible=True), Column("KIND", optional=True)]
    columns.append(Column("WORK", flexible=True, optional=True))
    rows: list[list[Cell]] = []
    for schedule in shown:
        next_at, last = schedule.next_run_at, schedule.last_run
        state = schedule.state
        last_at = None if last is None else last.finished_at or last.started_at or last.due_at
        rows.append(
            [
                "-" if next_at is None else brief(next_at, zone, now),
                "-" if next_at is None else span((next_at - now).total_seconds()),
                "-" if last is None else state_cell(last),
                "-" if last_at is None else span((now - last_at).total_seconds()),
                Styled(f"{state}, late", "red") if schedule.late else Styled(state, _STYLES.get(state, "")),
                schedule.name,
                schedule.timing,
                schedule.work.kind,
                work_cell(schedule.work),
            ]
        )
    table(columns, rows)
    hidden = len(schedules) - len(shown)
    say(
        f"{counted(len(shown), 'schedule')}, times in {zone}"
        + (f"; {hidden} finished ones with --all" if hidden else ""),
        "dim",
    )


def tell_schedule(
    database: OpenDatabase, schedule: Schedule, text: str, before: Schedule | None = None, *, as_json: bool
) -> None:
    """What was done to a schedule: all of it as JSON, else a line for people, and one if its code says otherwise."""
    if as_json:
        print_schedule(database, schedule, as_json=True)
        return
    say(text)
    if before is not None and (contradicted := _contradicted(before, schedule)):
        back = f"give it back with {hint('schedule revert', schedule.name)}"
        say(f"code says {'; '.join(contradicted)}. Yours stays until the code changes it; {back}")


def _contradicted(before: Schedule, schedule: Schedule) -> list[str]:
    """What the code says of the fields that have just been changed."""
    return [
        f"{'switched' if change.field == 'enabled' else change.field} {change.code}"
        for change in schedule.changes
        if change.by is not None and before.overrides.get(change.field) != schedule.overrides.get(change.field)
    ]


def print_schedule(database: OpenDatabase, schedule: Schedule, *, as_json: bool) -> None:
    """All of one schedule, and what keeps it from running."""
    blocked = database.ask(database.services.blocking.of_schedule(schedule))
    if as_json:
        from ostinato.service.answers import schedule_answer

        emit_json(schedule_answer(schedule, blocked_by=blocked))
        return
    zone, last = database.zone, schedule.last_run
    state = schedule.state
    related = database.ask(database.services.schedules.relations(schedule.name))
    left = "" if schedule.next_run_at is None else span((schedule.next_run_at - database.now).total_seconds())
    fields(
        [
            ("name", schedule.name),
            ("state", Styled(state, _STYLES.get(state, ""))),
            ("timing", f"{schedule.timing} ({schedule.zone})"),
            ("sentence", schedule.sentence),
            ("next", None if schedule.next_run_at is None else f"{full(schedule.next_run_at, zone)}, in {left}"),
            ("because", schedule.next_run_reason),
            *blocked_fields(blocked),
            *(("runs after", _related(one)) for one in related.upstreams),
            *(("followed by", _related(one)) for one in related.dependents),
            ("note", schedule.note),
            ("project", schedule.project),
            ("work", Styled(work_page(schedule.work), "")),
            ("policy", policy_line(schedule.policy)),
            ("remaining", None if schedule.remaining is None else str(schedule.remaining)),
            ("fresh until", _fresh(schedule, zone)),
            ("failures", f"{schedule.failures} in a row" if schedule.failures else None),
            ("owner", schedule.owner if schedule.origin is None else f"{schedule.owner} of app {schedule.origin}"),
            *(("changed", change.sentence(zone)) for change in schedule.changes),
            ("last run", None if last is None else f"{last.id}, due {full(last.due_at, zone)}: {state_text(last)}"),
            ("totals", None if last is None else totals_text(last.totals)),
            ("reason", None if last is None or last.cause == "errors" else last.reason),
            ("created", full(schedule.created_at, zone)),
            ("updated", f"{full(schedule.updated_at, zone)}, version {schedule.version}"),
        ]
    )


def _related(one: RelatedSchedule) -> str:
    """A schedule that comes before or after this one."""
    if one.state is None:
        return f"{one.name}: there is no such schedule"
    last = "has not run yet" if one.last_run is None else f"last run {one.last_run} {one.last_state}"
    return f"{one.name}: {one.state}, {last}"


def _fresh(schedule: Schedule, zone: str) -> Cell | None:
    """Until when it must have succeeded again, if that was asked for."""
    if schedule.late:
        return Styled("late: it has not succeeded in time", "red")
    return None if schedule.fresh_until is None else full(schedule.fresh_until, zone)
