"""What happened between two looks at the ledger, pure: `next_mark` says what to look at, `events_between` what to tell.

live.py looks and tells; nothing here waits. A run that is told of as active is asked for until it has ended, so its end
is told once and cannot be missed, whoever executes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice

from ostinato.clock import SECOND, Micros, from_micros, to_micros
from ostinato.models.access import AuditEntry
from ostinato.models.event import Event
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.live import ChangedSchedule, Changes, LiveEvent, LiveKind, Mark, ToldRun
from ostinato.models.run import Progress
from ostinato.models.states import RunState

__all__ = [
    "FLOOD",
    "MARGIN",
    "SETTLED",
    "Known",
    "Row",
    "Seen",
    "Told",
    "events_between",
    "first_mark",
    "known_at_first",
    "next_mark",
]

FLOOD = 2_000
"""So many new runs behind a look are not read any more, but counted."""
MARGIN: Micros = 10 * SECOND
"""How far the clocks of two nodes may be apart, with the time that a commit takes."""
SETTLED: Micros = 5 * SECOND
"""After this long a gap in a row of ids stays one: what took the number was rolled back."""
MISSING_FOR: Micros = 60 * SECOND
"""So long a run is waited for while few are missing."""
FEW_MISSING = 30
MOST_KNOWN = 20_000
FURTHER_BACK = 100
"""How many ids before the last one may be taken by somebody who has not yet committed."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An active run as it was told last."""

    state: RunState
    attempt: int
    ready_at: datetime
    progress: Progress | None
    totals: Mapping[str, float]
    cancelling: str | None

    @classmethod
    def of(cls, run: ToldRun) -> Seen:
        return cls(run.state, run.attempt, run.ready_at, run.progress, run.totals, run.cancelling)


@dataclass(frozen=True, slots=True)
class Row:
    """How far a row of ids was told. PostgreSQL commits out of order: a gap may be filled a moment later."""

    mark: int
    """Everything up to it is told, or will never be there."""
    told: frozenset[int] = frozenset()
    """What was told behind the mark."""
    gaps: Mapping[int, Micros] = field(default_factory=dict)
    """Since when each is missing."""


@dataclass(frozen=True, slots=True)
class Known:
    """What was told so far."""

    run: int
    """Runs up to this id were looked at."""
    looked_at: Micros
    changed_at: Micros
    """The next look is for schedules that were changed at this instant, behind `changed_id`, or later."""
    events: Row
    audit: Row
    queued: Mapping[RunId, Seen] = field(default_factory=dict)
    running: Mapping[RunId, Seen] = field(default_factory=dict)
    """Both in the order in which they were last seen."""
    missing: Mapping[RunId, Micros] = field(default_factory=dict)
    """Ids that were not there among greater ones, and since when."""
    ended: Mapping[RunId, Micros] = field(default_factory=dict)
    """Ends that were told lately, and until when they may be seen again."""
    schedules: dict[ScheduleId, tuple[int, datetime]] = field(default_factory=dict)
    """Version and instant of the changes that were told and may be seen again."""
    broken: Mapping[ScheduleId, str] = field(default_factory=dict)
    """Why each is broken that is known to be: it is told when it breaks, and not with each change after that."""
    is_partial: bool = False
    """There may be active runs that are not known: ends are also looked for by their instant."""
    changed_id: int = 0
    passing_since: Micros | None = None
    """When the pass through the changed schedules began that did not fit into one look."""

    @property
    def settled_at(self) -> Micros:
        """MARGIN before this, and earlier, no change of a schedule is left to be told."""
        since = self.looked_at if self.passing_since is None else self.passing_since
        return min(since, self.changed_at + MARGIN)


@dataclass(frozen=True, slots=True)
class Told:
    """What a look made."""

    known: Known
    events: Sequence[LiveEvent]
    skipped: int = 0
    """So many runs were not looked at."""


def first_mark(last_run: int, last_event: int, last_audit: int, now: Micros) -> Mark:
    """What to look at first: from a little before the last rows on, to see which ids among them are not yet there."""
    run, event, audit = (max(0, last - FURTHER_BACK) for last in (last_run, last_event, last_audit))
    return Mark(run, event, audit, now - MARGIN, active=FLOOD)


