"""A server for each test of the page, a browser for all of a worker, and how a scenario is played with both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.browser.scenario import Place, shared_browser
from tests.browser.scenario import play as play_scenario
from tests.browser.server import Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """`ostinato up` in an empty folder, in the zone Europe/Berlin."""
    folder = tmp_path / "server"
    folder.mkdir()
    with Server(folder) as started:
        yield started


@pytest.fixture(scope="session")
def browser() -> Iterator[str]:
    """Where the browser of this worker is reached: each scenario has a context of its own in it, which ends with it."""
    with shared_browser() as address:
        yield address


@pytest.fixture
def play(browser: str, tmp_path: Path) -> Callable[..., None]:
    """`play(name, server)`: the scenario web/browser/NAME.spec.mjs against this server."""

    def play(name: str, server: Place, **environment: str) -> None:
        play_scenario(name, server, tmp_path / "browser", browser, **environment)

    return play
