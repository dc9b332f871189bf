"""What systemd is told: by real processes to a socket of the test, and by the manager alone where it is not well."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from ostinato import Ostinato, Shell
from ostinato.cli.systemd import ServiceManager
from ostinato.config import SYSTEMD_VARIABLES, Settings
from ostinato.engine.watchdog import Watchdog
from ostinato.errors import StoreUnavailable
from tests.doors.command_line import CommandLine, eventually, page_address

PATIENCE = 60.0


class Systemd:
    """The socket that a service manager listens on."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        self._socket.settimeout(PATIENCE)

    def next(self) -> dict[str, str]:
        """The next message."""
        return dict(line.split("=", 1) for line in self._socket.recv(4096).decode().splitlines())

    def until(self, name: str) -> dict[str, str]:
        """The next message that says this; what the watchdog is told meanwhile is passed over."""
        while name not in (told := self.next()):
            assert set(told) == {"WATCHDOG"}, told
        return told

    def all_told(self) -> list[dict[str, str]]:
        """What was told and not read yet."""
        found = []
        self._socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                found.append(self.next())
        self._socket.settimeout(PATIENCE)
        return found

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["path", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Systemd]:
    made = Systemd(
        str(tmp_path / "notify") if request.param == "path" else f"@ostinato-test-{os.getpid()}-{id(request)}"
    )
    yield made
    made.close()


Take = Callable[[dict[str, str]], ServiceManager]


@pytest.fixture
def take() -> Iterator[Take]:
    """Takes the manager of an environment, as a command does at its start and gives up at its end."""
    with contextlib.ExitStack() as stack:
        yield lambda variables: stack.enter_context(contextlib.closing(ServiceManager.take(variables)))


def environment(systemd: Systemd, **others: str) -> dict[str, str]:
    return {"NOTIFY_SOCKET": systemd.address, **others}


