"""The server beside the engine: neither holds up the other, and the page tells how the engine is."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn

from ostinato import Ostinato, RunState
from ostinato.cli import server_thread
from ostinato.cli.server_thread import serving_apart
from ostinato.config import Settings
from ostinato.engine.node import Engine
from ostinato.errors import Conflict, OstinatoError
from ostinato.models.access import Role
from ostinato.wiring import House
from tests.doors.command_line import PROGRAM, CommandLine, eventually

PATIENCE = 60.0


@asynccontextmanager
async def up(app: Ostinato) -> AsyncIterator[tuple[House, httpx.AsyncClient]]:
    """What `ostinato up` puts together, on this loop; the client has an admin's token."""
    told: list[str] = []
    async with serving_apart(app, told.append) as house, app:
        house.engine = await app.aio.with_engine(_itself)
        address = re.search(r"http://\S+", told[0])
        assert address is not None
        made = app._home.house
        assert made is not None
        _, token = await made.services.access.make_token("tests", Role.ADMIN, "tests", None)
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=address[0], headers=headers, timeout=PATIENCE) as client:
            yield house, client
        house.engine = None


async def _itself(engine: Engine) -> Engine:
    return engine


@pytest.fixture(params=["file", "postgres"])
def app(request: pytest.FixtureRequest, tmp_path: Path) -> Ostinato:
    url = f"sqlite:///{tmp_path / 'jobs.db'}" if request.param == "file" else request.getfixturevalue("postgres_url")
    return Ostinato(settings=Settings(db=url, port=0))


async def _ended(app: Ostinato, id: int) -> RunState:
    async with asyncio.timeout(PATIENCE):
        while not (run := await app.aio.runs.get(id)).ended:  # noqa: ASYNC110  # another loop ends it
            await asyncio.sleep(0.01)
    return run.state


