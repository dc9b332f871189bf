"""The throttle as the engine asks it: where runs start, before they start, and when they have ended."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from ostinato import Ostinato
from ostinato.errors import Conflict, InvalidInput
from ostinato.testing import drain, settle
from tests.engine.conftest import PATIENCE, Beside, Gate, MakeApp, eventually, on_shared

KEY = "group:1"


class Window:
    """How full the session is, as a worker's code knows it."""

    def __init__(self, tokens: float = 61.0) -> None:
        self.tokens = tokens
        self.asked: list[str] = []

    def __call__(self, key: str) -> tuple[float, float]:
        self.asked.append(key)
        return self.tokens, 100.0


def send(app: Ostinato, *texts: str, **options: Any) -> None:
    for text in texts:
        app.sessions.send(KEY, text, task="reply", **{"debounce": 0, "max_concurrent": 3, **options})


def running_stays(app: Ostinato, count: int, *nodes: Ostinato) -> None:
    """Wait until so many run, and see that it stays so when nothing more happens."""
    eventually(lambda: app.sessions.get(KEY).running == count)
    for node in nodes or (app,):
        settle(node)
    assert app.sessions.get(KEY).running == count


@on_shared
def test_a_sender_that_cannot_tell_lets_no_more_start_than_the_worker_allows(
    shared_db: str, make_app: MakeApp, gate: Gate
) -> None:
    sender, worker = make_app(shared_db), make_app(shared_db)
    window = Window()
    worker.sessions.throttle(window)
    heard: list[str] = []

    @worker.task("reply")
    def reply(payloads: list[str]) -> None:
        heard.extend(payloads)
        gate.wait()

    send(sender, "a", "b", "c")
    assert sender.sessions.get(KEY).throttled is False
    worker.start()
    gate.entered()
    running_stays(sender, 1, worker)
    assert sender.sessions.get(KEY).throttled
    assert window.asked == [KEY], "once for the three that were claimed together"
    gate.open()
    worker.wait_idle(timeout=PATIENCE)
    assert heard == ["a", "b", "c"]
    assert gate.most == 1
    assert [run.attempt for run in worker.runs.list()] == [1, 1, 1]


def test_above_its_share_a_session_goes_one_at_a_time(db: str, make_app: MakeApp) -> None:
    app = make_app(db)
    gates = {name: threading.Event() for name in "abcdef"}
    running: list[str] = []
    window = Window()
    app.sessions.throttle(window)

    @app.task("reply")
    def reply(payloads: list[str]) -> None:
        running.append(payloads[0])
        assert gates[payloads[0]].wait(PATIENCE)

    app.start()
    send(app, *gates)
    running_stays(app, 1)
    eventually(lambda: running == ["a"])
    assert app.sessions.get(KEY).throttled
    window.tokens = 60.0
    gates["a"].set()
    running_stays(app, 3)
    eventually(lambda: sorted(running) == ["a", "b", "c", "d"])
    # What runs is not touched when it fills up again: the next start waits until none is left.
    window.tokens = 90.0
    gates["b"].set()
    running_stays(app, 2)
    gates["c"].set()
    running_stays(app, 1)
    gates["d"].set()
    eventually(lambda: sorted(running) == ["a", "b", "c", "d", "e"])
    running_stays(app, 1)
    for gate in gates.values():
        gate.set()
    app.wait_idle(timeout=PATIENCE)


def test_a_start_in_a_session_that_is_full_no_longer_lets_others_start_beside_it(
    db: str, make_app: MakeApp, gate: Gate
) -> None:
    app = make_app(db)
    full = iter([True, True])  # when the first starts, and when it has ended
    app.sessions.throttle(lambda key: (90.0 if next(full, False) else 10.0, 100.0))

    @app.task("reply")
    def reply(payloads: list[str]) -> None:
        if payloads != ["a"]:
            gate.wait()

    send(app, "a", "b", "c", "d")
    app.start()
    gate.entered(3)
    running_stays(app, 3)
    assert not app.sessions.get(KEY).throttled
    gate.open()
    app.wait_idle(timeout=PATIENCE)
    assert gate.most == 3


@on_shared
def test_of_two_nodes_that_claim_a_run_each_of_a_full_session_at_once_one_starts_it(
    shared_db: str, make_app: MakeApp, gate: Gate
) -> None:
    nodes = [make_app(shared_db, slots=1), make_app(shared_db, slots=1)]
    both_have_claimed = threading.Barrier(2)
    first_asked = {id(node): True for node in nodes}

    def throttle(node: Ostinato) -> None:
        @node.sessions.throttle
        def usage(key: str) -> tuple[float, float]:
            if first_asked.pop(id(node), False):
                both_have_claimed.wait(PATIENCE)
            return 90.0, 100.0

    for node in nodes:
        throttle(node)
        node.task("reply")(lambda payloads: gate.wait())
    send(nodes[0], "a", "b", "c")
    for node in nodes:
        node.start()
    gate.entered()
    running_stays(nodes[0], 1, *nodes)
    assert not first_asked
    gate.open()
    nodes[0].wait_idle(timeout=PATIENCE)
    assert gate.most == 1
    assert [run.state for run in nodes[0].runs.list()] == ["succeeded"] * 3