def known_at_first(mark: Mark, changes: Changes, now: Micros, audit: Iterable[AuditEntry] = ()) -> Known:
    """Where telling begins: everything that is there is known. `audit` has the last entries of any verb: the look shows
    those of removed schedules alone, and what is missing between them is no gap."""
    last = max((run.id for run in changes.new), default=changes.last_run)
    found = {run.id for run in changes.new}
    # What is behind the last one is new to the next look.
    runs = {run.id: run for run in (*changes.active, *changes.running, *changes.new) if run.id <= last}
    return Known(
        run=last,
        looked_at=now,
        changed_at=now - MARGIN,
        events=_settled(Row(mark.event), changes.events, now),
        audit=_settled(Row(mark.audit), [*changes.audit, *audit], now),
        queued={id: Seen.of(run) for id, run in runs.items() if run.state is RunState.QUEUED},
        running={id: Seen.of(run) for id, run in runs.items() if run.state is RunState.RUNNING},
        missing={RunId(id): now for id in range(mark.run + 1, last) if id not in found},
        schedules={one.id: (one.version, one.updated_at) for one in changes.schedules},
        broken=changes.broken,
        is_partial=len(changes.active) >= mark.active,
    )


def next_mark(known: Known, active: int = 0, *, most_running: int = 500, most_queued: int = 200) -> Mark:
    """What to look at next; with so many of the runs that are active, to learn those that are not known.

    Of the known ones, so many at most are asked for in each look, those first that were not for the longest.
    """
    running, queued = islice(known.running, most_running), islice(known.queued, most_queued)
    # Where not all are asked for, ends are found by their instant: a run may begin and end between two looks.
    is_all = len(known.running) <= most_running and len(known.queued) <= most_queued
    by_instant = known.is_partial or not is_all
    return Mark(
        run=known.run,
        event=known.events.mark,
        audit=known.audit.mark,
        changed_at=known.changed_at,
        changed_id=known.changed_id,
        runs=sorted({*running, *queued, *known.missing}),
        finished_at=known.looked_at - MARGIN if by_instant else None,
        told=list(known.ended)[-FLOOD:] if by_instant else (),
        active=active,
    )


def events_between(known: Known, mark: Mark, changes: Changes, now: Micros, limit: int) -> Told:
    """What is new in a look that asked for this mark, at most `limit` rows of each kind."""
    runs = _RunLook(known, mark, changes, now, limit)
    runs_told = list(runs.tell())
    events = [event for event in changes.events if event.id > mark.event and event.id not in known.events.told]
    audit = [entry for entry in changes.audit if entry.id > mark.audit and entry.id not in known.audit.told]
    schedules = [one for one in changes.schedules if known.schedules.get(one.id) != (one.version, one.updated_at)]
    after = replace(
        known,
        run=runs.last,
        looked_at=now,
        events=_settled(known.events, changes.events, now, cut=len(changes.events) >= limit),
        audit=_settled(known.audit, changes.audit, now, cut=len(changes.audit) >= limit),
        queued=runs.queued,
        running=runs.running,
        missing=runs.missing,
        ended=runs.ended,
        broken=_broken_after(known.broken, schedules),
        is_partial=runs.is_partial,
    )
    changed = [_changed(one, known.broken.get(one.id)) for one in schedules]
    happened = [*runs_told, *changed, *map(_removed, audit), *map(_in_session, events)]
    return Told(_further(after, changes.schedules, now, limit), happened, runs.skipped)


