"""A server for each test of the page, and how a scenario is played against it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.browser.scenario import play as play_scenario
from tests.browser.server import Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """`ostinato up` in an empty folder, in the zone Europe/Berlin."""
    folder = tmp_path / "server"
    folder.mkdir()
    with Server(folder) as started:
        yield started


@pytest.fixture
def play(server: Server, tmp_path: Path) -> Callable[..., None]:
    """`play(name)`: the scenario web/browser/NAME.spec.mjs against the server of this test."""

    def on_this_server(name: str, **environment: str) -> None:
        play_scenario(name, server, tmp_path / "browser", **environment)

    return on_this_server
