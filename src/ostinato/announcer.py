"""What was recorded here, for the log, the callbacks of `app.on(…)` and whoever sends what is owed: starts, ends,
fires, check-ins, incidents, lost nodes.

The services of a node tell it once for each batch, and `service/check_ins.py` of each check-in. While nobody listens
and the log is off, that is a test or two, and nothing is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ostinato.clock import Micros, from_micros
from ostinato.listeners import Listeners
from ostinato.models.app_event import AppEvent, AppEventKind
from ostinato.models.ids import NodeId
from ostinato.models.incident import IncidentChange, Notice
from ostinato.models.run import ClaimedRun, Finish, NewRun
from ostinato.models.schedule import DueSchedule, FirePlan
from ostinato.models.states import Cause, RunState
from ostinato.run_log import RunLog
from ostinato.stores.base import NOTHING_TOLD, CheckedIn, Finished, Fired, Late, Removed, Told, Unstarted

__all__ = ["Announcer"]

_ENDS = {
    RunState.SUCCEEDED: AppEventKind.RUN_SUCCEEDED,
    RunState.FAILED: AppEventKind.RUN_FAILED,
    RunState.CANCELLED: AppEventKind.RUN_CANCELLED,
    RunState.SUPERSEDED: AppEventKind.RUN_CANCELLED,
    RunState.SKIPPED: AppEventKind.RUN_SKIPPED,
    RunState.EXPIRED: AppEventKind.RUN_SKIPPED,
    RunState.MISSED: AppEventKind.DUE_MISSED,
}


_INCIDENTS = frozenset({AppEventKind.INCIDENT_OPENED, AppEventKind.INCIDENT_CLOSED})
_CAUSES = {str(cause): cause for cause in Cause}
"""That of an incident may be none of a run: a schedule that was switched off, or is late."""


class Announcer:
    """Logs what was recorded, and makes events of it."""

    def __init__(self, listeners: Listeners | None = None, node: Callable[[], NodeId | None] = lambda: None) -> None:
        self._listeners = listeners or Listeners()
        self._log = RunLog(node)
        self.on_told: Callable[[Told], None] = _nobody
        """Hears what people are told; set by node.py."""
        self._writes = 0
        self._held: list[ClaimedRun] = []
        """Started while ends were being written."""

    @contextmanager
    def ends_first(self) -> Iterator[None]:
        """While ends are being written, no start is told: a claim of another connection may see that they are committed
        before we hear of it, and what they made room for is told behind them."""
        self._writes += 1
        try:
            yield
        finally:
            self._writes -= 1
            if self._held and not self._writes:
                self._tell_held()

    def _tell_held(self) -> None:
        held, self._held = self._held, []
        self._tell_started(held)

    def started(self, runs: Sequence[ClaimedRun]) -> None:
        """Those of these runs that were started here."""
        if self._writes:
            self._held += runs
        else:
            self._tell_started(runs)

    def _tell_started(self, runs: Sequence[ClaimedRun]) -> None:
        self._log.started(runs)
        if AppEventKind.RUN_STARTED in self._listeners.wanted:
            self._listeners.tell(_started(run, run.started_at) for run in runs if run.started_at is not None)

    def ended(self, batch: Sequence[Finish], finished: Finished) -> None:
        """A batch of finishes was written, but for those whose token no longer held."""
        if finished.told is not NOTHING_TOLD:
            self.told(finished.told)
        wanted, is_logged = self._listeners.wanted, self._log.wants(batch)
        if not wanted and not is_logged:
            return
        if self._held and not {run.id for run in self._held}.isdisjoint(finish.id for finish in batch):
            self._tell_held()  # another write goes on, and no end is told before its own start
        lost = set(finished.lost)
        written = [finish for finish in batch if finish.id not in lost]
        tripped = {one.schedule_id: one for one in written if one.broken and one.schedule_id in finished.broken}
        if is_logged:
            self._log.ended(written)
            for one in tripped.values():
                self._log.broken(one.schedule, one.broken)
        events = [_ended(kind, finish) for finish in written if (kind := _kind(finish)) in wanted]
        if AppEventKind.SCHEDULE_RECOVERED in wanted:
            events += self._recovered(written)
        if AppEventKind.SCHEDULE_BROKEN in wanted:
            events += [_broken(one.schedule, one.broken, one.finished_at) for one in tripped.values()]
        if wanted:
            self._listeners.tell(events)

    def unstarted(self, ended: Unstarted) -> None:
        """Runs were ended in the queue: nobody waits for them any more, or nobody is left to start them."""
        if ended.finishes:
            self.ended(ended.finishes, Finished(told=ended.told))

    def checked_in(self, checked_in: CheckedIn, now: Micros) -> None:
        """A machine told that it has started, or how it ended."""
        if checked_in.finish is not None:
            self.ended([checked_in.finish], Finished(told=checked_in.told))
        elif AppEventKind.RUN_STARTED in self._listeners.wanted:
            at, started = from_micros(now), AppEventKind.RUN_STARTED
            event = AppEvent(started, at, checked_in.run, checked_in.schedule, state=RunState.RUNNING)
            self._listeners.tell([event])

    def _recovered(self, written: Sequence[Finish]) -> list[AppEvent]:
        """Of schedules that failed here before: the database forgets the failures without telling who had some."""
        failing, events = self._listeners.failing, []
        for finish in written:
            if finish.breaks and finish.schedule_id is not None:
                failing.add(finish.schedule_id)
            elif finish.breaks is False and finish.schedule_id in failing:
                failing.discard(finish.schedule_id)
                at = from_micros(finish.finished_at)
                events.append(AppEvent(AppEventKind.SCHEDULE_RECOVERED, at, finish.id, finish.schedule, finish.task))
        return events

    def fired(self, due: Sequence[DueSchedule], plans: Sequence[FirePlan], fired: Fired, now: Micros) -> None:
        """Plans were recorded, those of the schedules that nobody else had moved on before."""
        if fired.told is not NOTHING_TOLD:
            self.told(fired.told)
        told = [plan for plan in plans if plan.broken is not None or any(map(_is_left_out, plan.runs))]
        if not told:
            return
        names, won = {schedule.id: schedule.name for schedule in due}, set(fired.moved)
        events: list[AppEvent] = []
        for plan in told:
            if plan.schedule_id in won:
                name, left_out = names[plan.schedule_id], list(filter(_is_left_out, plan.runs))
                for run in left_out:
                    self._log.left_out(name, run)
                events += [_left_out(name, run, now) for run in left_out]
                if plan.broken is not None and not plan.probes:
                    self._log.broken(name, plan.broken)
                    events.append(_broken(name, plan.broken, now))
        if self._listeners.wanted:
            self._listeners.tell(events)

    def removed(self, removed: Removed, now: Micros) -> None:
        """A schedule was removed, and what ran after it is broken."""
        if removed.told is not NOTHING_TOLD:
            self.told(removed.told)
        for schedule, reason in removed.broken:
            self._log.broken(schedule, reason)
        if AppEventKind.SCHEDULE_BROKEN in self._listeners.wanted:
            self._listeners.tell(_broken(schedule, reason, now) for schedule, reason in removed.broken)

    def told(self, told: Told) -> None:
        """People are told of what was recorded: incidents opened or closed, or there is something to send."""
        self.on_told(told)
        if told.incidents and not _INCIDENTS.isdisjoint(self._listeners.wanted):
            self._listeners.tell(map(_incident, told.incidents))

    def late(self, late: Late, now: Micros) -> None:
        """Schedules have not succeeded in time, or nobody checked in."""
        if late.finishes:
            self.ended(late.finishes, Finished(told=late.told))
        elif late.told is not NOTHING_TOLD:
            self.told(late.told)
        for notice in late.notices:
            self._log.late(notice)
        if AppEventKind.SCHEDULE_LATE in self._listeners.wanted:
            self._listeners.tell(_late(notice, now) for notice in late.notices)

    def lost(self, nodes: Sequence[NodeId], now: Micros) -> None:
        """This node declared these lost."""
        if nodes and AppEventKind.NODE_LOST in self._listeners.wanted:
            self._listeners.tell(AppEvent(AppEventKind.NODE_LOST, from_micros(now), node=node) for node in nodes)


def _is_left_out(run: NewRun) -> bool:
    return run.state is not RunState.QUEUED


def _kind(finish: Finish) -> AppEventKind | None:
    """None for what goes back to the queue and is no attempt: a snooze, or work that was not begun."""
    if finish.state is RunState.QUEUED:
        return AppEventKind.RUN_RETRYING if finish.counted else None
    return _ENDS[finish.state]


def _started(run: ClaimedRun, at: Micros) -> AppEvent:
    return AppEvent(
        AppEventKind.RUN_STARTED,
        from_micros(at),
        run.id,
        run.schedule,
        run.task,
        RunState.RUNNING,
        attempt=run.attempt,
        due_at=from_micros(run.due_at),
        count=run.count,
    )


def _ended(kind: AppEventKind, finish: Finish) -> AppEvent:
    return AppEvent(
        kind,
        from_micros(finish.finished_at),
        finish.id,
        finish.schedule,
        finish.task,
        finish.state,
        finish.cause,
        finish.reason,
        finish.error,
        finish.attempt,
        None if finish.ready_at is None else from_micros(finish.ready_at),
        None if finish.due_at is None else from_micros(finish.due_at),
        finish.count,
    )


def _left_out(schedule: str, run: NewRun, now: Micros) -> AppEvent:
    return AppEvent(
        _ENDS[run.state],
        from_micros(now),
        schedule=schedule,
        task=run.task,
        state=run.state,
        cause=run.cause,
        reason=run.reason,
        due_at=from_micros(run.due_at),
        count=run.count,
    )


def _late(notice: Notice, now: Micros) -> AppEvent:
    due_at = None if notice.due_at is None else from_micros(notice.due_at)
    return AppEvent(
        AppEventKind.SCHEDULE_LATE,
        from_micros(now),
        notice.run,
        notice.schedule,
        cause=Cause.LATE,
        reason=notice.reason,
        due_at=due_at,
    )


def _incident(change: IncidentChange) -> AppEvent:
    return AppEvent(
        AppEventKind.INCIDENT_OPENED if change.opened else AppEventKind.INCIDENT_CLOSED,
        from_micros(change.at),
        change.run,
        change.schedule,
        cause=_CAUSES.get(change.cause),
        reason=change.reason,
        count=change.count,
        incident=change.id,
        subject=change.subject,
    )


def _nobody(told: Told) -> None:
    """Nobody sends anything here."""


def _broken(schedule: str | None, reason: str | None, at: Micros) -> AppEvent:
    return AppEvent(AppEventKind.SCHEDULE_BROKEN, from_micros(at), schedule=schedule, reason=reason)
