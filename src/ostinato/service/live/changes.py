"""What changed between two looks at the ledger, pure: a position says what to ask for, `changes` what to publish.

hub.py asks and publishes; nothing here waits. A run that was published as active is asked for until it has ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Protocol, TypeVar

from ostinato.clock import SECOND, Micros, from_micros, to_micros
from ostinato.models.access import AuditEntry
from ostinato.models.event import Event
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.live import ChangedSchedule, Changes, LiveEvent, LiveKind, Mark, ToldRun
from ostinato.models.states import RunState

__all__ = ["FLOOD", "MARGIN", "MOST_QUEUED", "OVERLAP", "Published", "PublishedSoFar", "Tail", "changes"]

FLOOD = 2_000
"""So many new runs behind a look are not read any more, but counted."""
MARGIN: Micros = 10 * SECOND
"""How far the clocks of two nodes may be apart, with the time that a commit takes."""
OVERLAP = 100
"""PostgreSQL commits out of order: so many ids before the last one are read again by each look."""
MOST_QUEUED = 2_000
"""So many queued runs are remembered. Of any other, the start and the end are published all the same."""


class _HasId(Protocol):
    @property
    def id(self) -> int: ...


Row = TypeVar("Row", bound=_HasId)


@dataclass(frozen=True, slots=True)
class Tail:
    """How far a table was read, by its ids."""

    last: int
    read: Collection[int] = ()
    """Of the last ids, those that were there."""
    overlap: int = OVERLAP

    @property
    def start(self) -> int:
        """The next look reads what is behind this id."""
        return max(0, self.last - self.overlap)

    def unread(self, rows: Iterable[Row]) -> list[Row]:
        return [row for row in rows if row.id not in self.read]

    def after(self, rows: Iterable[_HasId]) -> Tail:
        """The tail when these were read too."""
        found = {*self.read, *(row.id for row in rows)}
        last = max(self.last, *found, 0)
        return replace(self, last=last, read={id for id in found if id > last - self.overlap})

    def at(self, last: int) -> Tail:
        """The tail behind everything up to this id, read or not."""
        return replace(self, last=last, read=range(last - self.overlap, last + 1))


@dataclass(frozen=True, slots=True)
class PublishedSoFar:
    """What listeners were told, as far as the next look needs it."""

    looked_at: Micros
    runs: Tail
    events: Tail
    audit: Tail
    queued: dict[RunId, ToldRun] = field(default_factory=dict)
    running: dict[RunId, ToldRun] = field(default_factory=dict)
    """Both in the order in which they were last seen."""
    ended: dict[RunId, Micros] = field(default_factory=dict)
    """Ends that the next look may find again, and when they were."""
    schedules: dict[ScheduleId, tuple[int, datetime]] = field(default_factory=dict)
    """Version and instant of the changes that the next look may find again."""
    broken: dict[ScheduleId, str] = field(default_factory=dict)
    """Why each is broken that was published as broken: what else changes of it is a plain change."""

    def position(self, most_running: int = 500, most_queued: int = 200) -> Mark:
        """What to ask for next. So many known runs at most, those first that were not seen for the longest."""
        return Mark(
            run=self.runs.start,
            event=self.events.start,
            audit=self.audit.start,
            changed_at=self.looked_at - MARGIN,
            finished_at=self.looked_at - MARGIN,
            runs=sorted({*islice(self.running, most_running), *islice(self.queued, most_queued)}),
            told=list(self.ended)[-FLOOD:],
        )


@dataclass(frozen=True, slots=True)
class Published:
    """What a look gave."""

    so_far: PublishedSoFar
    events: list[LiveEvent]
    skipped: int
    """So many runs at least were not looked at: whoever listens loads anew."""


def changes(so_far: PublishedSoFar, position: Mark, found: Changes, now: Micros, limit: int) -> Published:
    """What is new in a look that asked for this position, at most `limit` rows of each kind."""
    runs = _RunChanges(so_far, position, found, now, limit)
    told = [*runs.events()]
    changed = [one for one in found.schedules if so_far.schedules.get(one.id) != (one.version, one.updated_at)]
    told += [_changed(one, so_far.broken.get(one.id)) for one in changed]
    told += map(_removed, so_far.audit.unread(found.audit))
    told += map(_in_session, so_far.events.unread(found.events))
    queued = runs.active[RunState.QUEUED]
    seen = so_far.schedules | {one.id: (one.version, one.updated_at) for one in changed}
    broken = so_far.broken | {one.id: one.broken for one in changed}
    after = PublishedSoFar(
        looked_at=now,
        runs=runs.tail,
        events=so_far.events.after(found.events),
        audit=so_far.audit.after(found.audit),
        queued=dict(islice(queued.items(), max(0, len(queued) - MOST_QUEUED), None)),
        running=runs.active[RunState.RUNNING],
        ended=runs.ended,
        schedules={id: one for id, one in seen.items() if to_micros(one[1]) >= position.changed_at},
        broken={id: why for id, why in broken.items() if why is not None},
    )
    return Published(after, told, runs.skipped + (len(found.schedules) >= limit))


class _RunChanges:
    """The runs of one look against what was published of them."""

    def __init__(self, so_far: PublishedSoFar, position: Mark, found: Changes, now: Micros, limit: int) -> None:
        self._now = from_micros(now)
        self.active = {RunState.QUEUED: dict(so_far.queued), RunState.RUNNING: dict(so_far.running)}
        self.ended = {id: at for id, at in so_far.ended.items() if at >= position.finished_at or id > position.run}
        self.tail = so_far.runs.after(found.new)
        self._new = {run.id for run in so_far.runs.unread(found.new)}
        self._rows = {run.id: run for run in (*found.running, *found.ended, *found.seen, *found.new)}
        for id in position.runs:
            if id not in self._rows:
                self._forget(id)  # its row was removed
        # The list of ends is cut, and no older one in it was published: there may be more.
        self.skipped = int(len(found.ended) >= limit and self.ended.keys().isdisjoint(run.id for run in found.ended))
        if position.run and position.run + 1 in self._new:
            self.skipped += 1  # a batch was committed late that begins before what is read again
        if (behind := found.last_run - self.tail.last) > FLOOD:
            self.skipped += behind
            self.tail = self.tail.at(found.last_run)

    def events(self) -> Iterator[LiveEvent]:
        """What became of each run, the oldest first."""
        for id, run in sorted(self._rows.items()):
            # What is behind the last new one is published by the next look; after an end comes nothing more.
            if id > self.tail.last or id in self.ended:
                continue
            before = self.active[RunState.RUNNING].get(id) or self.active[RunState.QUEUED].get(id)
            for kind in _kinds(before, run, is_new=id in self._new):
                yield LiveEvent(kind, self._at(kind, run), run, run.schedule, run.session)
            self._forget(id)
            if run.state in self.active:
                self.active[run.state][id] = run
            else:
                self.ended[id] = to_micros(run.finished_at or self._now)

    def _forget(self, id: RunId) -> None:
        for runs in self.active.values():
            runs.pop(id, None)

    def _at(self, kind: LiveKind, run: ToldRun) -> datetime:
        if kind is LiveKind.RUN_STARTED:
            return run.started_at or self._now
        return (run.finished_at if kind is LiveKind.RUN_FINISHED else None) or self._now


def _kinds(before: ToldRun | None, run: ToldRun, *, is_new: bool) -> Iterator[LiveKind]:
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