class _RunLook:
    """The runs of one look against what was known of them."""

    def __init__(self, known: Known, mark: Mark, changes: Changes, now: Micros, limit: int) -> None:
        self._changes = changes
        self._now, self._at = now, from_micros(now)
        self._listed = mark.active
        self._was_partial = known.is_partial
        self.queued, self.running = dict(known.queued), dict(known.running)
        # Those that this look may have found again; it asked from the last one on, however long ago that is.
        self.ended = {id: until for id, until in known.ended.items() if until >= known.looked_at}
        # With all that a look holds, at least one more end may be neither told nor in it; a run that is known is asked
        # for in its turn.
        self.skipped = int(known.is_partial and len(changes.ended) >= limit)
        new = {run.id for run in changes.new}
        found = {run.id for run in changes.seen} | new
        for id in mark.runs:
            if id not in found:
                self._forget(id)  # its row was removed
        self.last = max(known.run, max(new, default=0))
        if changes.last_run - self.last > FLOOD:
            self.skipped += changes.last_run - self.last
            self.last = changes.last_run
        self._came_late = {id for id in known.missing if id in found}
        self.missing = self._missing(known, new, found)

    def _missing(self, known: Known, new: set[RunId], found: set[RunId]) -> dict[RunId, Micros]:
        """Ids that somebody may have taken and not yet committed; a whole batch may come late."""
        missing = {id: since for id, since in known.missing.items() if id not in found}
        patience = MISSING_FOR if len(missing) <= FEW_MISSING else SETTLED
        missing = {id: since for id, since in missing.items() if since + patience > self._now}
        top = max(new, default=known.run)
        room, gaps = FLOOD - len(missing), max(0, top - known.run - len(new))
        self.skipped += max(0, gaps - room)
        missing.update((RunId(id), self._now) for id in islice(_not_in(new, known.run, top), room))
        return missing

    @property
    def is_partial(self) -> bool:
        """Whether some active runs may not be known."""
        is_listed = len(self._changes.active) < self._listed
        return self.skipped > 0 or (self._was_partial and not is_listed)

    def tell(self) -> Iterator[LiveEvent]:
        """What became of each run, the oldest first."""
        changes = self._changes
        # Who knows all that was active was told every other end, or came after it.
        ended = [run for run in changes.ended if self._was_partial or self._seen(run.id) is not None]
        rows = {run.id: run for run in (*changes.running, *changes.seen, *ended, *changes.new)}
        new = {run.id for run in changes.new} | self._came_late
        for id in sorted(rows):
            # Behind the last one are runs that came by another way than as new: they are told with the next look.
            if id > self.last or id in self.ended:
                continue
            run, seen = rows[id], self._seen(id)
            if seen is None and not run.ended and len(self.queued) + len(self.running) >= MOST_KNOWN:
                self.skipped += 1
                continue
            for kind in _kinds(seen, run, is_new=id in new):
                yield self._event(kind, run)
            self._keep(run)
        for run in changes.active:
            if run.id <= self.last and self._seen(run.id) is None:
                self._keep(run)

    def _seen(self, id: RunId) -> Seen | None:
        return self.running.get(id) or self.queued.get(id)

    def _forget(self, id: RunId) -> None:
        self.queued.pop(id, None)
        self.running.pop(id, None)

    def _keep(self, run: ToldRun) -> None:
        """Remember a run as it was told, as the last one that was seen."""
        self._forget(run.id)
        if run.ended:
            self.ended[run.id] = self._seen_until(run)
        else:
            (self.queued if run.state is RunState.QUEUED else self.running)[run.id] = Seen.of(run)

    def _event(self, kind: LiveKind, run: ToldRun) -> LiveEvent:
        at = None
        if kind is LiveKind.RUN_STARTED:
            at = run.started_at
        elif kind is LiveKind.RUN_FINISHED:
            at = run.finished_at
        return LiveEvent(kind, at or self._at, run, run.schedule, run.session)

    def _seen_until(self, run: ToldRun) -> Micros:
        finished_at = self._now if run.finished_at is None else to_micros(run.finished_at)
        return max(self._now, finished_at) + 2 * MARGIN


def _not_in(ids: set[RunId], after: int, before: int) -> Iterator[int]:
    """The numbers between that are not among these, the greatest first: they are the likeliest to come."""
    return (id for id in range(before - 1, after, -1) if id not in ids)


