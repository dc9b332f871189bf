"""What is published of changed and removed schedules and of sessions: once, and though it is committed late."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ostinato.clock import SECOND, Micros, from_micros, to_micros
from ostinato.models.access import AuditEntry
from ostinato.models.event import Event, EventKind
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.live import ChangedSchedule, Changes, LiveEvent, LiveKind
from ostinato.service.live.changes import MARGIN, OVERLAP, PublishedSoFar, Tail

START = to_micros(datetime(2026, 1, 1, tzinfo=UTC))
NOTHING = Changes((), (), (), (), (), (), (), 0)


def make_schedule(version: int, updated_at: Micros, broken: str | None = None, id: int = 1) -> ChangedSchedule:
    name = "backup" if id == 1 else f"s{id}"
    return ChangedSchedule(ScheduleId(id), name, version, broken is None, broken, from_micros(updated_at))


def told_of(so_far: PublishedSoFar, now: Micros, **found: Any) -> list[LiveEvent]:
    events, _ = so_far.changes(so_far.position(), replace(NOTHING, **found), now, 10)
    return events


def begun(now: Micros = START) -> PublishedSoFar:
    return PublishedSoFar(now, Tail(), Tail(), Tail())


class Schedules:
    """A model of the table of schedules, and of who looks at it: `told` has the versions of each that were
    told, in order."""

    def __init__(self, limit: int) -> None:
        self.now = START
        self.limit = limit
        self.rows: dict[int, ChangedSchedule] = {}
        self.uncommitted: list[ChangedSchedule] = []
        self.so_far = begun()
        self.told: dict[int, list[int]] = defaultdict(list)
        self.events: dict[int, list[LiveEvent]] = defaultdict(list)
        self.skipped = 0

    def change(self, id: int, *, commit: bool, broken: str | None = None) -> None:
        if any(one.id == id for one in self.uncommitted):
            return  # its row is locked
        version = self.rows[id].version + 1 if id in self.rows else 1
        self.uncommitted.append(make_schedule(version, self.now, broken, id))
        if commit:
            self.commit()

    def commit(self) -> None:
        self.rows |= {one.id: one for one in self.uncommitted}
        self.uncommitted.clear()

    def look(self) -> None:
        position = self.so_far.position()
        rows = sorted(self.rows.values(), key=lambda one: (one.updated_at, one.id))
        found = [one for one in rows if to_micros(one.updated_at) >= position.changed_at][: self.limit]
        events, skipped = self.so_far.changes(position, replace(NOTHING, schedules=found), self.now, self.limit)
        self.skipped += skipped
        for event in events:
            self.told[event.data["id"]].append(event.data["version"])
            self.events[event.data["id"]].append(event)


CHANGES = st.one_of(
    st.tuples(st.just("change"), st.integers(1, 12), st.booleans(), st.sampled_from([None, None, "failed", "gone"])),
    st.tuples(st.just("commit")),
    st.tuples(st.just("wait"), st.integers(0, 4)),
    st.tuples(st.just("look")),
)


def play(schedules: Schedules, steps: list[Any]) -> None:
    for name, *values in steps:
        if name == "change":
            schedules.change(values[0], commit=values[1], broken=values[2])
        elif name == "wait":
            schedules.now += values[0] * SECOND
            if any(to_micros(one.updated_at) + MARGIN // 2 < schedules.now for one in schedules.uncommitted):
                schedules.commit()  # a commit takes a while, but not that long
        else:
            getattr(schedules, name)()


@given(steps=st.lists(CHANGES, max_size=60), limit=st.sampled_from([1, 3, 100]))
def test_each_change_is_published_once_though_it_is_committed_late_or_it_is_said_that_some_are_not(
    steps: Any, limit: int
) -> None:
    schedules = Schedules(limit)
    play(schedules, steps)
    schedules.commit()
    schedules.look()
    assert schedules.skipped == 0 or limit < 100
    for id, row in schedules.rows.items():
        told = schedules.told[id]
        assert told == sorted(set(told)), "published twice, or in the wrong order"
        assert schedules.skipped or told[-1] == row.version, "never published"
        before = None
        for event in schedules.events[id]:
            breaks = event.data["broken"] not in (None, before)
            assert event.kind is (LiveKind.SCHEDULE_BROKEN if breaks else LiveKind.SCHEDULE_CHANGED)
            before = event.data["broken"]


def test_what_may_not_be_seen_again_is_forgotten() -> None:
    schedules = Schedules(1_001)
    for id in range(1, 1_001):
        schedules.change(id, commit=False)
    schedules.commit()
    while schedules.now < START + 2 * MARGIN:
        schedules.look()
        schedules.now += SECOND // 5
    assert schedules.told == {id: [1] for id in range(1, 1_001)}
    assert schedules.so_far.schedules == {}


def test_a_change_that_another_nodes_clock_dates_a_little_back_is_asked_for() -> None:
    so_far = begun()
    told_of(so_far, START + 60 * SECOND)
    assert so_far.position().changed_at == START + 60 * SECOND - MARGIN


def session_event(id: int) -> Event:
    return Event(id, from_micros(START), EventKind.ENQUEUED, "chat", RunId(1), {})


def audit_entry(id: int, verb: str) -> AuditEntry:
    return AuditEntry(id, from_micros(START), "ada", "page", None, verb, f"s{id}", {})


class Rows:
    """A model of the events and of the audit log, where a number may be taken long before it is committed; and of who
    begins to look at some time."""

    def __init__(self) -> None:
        self.events: dict[int, Event] = {}
        self.audit: dict[int, AuditEntry] = {}
        self.uncommitted: list[Event | AuditEntry] = []
        self.last = {"event": 0, "audit": 0}
        self.so_far: PublishedSoFar | None = None
        self.told: list[str] = []

    def take(self, verb: str, *, commit: bool) -> None:
        name = "event" if verb == "event" else "audit"
        self.last[name] += 1
        one = session_event(self.last[name]) if name == "event" else audit_entry(self.last[name], verb)
        self.uncommitted.append(one)
        if commit:
            self.commit(-1)

    def commit(self, choice: int) -> None:
        if self.uncommitted:
            one = self.uncommitted.pop(choice % len(self.uncommitted) if choice >= 0 else -1)
            rows: dict[int, Any] = self.events if isinstance(one, Event) else self.audit
            rows[one.id] = one

    def look(self) -> None:
        last_event, last_entry = max(self.events, default=0), max(self.audit, default=0)
        so_far = self.so_far or PublishedSoFar(START, Tail(), Tail(last_event), Tail(last_entry))
        position = so_far.position()
        removed = [self.audit[id] for id in sorted(self.audit) if self.audit[id].verb == "schedule.remove"]
        found = replace(
            NOTHING,
            events=[self.events[id] for id in sorted(self.events) if id > position.event],
            audit=[entry for entry in removed if entry.id > position.audit],
        )
        events, _ = so_far.changes(position, found, START, 1_000)
        if self.so_far is not None:  # the first look finds what was there before
            self.told += [event.schedule or f"event {event.data['id']}" for event in events]
        self.so_far = so_far

    def shown(self) -> set[str]:
        """What there is to tell."""
        removed = [entry.object for entry in self.audit.values() if entry.verb == "schedule.remove"]
        return {*removed, *(f"event {id}" for id in self.events)}


TAKES = st.tuples(st.just("take"), st.sampled_from(["event", "schedule.remove", "lane.set"]), st.booleans())
ROWS = st.one_of(
    TAKES,
    st.tuples(st.just("commit"), st.integers(0, 9)),
    st.tuples(st.just("look")),
)


def play_rows(rows: Rows, steps: list[Any]) -> None:
    for name, *values in steps:
        if name == "take":
            rows.take(values[0], commit=values[1])
        else:
            getattr(rows, name)(*values)


@given(before=st.lists(TAKES, max_size=12), steps=st.lists(ROWS, max_size=40))
def test_all_that_is_committed_after_the_beginning_is_published_once_though_its_number_is_older(
    before: Any, steps: Any
) -> None:
    rows = Rows()
    play_rows(rows, before)
    shown = rows.shown()
    rows.look()
    play_rows(rows, steps)
    while rows.uncommitted:
        rows.commit(0)
    rows.look()
    assert sorted(rows.told) == sorted(rows.shown() - shown)


def test_an_event_of_a_session_that_is_committed_much_later_is_left_out() -> None:
    so_far = begun()
    told_of(so_far, START, events=[session_event(OVERLAP + 2)])
    assert so_far.position().event == 2


def test_a_removed_schedule_is_published_from_the_audit_log() -> None:
    at = from_micros(START) + timedelta(seconds=1)
    entry = AuditEntry(7, at, "ada", "page", None, "schedule.remove", "backup", {})
    told = told_of(begun(), START + SECOND, audit=[entry])
    assert [(event.kind, event.schedule, event.at) for event in told] == [(LiveKind.SCHEDULE_REMOVED, "backup", at)]