def test_a_request_that_holds_the_servers_loop_holds_up_no_start(
    app: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, released = threading.Event(), threading.Event()

    def hang(*_: object) -> bool:
        """Where a message is sent, on the loop of the server."""
        entered.set()
        released.wait(PATIENCE)
        return True

    monkeypatch.setattr(server_thread._CodeElsewhere, "takes_payloads", hang)

    @app.task("quick")
    async def quick() -> None: ...

    async def all_of_it() -> None:
        async with up(app) as (_, client):
            try:
                sending = asyncio.create_task(
                    client.post("/api/sessions/chat/messages", json={"task": "quick", "payload": 1})
                )
                assert await asyncio.to_thread(entered.wait, PATIENCE)
                assert await _ended(app, await quick.aio.enqueue()) is RunState.SUCCEEDED
                assert not sending.done()
            finally:
                released.set()
            assert (await sending).status_code == 201

    asyncio.run(all_of_it())


def test_while_the_engines_loop_is_blocked_health_says_so(app: Ostinato) -> None:
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

    async def all_of_it() -> None:
        async with up(app) as (_, client):
            looking = threading.Thread(target=look, args=(str(client.base_url),))
            run = await blocking.aio.enqueue()
            looking.start()
            await _ended(app, run)
            await asyncio.to_thread(looking.join)
            assert (await client.get("/metrics")).status_code == 200

    asyncio.run(all_of_it())
    assert found[-1].json()["reason"] == "the event loop is blocked"


def test_checks_are_carried_out_on_the_applications_loop(app: Ostinato) -> None:
    asked: list[object] = []

    @app.check("fine")
    async def fine() -> bool:
        asked.append(asyncio.get_running_loop())
        return True

    async def all_of_it() -> None:
        async with up(app) as (_, client):
            work = {"kind": "function", "task": "hello"}
            body = {"name": "s", "timing": "every 1h", "work": work, "policy": {"checks": ["fine"]}}
            assert (await client.post("/api/schedules", json=body)).status_code == 201
            assert asked == [asyncio.get_running_loop()]

    asyncio.run(all_of_it())


def test_a_blocked_application_does_not_hold_up_a_request_for_ever(
    app: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_thread, "CHECKS_SECONDS", 0.1)
    answers: list[httpx.Response] = []

    @app.check("fine")
    async def fine() -> bool:
        return True

    def ask(client: httpx.Client) -> None:
        body = {"name": "s", "timing": "every 1h", "work": {"kind": "function", "task": "hello"}}
        answers.append(client.post("/api/schedules", json=body | {"policy": {"checks": ["fine"]}}))

    async def all_of_it() -> None:
        async with up(app) as (_, client):
            with httpx.Client(base_url=client.base_url, headers=client.headers, timeout=PATIENCE) as other:
                asking = threading.Thread(target=ask, args=(other,))
                asking.start()
                asking.join(PATIENCE)  # on the application's loop, which does nothing else
                assert not asking.is_alive()

    asyncio.run(all_of_it())
    assert answers[0].status_code == 503
    assert "the event loop of the application is blocked" in answers[0].json()["detail"]


@pytest.mark.parametrize("error", [RuntimeError("broken"), None], ids=["an error", "no error"])
def test_a_server_that_ends_by_itself_ends_whoever_stands_beside_it(
    app: Ostinato, error: Exception | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fails = threading.Event()

    async def main_loop(_: object) -> None:
        while not fails.is_set():  # noqa: ASYNC110  # another loop sets it
            await asyncio.sleep(0.01)
        if error is not None:
            raise error

    async def all_of_it() -> None:
        async with asyncio.timeout(PATIENCE):
            async with up(app):
                fails.set()
                await asyncio.Event().wait()

    monkeypatch.setattr(uvicorn.Server, "main_loop", main_loop)
    with pytest.raises(OstinatoError, match=f"the server has ended by itself: {error or 'nobody told it to'}"):
        asyncio.run(all_of_it())
    assert caplog.messages.count("the server has ended by itself") == 1
    assert not [thread for thread in threading.enumerate() if thread.name == "ostinato-server"]


def test_what_hinders_the_start_is_raised_where_it_was_asked_for(tmp_path: Path) -> None:
    async def all_of_it() -> None:
        with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
            settings = Settings(db=f"sqlite:///{tmp_path / 'jobs.db'}", port=taken.getsockname()[1])
            with pytest.raises(Conflict, match="is taken"):
                async with serving_apart(Ostinato(settings=settings), lambda _: None):
                    pass

    asyncio.run(all_of_it())
    assert not [thread for thread in threading.enumerate() if thread.name == "ostinato-server"]


def test_the_interpreter_changes_hands_sooner_while_both_are_there(app: Ostinato) -> None:
    usual = sys.getswitchinterval()

    async def all_of_it() -> float:
        async with up(app):
            return sys.getswitchinterval()

    assert asyncio.run(all_of_it()) == pytest.approx(server_thread.SWITCH_SECONDS)
    assert sys.getswitchinterval() == pytest.approx(usual)


def test_half_open_connections_leave_room_for_work_and_for_others(cli: CommandLine) -> None:
    """More of them than the process may have descriptors: who asks is answered, and what is due runs."""
    cli.ok("schedule", "add", "greet", "every 1s", "--shell", "true", "--retry", "0", "--break-after", "1")
    out, err = cli.folder / "up.out", cli.folder / "up.err"
    few = ["sh", "-c", 'ulimit -n 256 && exec "$@"', "sh"]
    with out.open("w") as stdout, err.open("w") as stderr:
        process = subprocess.Popen([*few, *PROGRAM, "up"], cwd=cli.folder, stdout=stdout, stderr=stderr)
    lines: list[socket.socket] = []
    try:
        eventually(lambda: "Ctrl-C to stop" in err.read_text(), "up is ready", PATIENCE)
        found = re.search(r"page +(http://\S+)", err.read_text())
        assert found is not None
        port = int(found[1].rpartition(":")[2])
        for _ in range(400):
            line = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
            line.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            lines.append(line)
            if len(lines) % 100 == 0:
                assert httpx.get(f"{found[1]}/healthz", timeout=PATIENCE).status_code == 200
        before = out.read_text().count("succeeded")
        eventually(lambda: out.read_text().count("succeeded") > before + 2, "work goes on", PATIENCE)
        runs = cli.ok("schedule", "runs", "greet", "--json").json
        assert "failed" not in {run["state"] for run in runs}
        assert cli.ok("schedule", "show", "greet", "--json").json["broken"] is None
        assert err.stat().st_size < 20_000
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        for line in lines:
            line.close()
        process.kill()
        process.wait()
