"""The server beside the engine: neither holds up the other, one survives the other's faults, and the page tells how the
engine is."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import httpx
import pytest

from ostinato import Ostinato, RunState
from ostinato.cli import server_process
from ostinato.cli.server_child import _EngineClient
from ostinato.cli.server_link import Answer, Ask, Begin, engines_link, servers_link
from ostinato.cli.server_process import ServerProcess, serving_apart
from ostinato.config import Settings
from ostinato.engine.node import Engine
from ostinato.errors import Conflict, OstinatoError, WaitTimeout
from ostinato.models.access import Role
from ostinato.tuning import Tuning
from tests.conftest import tuned
from tests.databases import SHARED, url_of
from tests.doors.command_line import eventually
from tests.processes import lives, servers_of

PATIENCE = 60.0


@asynccontextmanager
async def up(app: Ostinato) -> AsyncIterator[tuple[ServerProcess, httpx.AsyncClient]]:
    """What `ostinato up` puts together, on this loop; the client has an admin's token."""
    told: list[str] = []
    async with serving_apart(app, told.append) as server, app:
        server.tell_engine(await app.aio.with_engine(_itself))
        address = re.search(r"http://\S+", told[0])
        assert address is not None
        made = app._host.container
        assert made is not None
        _, token = await made.services.access.make_token("tests", Role.ADMIN, "tests", None)
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=address[0], headers=headers, timeout=PATIENCE) as client:
            yield server, client
        server.tell_engine(None)


async def _itself(engine: Engine) -> Engine:
    return engine


