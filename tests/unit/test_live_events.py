"""What is told of runs that change between looks: nothing twice, nothing out of order, nothing that never was.

Of everything else: test_live_schedules.py."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ostinato.clock import SECOND, Micros, from_micros, to_micros
from ostinato.models.ids import RunId
from ostinato.models.live import Changes, LiveEvent, LiveKind, Mark, ToldRun
from ostinato.models.run import Progress
from ostinato.models.states import STARTS, TRANSITIONS, RunState, Trigger
from ostinato.service.live_events import (
    FLOOD,
    MARGIN,
    MISSING_FOR,
    SETTLED,
    Known,
    events_between,
    known_at_first,
    next_mark,
)

START = to_micros(datetime(2026, 1, 1, tzinfo=UTC))


def make_run(id: int, state: RunState = RunState.QUEUED, now: Micros = START) -> ToldRun:
    at = from_micros(now)
    ended = not TRANSITIONS[state]
    return ToldRun(
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
        self.rows: dict[RunId, ToldRun] = {}
        self.uncommitted: dict[RunId, ToldRun] = {}
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
            if to_micros(run.due_at) + MISSING_FOR // 2 < self.now:  # a commit takes a while, but not that long
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

    def look(self, mark: Mark, limit: int) -> Changes:
        rows = [self.rows[id] for id in sorted(self.rows)]
        asked, left_out = set(mark.runs), {*mark.runs, *mark.told}
        since = mark.finished_at
        ended = [r for r in rows if since is not None and r.finished_at and to_micros(r.finished_at) >= since]
        ended = [r for r in ended if r.id <= mark.run and r.id not in left_out]
        return Changes(
            new=[run for run in rows if run.id > mark.run][:limit],
            seen=[run for run in rows if run.id in asked],
            ended=sorted(ended, key=lambda r: (r.finished_at, r.id))[-limit:],
            running=[run for run in rows if run.state is RunState.RUNNING][:limit],
            schedules=(), events=(), audit=(),
            last_run=max(self.rows, default=0),
            active=[run for run in reversed(rows) if TRANSITIONS[run.state]][: mark.active],
        )  # fmt: skip


@dataclass
class Watcher:
    """What somebody who looks now and then is told."""

    ledger: Ledger
    known: Known
    limit: int
    told: list[LiveEvent]
    asked: int = 200
    """So many active runs of each kind are asked for in one look: more than that are a backlog."""
    skipped: int = 0

    def look(self, active: int = 0) -> None:
        mark = next_mark(self.known, active, most_running=self.asked, most_queued=self.asked)
        told = events_between(self.known, mark, self.ledger.look(mark, self.limit), self.ledger.now, self.limit)
        self.known = told.known
        self.told += told.events
        self.skipped += told.skipped

    def ends(self) -> list[int]:
        return [event.run.id for event in self.told if event.kind is LiveKind.RUN_FINISHED and event.run is not None]


def begin(ledger: Ledger, limit: int, active: int | None = None, asked: int = 200) -> Watcher:
    """A watcher who knows everything, or so many of the runs that are active."""
    run = 0 if active is None else max(ledger.rows, default=0)
    mark = Mark(run, 0, 0, 0, active=1_000 if active is None else active)
    return Watcher(ledger, known_at_first(mark, ledger.look(mark, 1_000), ledger.now), limit, [], asked)


STEPS = st.one_of(
    st.tuples(st.just("insert"), st.sampled_from(sorted(STARTS)), st.booleans()),
    st.tuples(st.just("commit"), st.integers(0, 9)),
    st.tuples(st.just("move"), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("progress"), st.integers(0, 9)),
    st.tuples(st.just("wait"), st.integers(0, 3)),
    st.tuples(st.just("look")),
    st.tuples(st.just("list")),
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
            watcher.look(active=1_000 if name == "list" else 0)


@given(
    before=st.lists(STEPS, max_size=15),
    steps=st.lists(STEPS, max_size=60),
    limit=st.integers(1, 5),
    asked=st.sampled_from([1, 2, 200]),
)
def test_each_end_is_told_once_and_nothing_is_told_that_never_was(
    before: Any, steps: Any, limit: int, asked: int
) -> None:
    ledger = Ledger()
    play(ledger, None, before)
    ended_before = {id for id, run in ledger.rows.items() if run.ended}
    watcher = begin(ledger, limit, asked=asked)
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
    assert watcher.skipped == 0
    for id, run in ledger.rows.items():
        ends = kinds[id].count(LiveKind.RUN_FINISHED)
        assert ends == (1 if run.ended and id not in ended_before else 0), (id, kinds[id], ledger.history[id])
        if ends:
            assert kinds[id][-1] is LiveKind.RUN_FINISHED, "something was told after the end"
        if LiveKind.RUN_STARTED in kinds[id]:
            assert RunState.RUNNING in ledger.history[id]
        if LiveKind.RUN_QUEUED in kinds[id]:
            assert RunState.QUEUED in ledger.history[id]
    for first, second in zip(watcher.told, watcher.told[1:], strict=False):
        if first.run is not None and second.run is not None and first.run.id == second.run.id:
            before_at = ledger.history[first.run.id].index(first.run.state)
            assert second.run.state in ledger.history[first.run.id][before_at:], "told in the wrong order"


@given(backlog=st.integers(1, 9), steps=st.lists(STEPS, max_size=60), asked=st.integers(0, 3))
def test_behind_a_backlog_an_end_is_told_by_the_next_look(backlog: int, steps: Any, asked: int) -> None:
    ledger = Ledger()
    for _ in range(backlog):
        ledger.insert(RunState.QUEUED, commit=True)
    watcher = begin(ledger, 100, asked=asked)
    for step in (*steps, ("look",)):
        play(ledger, watcher, [step])
        if step[0] == "look":
            assert sorted(watcher.ends()) == sorted(id for id, run in ledger.rows.items() if run.ended)


def test_of_more_runs_than_a_look_asks_for_a_short_one_ends_without_delay() -> None:
    ledger = Ledger()
    watcher = begin(ledger, 250, FLOOD)
    for _ in range(10):  # they wait in a lane that is paused
        for _ in range(200):
            ledger.insert(RunState.QUEUED, commit=True)
        watcher.look()
    for _ in range(5):
        ledger.now += SECOND // 5
        ledger.insert(RunState.QUEUED, commit=True)
        watcher.look()
        end(ledger, ledger.last)
        watcher.look()
        assert watcher.ends()[-1:] == [ledger.last]
    assert not watcher.known.is_partial


def test_more_ends_of_known_runs_than_a_look_holds_are_told_by_the_next_ones() -> None:
    ledger = Ledger()
    for _ in range(50):
        ledger.insert(RunState.QUEUED, commit=True)
    watcher = begin(ledger, 10, asked=2)
    for id in range(1, 41):
        end(ledger, id)
    for _ in range(4):
        watcher.look()
    assert sorted(watcher.ends()) == list(range(1, 41))
    assert (watcher.skipped, watcher.known.is_partial) == (0, False)


def test_what_to_ask_for_costs_no_more_because_more_is_known() -> None:
    def cost(known: Known) -> float:
        began = time.thread_time()
        for _ in range(20):
            next_mark(known)
        return time.thread_time() - began

    ledger = Ledger()
    for _ in range(20_000):
        ledger.insert(RunState.QUEUED, commit=True)
    few, many = (begin(ledger, 250, active).known for active in (1_000, 20_000))
    assert len(many.queued) == 20_000
    assert min(cost(many) for _ in range(5)) < 5 * min(cost(few) for _ in range(5))


@given(before=st.lists(STEPS, max_size=30), steps=st.lists(STEPS, max_size=60))
def test_ends_of_runs_that_were_not_known_are_told_once_too(before: Any, steps: Any) -> None:
    ledger = Ledger()
    play(ledger, None, before)
    for choice in range(len(ledger.uncommitted)):
        ledger.commit(choice)
    ended_before = {id for id, run in ledger.rows.items() if run.ended}
    ledger.now += 2 * MARGIN  # what ended just before may be told as well
    watcher = begin(ledger, 100, active=0)
    assert watcher.known.is_partial
    play(ledger, watcher, [step for step in steps if step[0] != "list"])
    for choice in range(len(ledger.uncommitted)):
        ledger.commit(choice)
    watcher.look()
    assert sorted(watcher.ends()) == sorted(
        id for id, run in ledger.rows.items() if run.ended and id not in ended_before
    )
    assert watcher.skipped == 0


@given(steps=st.lists(STEPS, max_size=40), stall=st.integers(0, 60))
def test_an_end_is_told_once_though_nobody_looked_for_long(steps: Any, stall: int) -> None:
    ledger = Ledger()
    ledger.insert(RunState.QUEUED, commit=True)
    watcher = begin(ledger, 100, active=1)
    assert watcher.known.is_partial
    play(ledger, watcher, [step for step in steps if step[0] != "list"])
    watcher.look()
    ledger.now += stall * SECOND
    watcher.look()
    ends = watcher.ends()
    assert sorted(ends) == sorted(set(ends))


def test_what_a_list_of_the_active_runs_taught_is_followed_to_its_end() -> None:
    ledger = Ledger()
    for _ in range(5):
        ledger.insert(RunState.QUEUED, commit=True)
    watcher = begin(ledger, 10, active=3)
    assert sorted(watcher.known.queued) == [3, 4, 5]
    watcher.look(active=5)
    assert watcher.known.is_partial, "a full list may lack some"
    watcher.look(active=6)
    assert next_mark(watcher.known).finished_at is None, "all of them are known"
    for id in range(1, 6):
        end(ledger, id)
    watcher.look()
    assert watcher.ends() == [1, 2, 3, 4, 5]
    assert watcher.skipped == 0


def test_ends_that_were_told_asked_for_or_are_new_leave_room_for_the_others() -> None:
    ledger = Ledger()
    for _ in range(30):
        ledger.insert(RunState.QUEUED, commit=True)
    watcher = begin(ledger, 10, active=20)
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
    for id in range(11, 31):
        end(ledger, id)
    watcher.look()
    assert watcher.skipped == 0, "the twenty of the list were asked for"


def test_more_ends_of_unknown_runs_than_a_look_holds_are_said_to_be_skipped() -> None:
    ledger = Ledger()
    for _ in range(20):
        ledger.insert(RunState.QUEUED, commit=True)
    watcher = begin(ledger, 10, active=0)
    for id in range(1, 12):
        end(ledger, id)
    watcher.look()
    assert watcher.skipped
    assert len(watcher.ends()) == 10


def end(ledger: Ledger, id: int) -> None:
    at = from_micros(ledger.now)
    values: dict[str, Any] = {"state": RunState.SUCCEEDED, "started_at": at, "finished_at": at, "attempt": 1}
    ledger.rows[RunId(id)] = replace(ledger.rows[RunId(id)], **values)


def test_a_run_whose_row_was_removed_is_forgotten() -> None:
    ledger = Ledger()
    for _ in range(300):
        ledger.insert(RunState.QUEUED, commit=True)
    watcher = begin(ledger, 10)
    for id in range(1, 101):
        del ledger.rows[RunId(id)]
    for _ in range(5):
        watcher.look()
    assert sorted(watcher.known.queued) == list(range(101, 301))


def test_a_run_that_is_committed_late_is_told() -> None:
    ledger = Ledger()
    watcher = begin(ledger, 10)
    ledger.insert(RunState.QUEUED, commit=False)
    ledger.insert(RunState.QUEUED, commit=True)
    watcher.look()
    ledger.now += 30 * SECOND
    ledger.commit(0)
    watcher.look()
    assert [event.run.id for event in watcher.told if event.run is not None] == [2, 1]


def test_a_batch_that_is_committed_late_is_told() -> None:
    ledger = Ledger()
    watcher = begin(ledger, 250)
    for _ in range(100):
        ledger.insert(RunState.QUEUED, commit=False)
    ledger.insert(RunState.QUEUED, commit=True)
    watcher.look()
    ledger.now += SETTLED - SECOND
    while ledger.uncommitted:
        ledger.commit(0)
    watcher.look()
    assert sorted(event.run.id for event in watcher.told if event.run is not None) == list(range(1, 102))
    assert watcher.skipped == 0


def test_of_a_batch_that_is_missing_and_too_large_it_is_said_that_some_are_skipped() -> None:
    ledger = Ledger()
    watcher = begin(ledger, 250)
    ledger.last = FLOOD + 100
    ledger.insert(RunState.QUEUED, commit=True)
    watcher.look()
    assert watcher.skipped == 100
    assert watcher.known.is_partial
    assert len(next_mark(watcher.known).runs) == FLOOD + 1
    ledger.now += SETTLED
    watcher.look()
    assert next_mark(watcher.known).runs == [FLOOD + 101]


def test_an_id_that_stays_missing_is_asked_for_a_minute_and_no_longer() -> None:
    ledger = Ledger()
    watcher = begin(ledger, 10)
    ledger.insert(RunState.QUEUED, commit=False)
    ledger.insert(RunState.SKIPPED, commit=True)
    watcher.look()
    assert next_mark(watcher.known).runs == [1]
    ledger.now += 61 * SECOND
    watcher.look()
    assert next_mark(watcher.known).runs == []


def test_a_flood_is_counted_and_not_read() -> None:
    ledger = Ledger()
    watcher = begin(ledger, 10)
    for _ in range(FLOOD + 500):
        ledger.insert(RunState.SKIPPED, commit=True)
    watcher.look()
    assert len(watcher.told) == 10
    assert watcher.skipped == FLOOD + 490
    ledger.insert(RunState.SKIPPED, commit=True)
    watcher.look()
    assert [event.run.id for event in watcher.told[10:] if event.run is not None][-1] == FLOOD + 501


def test_progress_totals_and_a_cancel_are_told_when_they_change() -> None:
    ledger = Ledger()
    ledger.insert(RunState.QUEUED, commit=True)
    ledger.move(0, sorted(TRANSITIONS[RunState.QUEUED]).index(RunState.RUNNING))
    watcher = begin(ledger, 10)
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


def test_a_due_time_that_was_skipped_was_never_queued() -> None:
    ledger = Ledger()
    watcher = begin(ledger, 10)
    ledger.insert(RunState.MISSED, commit=True)
    watcher.look()
    assert [event.kind for event in watcher.told] == [LiveKind.RUN_FINISHED]


def test_a_quick_run_is_told_from_its_beginning_to_its_end() -> None:
    ledger = Ledger()
    watcher = begin(ledger, 10)
    ledger.insert(RunState.QUEUED, commit=True)
    ledger.move(0, sorted(TRANSITIONS[RunState.QUEUED]).index(RunState.RUNNING))
    ledger.move(0, sorted(TRANSITIONS[RunState.RUNNING]).index(RunState.SUCCEEDED))
    watcher.look()
    assert [event.kind for event in watcher.told] == [
        LiveKind.RUN_QUEUED,
        LiveKind.RUN_STARTED,
        LiveKind.RUN_FINISHED,
    ]
