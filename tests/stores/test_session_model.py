"""Sessions at random: a simple model in memory next to a real store, and the same answers after each step.

HYPOTHESIS_PROFILE=explore looks further than a run of the suite does.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from ostinato.clock import SECOND, Micros, to_micros
from ostinato.models.ids import NodeId, RunId
from ostinato.models.run import INTERRUPTED, NEVER_STARTED, ClaimedRun, Ending, Finish, Run, RunFilter
from ostinato.models.session import Delivery, Message, Mode, Sent, debounced
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.stores.base import Claimed, Store
from ostinato.testing.store_suite.builders import NOW, beat, claim, finish, retry
from ostinato.testing.store_suite.mailbox import payloads
from tests.databases import LIGHT
from tests.stores.places import raw
from tests.stores.session_letters import (
    AHEAD,
    KEYS,
    LANES,
    MILLISECOND,
    TASKS,
    as_message,
    calls,
    letters,
    throttles,
    times,
)
from tests.stores.session_model import Answer, Entry, Letter, Post

T = TypeVar("T")


class Sessions(RuleBasedStateMachine):
    """Does the same to a store and to the model."""

    def __init__(self, store: Store, runner: asyncio.Runner) -> None:
        super().__init__()
        self.store, self.runner = store, runner
        self.post = Post()
        self.now = NOW
        self.limits = {"main": 30, "narrow": 1}
        self.letters: dict[int, tuple[Letter, Micros]] = {}
        self.answers: dict[int, Answer] = {}
        self.ids: dict[int, RunId] = {}
        """The row of each letter."""
        self.claims: dict[int, ClaimedRun] = {}
        """What runs, with the token that holds."""
        self.late: list[ClaimedRun] = []
        """What ran on nodes that are lost, with tokens that hold no more."""
        self.executed: dict[str, list[int]] = {key: [] for key in KEYS}
        """The payloads of each session's messages in the order in which they were first carried out."""
        self.node = 1
        self.last_event = 0
        self.do(self._clean())

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        # Not runner.run, which also sets up signals, each time.
        return self.runner.get_loop().run_until_complete(work)

    async def _clean(self) -> None:
        for table in ("runs", "sessions", "events", "nodes"):
            await raw(self.store, f"DELETE FROM {table}")
        for name, limit in self.limits.items():
            await self.store.lanes.set_lane(name, limit, None)
        await self.store.nodes.renew(beat(self.node_name))

    @property
    def node_name(self) -> str:
        return f"node-{self.node}"

    # --- what people do

    @rule(sent=st.lists(letters, min_size=1, max_size=3))
    def send(self, sent: list[Letter]) -> None:
        numbers = range(len(self.letters), len(self.letters) + len(sent))
        messages = []
        for number, letter in zip(numbers, sent, strict=True):
            self.letters[number] = (letter, self.now)
            self.answers[number] = self.post.send(number, letter, self.now)
            messages.append(self._message(number))
        answers = self.do(self.store.sessions.send(messages, self.now))
        self._learn_ids()
        for number, answer in zip(numbers, answers, strict=True):
            assert self._answer(answer) == self.answers[number]

    @rule(letter=letters, count=st.integers(2, 3))
    def send_alike(self, letter: Letter, count: int) -> None:
        """Some of the same kind: a burst, if they debounce."""
        self.send([letter] * count)

    @rule(sent=st.lists(calls, min_size=1, max_size=2))
    def enqueue(self, sent: list[Letter]) -> None:
        self.send(sent)

    @rule(letter=calls, wait=st.booleans())
    def execute(self, letter: Letter, wait: bool) -> None:
        """A node puts something into the queue that only it may start."""
        number, letter = len(self.letters), replace(letter, delay=0, later=0)
        is_busy = self.post.would_wait(letter)
        self.letters[number] = (letter, self.now)
        run = replace(self._message(number).run, trigger=Trigger.MANUAL, waiting=True, mode=Mode.QUEUE)
        bound = self.do(self.store.runs.queue_bound(run, NodeId(self.node_name), self.now, wait=wait))
        if is_busy and not wait:
            assert bound.id is None
            del self.letters[number]
            return
        self.answers[number] = self.post.bind(number, letter, self.node_name, self.now)
        self._learn_ids()
        assert bound.id == self.ids[number]

    @precondition(lambda self: self.post.bound(self.node_name))
    @rule(data=st.data())
    def start_bound(self, data: st.DataObject) -> None:
        entry = self._draw(data, self.post.bound(self.node_name))
        self._start_bound(entry, data.draw(st.sampled_from([None, None, True, False])))

    def _start_bound(self, entry: Entry, is_full: bool | None = None) -> None:
        if is_full:
            self.post.hold_back([], [entry.letter.session], self.now)
        elif is_full is False:
            self.post.unthrottle([entry.letter.session])
        id, node = self.ids[entry.number], NodeId(self.node_name)
        runs = self.do(self.store.runs.start_bound(id, node, self.now, is_full=is_full)).runs
        assert bool(runs) == entry.has_turn
        for run in runs:
            self._start(run)

    @precondition(lambda self: self._known())
    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        """A sender that did not hear the answer asks once more."""
        number = data.draw(st.sampled_from(self._known()))
        (answer,) = self.do(self.store.sessions.send([self._message(number)], self.now))
        first = self.answers[number]
        assert self._answer(answer) == Answer(first.delivery, first.carrier)

    @rule(key=st.sampled_from(KEYS), everything=st.sampled_from([False, False, True]))
    def stop(self, key: str, everything: bool) -> None:
        stopped = self.do(self.store.sessions.stop(key, everything=everything, now=self.now))
        assert stopped == (self.post.stop_all if everything else self.post.stop)(key, self.now)

    @precondition(lambda self: self.post.queued() or self.post.running())
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        entry = self._draw(data, [*self.post.queued(), *self.post.running()])
        self.do(self.store.runs.cancel_runs([self.ids[entry.number]], Ending(Cause.CANCELLED, "by hand"), self.now))
        self.post.cancel(entry, "by hand", self.now)

    @rule(lane=st.sampled_from(["narrow", "narrow", "main"]), step=st.sampled_from([1, 2, 100]))
    def clear_lane(self, lane: str, step: int) -> None:
        async def clear() -> int:
            cleared = await self.store.lanes.clear_lane(lane, self.now, None, step)
            count = cleared.runs
            while cleared.until is not None:
                cleared = await self.store.lanes.clear_lane(lane, self.now, cleared.until, step)
                count += cleared.runs
            return count

        assert self.do(clear()) == self.post.clear(lane, self.now)

    @rule(limit=st.integers(0, 3))
    def resize_lane(self, limit: int) -> None:
        self.limits["narrow"] = limit
        assert self.do(self.store.lanes.set_lane("narrow", limit, None))

    # --- what nodes do

    @rule(time=times)
    def wait(self, time: Micros) -> None:
        self.now += time

    @precondition(lambda self: self._closing())
    @rule(early=st.sampled_from([0, 0, 1, 50 * MILLISECOND, AHEAD]))
    def wait_for_a_burst(self, early: Micros) -> None:
        """Until it closes, or a moment before."""
        self.now = max(self.now, min(self._closing()) - early)

    def _closing(self) -> list[Micros]:
        return [one.ready_at for one in self.post.queued() if one.is_burst and one.ready_at > self.now]

    @rule(room=st.sampled_from([1, 100, 100]), ahead=st.sampled_from([0, AHEAD]))
    def claim(self, room: int, ahead: Micros) -> None:
        self._claimed(self.do(self.store.runs.claim_runs(self._claim(room, ahead))), room, ahead)

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), also_claims=st.booleans())
    def finish(self, data: st.DataObject, also_claims: bool) -> None:
        running = data.draw(st.lists(st.sampled_from(sorted(self.claims)), min_size=1, max_size=3, unique=True))
        finishes = [self._finish(data, self.post.entries[number], self.claims.pop(number)) for number in running]
        self.post.ended({self.post.entries[number].letter.session for number in running})
        request = self._claim(100, AHEAD) if also_claims else None
        done = self.do(self.store.runs.finish_runs(finishes, request))
        assert list(done.lost) == []
        if also_claims:
            self._claimed(done.claimed, 100, AHEAD)

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def hold_back(self, data: st.DataObject) -> None:
        """A node finds the sessions full of which it has claimed something; of what was once its own, it may not know
        yet that others have it."""
        numbers = data.draw(st.lists(st.sampled_from(sorted(self.claims)), min_size=1, max_size=4, unique=True))
        lost = data.draw(st.lists(st.sampled_from(self.late), max_size=1)) if self.late else []
        claimed = [self.claims[number] for number in numbers] + lost
        unstarted = [self.post.entries[number] for number in numbers]
        expected = self.post.hold_back(unstarted, [run.session or "" for run in claimed], self.now)
        allowed = self.do(self.store.sessions.hold_back(claimed, self.now))
        assert sorted(allowed) == sorted(self.ids[number] for number in expected)
        for number in set(numbers) - set(expected):
            self.late.append(self.claims.pop(number))

    @rule(keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=2))
    def unthrottle(self, keys: list[str]) -> None:
        self.do(self.store.sessions.unthrottle(keys))
        self.post.unthrottle(keys)

    @precondition(lambda self: self.claims or self.post.bound(self.node_name))
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """The node is gone, and another one rescues what ran on it, or was to be started there."""
        found = self.do(self.store.runs.stale_runs([(NodeId(self.node_name), NOW)], self.now))
        stale, bound = found.runs, found.bound
        assert self.do(self.store.runs.cancel_runs(bound, NEVER_STARTED, self.now)).asked == []
        assert sorted(bound) == sorted(self.ids[number] for number in self.post.lose(self.node_name, self.now))
        assert sorted(run.id for run in stale) == sorted(run.id for run in self.claims.values())
        if not any(
            one.is_early and one.ready_at <= self.now for one in self.post.queued()
        ):  # it may let those queue up
            assert list(self.do(self.store.runs.claim_runs(self._claim(100, 0))).runs) == [], "a lost node gets nothing"
        self.late += self.claims.values()
        self.claims.clear()
        self.node += 1
        rescued = {self._number(run): run for run in stale}
        finishes = [self._rescue(data, self.post.entries[number], rescued[number]) for number in sorted(rescued)]
        self.post.ended({self.post.entries[number].letter.session for number in rescued})
        assert list(self.do(self._rescued(finishes)).lost) == []

    async def _rescued(self, finishes: Sequence[Finish]) -> Any:
        await self.store.nodes.renew(beat(self.node_name))
        return await self.store.runs.finish_runs(finishes)

    @precondition(lambda self: self.late)
    @rule(data=st.data(), is_end=st.booleans())
    def end_too_late(self, data: st.DataObject, is_end: bool) -> None:
        """A node that was declared lost comes back with what it did."""
        run = data.draw(st.sampled_from(self.late))
        # At another instant: the very same end would pass for one that was written already.
        late = finish(run, finished_at=self.now + 1) if is_end else retry(run, finished_at=self.now + 1)
        assert list(self.do(self.store.runs.finish_runs([late])).lost) == [run.id]

    # --- how it is compared

    @invariant()
    def the_store_is_as_the_model(self) -> None:
        rows, sessions, told, turns = self.do(self._look())
        entries = self.post.entries
        assert len(rows) == len(entries), "every message has exactly one row"
        assert {self._number(run): self._row(run) for run in rows} == {
            number: self._expected(entry) for number, entry in entries.items()
        }
        assert sorted(turns) == [self.ids[one.number] for one in self.post.with_turn()]
        assert Counter(told) == Counter(self.post.take_events())
        assert sessions == {key: self._counts(key) for key in self.post.boxes}

    @invariant()
    def no_session_has_more_under_way_than_it_ever_allowed(self) -> None:
        for key, box in self.post.boxes.items():
            assert sum(one.is_running for one in self.post.active(key)) <= box.most

    @invariant()
    def where_one_goes_at_a_time_payloads_are_carried_out_in_order(self) -> None:
        for key, box in self.post.boxes.items():
            if box.most == 1:
                assert self.executed[key] == sorted(set(self.executed[key]))

    def teardown(self) -> None:
        """In the end everything can be carried out, and nothing is left behind."""
        self.resize_lane(30)
        while self.post.queued() or self.post.running():
            self.now += 10 * SECOND
            self.claim(100, 0)
            for entry in self.post.bound(self.node_name):
                self._start_bound(entry)
            running = sorted(self.claims)
            ends = []
            for number in running:
                entry = self.post.entries[number]
                self.post.finish(entry, RunState.SUCCEEDED, None, self.now, None)
                ends.append(finish(self.claims.pop(number), finished_at=self.now))
            self.post.ended(self.post.boxes)
            self.do(self.store.runs.finish_runs(ends))
            assert ends or not self.post.queued(), "something waits for a turn that never comes"
        self.the_store_is_as_the_model()

    # --- the steps of both

    def _message(self, number: int) -> Message:
        return as_message(number, *self.letters[number])

    def _known(self) -> list[int]:
        """Letters that a second sending finds: those with a key, but for a refused one, which has no row."""
        return [
            number
            for number, answer in self.answers.items()
            if self._message(number).run.key is not None and answer.delivery is not Delivery.REFUSED
        ]

    def _claim(self, room: int, ahead: Micros) -> Any:
        return claim(now=self.now, horizon=self.now + ahead, room=room, tasks=TASKS, node=self.node_name)

    def _claimed(self, claimed: Claimed, room: int, ahead: Micros) -> None:
        """What a claim got is what the model says may go, lane by lane and in this order."""
        self.post.settle(self.now, ahead)
        by_lane: dict[str, list[int]] = {lane: [] for lane in LANES}
        for run in claimed.runs:
            number = self._number(run)
            by_lane[self.post.entries[number].letter.lane].append(number)
        free = {lane: limit - self._used(lane) for lane, limit in self.limits.items()}
        left = False
        for lane in LANES:
            ready = [one.number for one in self.post.claimable(lane, self.now, ahead)]
            allowed = ready[: max(0, free[lane])]
            count = len(by_lane[lane]) if room < 100 else len(allowed)
            assert by_lane[lane] == allowed[:count]
            left = left or len(by_lane[lane]) < len(ready)
        assert len(claimed.runs) <= room
        assert claimed.crowded or not left
        for run in claimed.runs:
            self._start(run)
        if not claimed.crowded:
            self._check_next(claimed.next_ready_at, ahead)

    def _start(self, run: ClaimedRun) -> None:
        entry = self.post.entries[self._number(run)]
        assert payloads(run) == entry.payloads
        if not entry.has_begun and not entry.letter.is_call:
            self.executed[entry.letter.session] += entry.payloads
        others = [one for one in self.post.active(entry.letter.session) if one.is_running]
        assert not others or not any(one.letter.goes_alone for one in (entry, *others)), "two in one conversation"
        self.post.start(entry, self.node_name)
        self.claims[entry.number] = run

    def _check_next(self, told: Micros | None, ahead: Micros) -> None:
        """Who comes back when it was told to is not too late for anything."""
        waiting = [one for one in self.post.queued() if (one.has_turn or one.is_early) and one.node is None]
        times = [one.ready_at + (ahead if one.is_burst else 0) for one in waiting]
        assert not times or (told is not None and told <= min(times))

    def _used(self, lane: str) -> int:
        return sum(one.letter.lane == lane for one in self.post.running())

    def _finish(self, data: st.DataObject, entry: Entry, run: ClaimedRun) -> Finish:
        how = data.draw(st.sampled_from(["succeed", "succeed", "fail", "stop", "retry", "snooze"]))
        if how in ("retry", "snooze"):
            return self._try_again(entry, run, is_counted=how == "retry", delay=data.draw(times))
        throttled = data.draw(throttles)
        state = {"succeed": RunState.SUCCEEDED, "fail": RunState.FAILED}.get(how, RunState.CANCELLED)
        if how == "stop" and entry.stop_reason == INTERRUPTED.reason:
            state = RunState.SUPERSEDED
        self.post.finish(entry, state, how, self.now, throttled)
        return finish(run, state, finished_at=self.now, reason=how, throttled=throttled)

    def _rescue(self, data: st.DataObject, entry: Entry, run: ClaimedRun) -> Finish:
        if data.draw(st.booleans()):
            return self._try_again(entry, run, is_counted=True, delay=data.draw(times))
        self.post.finish(entry, RunState.FAILED, "its node was lost", self.now, None)
        return finish(run, RunState.FAILED, finished_at=self.now, reason="its node was lost")

    def _try_again(self, entry: Entry, run: ClaimedRun, *, is_counted: bool, delay: Micros) -> Finish:
        ready_at = self.now + delay
        self.post.try_again(entry, "retry" if is_counted else "snooze", "once more", ready_at, self.now)
        return retry(run, ready_at=ready_at, finished_at=self.now, counted=is_counted, reason="once more")

    # --- reading

    async def _look(self) -> tuple[Sequence[Run], Mapping[str, Any], list[Any], list[int]]:
        rows, sessions, events, turns = await asyncio.gather(
            self.store.runs.list_runs(RunFilter(limit=1000)),
            self.store.sessions.list_sessions(None, False, 10),
            self.store.sessions.list_events(None, self.last_event, 1000),
            raw(self.store, "SELECT id FROM runs WHERE state = 'queued' AND NOT waiting"),
        )
        self.last_event = max([self.last_event, *(event.id for event in events)])
        numbers = {id: number for number, id in self.ids.items()}
        told = [(e.kind.value, e.session, None if e.run is None else numbers[e.run]) for e in events]
        shown = {
            one.key: (
                one.running,
                one.queued,
                None if one.oldest_at is None else to_micros(one.oldest_at),
                one.max_concurrent,
                one.throttled,
                None if one.stopped_at is None else to_micros(one.stopped_at),
            )
            for one in sessions
        }
        return rows, shown, told, [id for (id,) in turns]

    def _learn_ids(self) -> None:
        rows = self.do(self.store.runs.list_runs(RunFilter(limit=3)))
        self.ids.update((self._number(run), run.id) for run in rows)

    @staticmethod
    def _number(run: Run | ClaimedRun) -> int:
        """Whose row it is: its own payload is the first."""
        number: int = payloads(run)[0]
        return number

    @staticmethod
    def _row(run: Run) -> Any:
        finished_at = None if run.finished_at is None else to_micros(run.finished_at)
        ready_at = to_micros(run.ready_at) if run.state is RunState.QUEUED else None
        return run.session, run.state, run.reason, payloads(run), run.attempt, ready_at, finished_at

    def _expected(self, entry: Entry) -> Any:
        reason = entry.reason if entry.carrier is None else debounced(self.ids[entry.carrier]).reason
        ready_at = entry.ready_at if entry.is_queued else None
        return (
            entry.letter.session,
            entry.state,
            reason,
            entry.payloads,
            entry.attempt,
            ready_at,
            entry.finished_at,
        )

    def _counts(self, key: str) -> Any:
        box, queued = self.post.boxes[key], self.post.queued(key)
        running = [one for one in self.post.active(key) if one.is_running]
        oldest = min((one.sent_at for one in queued if not one.is_early), default=None)
        return len(running), len(queued), oldest, box.max_concurrent, box.throttled, box.cutoff

    def _answer(self, sent: Sent) -> Answer:
        numbers = {id: number for number, id in self.ids.items()}
        carrier = None if sent.id is None else numbers[sent.id]
        dropped, cancelled = ([numbers[id] for id in ids] for ids in (sent.dropped, sent.cancelled))
        return Answer(sent.delivery, carrier, sorted(dropped), sorted(cancelled))

    @staticmethod
    def _draw(data: st.DataObject, entries: list[Entry]) -> Entry:
        entry: Entry = data.draw(st.sampled_from(entries))
        return entry


SHARES = {"memory": 1.2, "postgres": 0.2}
"""How many of the examples each store gets: as many as it gets through in a few seconds."""


@pytest.mark.parametrize("place", LIGHT, indirect=True)
@pytest.mark.timeout(400)  # to make a failure small takes longer than to find it
def test_a_store_does_what_the_model_does(store: Store, runner: asyncio.Runner, request: pytest.FixtureRequest) -> None:
    share = SHARES[request.node.callspec.params["place"]]

    class OnThisStore(Sessions):
        def __init__(self) -> None:
            super().__init__(store, runner)

    assert settings.default is not None
    run_state_machine_as_test(
        OnThisStore,
        settings=settings(
            max_examples=round(share * settings.default.max_examples),
            stateful_step_count=30,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        ),
    )