def _kinds(seen: Seen | None, run: ToldRun, *, is_new: bool) -> Iterator[LiveKind]:
    """What is told of a run; what it went through since the last look too, as far as its row shows it."""
    if seen is None and is_new:
        # A row may begin at its end: skipped and missed due times were never queued.
        if not run.ended or run.started_at is not None or run.state not in (RunState.SKIPPED, RunState.MISSED):
            yield LiveKind.RUN_QUEUED
        if run.state is RunState.RUNNING or (run.ended and run.started_at is not None):
            yield LiveKind.RUN_STARTED
    elif seen is None:
        if run.state is RunState.QUEUED:
            yield LiveKind.RUN_QUEUED
        elif run.state is RunState.RUNNING:
            yield LiveKind.RUN_STARTED
    elif run.state is RunState.QUEUED:
        if seen.state is RunState.RUNNING or (seen.attempt, seen.ready_at) != (run.attempt, run.ready_at):
            yield LiveKind.RUN_QUEUED
    elif run.attempt > seen.attempt or (seen.state is RunState.QUEUED and run.state is RunState.RUNNING):
        yield LiveKind.RUN_STARTED
    elif run.state is RunState.RUNNING and seen != Seen.of(run):
        yield LiveKind.RUN_PROGRESS
    if run.ended:
        yield LiveKind.RUN_FINISHED


def _further(known: Known, changed: Sequence[ChangedSchedule], now: Micros, limit: int) -> Known:
    """The same, with these changes told: from where on the next look asks, and what it may find again.

    Look after look goes through all that changed since MARGIN before the pass began, and then begins anew: so a change
    that is committed late is found too, however many there are, and none is told twice."""
    since = now if known.passing_since is None else known.passing_since
    if len(changed) < limit:
        known = replace(known, changed_at=since - MARGIN, changed_id=0, passing_since=None)
    else:
        last = changed[-1]
        known = replace(known, changed_at=to_micros(last.updated_at), changed_id=last.id, passing_since=since)
    told = known.schedules | {one.id: (one.version, one.updated_at) for one in changed}
    first = known.settled_at - MARGIN
    return replace(known, schedules={id: seen for id, seen in told.items() if to_micros(seen[1]) >= first})


def _changed(schedule: ChangedSchedule, was_broken: str | None) -> LiveEvent:
    breaks = schedule.broken is not None and schedule.broken != was_broken
    kind = LiveKind.SCHEDULE_BROKEN if breaks else LiveKind.SCHEDULE_CHANGED
    data = {name: getattr(schedule, name) for name in ("id", "version", "enabled", "broken")}
    return LiveEvent(kind, schedule.updated_at, None, schedule.name, None, data)


def _broken_after(broken: Mapping[ScheduleId, str], changed: Sequence[ChangedSchedule]) -> Mapping[ScheduleId, str]:
    if not changed:
        return broken
    now = {one.id: one.broken for one in changed}
    kept = {id: why for id, why in broken.items() if id not in now}
    return kept | {id: why for id, why in now.items() if why is not None}


def _removed(entry: AuditEntry) -> LiveEvent:
    return LiveEvent(LiveKind.SCHEDULE_REMOVED, entry.at, None, entry.object, None, {"who": entry.who})


def _in_session(event: Event) -> LiveEvent:
    data = {"id": event.id, "kind": str(event.kind), "run": event.run, "data": dict(event.data)}
    return LiveEvent(LiveKind.SESSION_EVENT, event.at, None, None, event.session, data)


def _settled(row: Row, entries: Iterable[Event | AuditEntry], now: Micros, *, cut: bool = False) -> Row:
    """The row after these were told. Cut, it goes on behind the last of them: there is more than can be read again."""
    told = row.told | {entry.id for entry in entries if entry.id > row.mark}
    if not told:
        return row
    top = max(told)
    if cut or top - row.mark > MOST_KNOWN:
        return Row(top)
    mark, gaps = row.mark, {}
    is_settled = True
    for id in range(row.mark + 1, top + 1):
        if id not in told:
            since = row.gaps.get(id, now)
            if since + SETTLED > now:
                is_settled = False
                gaps[id] = since
        if is_settled:
            mark = id
    return Row(mark, frozenset(id for id in told if id > mark), gaps)
