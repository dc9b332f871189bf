"""What is told of changed and removed schedules and of sessions: once, however many changed at once, and though it is
committed late."""

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
from ostinato.models.live import ChangedSchedule, Changes, LiveEvent, LiveKind, Mark
from ostinato.service.live_cursor import Cursor
from ostinato.service.live_events import (
    FURTHER_BACK,
    MARGIN,
    SETTLED,
    Known,
    Row,
    events_between,
    first_mark,
    known_at_first,
    next_mark,
)

START = to_micros(datetime(2026, 1, 1, tzinfo=UTC))
NOTHING = Changes((), (), (), (), (), (), (), 0)


def make_schedule(version: int, updated_at: Micros, broken: str | None = None, id: int = 1) -> ChangedSchedule:
    name = "backup" if id == 1 else f"s{id}"
    return ChangedSchedule(ScheduleId(id), name, version, broken is None, broken, from_micros(updated_at))


def told_of(known: Known, now: Micros, **changes: Any) -> tuple[Known, list[LiveEvent]]:
    told = events_between(known, next_mark(known), replace(NOTHING, **changes), now, 10)
    return told.known, list(told.events)


def first_known(now: Micros = START) -> Known:
    return known_at_first(Mark(0, 0, 0, 0, active=100), NOTHING, now)


class Schedules:
    """A model of the table of schedules, and of who looks at it: `told` has the versions of each that were
    told, in order."""

    def __init__(self, limit: int) -> None:
        self.now = START
        self.limit = limit
        self.rows: dict[int, ChangedSchedule] = {}
        self.uncommitted: list[ChangedSchedule] = []
        self.known = first_known(START)
        self.told: dict[int, list[int]] = defaultdict(list)
        self.events: dict[int, list[LiveEvent]] = defaultdict(list)
        self.looks = 0

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

    def find(self, mark: Mark) -> list[ChangedSchedule]:
        place = (from_micros(mark.changed_at), mark.changed_id)
        found = sorted((one.updated_at, one.id) for one in self.rows.values())
        return [self.rows[id] for at, id in found if (at, id) > place][: self.limit]

    def look(self) -> None:
        mark = next_mark(self.known)
        changes = replace(NOTHING, schedules=self.find(mark))
        told = events_between(self.known, mark, changes, self.now, self.limit)
        assert told.skipped == 0
        self.known = told.known
        self.looks += 1
        for event in told.events:
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


@given(steps=st.lists(CHANGES, max_size=60), limit=st.integers(1, 5))
def test_each_change_is_told_once_however_many_there_are_and_though_it_is_committed_late(
    steps: Any, limit: int
) -> None:
    schedules = Schedules(limit)
    play(schedules, steps)
    schedules.commit()
    for _ in range(2 * len(schedules.rows) + 3):
        schedules.look()
    for id, row in schedules.rows.items():
        told = schedules.told[id]
        assert told == sorted(set(told)), "told twice, or in the wrong order"
        assert told[-1] == row.version, "never told"
        before = None
        for event in schedules.events[id]:
            breaks = event.data["broken"] not in (None, before)
            assert event.kind is (LiveKind.SCHEDULE_BROKEN if breaks else LiveKind.SCHEDULE_CHANGED)
            before = event.data["broken"]


@given(steps=st.lists(CHANGES, max_size=40), limit=st.integers(1, 5))
def test_who_comes_back_with_a_cursor_misses_no_change_of_a_schedule(steps: Any, limit: int) -> None:
    schedules = Schedules(limit)
    play(schedules, steps)
    schedules.look()
    cursor = Cursor.of("hub", 0, schedules.known)
    elsewhere = Schedules(1_000)
    elsewhere.rows, elsewhere.uncommitted = schedules.rows, schedules.uncommitted
    elsewhere.now, elsewhere.known = schedules.now, Cursor.read(str(cursor)).known()
    elsewhere.commit()
    elsewhere.look()
    for id, row in schedules.rows.items():
        assert row.version in (*schedules.told[id], *elsewhere.told[id])


def test_a_thousand_changes_of_one_instant_are_all_told_and_once() -> None:
    schedules = Schedules(250)
    for id in range(1, 1_001):
        schedules.change(id, commit=False)
    schedules.commit()
    while schedules.now < START + 2 * MARGIN:
        schedules.look()
        schedules.now += SECOND // 5
    assert schedules.told == {id: [1] for id in range(1, 1_001)}
    assert schedules.known.schedules == {}


def test_a_change_of_a_schedule_is_told_once_though_it_is_seen_again() -> None:
    known, told = told_of(first_known(), START, schedules=[make_schedule(2, START)])
    assert [(event.kind, event.schedule) for event in told] == [(LiveKind.SCHEDULE_CHANGED, "backup")]
    known, told = told_of(known, START + SECOND, schedules=[make_schedule(2, START)])
    assert told == []
    known, told = told_of(known, START + SECOND, schedules=[make_schedule(3, START + SECOND, "failed")])
    assert [event.kind for event in told] == [LiveKind.SCHEDULE_BROKEN]
    assert told[0].data["broken"] == "failed"


def test_of_a_broken_schedule_only_that_it_broke_is_told_as_such() -> None:
    begun = replace(NOTHING, broken={ScheduleId(1): "failed"})
    known = known_at_first(Mark(0, 0, 0, 0, active=100), begun, START)
    kinds: list[LiveKind] = []
    for version, broken in enumerate(["failed", None, "failed", "failed", "gone"], start=2):
        now = START + version * 60 * SECOND
        known, told = told_of(known, now, schedules=[make_schedule(version, now, broken)])
        kinds += [event.kind for event in told]
    changed, breaks = LiveKind.SCHEDULE_CHANGED, LiveKind.SCHEDULE_BROKEN
    assert kinds == [changed, changed, breaks, changed, breaks]


