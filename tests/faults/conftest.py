"""A database that several processes open, and an app that reads what they leave there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ostinato import Ostinato
from tests.databases import SHARED, url_of


@pytest.fixture(params=SHARED)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request, tmp_path)


@pytest.fixture
def app(url: str) -> Iterator[Ostinato]:
    app = Ostinato(url, name="reader")
    yield app
    app.stop()
