"""The pytest plugin: fixtures `fake_clock` and `ostinato_app`. Every pytest run of every user loads this file, so it
imports nothing of Ostinato before a fixture is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ostinato.app import Ostinato
    from ostinato.testing.fake_clock import FakeClock

__all__ = ["fake_clock", "ostinato_app"]


@pytest.fixture
def fake_clock() -> FakeClock:
    """A clock at 2026-01-01 00:00 UTC that stands still until the test moves it."""
    from ostinato.testing.fake_clock import FakeClock

    return FakeClock()


@pytest.fixture
def ostinato_app(fake_clock: FakeClock) -> Iterator[Ostinato]:
    """An app in memory on the fake clock, in UTC, with the default settings; stopped after the test."""
    from ostinato.app import Ostinato
    from ostinato.config import Settings

    app = Ostinato(settings=Settings(db="sqlite://:memory:"), clock=fake_clock)
    yield app
    app.stop(grace=0)
