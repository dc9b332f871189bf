"""Real web servers with an app of Ostinato in them: uvicorn, gunicorn and Flask's own, each in its own folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import httpx
import psutil

from ostinato import Node, Ostinato
from ostinato.config import Settings
from tests.browser.server import free_port
from tests.processes import lives

__all__ = ["EXAMPLES", "WebServer", "until"]

EXAMPLES = Path(__file__).parents[2] / "examples"
_PATIENCE = 120.0
T = TypeVar("T")


def until(what: str, holds: Callable[[], T], log: Callable[[], str] = str) -> T:
    """What it answers, once that is something."""
    deadline = time.monotonic() + _PATIENCE
    while not (found := holds()):
        assert time.monotonic() < deadline, f"not within {_PATIENCE:g} s: {what}\n{log()}"
        time.sleep(0.05)
    return found


class WebServer:
    """A server that was started by `python -m`; `{port}` in its words is a free port.

    It is waited for until it answers at `ready`; without that it is not asked for anything.
    """

    def __init__(self, folder: Path, *words: str, database: str, ready: str | None = "/", **environment: str) -> None:
        port = free_port()
        self.folder = folder
        self.url = f"http://127.0.0.1:{port}"
        self._words = [word.replace("{port}", str(port)) for word in words]
        self._ready = ready
        self._environment = {**os.environ, **environment, "PYTHONPATH": str(folder), "SHOP_PASSWORD": "open sesame"}
        self._log = folder / "web-server.log"
        self.jobs = Ostinato(settings=Settings(db=f"sqlite:///{folder / database}"))
        self.seen: set[int] = set()
        """Every process that was seen to belong to it."""

    def __enter__(self) -> WebServer:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *self._words],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            if self._ready is not None:
                until("the server answers", self.answers, self.log)
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """End whatever is left of it, by its id."""
        self.jobs.stop()
        for pid in [*self.family(), self.process.pid]:
            if lives(pid):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def answers(self) -> bool:
        """Whether it serves."""
        assert self.process.poll() is None, f"the server ended with {self.process.returncode}:\n{self.log()}"
        try:
            return httpx.get(self.url + (self._ready or "/")).status_code < 500
        except httpx.TransportError:
            return False

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def family(self) -> set[int]:
        """The processes that belong to it now."""
        if self.process.poll() is None:
            self.seen |= {child.pid for child in psutil.Process(self.process.pid).children(recursive=True)}
        return {pid for pid in self.seen if lives(pid)}

    def nodes(self) -> list[Node]:
        """Every node that has not left: one that was killed is still here."""
        return list(self.jobs.nodes.list())

    def until_nodes(self, count: int) -> list[Node]:
        """Wait for so many nodes."""
        until(f"there are {count} nodes", lambda: len(self.nodes()) == count, self.log)
        return self.nodes()

    def interrupt(self) -> None:
        """Ctrl-C: a terminal sends it to all of them."""
        for pid in [*self.family(), self.process.pid]:
            os.kill(pid, signal.SIGINT)

    def ends(self) -> None:
        """Wait for the end of all its processes and nodes."""
        self.ends_somehow()
        assert self.nodes() == [], self.log()

    def ends_somehow(self) -> None:
        """Wait for the end of all its processes. A node of one that was killed is rescued later."""
        until("the server ends", lambda: self.process.poll() is not None, self.log)
        until("no process is left", lambda: not self.family(), self.log)
