"""A real `ostinato up` and its server: signals, kills and floods from outside."""

from __future__ import annotations

import contextlib
import os
import signal
import socket

import httpx
import pytest

from tests.doors.command_line import CommandLine, Process, eventually, page_address
from tests.processes import lives, servers_of

PATIENCE = 60.0


class Up(Process):
    """A real `ostinato up`, and the process of its server; both are gone when the block ends."""

    def __init__(self, cli: CommandLine, *words: str) -> None:
        super().__init__(cli.folder, ("up", *words), "up")
        try:
            self.address = page_address(self)
            (self.server,) = servers_of(self.pid)
        except BaseException:
            super().__exit__()
            raise

    @property
    def serves(self) -> bool:
        return lives(self.server)

    def reason(self, path: str) -> str | None:
        """Why it is not well; None while nobody answers."""
        with contextlib.suppress(httpx.TransportError):
            reason: str = httpx.get(f"{self.address}{path}", timeout=PATIENCE).json().get("reason", "")
            return reason
        return None

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        if self.serves:
            os.kill(self.server, signal.SIGKILL)


HOLDING = """
import os, time
from ostinato import Ostinato

app = Ostinato()


@app.task("hold")
def hold() -> None:
    if not os.fork():  # with every descriptor of its parent
        open("held", "w").write(str(os.getpid()))
        time.sleep(600)
        os._exit(0)
"""


@pytest.mark.parametrize("forked", [False, True], ids=["alone", "a fork holds the link"])
def test_it_ends_with_an_engine_that_is_killed(cli: CommandLine, forked: bool) -> None:
    (cli.folder / "holding.py").write_text(HOLDING)
    held = cli.folder / "held"
    if forked:
        cli.ok("schedule", "add", "fork", "every 1h", "--task", "hold")
        cli.ok("schedule", "trigger", "fork")
    with Up(cli, "--app", "holding:app") as up:
        try:
            eventually(lambda: not forked or (held.exists() and held.read_text()), "a fork holds the link", PATIENCE)
            up.signal(signal.SIGKILL)
            eventually(lambda: not up.serves, "the server is gone", PATIENCE)
        finally:
            if held.exists():
                os.kill(int(held.read_text()), signal.SIGKILL)


def test_a_stopped_engine_is_told_and_the_page_goes_on(cli: CommandLine) -> None:
    token = cli.ok("token", "add", "tests", "--role", "viewer", "--json").json["token"]
    with Up(cli) as up:
        # Before that, the server knows of no engine, and that is well.
        eventually(lambda: "node  " in up.out + up.err, "the engine has started", PATIENCE)
        up.signal(signal.SIGSTOP)
        try:
            with httpx.Client(base_url=up.address, timeout=PATIENCE) as client:
                health = client.get("/healthz")
                assert (health.status_code, health.json()["reason"]) == (503, "the engine does not answer")
                headers = {"Authorization": f"Bearer {token}"}
                assert client.get("/api/overview", headers=headers).status_code == 200
                assert client.get("/metrics", headers=headers).status_code == 200
        finally:
            up.signal(signal.SIGCONT)
        eventually(lambda: up.reason("/healthz") == "", "it is well", PATIENCE)


def test_signals_for_all_end_the_server_last(cli: CommandLine) -> None:
    """A service manager signals every process: the page still tells how the drain ends."""
    cli.ok("schedule", "add", "slow", "every 1h", "--shell", "echo on; while [ ! -e go ]; do sleep 0.02; done")
    cli.ok("schedule", "trigger", "slow")
    with Up(cli) as up:
        eventually(lambda: cli.ok("run", "ls", "--state", "running", "--json").json, "it runs", PATIENCE)
        os.kill(up.server, signal.SIGTERM)
        up.signal(signal.SIGTERM)
        eventually(lambda: up.reason("/readyz") == "this node is draining", "the drain", PATIENCE)
        (cli.folder / "go").touch()
        assert up.wait() == 0
        assert not up.serves


def test_half_open_connections_leave_room_for_work_and_for_others(cli: CommandLine) -> None:
    """More of them than the process may have descriptors: who asks is answered, and what is due runs."""
    cli.ok("schedule", "add", "greet", "every 1s", "--shell", "true", "--retry", "0", "--break-after", "1")
    with contextlib.ExitStack() as lines, cli.start("up", by='ulimit -n 256 && exec "$@"') as up:
        address = page_address(up)

        def is_well() -> bool:
            return httpx.get(f"{address}/healthz", timeout=PATIENCE).status_code == 200

        for number in range(1, 401):
            place = ("127.0.0.1", int(address.rpartition(":")[2]))
            line = lines.enter_context(socket.create_connection(place, timeout=PATIENCE))
            line.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            if number % 100 == 0:
                eventually(is_well, "it answers", PATIENCE)
        before = up.out.count("succeeded")
        eventually(lambda: up.out.count("succeeded") > before + 2, "work goes on", PATIENCE)
        runs = cli.ok("schedule", "runs", "greet", "--json").json
        assert "failed" not in {run["state"] for run in runs}
        assert cli.ok("schedule", "show", "greet", "--json").json["broken"] is None
        assert len(up.err) < 20_000
        up.signal(signal.SIGTERM)
        assert up.wait() == 0
