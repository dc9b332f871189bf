"""Sessions and lanes in processes with real kills: no limit is exceeded, no order lost, nothing dropped in silence."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from ostinato import Ostinato, Run, RunState
from ostinato.models.event import Event, EventKind
from ostinato.models.ids import RunId
from ostinato.models.session import DROPPED, STALE, STOPPED, debounced
from tests.faults.mail import (
    LOST,
    Answer,
    Execution,
    Plan,
    answers_of,
    events_of,
    in_file,
    in_ledger,
    is_busy,
    ledger,
    message_of,
    most_at_once,
    read_executions,
    wait_until_ended,
)
from tests.faults.mailers import Mailers
from tests.faults.nodes import nodes

LEASE = "2s"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "notes"


# A thousand messages to twenty sessions.


def thousand() -> list[Plan]:
    """Most sessions go one at a time; every fifth goes three at a time, and every fifth takes its bursts as one."""
    plans = []
    for number in range(20):
        at_once = 3 if number % 5 == 4 else 1
        options = {"cap": 1000, "max_concurrent": at_once, "debounce": "100ms" if number % 5 == 3 else 0}
        # Work that takes about as long as the messages to come: there is a queue, and it ends.
        plans.append(Plan(f"dm:{number}", 50, 0.18, 0.06 * at_once, options, "work_sync" if number % 2 else "work"))
    return plans


@pytest.mark.timeout(180)
def test_a_thousand_messages_from_three_killed_processes_keep_their_order_and_none_is_lost(
    app: Ostinato, url: str, log: Path
) -> None:
    plans = thousand()
    limits = {plan.key: plan.at_once for plan in plans}

    def look() -> None:
        for session in app.sessions.list(busy=True):
            assert session.running <= limits[session.key]

    with nodes(url, log, program="mailer.py", FAULTS_LEASE=LEASE) as cluster:
        mailers = Mailers(cluster, plans, seed=3)
        mailers.hit(log)
        mailers.storm(lambda: len(answers_of(log)) == 1000, look)
        wait_until_ended(app)
        mailers.stop()
    rows, answers, executions = ledger(app), answers_of(log), read_executions(log, cluster.deaths)
    assert {answer.answer for answer in answers} == {"queued"}, "with room for all of them, all are queued"
    assert sorted(message_of(run) for run in rows) == sorted(answer.key for answer in answers), (
        "each message has its one row"
    )
    carried = carriers(answers, rows)
    check_executed(carried, rows, executions)
    for plan in plans:
        check_turns(plan, events_of(app, plan.key))
        check_at_once(plan, rows, executions)
        check_order(plan, executions)
    assert any(LOST in (attempt.error or "") for run in rows for attempt in run.attempts), "no kill hit a run"


def carriers(answers: Iterable[Answer], rows: Iterable[Run]) -> dict[str, RunId]:
    """Key of a message → the run that carries its payload: its own, or the one that its row names."""
    by_key = {message_of(run): run for run in rows}
    found = {}
    for answer in answers:
        run = by_key[answer.key]
        if run.state is RunState.SKIPPED:
            assert answer.run is not None
            assert (run.cause, run.reason) == debounced(answer.run), f"run {run.id} was skipped: {run.reason}"
            found[message_of(run)] = answer.run
        else:
            assert answer.run == run.id
            found[message_of(run)] = run.id
    return found


def check_executed(carried: dict[str, RunId], rows: Iterable[Run], executions: Sequence[Execution]) -> None:
    """The run that carries a payload has succeeded, and was called with the payloads that it carries, each once."""
    expected: defaultdict[RunId, set[str]] = defaultdict(set)
    for key, id in carried.items():
        expected[id].add(key)
    for run in rows:
        if run.id in expected:
            assert run.state is RunState.SUCCEEDED, f"run {run.id} is {run.state}: {run.reason}"
    for execution in executions:
        keys = [f"{execution.session}/{sender}-{number}" for sender, number in execution.messages]
        assert sorted(keys) == sorted(expected[execution.run])
    assert {execution.run for execution in executions} == expected.keys()


def check_turns(plan: Plan, events: Iterable[Event]) -> None:
    """By what was recorded, in its order: turns come in the order of the queue, and no more than there may be."""
    queue: list[int] = []
    under_way: set[int] = set()
    for event in events:
        if event.run is None:
            continue
        match event.kind:
            case EventKind.ENQUEUED:
                queue.append(event.run)
            case EventKind.STARTED:
                if event.run not in under_way:
                    ahead = queue.index(event.run)
                    assert ahead < plan.at_once, f"run {event.run} went before {ahead} others of {plan.key}"
                    queue.remove(event.run)
                    under_way.add(event.run)
                assert len(under_way) <= plan.at_once, f"{plan.key} had {sorted(under_way)} under way at once"
            case EventKind.FINISHED:
                under_way.discard(event.run)
                if event.run in queue:
                    queue.remove(event.run)
            case EventKind.DROPPED if event.data["cause"] != STALE.cause:
                queue.remove(event.run)
            case _:
                pass
    assert not queue
    assert not under_way


def check_at_once(plan: Plan, rows: Iterable[Run], executions: Iterable[Execution]) -> None:
    """By the clock: neither the ledger nor the functions themselves had more at once than there may be."""
    runs = [run for run in rows if run.session == plan.key]
    executed = [execution for execution in executions if execution.session == plan.key]
    assert most_at_once(in_ledger(runs, executed)) <= plan.at_once
    assert most_at_once(in_file(runs, executed)) <= plan.at_once


def check_order(plan: Plan, executions: Iterable[Execution]) -> None:
    """The first executions of a sender's payloads are in the order sent; of several at once none is further ahead."""
    first: defaultdict[int, list[int]] = defaultdict(list)
    seen: set[tuple[int, int]] = set()
    for execution in executions:
        if execution.session == plan.key:
            for sender, number in execution.messages:
                if (sender, number) not in seen:
                    seen.add((sender, number))
                    first[sender].append(number)
    for sender, numbers in first.items():
        for position, number in enumerate(numbers):
            overtaken = [earlier for earlier in numbers[position + 1 :] if earlier < number]
            assert len(overtaken) < plan.at_once, f"{plan.key}: {number} of sender {sender} went before {overtaken}"


