"""Many HTTP calls at once on one node: they share its loop, and no thread is theirs."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ostinato import Http, Ostinato, RunState
from tests.engine.conftest import PATIENCE, MakeApp, engine_of, eventually
from tests.engine.http_server import Server, Visit, answer

pytest_plugins = ("tests.engine.http_fixtures",)

MANY = 1_000


class Crowd:
    """A server on a loop of its own, which answers nobody before it is told to."""

    def __init__(self) -> None:
        self.held = self.gone = 0
        """How many callers are there, or were, and how many have hung up."""
        self.port = 0
        self._listens = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(),), daemon=True)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._go, self._end = asyncio.Event(), asyncio.Event()
        async with await asyncio.start_server(self._visit, "127.0.0.1", 0, backlog=MANY) as server:
            self.port = server.sockets[0].getsockname()[1]
            self._listens.set()
            await self._end.wait()

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.held += 1
        watch = asyncio.create_task(self._watch(reader))
        await self._go.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok")
        await watch
        writer.close()

    async def _watch(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.read()
        self.gone += 1

    def go(self) -> None:
        self._loop.call_soon_threadsafe(self._go.set)

    def __enter__(self) -> Crowd:
        self._thread.start()
        assert self._listens.wait(PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        self.go()
        eventually(lambda: self.gone == self.held)
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(PATIENCE)


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Room for both ends of every connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * MANY + 500
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"this machine allows {hard} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_thousand_calls_at_once_take_no_thread(make_app: MakeApp, many_descriptors: None) -> None:
    app = make_app("sqlite://:memory:", http_allow=("127.0.0.1",), slots=MANY + 10, lanes={"main": MANY})
    quick = app.task("quick", lane="cron")(lambda: "done")
    with Crowd() as crowd:
        app.start()
        assert quick.enqueue().wait(PATIENCE).state is RunState.SUCCEEDED
        before = threading.active_count()
        url = f"http://127.0.0.1:{crowd.port}/"
        runs = [app.enqueue(Http("GET", url), retry=0) for _ in range(MANY)]
        eventually(lambda: crowd.held == MANY)
        assert threading.active_count() < before + 20, "a thread for each"
        assert quick.enqueue().wait(PATIENCE).state is RunState.SUCCEEDED, "they hold nobody else up"
        crowd.go()
        eventually(lambda: not app.runs.list(state=["queued", "running"], limit=1))
        assert {run.get().state for run in runs} == {RunState.SUCCEEDED}
        assert app.runs.output(runs[-1].id) == "ok"


def test_calls_that_are_stopped_together_end_together(make_app: MakeApp, tmp_path: Path) -> None:
    app = make_app(f"sqlite:///{tmp_path / 'x.db'}", http_allow=("127.0.0.1",), lanes={"main": 100})
    with Crowd() as crowd:
        app.start()
        runs = [app.enqueue(Http("GET", f"http://127.0.0.1:{crowd.port}/"), retry=0) for _ in range(100)]
        eventually(lambda: crowd.held == 100)
        app.stop(grace=0)
        eventually(lambda: crowd.gone == 100)
        assert {(run.get().state, run.get().reason) for run in runs} == {
            (RunState.FAILED, "its node was stopped while it ran")
        }


def test_who_asks_for_the_same_name_at_the_same_time_shares_the_look_up(
    server: Server, web: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.on("/x", answer())
    asked: list[str] = []
    go_on = threading.Event()
    real = socket.getaddrinfo

    def slow(host: str, *given: Any, **named: Any) -> Any:
        asked.append(host)
        assert go_on.wait(PATIENCE)
        return real(host, *given, **named)

    web.start()
    monkeypatch.setattr(socket, "getaddrinfo", slow)
    first = web.enqueue(Http("GET", server.url("/x", "localhost")), retry=0)
    eventually(lambda: asked)
    runs = [web.enqueue(Http("GET", server.url("/x", "localhost")), retry=0) for _ in range(10)]
    eventually(lambda: all(run.get().state is RunState.RUNNING for run in runs))
    first.cancel()
    eventually(lambda: first.get().state is RunState.CANCELLED)
    assert engine_of(web).runner.threads.busy == 1
    go_on.set()
    assert {run.wait(PATIENCE).state for run in runs} == {RunState.SUCCEEDED}
    assert asked == ["localhost"]


def test_a_body_that_never_ends_lets_others_go_on(server: Server, web: Ostinato) -> None:
    def endless(visit: Visit) -> None:
        visit.begin(Content_Type="text/plain")
        while True:
            visit.send(b"and on and on\n" * 4_000)

    quick = web.task("quick")(lambda: "done")
    web.start()
    run = web.enqueue(Http("GET", server.on("/x", endless)))
    eventually(lambda: "and on" in web.runs.output(run.id))
    assert quick.enqueue().wait(PATIENCE).state is RunState.SUCCEEDED
    assert run.get().state is RunState.RUNNING


def test_a_node_that_calls_nobody_does_not_load_the_library() -> None:
    program = """
import sys
from ostinato import Ostinato
app = Ostinato("sqlite://:memory:")
app.start()
assert app.task("quick")(lambda: "done").enqueue().wait(60).result == "done"
app.stop()
assert "httpcore2" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
