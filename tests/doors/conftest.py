"""A folder with an app in it, the command line called as the console script calls it, an app and a server on a fake
clock."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ostinato import Ostinato
from ostinato.testing import FakeClock
from ostinato.tuning import Tuning
from tests.databases import LIGHT, url_of
from tests.doors.command_line import JOBS, CommandLine, inside
from tests.doors.web import Client, Web, web_on


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[CommandLine]:
    """The command line in an empty folder of 80 columns, with `jobs.py` to load by --app."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("OSTINATO_PORT", "0")
    (tmp_path / "jobs.py").write_text(JOBS, encoding="utf-8")
    with inside(tmp_path):
        yield CommandLine(tmp_path, capsys)


def at(hour: int, minute: int = 0, day: int = 1) -> datetime:
    return datetime(2026, 1, day, hour, minute, tzinfo=UTC)


@pytest.fixture
def app(ostinato_app: Ostinato) -> Ostinato:
    return ostinato_app


@pytest.fixture
def clock(fake_clock: FakeClock) -> FakeClock:
    return fake_clock


@pytest.fixture
def opened() -> Iterator[threading.Event]:
    """What a task of the test waits for."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture(params=LIGHT)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    return url_of(request, tmp_path)


@pytest.fixture
def web(tuning: Tuning) -> Iterator[Web]:
    """The server in this process, on a fake clock and a database of its own."""
    with web_on(tuning=tuning) as web:
        yield web


@pytest.fixture
def admin(web: Web) -> Client:
    """A script with an admin's token."""
    return web.script("admin")


@pytest.fixture
def operator(web: Web) -> Client:
    """A script with an operator's token."""
    return web.script("operator")