# Small queues.


CAP = 3


def small_queues() -> list[Plan]:
    """More messages than there is time for, to sessions that lose the oldest and to sessions that refuse the newest."""
    plans = []
    for number in range(3):
        for drop in ("old", "new"):
            options = {"cap": CAP, "drop": drop, "debounce": 0, "max_concurrent": 2 if number == 2 else 1}
            plans.append(Plan(f"{drop}:{number}", 60, 0.1, 0.4, options))
    return plans


@pytest.mark.timeout(180)
def test_small_queues_under_kills_lose_what_their_policy_says_and_nothing_else(
    app: Ostinato, url: str, log: Path
) -> None:
    plans = small_queues()
    sends = sum(plan.count for plan in plans)
    with nodes(url, log, program="mailer.py", FAULTS_LEASE=LEASE) as cluster:
        mailers = Mailers(cluster, plans, seed=5)
        mailers.storm(lambda: len(answers_of(log)) == sends)
        wait_until_ended(app)
        mailers.stop()
    rows, answers, executions = ledger(app), answers_of(log), read_executions(log, cluster.deaths)
    queued = [answer for answer in answers if answer.answer == "queued"]
    refused = [answer for answer in answers if answer.answer == "full"]
    assert len(queued) + len(refused) == len(answers) == sends
    assert sorted(message_of(run) for run in rows) == sorted(answer.key for answer in queued), (
        "what was not refused has a row"
    )
    skipped = [run for run in rows if run.state is RunState.SKIPPED]
    assert {(run.cause, run.reason) for run in skipped} == {DROPPED}
    assert {run.session and run.session.partition(":")[0] for run in skipped} == {"old"}
    assert {answer.session.partition(":")[0] for answer in refused} == {"new"}
    assert all(run.attempt == 0 for run in skipped), "what has started is not in the queue any more"
    executed = {(execution.session, message) for execution in executions for message in execution.messages}
    assert len(refused) + len(skipped) + len(executed) == sends
    dropped = {message_of(run) for run in skipped}
    kept = {answer.key: answer.run for answer in queued if answer.run is not None and answer.key not in dropped}
    check_executed(kept, rows, executions)
    for plan in plans:
        events = events_of(app, plan.key)
        check_turns(plan, events)
        check_drops(plan, events, together=not url.startswith("sqlite"))
        check_at_once(plan, rows, executions)
        check_order(plan, executions)