@on_shared
def test_a_node_without_a_throttle_goes_by_what_was_said_last(shared_db: str, make_app: MakeApp, gate: Gate) -> None:
    knows, does_not = make_app(shared_db, slots=1), make_app(shared_db)
    knows.sessions.throttle(Window())
    for node in (knows, does_not):
        node.task("reply")(lambda payloads: gate.wait())
    send(does_not, "a", "b", "c")
    knows.start()
    gate.entered()
    does_not.start()
    running_stays(knows, 1, knows, does_not)
    gate.open()
    knows.wait_idle(timeout=PATIENCE)


def test_a_drain_counts_what_was_held_back_once(memory_app: Ostinato) -> None:
    memory_app.sessions.throttle(Window())
    heard: list[str] = []

    @memory_app.task("reply")
    def reply(payloads: list[str]) -> None:
        heard.extend(payloads)

    send(memory_app, "a", "b", "c")
    assert drain(memory_app) == 3
    assert heard == ["a", "b", "c"]


def test_calls_in_a_session_are_held_back_too(db: str, make_app: MakeApp, gate: Gate) -> None:
    app = make_app(db)
    app.sessions.throttle(Window())
    app.task("reply")(lambda payloads: gate.wait())
    job = app.task("job")(lambda number: gate.wait())
    send(app, "a")
    for number in range(2):
        job.using(session=KEY).enqueue(number)
    app.start()
    gate.entered()
    running_stays(app, 1)
    gate.open()
    app.wait_idle(timeout=PATIENCE)
    assert gate.most == 1


@on_shared
def test_what_is_executed_in_a_full_session_goes_one_at_a_time_too(
    shared_db: str, make_app: MakeApp, gate: Gate, beside: Beside
) -> None:
    app = make_app(shared_db)
    window = Window()
    app.sessions.throttle(window)
    app.task("reply")(lambda payloads: None)
    app.task("job")(lambda: gate.passed("done"))
    app.start()
    send(app, "three at once")
    app.wait_idle(timeout=PATIENCE)
    window.asked.clear()
    executed = [beside(lambda: app.execute("job", session=KEY)) for _ in range(3)]
    gate.entered()
    eventually(lambda: app.sessions.get(KEY).queued == 2)
    running_stays(app, 1)
    assert app.sessions.get(KEY).throttled
    assert window.asked
    gate.open()
    assert [each.result(PATIENCE).result for each in executed] == ["done"] * 3
    assert gate.most == 1


def test_what_is_executed_in_a_session_with_room_again_goes_beside_others(
    db: str, make_app: MakeApp, gate: Gate, beside: Beside
) -> None:
    app = make_app(db)
    window = Window()
    app.sessions.throttle(window)
    app.task("reply")(lambda payloads: None)
    app.task("job")(lambda: gate.passed("done"))
    app.start()
    send(app, "three at once")
    app.wait_idle(timeout=PATIENCE)
    assert app.sessions.get(KEY).throttled
    window.tokens = 10.0
    executed = [beside(lambda: app.execute("job", session=KEY)) for _ in range(3)]
    gate.entered(3)
    assert not app.sessions.get(KEY).throttled
    gate.open()
    assert [each.result(PATIENCE).result for each in executed] == ["done"] * 3


def test_what_must_not_wait_is_busy_in_a_full_session_in_which_something_is_under_way(
    db: str, make_app: MakeApp, gate: Gate
) -> None:
    app = make_app(db)
    full = iter([False])  # when the first starts
    app.sessions.throttle(lambda key: (10.0 if next(full, True) is False else 90.0, 100.0))
    app.task("reply")(lambda payloads: gate.wait())
    app.task("job")(lambda: None)
    app.start()
    send(app, "a")
    gate.entered()
    with pytest.raises(Conflict, match="is busy"):
        app.execute("job", session=KEY, wait=False)
    gate.open()
    app.wait_idle(timeout=PATIENCE)


def test_what_was_held_back_can_be_stopped(db: str, make_app: MakeApp, gate: Gate) -> None:
    app = make_app(db)
    app.sessions.throttle(Window())
    app.task("reply")(lambda payloads: gate.wait())
    app.start()
    send(app, "a", "b", "c")
    gate.entered()
    running_stays(app, 1)
    assert app.sessions.stop_all(KEY).dropped == 2
    gate.open()
    app.wait_idle(timeout=PATIENCE)
    assert gate.most == 1


def test_a_throttle_is_a_function(memory_app: Ostinato) -> None:
    with pytest.raises(InvalidInput, match="throttle"):
        memory_app.sessions.throttle(3)  # type: ignore[arg-type]