@pytest.mark.parametrize(
    ("systemd", "command"), [("path", "worker"), ("abstract", "up"), ("path", "web")], indirect=["systemd"]
)
def test_a_command_tells_that_it_is_ready_well_and_draining_and_its_work_is_told_of_nothing(
    command: str, systemd: Systemd, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OSTINATO_GRACE", "7s")
    for name, value in environment(systemd, WATCHDOG_USEC="1000000").items():
        monkeypatch.setenv(name, value)
    with cli.start(command) as process:
        ready = systemd.next()
        assert (ready["READY"], ready["WATCHDOG_USEC"]) == ("1", "1000000")
        if command == "web":
            assert "without an engine" in ready["STATUS"]
        else:
            assert len(cli.ok("node", "ls", "--json").json) == 1
        if command != "worker":
            assert httpx.get(f"{page_address(process)}/readyz").status_code == 200
        if command == "worker":
            app = Ostinato(settings=Settings(db=f"sqlite:///{cli.folder}/ostinato.db"))
            run = app.enqueue(Shell("env"))
            app.runs.wait(run.id, timeout=PATIENCE)
            names = {line.partition("=")[0] for line in app.runs.output(run.id).splitlines()}
            app.stop()
            assert names & {"NOTIFY_SOCKET", "WATCHDOG_USEC"} == set()
            assert "OSTINATO_RUN_ID" in names
        for _ in range(2):
            assert systemd.next() == {"WATCHDOG": "1"}
        if command != "up":
            process.signal(signal.SIGUSR1)
            systemd.until("RELOADING")
            # What the new process loads and migrates may take long, and nobody tells the watchdog meanwhile.
            assert int(systemd.until("WATCHDOG_USEC")["WATCHDOG_USEC"]) > 60 * 1_000_000
            assert systemd.until("READY")["WATCHDOG_USEC"] == "1000000"
        process.signal(signal.SIGTERM)
        stopping = systemd.until("STOPPING")
        assert int(stopping["EXTEND_TIMEOUT_USEC"]) >= (30 if command == "web" else 37) * 1_000_000
        assert process.wait() == 0


async def test_the_watchdog_is_told_nothing_while_there_is_a_reason_to_restart(
    systemd: Systemd, take: Take, caplog: pytest.LogCaptureFixture
) -> None:
    taken = environment(systemd, WATCHDOG_USEC="20000", WATCHDOG_PID=str(os.getpid()))
    manager = take(taken)
    assert taken == {}
    reasons: list[str] = []
    async with manager.watched():
        manager.ready("serving", lambda: reasons[0] if reasons else None)
        ready = await asyncio.to_thread(systemd.next)
        assert ready == {"READY": "1", "STATUS": "serving", "WATCHDOG_USEC": "20000"}
        assert await asyncio.to_thread(systemd.next) == {"WATCHDOG": "1"}
        reasons.append("engine service ticker keeps dying\nREADY=1")
        told = await asyncio.to_thread(systemd.until, "STATUS")
        assert told == {"STATUS": "not well: engine service ticker keeps dying READY=1"}
        assert "systemd will restart this process soon" in caplog.text
        assert systemd.all_told() == []
        reasons.clear()
        assert await asyncio.to_thread(systemd.next) == {"WATCHDOG": "1"}
        assert await asyncio.to_thread(systemd.next) == {"STATUS": "well again"}
        reasons.append("services end")
        manager.stopping(5)  # they do so on purpose
        assert (await asyncio.to_thread(systemd.until, "STOPPING"))["EXTEND_TIMEOUT_USEC"] == "35000000"
        assert await asyncio.to_thread(systemd.next) == {"WATCHDOG": "1"}


def test_what_work_does_to_descriptors_keeps_nobody_from_being_told(systemd: Systemd, take: Take) -> None:
    manager = take(environment(systemd))
    assert manager._socket is not None
    os.close(manager._socket.fileno())
    manager.ready("serving")
    assert systemd.next()["READY"] == "1"


def test_work_in_a_server_of_somebody_else_is_told_nothing_either(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SYSTEMD_VARIABLES:  # gunicorn speaks to systemd, too
        monkeypatch.setenv(name, "1")
    app = Ostinato(settings=Settings(db="sqlite://:memory:"))
    printed = app.runs.output(app.execute(Shell("env")).id)
    app.stop()
    assert not [name for name in SYSTEMD_VARIABLES if f"{name}=" in printed]


def test_a_restart_in_place_is_a_reload(systemd: Systemd, take: Take) -> None:
    take(environment(systemd)).reloading()
    told = systemd.next()
    assert (told["RELOADING"], int(told["MONOTONIC_USEC"]) > 0) == ("1", True)


def test_without_a_watchdog_a_restart_in_place_begins_none(systemd: Systemd, take: Take) -> None:
    manager = take(environment(systemd))
    manager.starting_anew()
    manager.ready("serving")
    assert [set(told) for told in systemd.all_told()] == [{"STATUS"}, {"READY", "STATUS"}]


def test_a_restart_that_becomes_an_end_asks_for_the_time_of_a_drain(
    systemd: Systemd, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OSTINATO_GRACE", "90s")
    monkeypatch.setenv("NOTIFY_SOCKET", systemd.address)
    with cli.start("worker") as process:
        assert systemd.next()["READY"] == "1"
        app = Ostinato(settings=Settings(db=f"sqlite:///{cli.folder}/ostinato.db"))
        run = app.enqueue(Shell(f"while [ ! -e {cli.folder}/release ]; do sleep 0.05; done"))
        eventually(lambda: app.runs.get(run.id).state == "running", "it runs")
        process.signal(signal.SIGUSR1)
        systemd.until("RELOADING")
        process.signal(signal.SIGTERM)
        assert int(systemd.until("STOPPING")["EXTEND_TIMEOUT_USEC"]) >= 120 * 1_000_000
        (cli.folder / "release").touch()
        app.runs.wait(run.id, timeout=PATIENCE)
        app.stop()
        assert process.wait() == 0


async def test_a_question_whether_it_is_well_that_fails_is_logged_and_a_reason(
    tmp_path: Path, take: Take, caplog: pytest.LogCaptureFixture
) -> None:
    systemd = Systemd(str(tmp_path / "notify"))
    manager = take(environment(systemd, WATCHDOG_USEC="20000"))

    def fails() -> str | None:
        raise KeyError("ticker")

    async with manager.watched():
        manager.ready("serving", fails)
        await asyncio.to_thread(systemd.until, "READY")
        told = await asyncio.to_thread(systemd.next)
        assert told == {"STATUS": "not well: it cannot be told: KeyError: 'ticker'"}
    assert "Traceback" in caplog.text
    systemd.close()


@pytest.mark.parametrize(
    ("name", "value"),
    [("NOTIFY_SOCKET", "vsock:2:1234"), ("NOTIFY_SOCKET", "/nowhere/at/all"), ("WATCHDOG_USEC", "soon")],
)
async def test_variables_that_cannot_be_used_are_told_in_the_log_and_hinder_nothing(
    name: str, value: str, tmp_path: Path, take: Take, caplog: pytest.LogCaptureFixture
) -> None:
    systemd = Systemd(str(tmp_path / "notify"))
    manager = take(environment(systemd) | {name: value})
    async with manager.watched():
        manager.ready("serving")
    systemd.close()
    assert value in caplog.text


async def test_the_watchdog_of_another_process_and_no_service_manager_at_all_are_told_nothing(
    tmp_path: Path, take: Take
) -> None:
    systemd = Systemd(str(tmp_path / "notify"))
    for variables in (environment(systemd, WATCHDOG_USEC="1000", WATCHDOG_PID="1"), {"WATCHDOG_USEC": "1000"}):
        async with take(variables).watched():
            assert [task for task in asyncio.all_tasks() if "systemd" in task.get_name()] == []
    systemd.close()


async def test_a_service_that_dies_of_its_own_fault_is_a_reason_to_restart_and_a_database_that_is_away_is_none() -> (
    None
):
    watchdog = Watchdog(first_pause=0.001)
    waits = asyncio.Event()
    deaths: list[Exception] = [StoreUnavailable("the cable was pulled")]

    async def service() -> None:
        if deaths:
            raise deaths.pop()
        waits.set()
        await asyncio.Event().wait()

    watchdog.start("ticker", service)
    await asyncio.wait_for(waits.wait(), PATIENCE)
    assert watchdog.services["ticker"].restarts == 1
    assert watchdog.dying(["ticker"]) == []
    waits.clear()
    deaths.append(KeyError("x"))
    watchdog.start("pruner", service)
    await asyncio.wait_for(waits.wait(), PATIENCE)
    assert watchdog.dying(["ticker"]) == []
    assert watchdog.dying(["ticker", "pruner"]) == ["pruner"]
    await watchdog.stop()
