"""A real `ostinato up` and its server: signals, kills and floods from outside."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess

import httpx
import pytest

from tests.doors.command_line import PROGRAM, CommandLine, eventually
from tests.processes import lives, servers_of

PATIENCE = 60.0


class Up:
    """A real `ostinato up`, and the process of its server."""

    def __init__(self, cli: CommandLine, *words: str) -> None:
        self.log = cli.folder / "up.err"
        with self.log.open("w") as stderr:
            self.process = subprocess.Popen(
                [*PROGRAM, "up", *words], cwd=cli.folder, stdout=subprocess.DEVNULL, stderr=stderr
            )
        self.server: int | None = None
        try:
            eventually(lambda: "Ctrl-C to stop" in self.log.read_text(), "up is ready", PATIENCE)
            found = re.search(r"page +(http://\S+)", self.log.read_text())
            assert found is not None
            self.address = found[1]
            (self.server,) = servers_of(self.process.pid)
        except BaseException:
            self.end()
            raise

    @property
    def serves(self) -> bool:
        return self.server is not None and lives(self.server)

    def signal_server(self, number: int) -> None:
        assert self.server is not None
        os.kill(self.server, number)

    def reason(self, path: str) -> str | None:
        """Why it is not well; None while nobody answers."""
        with contextlib.suppress(httpx.TransportError):
            reason: str = httpx.get(f"{self.address}{path}", timeout=PATIENCE).json().get("reason", "")
            return reason
        return None

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.server is not None and self.serves:
            self.signal_server(signal.SIGKILL)


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
    running = Up(cli, "--app", "holding:app")
    try:
        eventually(lambda: not forked or (held.exists() and held.read_text()), "a fork holds the link", PATIENCE)
        os.kill(running.process.pid, signal.SIGKILL)
        eventually(lambda: not running.serves, "the server is gone", PATIENCE)
    finally:
        running.end()
        if held.exists():
            os.kill(int(held.read_text()), signal.SIGKILL)


def test_a_stopped_engine_is_told_and_the_page_goes_on(cli: CommandLine) -> None:
    running = Up(cli)
    token = cli.ok("token", "add", "tests", "--role", "viewer", "--json").json["token"]
    try:
        os.kill(running.process.pid, signal.SIGSTOP)
        try:
            with httpx.Client(base_url=running.address, timeout=PATIENCE) as client:
                health = client.get("/healthz")
                assert (health.status_code, health.json()["reason"]) == (503, "the engine does not answer")
                headers = {"Authorization": f"Bearer {token}"}
                assert client.get("/api/overview", headers=headers).status_code == 200
                assert client.get("/metrics", headers=headers).status_code == 200
        finally:
            os.kill(running.process.pid, signal.SIGCONT)
        eventually(lambda: running.reason("/healthz") == "", "it is well", PATIENCE)
    finally:
        running.end()


def test_signals_for_all_end_the_server_last(cli: CommandLine) -> None:
    """A service manager signals every process: the page still tells how the drain ends."""
    cli.ok("schedule", "add", "slow", "every 1h", "--shell", "echo on; while [ ! -e go ]; do sleep 0.02; done")
    cli.ok("schedule", "trigger", "slow")
    running = Up(cli)
    try:
        eventually(lambda: cli.ok("run", "ls", "--state", "running", "--json").json, "it runs", PATIENCE)
        running.signal_server(signal.SIGTERM)
        running.process.send_signal(signal.SIGTERM)
        eventually(lambda: running.reason("/readyz") == "this node is draining", "the drain", PATIENCE)
        (cli.folder / "go").touch()
        assert running.process.wait(PATIENCE) == 0
        assert not running.serves
    finally:
        running.end()


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
        well = f"{found[1]}/healthz"

        def is_well() -> bool:
            return httpx.get(well, timeout=PATIENCE).status_code == 200

        for _ in range(400):
            line = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
            line.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            lines.append(line)
            if len(lines) % 100 == 0:
                eventually(is_well, "it answers", PATIENCE)
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
