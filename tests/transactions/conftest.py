"""The app whose tasks are enqueued in transactions, and one such task; a module says by `url` where its ledger is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ostinato import Ostinato
from ostinato.config import Settings
from ostinato.tasks import Task
from ostinato.tuning import Tuning
from tests.databases import sqlite_file


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{sqlite_file(request, tmp_path)}"


@pytest.fixture
def tuning() -> Tuning:
    return Tuning()


@pytest.fixture
def app(url: str, tuning: Tuning) -> Iterator[Ostinato]:
    app = Ostinato(settings=Settings(db=url, tz="UTC", tuning=tuning))
    yield app
    app.stop(grace=0)


@pytest.fixture
def greet(app: Ostinato) -> Task[..., Any]:
    @app.task("greet", retry=0)
    def greet(name: str = "") -> str:
        return f"hello {name}"

    return greet