def test_a_change_that_another_nodes_clock_dates_a_little_back_is_asked_for() -> None:
    known, _ = told_of(first_known(), START + 60 * SECOND)
    assert next_mark(known).changed_at == START + 60 * SECOND - MARGIN


def session_event(id: int) -> Event:
    return Event(id, from_micros(START), EventKind.ENQUEUED, "chat", RunId(1), {})


def audit_entry(id: int, verb: str) -> AuditEntry:
    return AuditEntry(id, from_micros(START), "ada", "page", None, verb, f"s{id}", {})


class Rows:
    """A model of the events and of the audit log, where a number may be taken long before it is committed; and of who
    begins to look at some time."""

    def __init__(self) -> None:
        self.now = START
        self.events: dict[int, Event] = {}
        self.audit: dict[int, AuditEntry] = {}
        self.uncommitted: list[tuple[Micros, Event | AuditEntry]] = []
        self.last = {"event": 0, "audit": 0}
        self.known: Known | None = None
        self.told: list[str] = []

    def take(self, verb: str, *, commit: bool) -> None:
        name = "event" if verb == "event" else "audit"
        self.last[name] += 1
        one = session_event(self.last[name]) if name == "event" else audit_entry(self.last[name], verb)
        self.uncommitted.append((self.now, one))
        if commit:
            self.commit(-1)

    def commit(self, choice: int) -> None:
        if self.uncommitted:
            _, one = self.uncommitted.pop(choice % len(self.uncommitted) if choice >= 0 else -1)
            rows: dict[int, Any] = self.events if isinstance(one, Event) else self.audit
            rows[one.id] = one

    def wait(self, seconds: int) -> None:
        self.now += seconds * SECOND
        while self.uncommitted and self.uncommitted[0][0] + SETTLED <= self.now:
            self.commit(0)

    def look(self) -> None:
        if self.known is None:
            mark = first_mark(0, max(self.events, default=0), max(self.audit, default=0), self.now)
            last = [self.audit[id] for id in sorted(self.audit)[-FURTHER_BACK:]]
            self.known = known_at_first(mark, self._find(mark), self.now, last)
            return
        mark = next_mark(self.known)
        told = events_between(self.known, mark, self._find(mark), self.now, 1_000)
        self.known = told.known
        self.told += [event.schedule or f"event {event.data['id']}" for event in told.events]

    def shown(self) -> set[str]:
        """What there is to tell."""
        removed = [entry.object for entry in self.audit.values() if entry.verb == "schedule.remove"]
        return {*removed, *(f"event {id}" for id in self.events)}

    def _find(self, mark: Mark) -> Changes:
        removed = [self.audit[id] for id in sorted(self.audit) if self.audit[id].verb == "schedule.remove"]
        return replace(
            NOTHING,
            events=[self.events[id] for id in sorted(self.events) if id > mark.event],
            audit=[entry for entry in removed if entry.id > mark.audit],
        )


TAKES = st.tuples(st.just("take"), st.sampled_from(["event", "schedule.remove", "lane.set"]), st.booleans())
ROWS = st.one_of(
    TAKES,
    st.tuples(st.just("commit"), st.integers(0, 9)),
    st.tuples(st.just("wait"), st.integers(0, 3)),
    st.tuples(st.just("look")),
)


def play_rows(rows: Rows, steps: list[Any]) -> None:
    for name, *values in steps:
        if name == "take":
            rows.take(values[0], commit=values[1])
        else:
            getattr(rows, name)(*values)


@given(before=st.lists(TAKES, max_size=12), steps=st.lists(ROWS, max_size=40))
def test_all_that_is_committed_after_the_beginning_is_told_once_though_its_number_is_older(
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


def test_where_nothing_is_missing_the_first_cursor_leads_back_to_nothing_that_was_there() -> None:
    rows = Rows()
    for verb in ("event", "schedule.remove", "lane.set") * 60:
        rows.take(verb, commit=True)
    rows.look()
    assert rows.known is not None
    assert (rows.known.events.mark, rows.known.audit.mark) == (60, 120)


def test_an_event_of_a_session_that_is_committed_late_is_told_once() -> None:
    known, told = told_of(first_known(), START, events=[session_event(2)])
    assert [event.data["id"] for event in told] == [2]
    assert next_mark(known).event == 0
    known, told = told_of(known, START + SECOND, events=[session_event(1), session_event(2), session_event(3)])
    assert [event.data["id"] for event in told] == [1, 3]
    assert known.events == Row(3)


def test_a_number_that_is_never_used_does_not_hold_up_events() -> None:
    known, _ = told_of(first_known(), START, events=[session_event(2)])
    known, _ = told_of(known, START + 6 * SECOND, events=[session_event(2)])
    assert next_mark(known).event == 2


def test_a_removed_schedule_is_told_from_the_audit_log() -> None:
    at = from_micros(START) + timedelta(seconds=1)
    entry = AuditEntry(7, at, "ada", "page", None, "schedule.remove", "backup", {})
    _, told = told_of(first_known(), START + SECOND, audit=[entry])
    assert [(event.kind, event.schedule, event.at) for event in told] == [(LiveKind.SCHEDULE_REMOVED, "backup", at)]
