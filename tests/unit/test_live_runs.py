"""What is published of runs that change between looks: nothing twice, nothing out of order, nothing that never was.

Of everything else: test_live_schedules.py."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ostinato.clock import SECOND, Micros, from_micros, to_micros
from ostinato.models.ids import RunId
from ostinato.models.live import Changes, LiveEvent, LiveKind, Position, PublishedRun
from ostinato.models.run import Progress
from ostinato.models.states import STARTS, TRANSITIONS, RunState, Trigger
from ostinato.service.live.changes import FLOOD, MARGIN, MOST_QUEUED, OVERLAP, PublishedSoFar, Tail

START = to_micros(datetime(2026, 1, 1, tzinfo=UTC))


def make_run(id: int, state: RunState = RunState.QUEUED, now: Micros = START) -> PublishedRun:
    at = from_micros(now)
    ended = not TRANSITIONS[state]
    return PublishedRun(
        id=RunId(id), schedule=None, task="t", state=state, cause=None, reason=None, cancelling=None,
        trigger=Trigger.API, due_at=at, last_due_at=None, count=1, ready_at=at, started_at=None,
        finished_at=at if ended else None,
        attempt=0, totals={}, progress=None, error=None, lane="main", priority=0, session=None, project=None,
        key=str(id), node=None, schedule_id=None, zone=None,
    )  # fmt: skip


class Ledger:
    """A model of the table of runs: what was committed, and numbers that are taken and not yet committed."""

    def __init__(self) -> None:
        self.now = START
        self.rows: dict[RunId, PublishedRun] = {}
        self.uncommitted: dict[RunId, PublishedRun] = {}
        self.last = 0
        self.history: dict[RunId, list[RunState]] = defaultdict(list)

    def insert(self, state: RunState, *, commit: bool) -> None:
        self.last += 1
        run = make_run(self.last, state, self.now)
        self.history[run.id].append(state)
        (self.rows if commit else self.uncommitted)[run.id] = run

    def commit(self, choice: int) -> None:
        if self.uncommitted:
            id = sorted(self.uncommitted)[choice % len(self.uncommitted)]
            self.rows[id] = self.uncommitted.pop(id)

    def wait(self, seconds: int) -> None:
        self.now += seconds * SECOND
        for id, run in list(self.uncommitted.items()):
            if to_micros(run.due_at) + MARGIN // 2 < self.now:  # a commit takes a while, but not that long
                self.rows[id] = self.uncommitted.pop(id)

    def move(self, choice: int, to: int) -> None:
        active = [run for run in self.rows.values() if TRANSITIONS[run.state]]
        if not active:
            return
        run = active[choice % len(active)]
        moves = sorted(TRANSITIONS[run.state])
        state = moves[to % len(moves)]
        self.history[run.id].append(state)
        at = from_micros(self.now)
        changes: dict[str, Any] = {"state": state}
        if state is RunState.RUNNING:
            changes |= {"attempt": run.attempt + 1, "started_at": at}
        elif not TRANSITIONS[state]:
            changes["finished_at"] = at
        self.rows[run.id] = replace(run, **changes)

    def progress(self, choice: int) -> None:
        running = [run for run in self.rows.values() if run.state is RunState.RUNNING]
        if running:
            run = running[choice % len(running)]
            done = 1 if run.progress is None else run.progress.done + 1
            self.rows[run.id] = replace(run, progress=Progress(done))

    def look(self, mark: Position, limit: int) -> Changes:
        rows = [self.rows[id] for id in sorted(self.rows)]
        asked, left_out = set(mark.runs), {*mark.runs, *mark.told}
        ended = [r for r in rows if r.finished_at and to_micros(r.finished_at) >= mark.finished_at]
        ended = [r for r in ended if r.id <= mark.run and r.id not in left_out]
        return Changes(
            new=[run for run in rows if run.id > mark.run][:limit],
            seen=[run for run in rows if run.id in asked],
            ended=sorted(ended, key=lambda r: (r.finished_at, r.id))[-limit:],
            running=[run for run in rows if run.state is RunState.RUNNING][:limit],
            schedules=(), events=(), audit=(),
            last_run=max(self.rows, default=0),
        )  # fmt: skip


@dataclass
class Watcher:
    """What somebody who looks now and then is told."""

    ledger: Ledger
    so_far: PublishedSoFar
    limit: int
    told: list[LiveEvent]
    asked: int = 200
    """So many active runs of each kind are asked for in one look: more than that are a backlog."""
    skipped: int = 0

    def look(self) -> None:
        position = self.so_far.position(most_running=self.asked, most_queued=self.asked)
        found = self.ledger.look(position, self.limit)
        events, skipped = self.so_far.changes(position, found, self.ledger.now, self.limit)
        self.told += events
        self.skipped += skipped

    def ends(self) -> list[int]:
        return [event.run.id for event in self.told if event.kind is LiveKind.RUN_FINISHED and event.run is not None]


def begin(ledger: Ledger, limit: int, asked: int = 200, overlap: int = OVERLAP) -> Watcher:
    """A watcher who knows what the last ids are, and what is under way."""
    last = Tail(max(ledger.rows, default=0), overlap=overlap)
    watcher = Watcher(ledger, PublishedSoFar(ledger.now, last, Tail(), Tail()), 1_000, [], asked)
    watcher.look()
    return Watcher(ledger, watcher.so_far, limit, [], asked)


STEPS = st.one_of(
    st.tuples(st.just("insert"), st.sampled_from(sorted(STARTS)), st.booleans()),
    st.tuples(st.just("commit"), st.integers(0, 9)),
    st.tuples(st.just("move"), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("progress"), st.integers(0, 9)),
    st.tuples(st.just("wait"), st.integers(0, 3)),
    st.tuples(st.just("look")),
)


def play(ledger: Ledger, watcher: Watcher | None, steps: list[Any]) -> None:
    for name, *values in steps:
        if name == "insert":
            ledger.insert(values[0], commit=values[1])
        elif name == "commit":
            ledger.commit(values[0])
        elif name == "move":
            ledger.move(*values)
        elif name == "progress":
            ledger.progress(values[0])
        elif name == "wait":
            ledger.wait(values[0])
        elif watcher is not None:
            watcher.look()


@given(
    before=st.lists(STEPS, max_size=15),
    steps=st.lists(STEPS, max_size=60),
    room=st.sampled_from([(1, 0), (3, 1), (5, 4), (200, 100)]),
    asked=st.sampled_from([1, 2, 200]),
)
def test_each_end_is_published_once_and_nothing_that_never_was(
    before: Any, steps: Any, room: tuple[int, int], asked: int
) -> None:
    ledger, (limit, overlap) = Ledger(), room
    play(ledger, None, before)
    ended_before = {id for id, run in ledger.rows.items() if run.ended}
    watcher = begin(ledger, limit, asked, overlap)
    play(ledger, watcher, steps)
    for choice in range(len(ledger.uncommitted)):
        ledger.commit(choice)
    for _ in range(2 * len(ledger.rows) + 2):  # a look may hold a single new run, and ask for a single one
        watcher.look()

    kinds: dict[RunId, list[LiveKind]] = defaultdict(list)
    for event in watcher.told:
        assert event.run is not None
        kinds[event.run.id].append(event.kind)
        assert event.run.state in ledger.history[event.run.id], "a state that never was"
    assert watcher.skipped == 0 or room != (200, 100), "there was room for all"
    for id, run in ledger.rows.items():
        ends = kinds[id].count(LiveKind.RUN_FINISHED)
        is_due = run.ended and id not in ended_before
        assert ends == is_due or (watcher.skipped and not ends), (id, kinds[id], ledger.history[id])
        if ends:
            assert kinds[id][-1] is LiveKind.RUN_FINISHED, "something was published after the end"
        if LiveKind.RUN_STARTED in kinds[id]:
            assert RunState.RUNNING in ledger.history[id]
        if LiveKind.RUN_QUEUED in kinds[id]:
            assert RunState.QUEUED in ledger.history[id]
    for first, second in zip(watcher.told, watcher.told[1:], strict=False):
        if first.run is not None and second.run is not None and first.run.id == second.run.id:
            before_at = ledger.history[first.run.id].index(first.run.state)
            assert second.run.state in ledger.history[first.run.id][before_at:], "published in the wrong order"


@given(backlog=st.integers(1, 9), steps=st.lists(STEPS, max_size=60), asked=st.integers(0, 3))
def test_behind_a_backlog_an_end_is_published_by_the_next_look(backlog: int, steps: Any, asked: int) -> None:
    ledger = Ledger()
    for _ in range(backlog):
        ledger.insert(RunState.QUEUED, commit=True)
    watcher = begin(ledger, 200, asked)
    for step in (*steps, ("look",)):
        play(ledger, watcher, [step])
        if step[0] == "look":
            assert sorted(watcher.ends()) == sorted(id for id, run in ledger.rows.items() if run.ended)


@given(steps=st.lists(STEPS, max_size=40), stall=st.integers(0, 60))
def test_an_end_is_published_once_though_nobody_looked_for_long(steps: Any, stall: int) -> None:
    ledger = Ledger()
    watcher = begin(ledger, 200)
    play(ledger, watcher, steps)
    watcher.look()
    ledger.now += stall * SECOND
    watcher.look()
    assert sorted(watcher.ends()) == sorted(id for id, run in ledger.rows.items() if run.ended)


def test_of_more_runs_than_are_remembered_a_short_one_ends_without_delay() -> None:
    ledger = Ledger()
    watcher = begin(ledger, 350)
    for _ in range(10):  # they wait in a lane that is paused
        for _ in range(240):
            ledger.insert(RunState.QUEUED, commit=True)
        watcher.look()
    assert len(watcher.so_far.queued) == MOST_QUEUED
    for id in (1, ledger.last, ledger.last + 1):
        ledger.now += SECOND // 5
        if id > ledger.last:
            ledger.insert(RunState.QUEUED, commit=True)
        watcher.look()
        end(ledger, id)
        watcher.look()
        assert watcher.ends()[-1:] == [id]
    queued = [event.run.id for event in watcher.told if event.kind is LiveKind.RUN_QUEUED and event.run is not None]
    assert sorted(queued) == list(range(1, ledger.last + 1)), "what is read again was published again"
    assert watcher.skipped == 0


def test_more_ends_than_a_look_holds_are_published_by_the_next_ones_and_said_to_be_skipped() -> None:
    ledger = Ledger()
    for _ in range(50):
        ledger.insert(RunState.QUEUED, commit=True)
    watcher = begin(ledger, 10, asked=0, overlap=5)
    for id in range(1, 41):
        end(ledger, id)
    for _ in range(5):
        watcher.look()
    assert sorted(watcher.ends()) == list(range(1, 41))
    assert watcher.skipped, "had they been more, some were never published"


def test_ends_that_were_published_leave_room_for_the_others() -> None:
    ledger = Ledger()
    for _ in range(30):
        ledger.insert(RunState.QUEUED, commit=True)
    watcher = begin(ledger, 10, asked=0, overlap=3)
    for _ in range(20):
        for _ in range(6):  # quick ones, sixty in ten seconds
            ledger.insert(RunState.QUEUED, commit=True)
            end(ledger, ledger.last)
        ledger.now += SECOND
        watcher.look()
    for id in range(1, 10):
        end(ledger, id)
    watcher.look()
    assert watcher.skipped == 0
    assert sorted(watcher.ends()) == [*range(1, 10), *range(31, 151)]


def end(ledger: Ledger, id: int) -> None:
    at = from_micros(ledger.now)
    values: dict[str, Any] = {"state": RunState.SUCCEEDED, "started_at": at, "finished_at": at, "attempt": 1}
    ledger.rows[RunId(id)] = replace(ledger.rows[RunId(id)], **values)


def test_a_run_whose_row_was_removed_is_forgotten() -> None:
    ledger = Ledger()
    watcher = begin(ledger, 350)
    for _ in range(300):
        ledger.insert(RunState.QUEUED, commit=True)
    watcher.look()
    for id in range(1, 101):
        del ledger.rows[RunId(id)]
    for _ in range(5):
        watcher.look()
    assert sorted(watcher.so_far.queued) == list(range(101, 301))


@pytest.mark.parametrize(("late", "is_skipped"), [(1, False), (OVERLAP - 2, False), (OVERLAP + 50, True)])
def test_a_batch_that_is_committed_late_is_published_or_said_to_be_skipped(late: int, is_skipped: bool) -> None:
    ledger = Ledger()
    for _ in range(200):
        ledger.insert(RunState.SKIPPED, commit=True)
    watcher = begin(ledger, 350)
    for _ in range(late):
        ledger.insert(RunState.QUEUED, commit=False)
    ledger.insert(RunState.QUEUED, commit=True)
    watcher.look()
    while ledger.uncommitted:
        ledger.commit(0)
    watcher.look()
    told = [event.run.id for event in watcher.told if event.run is not None]
    assert told == [201 + late, *range(201 + max(0, late - OVERLAP + 1), 201 + late)]
    assert watcher.skipped == is_skipped


def test_a_flood_is_counted_and_not_read() -> None:
    ledger = Ledger()
    watcher = begin(ledger, 110)
    for _ in range(FLOOD + 500):
        ledger.insert(RunState.SKIPPED, commit=True)
    watcher.look()
    assert len(watcher.told) == 110
    assert watcher.skipped == FLOOD + 390
    ledger.insert(RunState.SKIPPED, commit=True)
    watcher.look()
    assert [event.run.id for event in watcher.told if event.run is not None][-1] == FLOOD + 501


def test_progress_totals_and_a_cancel_are_told_when_they_change() -> None:
    ledger = Ledger()
    ledger.insert(RunState.QUEUED, commit=True)
    ledger.move(0, sorted(TRANSITIONS[RunState.QUEUED]).index(RunState.RUNNING))
    watcher = begin(ledger, 110)
    watcher.look()
    assert watcher.told == []
    ledger.progress(0)
    watcher.look()
    watcher.look()
    ledger.rows[RunId(1)] = replace(ledger.rows[RunId(1)], totals={"copied": 3.0})
    watcher.look()
    ledger.rows[RunId(1)] = replace(ledger.rows[RunId(1)], cancelling="enough")
    watcher.look()
    watcher.look()
    assert [event.kind for event in watcher.told] == [LiveKind.RUN_PROGRESS] * 3


def test_a_quick_run_is_told_from_its_beginning_to_its_end() -> None:
    ledger = Ledger()
    watcher = begin(ledger, 110)
    ledger.insert(RunState.QUEUED, commit=True)
    ledger.move(0, sorted(TRANSITIONS[RunState.QUEUED]).index(RunState.RUNNING))
    ledger.move(0, sorted(TRANSITIONS[RunState.RUNNING]).index(RunState.SUCCEEDED))
    watcher.look()
    assert [event.kind for event in watcher.told] == [
        LiveKind.RUN_QUEUED,
        LiveKind.RUN_STARTED,
        LiveKind.RUN_FINISHED,
    ]
