"""Sessions as the engine runs them: bursts, turns, modes, stops, and a node that drains."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from ostinato import Draining, InvalidInput, MessageStale, Ostinato, RunState
from ostinato.models.session import Stopped
from ostinato.testing import FakeClock, drain, settle, simulate
from tests.engine.chat import Chat, Hanging
from tests.engine.conftest import PATIENCE, Gate, MakeApp, eventually, on_shared

# Bursts.


def test_a_burst_is_one_run_with_all_payloads_in_order(app: Ostinato, fake_clock: FakeClock) -> None:
    chat = Chat(app)
    handles = []
    for text in ("one", "two", "three"):
        handles.append(app.sessions.send("dm:42", text, task=chat.task))
        fake_clock.advance(0.5)
        drain(app)
    assert chat.heard == []
    fake_clock.advance(0.3)
    drain(app)
    assert chat.heard == [["one", "two", "three"]]
    assert len({handle.id for handle in handles}) == 1
    rows = app.runs.list()
    assert [(row.state, row.trigger) for row in rows[:2]] == [("skipped", "message")] * 2
    assert {row.result["run"] for row in rows[:2]} == {handles[0].id}
    assert rows[0].reason == f"debounced: its payload goes with run {handles[0].id}"


def test_a_started_engine_takes_a_burst_when_it_closes_and_not_ahead_of_it(
    app: Ostinato, fake_clock: FakeClock
) -> None:
    chat = Chat(app)
    app.start()
    app.sessions.send("dm:42", 1, task=chat.task)
    fake_clock.advance(0.75)  # within the stretch in which other runs are claimed ahead
    settle(app)
    app.sessions.send("dm:42", 2, task=chat.task)
    fake_clock.advance(0.79)
    settle(app)
    assert chat.heard == []
    fake_clock.advance(0.01)
    eventually(lambda: chat.heard == [[1, 2]])


def test_waiting_for_idleness_waits_for_an_open_burst(memory_app: Ostinato, fake_clock: FakeClock) -> None:
    chat = Chat(memory_app)
    memory_app.start()
    memory_app.sessions.send("dm:42", 1, task=chat.task)
    with pytest.raises(TimeoutError):
        memory_app.wait_idle(timeout=0.02)
    fake_clock.advance(0.8)
    memory_app.wait_idle(timeout=60)
    assert chat.heard == [[1]]


def test_a_simulation_goes_from_burst_to_burst(memory_app: Ostinato, fake_clock: FakeClock) -> None:
    chat = Chat(memory_app)
    memory_app.sessions.send("dm:1", "a", task=chat.task, debounce="2s")
    memory_app.sessions.send("dm:2", "b", task=chat.task, debounce="1s")
    simulate(memory_app, until="2026-01-01T00:00:05Z")
    assert chat.heard == [["b"], ["a"]]


# Turns.


def test_runs_of_a_session_go_one_after_the_other(db: str, make_app: MakeApp, gate: Gate) -> None:
    app = make_app(db)
    order: list[Any] = []

    @app.task("reply")
    def reply(payloads: list[Any]) -> None:
        order.extend(payloads)
        gate.wait()

    app.start()
    for number in range(4):
        app.sessions.send("dm:42", number, task=reply, debounce=0)
    gate.entered()
    settle(app)
    session = app.sessions.get("dm:42")
    assert (session.running, session.queued) == (1, 3)
    gate.open()
    drain(app)
    assert order == [0, 1, 2, 3]
    assert gate.most == 1


def test_a_plain_task_can_wait_its_turn_in_a_session(app: Ostinato) -> None:
    done: list[int] = []
    job = app.task("job")(done.append)
    handles = [job.using(session="account:7").enqueue(number) for number in range(3)]
    more = job.using(session="account:7").enqueue_many([(3,), (4,)])
    assert app.sessions.get("account:7").queued == 5
    drain(app)
    assert done == [0, 1, 2, 3, 4]
    assert {handle.get().session for handle in [*handles, *more]} == {"account:7"}


def test_a_followup_gathers_what_comes_while_a_run_is_under_way(
    app: Ostinato, fake_clock: FakeClock, gate: Gate
) -> None:
    heard: list[list[Any]] = []

    @app.task("reply")
    def reply(payloads: list[Any]) -> None:
        heard.append(payloads)
        gate.wait()

    app.start()
    app.sessions.send("dm:42", "question", task=reply, debounce=0)
    gate.entered()
    for number in range(3):
        app.sessions.send("dm:42", number, task=reply, mode="followup", debounce="1s", debounce_max="1m")
        fake_clock.advance(5)
    gate.open()
    eventually(lambda: heard == [["question"], [0, 1, 2]])


# Interrupting and stopping.


def test_an_interrupt_stops_what_runs_drops_what_waits_and_goes_next(app: Ostinato) -> None:
    chat, hanging = Chat(app), Hanging(app)
    app.start()
    first = app.sessions.send("dm:42", "first", task=hanging.task, debounce=0)
    second = app.sessions.send("dm:42", "second", task=hanging.task, debounce=0)
    eventually(lambda: hanging.started)
    third = app.sessions.send("dm:42", "no, this", task=chat.task, mode="interrupt", debounce=0)
    assert third.wait(timeout=60).state is RunState.SUCCEEDED
    assert hanging.cleaned == [["first"]]
    assert hanging.started == [["first"]]
    for run in (first.get(), second.get()):
        assert run.state is RunState.SUPERSEDED
        assert run.reason == "interrupted by a newer message of its session"
    assert first.get().attempt == 1, "what is interrupted is not tried again"


@on_shared
def test_stop_all_reaches_every_node_and_leaves_the_session_usable(shared_db: str, make_app: MakeApp) -> None:
    node, elsewhere = make_app(shared_db), make_app(shared_db)
    hanging, chat = Hanging(node), Chat(node)
    node.start()
    handles = [node.sessions.send("dm:42", number, task=hanging.task, debounce=0) for number in range(4)]
    eventually(lambda: hanging.started)
    assert elsewhere.sessions.stop_all("dm:42") == Stopped(cancelled=1, dropped=3)
    assert [handle.wait(timeout=60).state for handle in handles] == [RunState.CANCELLED] * 4
    assert (hanging.started, hanging.cleaned) == ([[0]], [[0]])
    assert elsewhere.sessions.stop_all("dm:42") == Stopped()
    again = node.sessions.send("dm:42", "again", task=chat.task, debounce=0)
    assert again.wait(timeout=60).result == 1


@pytest.mark.parametrize(("stop", "state"), [(True, RunState.CANCELLED), (False, RunState.SUPERSEDED)])
def test_work_that_ends_quietly_when_told_to_has_not_succeeded(app: Ostinato, stop: bool, state: RunState) -> None:
    started = threading.Event()

    @app.task("quiet")
    async def quiet(payloads: list[Any]) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "partial"
        return "whole"

    app.start()
    handle = app.sessions.send("dm:42", 1, task=quiet, debounce=0)
    assert started.wait(PATIENCE)
    if stop:
        app.sessions.stop("dm:42")
    else:
        app.sessions.send("dm:42", 2, task=quiet, mode="interrupt")
    assert handle.wait(timeout=60).state is state


def test_a_message_that_was_on_its_way_when_the_session_was_stopped_is_stale(
    app: Ostinato, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = Chat(app)
    app.sessions.send("dm:42", 1, task=chat.task, debounce=0)
    app.sessions.stop_all("dm:42")
    # The clock of the sender was read before that.
    early = fake_clock.now() - 1
    monkeypatch.setattr(fake_clock, "now", lambda: early)
    with pytest.raises(MessageStale, match="dm:42"):
        app.sessions.send("dm:42", 2, task=chat.task, debounce=0)
    with pytest.raises(MessageStale, match="dm:42"):
        chat.task.using(session="dm:42").enqueue(["payload"])
    monkeypatch.undo()
    drain(app)
    assert chat.heard == []
    assert app.runs.list()[0].reason == "stale: it was sent before its session was stopped"


# Draining.


@on_shared
def test_a_node_that_drains_refuses_messages_and_others_go_on(shared_db: str, make_app: MakeApp, gate: Gate) -> None:
    draining, other = make_app(shared_db), make_app(shared_db)
    job = draining.task("reply")(lambda payloads: gate.wait())
    chat = Chat(other)
    draining.start()
    draining.sessions.send("dm:1", "under way", task=job, debounce=0)
    gate.entered()
    waiting = draining.sessions.send("dm:1", "queued", task=job, debounce=0)
    stopping = threading.Thread(target=draining.stop)
    stopping.start()
    eventually(lambda: [node.state for node in other.nodes.list()] == ["draining"])
    with pytest.raises(Draining):
        draining.sessions.send("dm:2", 1, task=job)
    with pytest.raises(Draining):
        job.enqueue(["payload"])
    other.start()
    assert other.sessions.send("dm:2", 2, task=chat.task, debounce=0).wait(timeout=60).result == 1
    gate.open()
    stopping.join(10)
    assert not stopping.is_alive()
    assert other.runs.wait(waiting.id, timeout=60).state is RunState.SUCCEEDED
    assert chat.heard == [[2], ["queued"]]


# Tasks that nobody knows.


@on_shared
def test_a_message_whose_task_no_node_knows_lets_the_others_go_first_until_one_knows_it(
    shared_db: str, make_app: MakeApp, fake_clock: FakeClock
) -> None:
    other, node = make_app(shared_db, name="other"), make_app(shared_db, name="node")
    gone = other.task("gone")(lambda payloads: payloads)
    first = other.sessions.send("dm:42", "first", task=gone, debounce=0)
    chat = Chat(node)
    second = node.sessions.send("dm:42", "second", task=chat.task, debounce=0)
    node.start()
    settle(node)
    assert chat.heard == []
    for _ in range(2):
        fake_clock.advance("61s")
        settle(node)
    assert second.wait(timeout=PATIENCE).state is RunState.SUCCEEDED
    run = first.get()
    assert (run.state, run.cause) == (RunState.QUEUED, "unknown_task")
    # It says that others go first only while there are some.
    assert (run.reason or "").startswith("task 'gone' is not registered on any running node")
    other.start()
    assert first.wait(timeout=PATIENCE).result == ["first"]


@on_shared
def test_a_message_for_a_task_that_no_running_node_knows_is_refused_with_those_there_are(
    shared_db: str, make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    sender, node = make_app(shared_db, name="sender"), make_app(shared_db, name="node")
    assert sender.sessions.send("dm:1", "x", task="anything").get().state is RunState.QUEUED
    assert "no engine is running, and this process does not know 'anything'" in caplog.text
    Chat(node)
    node.start()
    with pytest.raises(InvalidInput, match="task 'gone' is not registered on any running node") as refused:
        sender.sessions.send("dm:1", "x", task="gone")
    assert (refused.value.field, refused.value.hint) == (
        "task",
        "there are reply; or start the engine of the app that has it",
    )
    with pytest.raises(InvalidInput, match="did you mean 'reply'"):
        sender.enqueue("repl", session="dm:1")
    assert sender.enqueue("gone").get().state is RunState.QUEUED, "it holds up nobody"
    assert sender.sessions.send("dm:1", "x", task="reply").get().task == "reply"
