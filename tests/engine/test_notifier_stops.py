"""The notifier beside what hangs and what stops: one channel delays no other, and what ended to the last is told."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from ostinato import Ostinato, Shell
from ostinato.models.notification import DeliveryState
from ostinato.testing import FakeClock, drain, simulate
from ostinato.tuning import Tuning
from tests.engine.conftest import PATIENCE, Gate, MakeApp, eventually
from tests.engine.http_server import Server, Visit, answer
from tests.engine.notify_fixtures import app, deliveries, hook, memory_app, owe, said, server, states

__all__ = ["app", "memory_app", "server"]


def test_a_server_that_hangs_delays_no_other_channel_and_no_run(app: Ostinato, server: Server) -> None:
    task = app.task("job")(lambda: "done")
    hook(app, server, lambda visit: visit.wait_until_gone(), "hanging")
    hook(app, server)
    app.start()
    owe(app, "hanging")
    eventually(lambda: server.visits)
    for number in range(3):
        owe(app, subject=f"job-{number}")
        eventually(lambda wanted=number + 1: states(app).count("sent") == wanted)  # type: ignore[misc]
    assert task.enqueue().wait(timeout="60s").result == "done"
    assert states(app)[0] == "sending"


def test_a_late_answer_counts_and_nothing_is_sent_again(
    make_app: MakeApp, server: Server, gate: Gate, tuning: Tuning, caplog: pytest.LogCaptureFixture
) -> None:
    def slow(visit: Visit) -> None:
        gate.wait()
        visit.answer()

    app = make_app("sqlite://:memory:", notify_allow=("private",), tuning=replace(tuning, send_late_seconds=0.01))
    hook(app, server, slow)
    app.start()
    owe(app)
    gate.entered()
    eventually(lambda: "has not answered" in caplog.text)
    owe(app)
    gate.open()
    eventually(lambda: states(app) == ["sent", "sent"])
    assert [one.attempts for one in deliveries(app)] == [1, 1]


def test_a_message_that_hangs_for_too_long_is_sent_again_with_its_key(
    make_app: MakeApp, server: Server, tuning: Tuning, fake_clock: FakeClock
) -> None:
    hangs = threading.Event()

    def first_time(visit: Visit) -> None:
        if not hangs.is_set():
            hangs.set()
            visit.wait_until_gone()
        else:
            visit.answer()

    impatient = replace(tuning, send_late_seconds=0.01, send_hangs_seconds=0.02)
    app = make_app("sqlite://:memory:", notify_allow=("private",), tuning=impatient)
    hook(app, server, first_time)
    owed = owe(app)
    drain(app)
    assert hangs.wait(PATIENCE)
    (tried,) = deliveries(app)
    assert (tried.state, tried.error) == (DeliveryState.PENDING, "no answer within 0.02 s")
    simulate(app, lasting="1m")
    assert states(app) == ["sent"]
    assert {one.headers["ostinato-delivery"] for one in server.received} == {owed.key}


def test_a_stop_waits_a_moment_and_leaves_what_hangs_to_others(
    make_app: MakeApp, server: Server, tuning: Tuning, tmp_path: Path
) -> None:
    quick = replace(tuning, send_stop_seconds=0.01)
    app, other = (make_app(f"sqlite:///{tmp_path / 'x.db'}", notify_allow=("private",), tuning=quick) for _ in range(2))
    hook(app, server, lambda visit: visit.wait_until_gone())
    app.start()
    owed = owe(app)
    eventually(lambda: server.visits)
    app.stop(grace=0)
    server.on("/phone", answer())
    drain(other)
    (sent,) = deliveries(other)
    assert (sent.state, sent.key) == (DeliveryState.SENT, owed.key)


def test_the_last_failure_before_a_stop_is_told(app: Ostinato, server: Server, gate: Gate) -> None:
    @app.task("nightly", retry=0, notify=["phone"])
    def nightly() -> None:
        gate.wait()
        raise ValueError("no space left")

    hook(app, server)
    app.start()
    nightly.enqueue()
    gate.entered()
    stopping = threading.Thread(target=app.stop)
    stopping.start()
    gate.open()
    stopping.join(PATIENCE)
    assert [said(one)["title"] for one in server.received] == ["✗ nightly failed"]
    assert states(app) == ["sent"]


def test_work_that_is_executed_here_is_told_before_it_is_answered(app: Ostinato, server: Server) -> None:
    hook(app, server)
    hook(app, server, name="mail")
    owe(app, "mail")
    assert app.execute(Shell("exit 3"), notify=["phone"]).state == "failed"
    assert [said(one)["title"] for one in server.received if one.path == "/phone"] == ["✗ exit 3 failed"]


def test_beside_a_node_that_sends_it_is_left_to_that(make_app: MakeApp, server: Server, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    node, executing = make_app(url, notify_allow=("private",)), make_app(url)
    hook(node, server)
    node.start()
    executing.execute(Shell("exit 3"), notify=["phone"])
    eventually(lambda: states(node) == ["sent"])
    assert [one.attempts for one in deliveries(node)] == [1], "who executed it is not allowed to call it"


def test_a_server_that_hangs_holds_up_no_end_of_what_is_executed(
    make_app: MakeApp, server: Server, tuning: Tuning
) -> None:
    app = make_app("sqlite://:memory:", notify_allow=("private",), tuning=replace(tuning, send_stop_seconds=0.01))
    hook(app, server, lambda visit: visit.wait_until_gone())
    assert app.execute(Shell("exit 3"), notify=["phone"]).state == "failed"
    server.on("/phone", answer())
    drain(app)
    assert states(app) == ["sent"]
