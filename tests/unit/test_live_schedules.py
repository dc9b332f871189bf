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
from ostinato.service.live_events import MARGIN, Known, Row, events_between, known_at_first, next_mark

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
    """A model of the table of schedules, and of who looks at it: `told` is what was told of each, in order."""

    def __init__(self, limit: int) -> None:
        self.now = START
        self.limit = limit
        self.rows: dict[int, ChangedSchedule] = {}
        self.uncommitted: list[ChangedSchedule] = []
        self.known = first_known(START)
        self.told: dict[int, list[int]] = defaultdict(list)
        self.looks = 0

    def change(self, id: int, *, commit: bool) -> None:
        if any(one.id == id for one in self.uncommitted):
            return  # its row is locked
        version = self.rows[id].version + 1 if id in self.rows else 1
        self.uncommitted.append(make_schedule(version, self.now, id=id))
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


CHANGES = st.one_of(
    st.tuples(st.just("change"), st.integers(1, 12), st.booleans()),
    st.tuples(st.just("commit")),
    st.tuples(st.just("wait"), st.integers(0, 4)),
    st.tuples(st.just("look")),
)


def play(schedules: Schedules, steps: list[Any]) -> None:
    for name, *values in steps:
        if name == "change":
            schedules.change(values[0], commit=values[1])
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


def test_a_change_that_another_nodes_clock_dates_a_little_back_is_asked_for() -> None:
    known, _ = told_of(first_known(), START + 60 * SECOND)
    assert next_mark(known).changed_at == START + 60 * SECOND - MARGIN


def session_event(id: int) -> Event:
    return Event(id, from_micros(START), EventKind.ENQUEUED, "chat", RunId(1), {})


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
