"""A real `ostinato up` or `web` of one test: in its own folder, on a free port, with the login link that it printed."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path
from unittest import mock

import ostinato
from ostinato.cli.main import run
from tests.doors.command_line import PROGRAM, inside

__all__ = ["Server", "free_port"]

_LINK = re.compile(r"http://\S+login\S+")
_PAGE = Path(ostinato.__file__).parent / "api" / "page" / "index.html"
_READY = "Ctrl-C to stop"
_PATIENCE = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """Engine, API and page in one process, which can be stopped and started again."""

    def __init__(self, folder: Path, *argv: str, command: str = "up", zone: str = "Europe/Berlin") -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._argv = (command, "--port", str(self.port), *argv)
        self._environment = {**os.environ, "TZ": zone, "COLUMNS": "200", "NO_COLOR": "1"}
        self._log = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when it says that it is ready."""
        assert _PAGE.exists(), f"the page is not built, there is no {_PAGE}: run `make page`"
        starts = self.log().count(_READY) + 1
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*PROGRAM, *self._argv],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + _PATIENCE
        while self.log().count(_READY) < starts:
            code = self._process.poll()
            assert code is None, f"the server ended with {code}:\n{self.log()}"
            assert time.monotonic() < deadline, f"the server was not ready within {_PATIENCE} s:\n{self.log()}"
            time.sleep(0.05)

    def stop(self) -> None:
        """As Ctrl-C does, and again if work is under way; ended by its id if it does not go."""
        process, self._process = self._process, None
        if process is None:
            return
        for patience in (2, 15):
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)
                return
        process.kill()
        process.wait()
        raise AssertionError(f"the server did not end after two Ctrl-C:\n{self.log()}")

    def cli(self, *argv: str) -> str:
        """One command in the same folder, in this process for speed; what it printed."""
        with (
            inside(self.folder),
            mock.patch.dict(os.environ, self._environment),
            contextlib.redirect_stdout(io.StringIO()) as out,
            contextlib.redirect_stderr(io.StringIO()) as err,
        ):
            code = run(argv)
        assert code == 0, f"`ostinato {' '.join(argv)}` ended with {code}: {err.getvalue()}"
        return out.getvalue()

    def touch(self, name: str) -> None:
        (self.folder / name).touch()

    def login_link(self) -> str:
        """The newest link that the server printed."""
        links = _LINK.findall(self.log())
        assert links, f"no login link was printed:\n{self.log()}"
        return str(links[-1])

    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
