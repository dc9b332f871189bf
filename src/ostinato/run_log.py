"""The log of runs, `ostinato.runs`: a line for each thing that happens, with fields that programs can read.

The engine's announcer tells it of batches, the services and the app of schedules. Of a batch in which nothing is to be
logged, it asks only for the level, and looks for ends that are not plain successes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ostinato.clock import SECOND, Micros, from_micros, to_micros
from ostinato.durations import elapsed
from ostinato.logs import RUN_LOGGER, get_logger, log_fields
from ostinato.models.ids import NodeId
from ostinato.models.incident import Notice
from ostinato.models.run import ClaimedRun, Finish, NewRun, Run
from ostinato.models.schedule import Schedule, ScheduleState
from ostinato.models.states import Cause, RunState
from ostinato.models.work_kinds import counted_as
from ostinato.plurals import counted
from ostinato.trace_context import trace_id_of

__all__ = ["MOST_SCHEDULES", "RunLog", "is_scheduling_logged", "log_cancelled", "log_schedules"]

MOST_SCHEDULES = 20
"""So many schedules that are declared at once have a line each; more are counted."""

log = get_logger(RUN_LOGGER)

_UTC = ("UTC", "Etc/UTC")
_LEVELS = {
    RunState.SUCCEEDED: logging.INFO,
    RunState.FAILED: logging.ERROR,
    RunState.CANCELLED: logging.INFO,
    RunState.SUPERSEDED: logging.INFO,
    RunState.SKIPPED: logging.WARNING,
    RunState.EXPIRED: logging.WARNING,
    RunState.MISSED: logging.WARNING,
}


class RunLog:
    """Logs what one node did."""

    def __init__(self, node: Callable[[], NodeId | None]) -> None:
        self._node = node

    def started(self, runs: Iterable[ClaimedRun]) -> None:
        """Those of these runs that were started here."""
        if not log.isEnabledFor(logging.INFO):
            return
        for run in runs:
            if run.started_at is not None:
                name = run.schedule or counted_as(run.task, None, run.kind)
                text = "run %s of %r started" if run.attempt == 1 else "run %s of %r started, attempt %s"
                args = (run.id, name) if run.attempt == 1 else (run.id, name, run.attempt)
                self._say(
                    *(logging.INFO, text, *args),
                    run=run.id,
                    schedule=run.schedule,
                    task=run.task,
                    state=RunState.RUNNING,
                    attempt=run.attempt,
                    trace_id=trace_id_of(run.trace),
                )

    def wants(self, batch: Sequence[Finish]) -> bool:
        """Whether there is something in this batch to be logged."""
        if log.isEnabledFor(logging.INFO):
            return True
        # A list, and only two tests: this is asked of every run, and nearly all simply succeed, which has no cause.
        notable = [one for one in batch if one.cause or one.breaks]
        return bool(notable) and log.isEnabledFor(logging.ERROR)

    def ended(self, written: Iterable[Finish]) -> None:
        """These ends, and attempts of which there is another one, were written."""
        for finish in written:
            level = _level(finish)
            if log.isEnabledFor(level):
                text, *args = _end(finish)
                self._say(
                    *(level, text, *args),
                    error=_story(finish),
                    run=finish.id,
                    schedule=finish.schedule,
                    task=finish.task,
                    state=finish.state,
                    attempt=finish.attempt,
                    cause=finish.cause,
                    reason=finish.reason,
                    duration=_duration(finish),
                    trace_id=trace_id_of(finish.trace),
                )

    def left_out(self, schedule: str, run: NewRun) -> None:
        """For these due times nothing is executed."""
        level = _LEVELS[run.state]
        if log.isEnabledFor(level):
            what = "missed" if run.state is RunState.MISSED else "skipped"
            self._say(
                *(level, "schedule %r %s %s: %s", schedule, what, _due_times(run), run.reason),
                schedule=schedule,
                task=run.task,
                state=run.state,
                cause=run.cause,
                reason=run.reason,
                trace_id=trace_id_of(run.trace),
            )

    def broken(self, schedule: str | None, reason: str | None) -> None:
        """A schedule was switched off."""
        if log.isEnabledFor(logging.ERROR):
            self._say(
                *(logging.ERROR, "schedule %r is broken and disabled: %s", schedule, reason),
                schedule=schedule,
                state=ScheduleState.BROKEN,
                reason=reason,
            )

    def late(self, notice: Notice) -> None:
        """A schedule has not succeeded in time, or nobody checked in."""
        if log.isEnabledFor(logging.WARNING):
            self._say(
                *(logging.WARNING, "schedule %r is late: it %s", notice.subject, notice.reason),
                schedule=notice.schedule,
                run=notice.run,
                cause=notice.cause,
                reason=notice.reason,
            )

    def _say(self, level: int, text: str, *args: object, error: str | None = None, **fields: object) -> None:
        log_fields(log, level, text, *args, fields={**_NOTHING, "node": self._node(), **fields}, error=error)


_NOTHING: dict[str, Any] = dict.fromkeys(
    ("run", "schedule", "task", "state", "attempt", "node", "cause", "reason", "duration", "trace_id")
)
"""Every record has every field, so that a format may name each."""


def log_cancelled(run: Run) -> None:
    """Somebody ended this run before it started."""
    if log.isEnabledFor(logging.INFO):
        fields = {**{name: getattr(run, name, None) for name in _NOTHING}, "run": run.id}
        name = run.schedule or counted_as(run.task, None, run.work.kind)
        log_fields(log, logging.INFO, "run %s of %r was %s: %s", run.id, name, run.state, run.reason, fields=fields)


def is_scheduling_logged() -> bool:
    """Whether it is of any use to read schedules for the log."""
    return log.isEnabledFor(logging.INFO)


def log_schedules(schedules: Sequence[Schedule], more: int = 0) -> None:
    """These were added or declared, and so many more."""
    if not is_scheduling_logged():
        return
    for schedule in schedules:
        fields = {**_NOTHING, "schedule": schedule.name, "task": schedule.work.needs, "state": schedule.state}
        if schedule.next_run_at is None:
            why = schedule.broken or schedule.off_note or schedule.next_run_reason
            told = f"{schedule.state}: {why}" if why else str(schedule.state)
        else:
            told = f"next due at {_moment(to_micros(schedule.next_run_at))}"
        # Whose wall clock its timing means: all times of the log are in UTC.
        timing = schedule.timing if schedule.zone in _UTC else f"{schedule.timing}, {schedule.zone}"
        log_fields(log, logging.INFO, "schedule %r (%s) is %s", schedule.name, timing, told, fields=fields)
    if more:
        log_fields(log, logging.INFO, "and %s", counted(more, "more schedule"), fields=_NOTHING)


def _level(finish: Finish) -> int:
    if finish.state is RunState.QUEUED:
        if finish.counted:
            return logging.WARNING
        return logging.DEBUG if finish.cause is Cause.POSTPONED else logging.INFO
    if finish.state is RunState.SUCCEEDED and (finish.cause is not None or finish.breaks):
        return logging.WARNING
    if finish.state is RunState.SKIPPED and finish.cause is Cause.GATE and not finish.breaks:
        return logging.INFO  # that is what a gate is for
    return _LEVELS[finish.state]


def _end(finish: Finish) -> tuple[Any, ...]:
    """The text of an end and its arguments."""
    who = (finish.id, finish.schedule or finish.name)
    seconds = _duration(finish)
    lasting = "" if seconds is None else f" after {elapsed(seconds)}"
    match finish.state:
        case RunState.SUCCEEDED:
            told = "" if finish.reason is None else f": {finish.reason}"
            return "run %s of %r succeeded in %s%s", *who, elapsed(seconds or 0), told
        case RunState.QUEUED:
            assert finish.ready_at is not None
            again = "is tried again at" if finish.counted else "is put off until"
            return "run %s of %r %s %s: %s", *who, again, _moment(finish.ready_at), finish.reason or finish.cause
        case RunState.FAILED:
            return "run %s of %r failed%s: %s", *who, lasting, finish.reason
        case RunState.CANCELLED | RunState.SUPERSEDED:
            return "run %s of %r was %s%s: %s", *who, finish.state, lasting, finish.reason
        case RunState.EXPIRED:
            return "run %s of %r expired: %s", *who, finish.reason
        case _:
            return "run %s of %r was %s: %s", *who, finish.state, finish.reason


def _story(finish: Finish) -> str | None:
    """What a failure has to say beyond its reason: the traceback, or what a command said last."""
    if finish.state is not RunState.FAILED or finish.error is None or finish.error == finish.reason:
        return None
    return finish.error


def _duration(finish: Finish) -> float | None:
    return None if finish.started_at is None else (finish.finished_at - finish.started_at) / SECOND


def _due_times(run: NewRun) -> str:
    if run.count == 1:
        return f"its due time {_moment(run.due_at)}"
    last = run.due_at if run.last_due_at is None else run.last_due_at
    return f"{counted(run.count, 'due time')} from {_moment(run.due_at)} to {_moment(last)}"


def _moment(at: Micros) -> str:
    return f"{from_micros(at):%Y-%m-%dT%H:%M:%SZ}"
