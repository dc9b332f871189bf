"""What changed between two looks at the ledger: a position says what to ask for, `changes` what to publish.

hub.py asks and publishes; nothing here waits. A run that was published as active is asked for until it has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import datetime
from itertools import islice
from typing import Protocol, TypeVar

from ostinato.clock import SECOND, Micros, from_micros, to_micros
from ostinato.models.access import AuditEntry
from ostinato.models.event import Event
from ostinato.models.ids import IncidentId, RunId, ScheduleId
from ostinato.models.incident import IncidentState
from ostinato.models.live import ChangedIncident, ChangedSchedule, Changes, LiveEvent, LiveKind, Position, PublishedRun
from ostinato.models.states import RunState

__all__ = ["FLOOD", "MARGIN", "MOST_QUEUED", "OVERLAP", "PublishedSoFar", "Tail"]

FLOOD = 2_000
"""So many new runs behind a look are not read any more, but counted."""
MARGIN: Micros = 10 * SECOND
"""How far the clocks of two nodes may be apart, with the time that a commit takes, and that an incident may be counted
on without a new time of its change."""
OVERLAP = 100
"""PostgreSQL commits out of order: so many ids before the last one are read again by each look."""
MOST_QUEUED = 2_000
"""So many queued runs are remembered. Of any other, the start and the end are published all the same."""


class _HasId(Protocol):
    @property
    def id(self) -> int: ...


Row = TypeVar("Row", bound=_HasId)


class Tail:
    """How far a table was read, by its ids."""

    def __init__(self, last: int = 0, overlap: int = OVERLAP) -> None:
        self.last = last
        self._overlap = overlap
        self._read: set[int] = set()
        """Of the ids that are read again, those that were there."""

    @property
    def start(self) -> int:
        """The next look reads what is behind this id."""
        return max(0, self.last - self._overlap)

    def take(self, rows: Iterable[Row]) -> list[Row]:
        """Those of these rows that were not read before."""
        unread = [row for row in rows if row.id not in self._read]
        self._read.update(row.id for row in unread)
        self.last = max(self.last, *self._read, 0)
        self._read = {id for id in self._read if id > self.start}
        return unread

    def skip_to(self, last: int) -> None:
        """Nothing up to this id is read any more."""
        self.last = last
        self._read = set(range(self.start, last + 1))


class PublishedSoFar:
    """What was published, as far as the next look needs it."""

    def __init__(self, looked_at: Micros, runs: Tail, events: Tail, audit: Tail) -> None:
        self._looked_at = looked_at
        self._runs = runs
        self._events = events
        self._audit = audit
        self.queued: dict[RunId, PublishedRun] = {}
        self.running: dict[RunId, PublishedRun] = {}
        """Both in the order in which they were last seen."""
        self._ended: dict[RunId, Micros] = {}
        """Ends that the next look may find again, and when they were."""
        self.schedules: dict[ScheduleId, tuple[int, datetime]] = {}
        """Version and instant of the changes that the next look may find again."""
        self.incidents: dict[IncidentId, ChangedIncident] = {}
        """The same of incidents, as they were."""
        self._broken: dict[ScheduleId, str] = {}
        """Why each is broken that was published as broken: what else changes of it is a plain change."""

    def position(self, most_running: int = 500, most_queued: int = 200) -> Position:
        """What to ask for next. So many known runs at most, those first that were not seen for the longest."""
        return Position(
            run=self._runs.start,
            event=self._events.start,
            audit=self._audit.start,
            changed_at=self._looked_at - MARGIN,
            finished_at=self._looked_at - MARGIN,
            runs=[*islice(self.running, most_running), *islice(self.queued, most_queued)],
            told=list(self._ended)[-FLOOD:],
        )

    def changes(self, position: Position, found: Changes, now: Micros, limit: int) -> tuple[list[LiveEvent], int]:
        """What to publish of a look that asked for this position, at most `limit` rows of each kind; and how many runs
        at least it left out, so that whoever listens loads anew."""
        self._looked_at = now
        self._ended = {id: at for id, at in self._ended.items() if at >= position.finished_at or id > position.run}
        new = {run.id for run in self._runs.take(found.new)}
        # The lists of ends and of changed schedules are cut. Ends come newest first: behind a known one are known ones.
        skipped = int(len(found.ended) >= limit and self._ended.keys().isdisjoint(run.id for run in found.ended))
        skipped += (len(found.schedules) >= limit) + (len(found.incidents) >= limit)
        if position.run and position.run + 1 in new:
            skipped += 1  # a batch was committed late that begins before what is read again
        if (behind := found.last_run - self._runs.last) > FLOOD:
            skipped += behind
            self._runs.skip_to(found.last_run)
        return [
            *self._run_events(position, found, new, from_micros(now)),
            *self._schedule_events(position, found),
            *self._incident_events(position, found),
            *map(_removed, self._audit.take(found.audit)),
            *map(_in_session, self._events.take(found.events)),
        ], skipped

    def _run_events(self, position: Position, found: Changes, new: set[RunId], now: datetime) -> Iterator[LiveEvent]:
        """What became of each run, the oldest first."""
        rows = {run.id: run for run in (*found.running, *found.ended, *found.seen, *found.new)}
        for id in position.runs:
            if id not in rows:
                self._forget(id)  # its row was removed
        for id, run in sorted(rows.items()):
            # After an end comes nothing more, though its row is found again.
            if id in self._ended:
                continue
            for kind in _kinds(self._forget(id), run, is_new=id in new):
                started_at = run.started_at if kind is LiveKind.RUN_STARTED else None
                finished_at = run.finished_at if kind is LiveKind.RUN_FINISHED else None
                yield LiveEvent(kind, started_at or finished_at or now, run, run.schedule, run.session)
            if run.ended:
                self._ended[id] = to_micros(run.finished_at or now)
            else:
                (self.queued if run.state is RunState.QUEUED else self.running)[id] = run
        for id in list(islice(self.queued, max(0, len(self.queued) - MOST_QUEUED))):
            del self.queued[id]

    def _forget(self, id: RunId) -> PublishedRun | None:
        return self.running.pop(id, None) or self.queued.pop(id, None)

    def _schedule_events(self, position: Position, found: Changes) -> Iterator[LiveEvent]:
        self.schedules = {id: one for id, one in self.schedules.items() if to_micros(one[1]) >= position.changed_at}
        for one in found.schedules:
            change = (one.version, one.updated_at)
            if self.schedules.get(one.id) != change:
                self.schedules[one.id] = change
                yield _changed(one, self._broken.pop(one.id, None))
                if one.broken is not None:
                    self._broken[one.id] = one.broken

    def _incident_events(self, position: Position, found: Changes) -> Iterator[LiveEvent]:
        since = from_micros(position.changed_at)
        self.incidents = {id: one for id, one in self.incidents.items() if one.changed_at >= since}
        for one in found.incidents:
            before = self.incidents.get(one.incident.id)
            if before != one:
                self.incidents[one.incident.id] = one
                yield _incident(one, before, since)


def _incident(changed: ChangedIncident, before: ChangedIncident | None, since: datetime) -> LiveEvent:
    """Whether it was opened or closed since it was published; of one that was not lately, since then."""
    incident, kind = changed.incident, LiveKind.INCIDENT_CHANGED
    if changed.turned_at >= since if before is None else changed.turned_at != before.turned_at:
        is_open = incident.state is IncidentState.OPEN
        kind = LiveKind.INCIDENT_OPENED if is_open else LiveKind.INCIDENT_CLOSED
    return LiveEvent(kind, changed.changed_at, None, incident.schedule, None, asdict(incident))


def _kinds(before: PublishedRun | None, run: PublishedRun, *, is_new: bool) -> Iterator[LiveKind]:
    """What is published of a run; what it went through since the last look too, as far as its row shows it."""
    is_running = run.state is RunState.RUNNING
    if before is None:
        # A row may begin at its end: skipped and missed due times were never queued.
        never_queued = run.started_at is None and run.state in (RunState.SKIPPED, RunState.MISSED)
        if is_new and not never_queued:
            yield LiveKind.RUN_QUEUED
        if is_running or (is_new and run.ended and run.started_at is not None):
            yield LiveKind.RUN_STARTED
    elif run.state is RunState.QUEUED:
        if before.state is RunState.RUNNING or (before.attempt, before.ready_at) != (run.attempt, run.ready_at):
            yield LiveKind.RUN_QUEUED
    elif run.attempt > before.attempt or (is_running and before.state is RunState.QUEUED):
        yield LiveKind.RUN_STARTED
    elif is_running and before != run:
        yield LiveKind.RUN_PROGRESS
    if run.ended:
        yield LiveKind.RUN_FINISHED


def _changed(schedule: ChangedSchedule, was_broken: str | None) -> LiveEvent:
    breaks = schedule.broken not in (None, was_broken)
    kind = LiveKind.SCHEDULE_BROKEN if breaks else LiveKind.SCHEDULE_CHANGED
    data = {name: getattr(schedule, name) for name in ("id", "version", "enabled", "broken")}
    return LiveEvent(kind, schedule.updated_at, None, schedule.name, None, data)


def _removed(entry: AuditEntry) -> LiveEvent:
    return LiveEvent(LiveKind.SCHEDULE_REMOVED, entry.at, None, entry.object, None, {"who": entry.who})


def _in_session(event: Event) -> LiveEvent:
    data = {"id": event.id, "kind": str(event.kind), "run": event.run, "data": dict(event.data)}
    return LiveEvent(LiveKind.SESSION_EVENT, event.at, None, None, event.session, data)
