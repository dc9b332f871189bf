"""An app on each kind of database, on a clock that the test moves; and gates at which work waits for the test."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ostinato import Ostinato
from ostinato.config import Settings
from ostinato.engine.node import Engine
from ostinato.testing import FakeClock
from ostinato.tuning import Tuning
from tests.databases import EACH, SHARED, url_of

T = TypeVar("T")

PATIENCE = 60.0
MakeApp = Callable[..., Ostinato]


@pytest.fixture(params=EACH)
def db(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database; each test runs on each kind."""
    return url_of(request, tmp_path)


@pytest.fixture
def shared_db(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that several apps can open: parametrise with `@on_shared`."""
    return url_of(request, tmp_path)


on_shared = pytest.mark.parametrize("shared_db", SHARED, indirect=True)


@pytest.fixture
def make_app(fake_clock: FakeClock, tuning: Tuning) -> Iterator[MakeApp]:
    """Makes apps on the fake clock; all are stopped at the end."""
    made: list[Ostinato] = []

    def make(db: str, *, name: str = "default", clock: FakeClock | None = None, **settings: Any) -> Ostinato:
        settings = {"tuning": tuning, **settings}
        app = Ostinato(settings=replace(Settings(), db=db, **settings), clock=clock or fake_clock, name=name)
        made.append(app)
        return app

    yield make
    for app in made:
        app.stop(grace=0)


@pytest.fixture
def app(db: str, make_app: MakeApp) -> Ostinato:
    return make_app(db)


@pytest.fixture
def memory_app(make_app: MakeApp) -> Ostinato:
    """For what has nothing to do with the database."""
    return make_app("sqlite://:memory:")


class Gate:
    """Work calls `wait`; the test sees that it `entered` and opens the gate."""

    def __init__(self) -> None:
        self._entered = threading.Semaphore(0)
        self._opened = threading.Event()
        self._lock = threading.Lock()
        self.inside = 0
        self.most = 0
        """The most that were inside at once."""

    def wait(self) -> None:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        self._entered.release()
        opened = self._opened.wait(PATIENCE)
        with self._lock:
            self.inside -= 1
        assert opened, "nobody opened the gate"

    def passed(self, value: T) -> T:
        """Wait, and answer the value: for lambdas."""
        self.wait()
        return value

    def entered(self, times: int = 1) -> None:
        """Return when work has come in (so many times) since the last call."""
        for _ in range(times):
            assert self._entered.acquire(timeout=PATIENCE), "no work came to the gate"

    def open(self) -> None:
        self._opened.set()


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.open()


Beside = Callable[[Callable[[], Any]], "Future[Any]"]


@pytest.fixture
def beside() -> Iterator[Beside]:
    """Calls on other threads; all have ended when the test has."""
    with ThreadPoolExecutor() as pool:
        yield pool.submit


def engine_of(app: Ostinato) -> Engine:
    """The started engine of an app."""

    async def itself(engine: Engine) -> Engine:
        return engine

    return app.with_engine(itself)


def eventually(look: Callable[[], T]) -> T:
    """The first answer that is true, of what another thread does in its own time; fails if none comes."""
    deadline = time.monotonic() + PATIENCE
    while not (answer := look()):
        assert time.monotonic() < deadline, f"it never came: the last look saw {answer!r}"
        time.sleep(0.002)
    return answer