def check_drops(plan: Plan, events: Iterable[Event], *, together: bool) -> None:
    """By what was recorded, in its order: the queue held no more than its cap, and only a full one lost its oldest.

    Where nodes write `together`, a run may start while a message is on its way that has seen it in the queue.
    """
    queue: list[int] = []
    meanwhile = 0
    for event in events:
        if event.kind is EventKind.STARTED and event.run in queue:
            queue.remove(event.run)
            meanwhile += together
        elif event.kind is EventKind.DROPPED:
            assert CAP - meanwhile <= len(queue) <= CAP, f"{plan.key} lost a message with {queue} queued"
            assert event.run is None or event.run == queue.pop(0), f"run {event.run} was not the oldest of {plan.key}"
        elif event.kind is EventKind.ENQUEUED:
            assert event.run is not None
            queue.append(event.run)
            assert len(queue) <= CAP, f"{plan.key} had {queue} queued"
        if event.kind in (EventKind.ENQUEUED, EventKind.DROPPED):
            meanwhile = 0


# Stopping.


FOR_EVER = 60.0


def endless() -> list[Plan]:
    """Messages that work until they are stopped, or hardly at all."""
    plans = []
    for number in range(3):
        options = {"cap": 1000, "max_concurrent": 3 if number == 1 else 1, "debounce": "100ms" if number == 2 else 0}
        plans += [
            Plan(f"slow:{number}", 45, 0.15, FOR_EVER, options, dawdle=0.01),
            Plan(f"quick:{number}", 45, 0.15, 0.01, options, dawdle=0.01),
        ]
    return plans


@pytest.mark.timeout(180)
def test_after_stop_all_nothing_starts_that_was_sent_before(app: Ostinato, url: str, log: Path) -> None:
    plans = endless()
    chance = random.Random(7)
    stopped: Counter[str] = Counter()

    def stop(key: str) -> None:
        done = app.sessions.stop_all(key)
        stopped[key] += done.cancelled + done.dropped

    def stop_sometimes() -> None:
        if chance.random() < 0.3:
            stop(chance.choice(plans).key)

    with nodes(url, log, program="mailer.py", FAULTS_LEASE=LEASE) as cluster:
        mailers = Mailers(cluster, plans, seed=7)
        mailers.storm(lambda: len(answers_of(log)) == sum(plan.count for plan in plans), stop_sometimes)
        for plan in plans:
            stop(plan.key)
        wait_until_ended(app, 20)
        mailers.stop()
    rows, answers, executions = ledger(app), answers_of(log), read_executions(log, cluster.deaths)
    check_stopped_answers(answers, rows)
    for plan in plans:
        events = events_of(app, plan.key)
        runs = [run for run in rows if run.session == plan.key]
        check_turns(plan, events)
        check_cutoffs(runs, events)
        check_at_once(plan, runs, executions)
        check_order(plan, executions)
        ended = Counter(run.state for run in runs if run.state is not RunState.SKIPPED)
        if plan.seconds == FOR_EVER:
            assert ended == {RunState.CANCELLED: stopped[plan.key]}, "stop_all answers what it ends"
        else:
            assert ended.keys() <= {RunState.CANCELLED, RunState.SUCCEEDED}
            assert ended[RunState.CANCELLED] <= stopped[plan.key], "what was told to stop may have been through"


