"""HTTP work that is stopped, through the whole engine: whatever it waits for, it ends at once."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from ostinato import Http, Ostinato, RunState
from ostinato.testing import FakeClock
from tests.conftest import tuned
from tests.engine.conftest import PATIENCE, MakeApp, engine_of, eventually
from tests.engine.http_server import Caller, Server, Visit, truncated

pytest_plugins = ("tests.engine.http_fixtures",)

# The patience of `eventually` is shorter than every time limit of the code: what ends in it was ended by the stop.


def silent(visit: Visit) -> None:
    visit.wait_until_gone()


def slow_headers(visit: Visit) -> None:
    visit.send(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    visit.wait_until_gone()


def half_a_body(visit: Visit) -> None:
    truncated(visit)
    visit.wait_until_gone()


def endless_body(visit: Visit) -> None:
    visit.begin(Content_Type="text/plain")
    while True:
        visit.send(b"and on and on\n" * 1000)


WAITS = [silent, slow_headers, half_a_body, endless_body]


@pytest.mark.parametrize("handler", WAITS)
def test_a_cancel_ends_it_at_once(server: Server, web: Ostinato, handler: Callable[[Visit], None]) -> None:
    web.start()
    run = web.enqueue(Http("GET", server.on("/x", handler)))
    eventually(lambda: server.visits)
    run.cancel()
    eventually(lambda: run.get().state is RunState.CANCELLED)
    assert server.visits[0].gone.wait(PATIENCE), "the connection is still there"
    eventually(lambda: engine_of(web).runner.threads.busy == 0)


@pytest.mark.parametrize("handler", WAITS)
def test_its_timeout_ends_it_at_once(
    server: Server, web: Ostinato, fake_clock: FakeClock, handler: Callable[[Visit], None]
) -> None:
    web.start()
    run = web.enqueue(Http("GET", server.on("/x", handler)), retry=0)
    eventually(lambda: server.visits)
    fake_clock.advance("59s")
    assert run.get().state is RunState.RUNNING
    fake_clock.advance("1s")
    eventually(lambda: run.get().state is RunState.FAILED)
    assert (run.get().cause, run.get().reason) == ("timed_out", "timed out after 1m")
    eventually(lambda: engine_of(web).runner.threads.busy == 0)
    assert server.visits[0].gone.wait(PATIENCE), "the connection is still there"


@pytest.fixture
def unanswered() -> Iterator[str]:
    """The URL of a port that takes no connection and refuses none: its queue is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/x"


def test_a_cancel_ends_a_connection_that_nobody_takes(web: Ostinato, unanswered: str) -> None:
    def connecting() -> int:
        return sum(connection.status == psutil.CONN_SYN_SENT for connection in psutil.Process().net_connections())

    web.start()
    runner = engine_of(web).runner
    before = connecting()
    run = web.enqueue(Http("GET", unanswered))
    eventually(lambda: connecting() > before)
    run.cancel()
    eventually(lambda: run.get().state is RunState.CANCELLED)
    eventually(lambda: runner.threads.busy == 0)


@tuned(http_connect_seconds=0.1)
def test_a_connection_that_nobody_takes_has_a_time_limit_of_its_own(call: Caller, unanswered: str) -> None:
    run = call(unanswered, retry=1)
    assert run.state is RunState.QUEUED
    assert f"{unanswered} cannot be reached: it did not answer in time" in (run.reason or "")


@tuned(http_idle_seconds=0.1)
@pytest.mark.parametrize(("handler", "why"), [(silent, "did not answer"), (half_a_body, "broke off")])
def test_a_silence_has_a_time_limit_of_its_own(
    server: Server, call: Caller, handler: Callable[[Visit], None], why: str
) -> None:
    run = call(server.on("/x", handler), retry=1)
    assert run.state is RunState.QUEUED
    assert f"{why}: it fell silent" in (run.reason or "")


def test_a_cancel_ends_a_tls_handshake(web: Ostinato) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        web.start()
        run = web.enqueue(Http("GET", f"https://127.0.0.1:{listener.getsockname()[1]}/"))
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(10)
            assert connection.recv(1024), "the handshake has begun"
            run.cancel()
            eventually(lambda: run.get().state is RunState.CANCELLED)
            eventually(lambda: engine_of(web).runner.threads.busy == 0)


def test_a_look_up_that_hangs_is_left_behind_and_calls_nobody_when_it_ends(
    server: Server, web: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, go_on = threading.Event(), threading.Event()
    real = socket.getaddrinfo

    def hanging(*args: Any, **named: Any) -> Any:
        asked.set()
        assert go_on.wait(20)
        return real(*args, **named)

    web.start()
    monkeypatch.setattr(socket, "getaddrinfo", hanging)
    run = web.enqueue(Http("GET", server.url("/x")), retry=0)
    assert asked.wait(10)
    run.cancel()
    eventually(lambda: run.get().state is RunState.CANCELLED)
    assert "may still be running" not in (run.get().reason or "")
    runner = engine_of(web).runner
    assert runner.threads.busy == 1
    go_on.set()
    eventually(lambda: runner.threads.busy == 0)
    assert server.connections == []


def test_many_slow_hosts_hold_nobody_else_up(server: Server, make_app: MakeApp) -> None:
    app = make_app("sqlite://:memory:", http_allow=("127.0.0.1",), slots=100)
    quick = app.task("quick")(lambda: "done")
    app.start()
    url = server.on("/x", silent)
    for _ in range(25):
        app.enqueue(Http("GET", url))
    eventually(lambda: len(server.visits) == 25)
    assert quick.enqueue().wait(5).state is RunState.SUCCEEDED
