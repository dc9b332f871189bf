"""A folder with an app in it, the command line called as the console script calls it, an app and a server on a fake
clock."""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ostinato import Ostinato, RunContext
from ostinato.config import AgentCli, Settings
from ostinato.models.telegram import read_telegram_settings
from ostinato.stores.sqlite.store import SqliteStore
from ostinato.testing import FakeClock
from ostinato.tuning import Tuning
from tests.databases import LIGHT, url_of
from tests.doors.command_line import JOBS, CommandLine, inside
from tests.doors.telegram_bot import CHATS, MakeBot
from tests.doors.web import Client, Web, web_on
from tests.engine.stand_in import StandIn
from tests.telegram_server import TOKEN, TelegramServer, telegram_server


@pytest.fixture
def cli(wrong_folder: CommandLine) -> CommandLine:
    """The command line in a folder with an empty database, of 80 columns, with `jobs.py` to load by --app."""

    async def make() -> None:
        # Not by `db migrate`, which the audit log would have.
        store = SqliteStore(str(wrong_folder.folder / "ostinato.db"))
        await store.open()
        await store.close()

    asyncio.run(make())
    return wrong_folder


@pytest.fixture
def wrong_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[CommandLine]:
    """The same in a folder without a database."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("OSTINATO_PORT", "0")
    (tmp_path / "jobs.py").write_text(JOBS, encoding="utf-8")
    with inside(tmp_path):
        yield CommandLine(tmp_path, capsys)


@pytest.fixture
def agents(cli: CommandLine, tuning: Tuning) -> Iterator[StandIn]:
    """An engine that runs in the folder of the command line, and whose agent is the stand-in; another one just
    prints."""
    stand_in = StandIn(cli.folder / "agents")
    clis = {"claude": stand_in.cli, "plain": AgentCli(("sh", "-c", "cat > /dev/null; echo I know; echo nothing"))}
    settings = replace(Settings(), db=f"sqlite:///{cli.folder}/ostinato.db", agents=clis, tuning=tuning)
    app = Ostinato(settings=settings)

    @app.task("echo", retry=0)
    def echo(payloads: list[str]) -> list[str]:
        return payloads

    @app.task("stumble", retry=0)
    def stumble(run: RunContext, payloads: list[str]) -> list[str]:
        run.count("errors", len(payloads))
        return payloads

    app.start()
    yield stand_in
    app.stop(grace=0)


@pytest.fixture
def telegram() -> Iterator[TelegramServer]:
    """A local server that speaks the Bot API. What is loaded here, for seconds, nobody waits for later."""
    importlib.import_module("aiogram")
    with telegram_server() as server:
        yield server


@pytest.fixture
def make_bot(telegram: TelegramServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeBot]:
    """Makes apps whose bot listens to that server, on one database, and starts them; all are stopped at the end."""
    monkeypatch.setenv("TEST_BOT_TOKEN", TOKEN)
    tuning = Tuning(telegram_retry_seconds=0.02, telegram_conflict_seconds=0.2, telegram_typing_seconds=0.1)
    made: list[Ostinato] = []

    def make(db: str | None = None, settings: dict[str, Any] | None = None, **telegram_settings: Any) -> Ostinato:
        said = {"token": "env:TEST_BOT_TOKEN", "api": telegram.url, "chats": CHATS, **telegram_settings}
        others = {"tuning": tuning, **(settings or {})}
        chosen = db or f"sqlite:///{tmp_path / 'jobs.db'}"
        app = Ostinato(settings=replace(Settings(), db=chosen, telegram=read_telegram_settings(said), **others))
        made.append(app)
        app.start()
        return app

    yield make
    for app in made:
        app.stop(grace=0)


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