def check_stopped_answers(answers: Sequence[Answer], rows: Sequence[Run]) -> None:
    """Every message has its row, which says what became of it."""
    by_key = {message_of(run): run for run in rows}
    assert sorted(message_of(run) for run in rows) == sorted(answer.key for answer in answers), (
        "each message has its one row"
    )
    for answer in answers:
        run = by_key[answer.key]
        if answer.answer == "stale":
            assert (run.state, run.cause, run.reason) == (RunState.SKIPPED, *STALE)
            continue
        assert answer.answer == "queued"
        if run.state is RunState.SKIPPED:
            assert answer.run is not None
            assert (run.cause, run.reason) == debounced(answer.run)
        elif run.state is not RunState.SUCCEEDED:
            assert (run.state, run.cause, run.reason) == (RunState.CANCELLED, *STOPPED)


def check_cutoffs(runs: Iterable[Run], events: Iterable[Event]) -> None:
    """What was there at a stop starts no more after it, and what was sent before it does not come in later."""
    by_id = {run.id: run for run in runs}
    doomed: set[int] = set()
    active: set[int] = set()
    ended: set[int] = set()
    cutoff = None
    for event in events:
        if event.kind is EventKind.STOPPED:
            cutoff = event.at
            doomed |= active
            late = [run for run in by_id.values() if run.due_at < cutoff and _started_after(run, cutoff)]
            # The stop read its clock, and others wrote before it did: what has begun and ended in between is no matter.
            assert all(run.id in active | ended for run in late), "claimed before the stop, by what was recorded"
            # It noted its start a moment later, and was told to stop, unless it was through by then.
            assert {run.state for run in late} <= {RunState.CANCELLED, RunState.SUCCEEDED}
            continue
        assert event.run is not None
        match event.kind:
            case EventKind.ENQUEUED:
                active.add(event.run)
                assert cutoff is None or by_id[event.run].due_at >= cutoff, f"run {event.run} was sent before the stop"
            case EventKind.STARTED:
                assert event.run not in doomed, f"run {event.run} started after its session was stopped"
            case EventKind.FINISHED:
                active.discard(event.run)
                ended.add(event.run)
            case _:
                pass
    assert cutoff is not None


def _started_after(run: Run, cutoff: datetime) -> bool:
    return any(attempt.started_at > cutoff for attempt in run.attempts)


# Lanes.


LIMIT = 4
RATE = 30
SECOND = timedelta(seconds=1)


@pytest.mark.timeout(180)
def test_the_limit_and_the_rate_of_lanes_hold_while_nodes_are_killed(app: Ostinato, url: str, log: Path) -> None:
    app.lanes.set("narrow", LIMIT)
    app.lanes.set("metered", 100, rate=f"{RATE}/s")
    everyone = {"cap": 1000, "debounce": 0}
    plans = [Plan(f"narrow:{number}", 6, 0.02, 0.05, {**everyone, "lane": "narrow"}) for number in range(30)]
    plans += [Plan(f"metered:{number}", 6, 0.02, 0.0, {**everyone, "lane": "metered"}) for number in range(30)]
    used: list[int] = []
    with nodes(url, log, program="mailer.py", FAULTS_LEASE=LEASE) as cluster:
        mailers = Mailers(cluster, plans, seed=11)
        mailers.storm(
            lambda: len(answers_of(log)) == sum(plan.count for plan in plans) and not is_busy(app),
            lambda: used.append(app.lanes.get("narrow").used),
        )
        mailers.stop()
    assert max(used) <= LIMIT
    rows, executions = ledger(app), read_executions(log, cluster.deaths)
    assert {run.state for run in rows} == {RunState.SUCCEEDED}
    narrow = [run for run in rows if run.lane == "narrow"]
    in_narrow = [execution for execution in executions if execution.session.startswith("narrow")]
    assert most_at_once(in_ledger(narrow, in_narrow)) == LIMIT
    assert most_at_once(in_file(narrow, in_narrow)) <= LIMIT
    starts = sorted(
        event.at for event in events_of(app) if event.kind is EventKind.STARTED and event.session.startswith("metered")
    )
    assert len(starts) >= 180
    for position, first in enumerate(starts):
        for count, last in enumerate(starts[position:], start=1):
            assert count <= RATE + RATE * ((last - first) / SECOND), f"{count} starts from {first} to {last}"