@pytest.fixture(params=["sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A file of SQLite, for most: how the two processes speak with each other has nothing to do with the database."""
    return url_of(request, tmp_path)


@pytest.fixture
def app(url: str, tuning: Tuning) -> Ostinato:
    return Ostinato(settings=Settings(db=url, port=0, tuning=tuning))


async def _ended(app: Ostinato, id: int) -> RunState:
    async with asyncio.timeout(PATIENCE):
        while not (run := await app.aio.runs.get(id)).ended:  # noqa: ASYNC110  # another loop ends it
            await asyncio.sleep(0.01)
    return run.state


def process_of(server: ServerProcess) -> int:
    assert server.process is not None
    return server.process


def no_server_is_left() -> bool:
    """Its threads end right after they have told that they do."""

    def are_gone() -> bool:
        return not [thread for thread in threading.enumerate() if thread.name.startswith("ostinato-server")]

    eventually(are_gone, "no thread is left", PATIENCE)
    return servers_of(os.getpid()) == []


async def test_a_server_that_is_stuck_holds_up_no_start(app: Ostinato) -> None:
    @app.task("quick")
    async def quick() -> None: ...

    async with up(app) as (server, client):
        os.kill(process_of(server), signal.SIGSTOP)
        try:
            asking = asyncio.create_task(client.get("/api/overview"))
            assert await _ended(app, await quick.aio.enqueue()) is RunState.SUCCEEDED
            assert not asking.done()
        finally:
            os.kill(process_of(server), signal.SIGCONT)
        assert (await asking).status_code == 200


@tuned(server_end_seconds=0.5)
def test_a_server_that_hears_nothing_holds_up_neither_the_loop_nor_the_end(app: Ostinato) -> None:
    """More than a socket holds is said to a stopped server; then it is to end, and does not."""

    async def all_of_it() -> int:
        async with up(app) as (server, _):
            os.kill(process_of(server), signal.SIGSTOP)
            for number in range(2_000):
                app.task(f"task {number}", priority=3, timeout="90s")(lambda: None)
            return process_of(server)

    assert not lives(asyncio.run(all_of_it()))
    assert no_server_is_left()


async def test_what_keeps_it_from_being_told_anything_is_told(app: Ostinato, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> dict[str, object]:
        raise UnicodeEncodeError("utf-8", "\udcff", 0, 1, "surrogates not allowed")

    monkeypatch.setattr(ServerProcess, "_known", fail)
    with pytest.raises(OstinatoError, match=r"the server did not start: .*surrogates not allowed"):
        async with serving_apart(app, lambda _: None):
            pass
    assert await asyncio.to_thread(no_server_is_left)


@pytest.mark.parametrize("said", [b"", bytes(7), bytes(7) + b"\x09{"], ids=["nothing", "half a length", "half a word"])
def test_a_link_ends_with_its_process_though_somebody_holds_it_open(said: bytes) -> None:
    ours, theirs = socket.socketpair()
    gone, going = os.pipe()
    heard: list[object] = []
    with ours, theirs:
        ours.sendall(said)
        hearing = threading.Thread(target=lambda: heard.append(servers_link(theirs, gone).receive()), daemon=True)
        hearing.start()
        os.write(going, b"it is gone")
        hearing.join(PATIENCE)
        os.close(going)
        os.close(gone)
    assert heard == [None]


async def test_while_the_engines_loop_is_blocked_health_says_so(app: Ostinato) -> None:
    released = threading.Event()
    found: list[httpx.Response] = []

    def look(address: str) -> None:
        """From a thread: the loop of this test is the engine's."""
        try:
            with httpx.Client(base_url=address, timeout=PATIENCE) as client:

                def is_told() -> bool:
                    found.append(client.get("/healthz"))
                    return found[-1].status_code == 503

                eventually(is_told, "the block is told", PATIENCE)
        finally:
            released.set()

    @app.task("blocking")
    async def blocking() -> None:
        released.wait(PATIENCE)

    async with up(app) as (_, client):
        looking = threading.Thread(target=look, args=(str(client.base_url),))
        run = await blocking.aio.enqueue()
        looking.start()
        await _ended(app, run)
        await asyncio.to_thread(looking.join)
        assert (await client.get("/metrics")).status_code == 200
    assert found[-1].json()["reason"] == "the event loop is blocked"


async def test_checks_are_carried_out_on_the_applications_loop(app: Ostinato) -> None:
    asked: list[object] = []

    @app.check("fine")
    async def fine() -> bool:
        asked.append(asyncio.get_running_loop())
        return True

    async with up(app) as (_, client):
        work = {"kind": "function", "task": "hello"}
        body = {"name": "s", "timing": "every 1h", "work": work, "policy": {"checks": ["fine"]}}
        assert (await client.post("/api/schedules", json=body)).status_code == 201
        assert asked == [asyncio.get_running_loop()]


async def test_code_that_does_not_answer_holds_up_no_request_for_ever() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        settings = Settings(tuning=Tuning(server_code_seconds=0.05))
        beside = _EngineClient(servers_link(theirs), Begin(settings, {}))
        beside.listen(lambda: None)
        with pytest.raises(WaitTimeout, match="the code of the application does not answer"):
            await beside.failed_checks(["fine"])
        asked = engines_link(ours).receive()
        assert asked == Ask(1, "checks", ["fine"])
        # Too late, and what was never asked: nobody minds.
        engines_link(ours).send(Answer(1, {"fine": "no"}))
        engines_link(ours).send(Answer(7, {}))
        with pytest.raises(WaitTimeout):
            await beside.failed_checks(["other"])


async def test_what_cannot_be_asked_is_told_and_the_rest_goes_on(
    app: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> dict[str, str]:
        raise RuntimeError("no room for a thread")

    def worse(_: object) -> dict[str, str]:
        raise RuntimeError("nobody knows")

    monkeypatch.setattr(Engine, "health", worse)
    monkeypatch.setattr(type(app.registry), "failed_checks", broken)
    async with up(app) as (_, client):
        body = {"name": "s", "timing": "every 1h", "work": {"kind": "function", "task": "hello"}}
        answer = await client.post("/api/schedules", json=body | {"policy": {"checks": ["fine"]}})
        assert answer.status_code >= 500
        assert (await client.get("/healthz")).status_code >= 500
        assert (await client.get("/api/overview")).status_code == 200


async def test_what_the_code_says_of_tasks_holds_at_the_server_too(app: Ostinato) -> None:
    """Also of a task that is registered later."""

    @app.task("patient", retry=7, timeout="90s")
    async def patient() -> None: ...

    async with up(app) as (_, client):

        async def policy_of(task: str) -> dict[str, object]:
            body = {"name": task, "timing": "every 1h", "work": {"kind": "function", "task": task}}
            made = await client.post("/api/schedules", json=body)
            assert made.status_code == 201
            policy: dict[str, object] = made.json()["policy"]
            return policy

        def later() -> None: ...

        app.task("later", priority=9)(later)
        policy = await policy_of("patient")
        assert policy["timeout"] == "1m30s"
        assert isinstance(policy["retry"], dict)
        assert policy["retry"]["max"] == 7
        async with asyncio.timeout(PATIENCE):
            number = 0
            while (await policy_of(f"later{number}" if number else "later"))["priority"] != 9:
                number += 1
                app.task(f"later{number}", priority=9)(later)
        sent = await client.post("/api/sessions/chat/messages", json={"task": "patient", "payload": 1})
        assert (sent.status_code, sent.json()["detail"].split(";")[0]) == (422, "task 'patient' takes no payloads")


async def test_the_code_says_at_the_server_too_which_arguments_fit(app: Ostinato) -> None:
    @app.task("remind")
    async def remind(at: datetime, text: str = "") -> None: ...

    async with up(app) as (_, client):

        async def answered(*args: object, **kwargs: object) -> list[str | None]:
            work = {"kind": "function", "task": "remind", "args": args, "kwargs": kwargs}
            run = await client.post("/api/runs", json={"work": work})
            schedule = await client.post("/api/schedules", json={"name": "x", "timing": "every 1h", "work": work})
            return [answer.json()["detail"] if answer.status_code == 422 else None for answer in (run, schedule)]

        now = "2026-01-01T00:00:00Z"
        does_not_fit = "argument 'at' of task 'remind' does not fit datetime: 'tomorrow' is not a datetime"
        assert await answered("tomorrow") == [does_not_fit + " such as 2026-03-01T09:30:00Z"] * 2
        assert await answered() == ["task 'remind' needs the argument 'at'"] * 2
        assert await answered(now, txet="x") == ["task 'remind' takes no argument 'txet'; it takes at, text"] * 2
        assert await answered(now, text="x") == [None, None]


async def test_how_full_a_session_is_the_code_says_where_its_runs_start(app: Ostinato) -> None:
    asked: list[tuple[str, object]] = []

    @app.task("answer")
    async def answer(payloads: list[object]) -> None: ...

    def usage(session: str) -> tuple[float, float]:
        asked.append((session, asyncio.get_running_loop()))
        return 1, 100

    app.sessions.throttle(usage)
    async with up(app) as (_, client):
        body = {"task": "answer", "payload": 1, "debounce": "0s"}
        sent = await client.post("/api/sessions/chat/messages", json=body)
        assert sent.status_code == 201
        assert await _ended(app, sent.json()["id"]) is RunState.SUCCEEDED
        assert asked[0] == ("chat", asyncio.get_running_loop())


@pytest.mark.parametrize("url", SHARED, indirect=True)
@tuned(server_restart_seconds=0.01, server_longest_restart_seconds=0.01)
async def test_a_server_that_is_killed_is_started_again_at_its_port(
    app: Ostinato, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task("quick")
    async def quick() -> None: ...

    async with up(app) as (server, client):
        first = process_of(server)
        os.kill(first, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE):
            while server.process in (first, None):  # noqa: ASYNC110  # another thread starts it
                await asyncio.sleep(0.01)
            while True:
                with contextlib.suppress(httpx.TransportError):
                    health = await client.get("/readyz")
                    if health.status_code == 200:
                        break
                await asyncio.sleep(0.01)
        assert (await client.get("/api/overview")).status_code == 200
        assert await _ended(app, await quick.aio.enqueue()) is RunState.SUCCEEDED
    assert [text for text in caplog.messages if "the server has ended unexpectedly: it was killed by SIGKILL" in text]
    assert await asyncio.to_thread(no_server_is_left)


async def test_what_hinders_the_start_is_raised_where_it_was_asked_for(tmp_path: Path) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        settings = Settings(db=f"sqlite:///{tmp_path / 'jobs.db'}", port=taken.getsockname()[1])
        with pytest.raises(Conflict, match="is taken"):
            async with serving_apart(Ostinato(settings=settings), lambda _: None):
                pass
    assert await asyncio.to_thread(no_server_is_left)


async def test_a_server_that_cannot_even_begin_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_process, "_START", "raise SystemExit(7)")
    app = Ostinato(settings=Settings(db=f"sqlite:///{tmp_path / 'jobs.db'}", port=0))
    with pytest.raises(OstinatoError, match="the server did not start: it exited with status 7"):
        async with serving_apart(app, lambda _: None):
            pass
    assert await asyncio.to_thread(no_server_is_left)


async def test_a_start_that_is_given_up_leaves_nothing_behind(app: Ostinato) -> None:
    async def serve() -> None:
        async with serving_apart(app, lambda _: None):
            raise AssertionError("it was to be cancelled before")

    for turns in range(6):
        starting = asyncio.create_task(serve())
        for _ in range(turns):
            await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
    assert await asyncio.to_thread(no_server_is_left)
