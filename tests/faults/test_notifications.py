"""A node that is killed between sending a message and recording it: sent again with its key, and never without need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ostinato import Ostinato
from tests.engine.http_server import Server, answer, serving
from tests.engine.notify_fixtures import deliveries, hook, owe
from tests.faults.mail import wait_until
from tests.faults.nodes import nodes

NODE = {"FAULTS_LEASE": "2s", "OSTINATO_NOTIFY_ALLOW": "127.0.0.1"}
PATIENCE = 60


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        server.on("/phone", answer())
        yield server


def keys(server: Server) -> Counter[str]:
    """How often each message came."""
    return Counter(one.headers["ostinato-delivery"] for one in server.received)


def states(app: Ostinato) -> list[str]:
    return [one.state for one in deliveries(app)]


def die_at(place: str, app: Ostinato, url: str, log: Path) -> str:
    """Owe a message to a node that is killed when it comes by that place; answers the message's key."""
    failpoints = f"notifications.{place}=kill"
    with nodes(url, log, **NODE, OSTINATO_FAILPOINTS=failpoints) as dying:
        process = dying.start()
        owed = owe(app)
        assert process.wait(PATIENCE) == -9
    return owed.key


def test_what_a_killed_node_had_sent_and_not_recorded_is_sent_again_with_its_key(
    app: Ostinato, url: str, tmp_path: Path, server: Server
) -> None:
    hook(app, server)
    key = die_at("sent", app, url, tmp_path / "log")
    assert (keys(server), states(app)) == ({key: 1}, ["sending"])
    with nodes(url, tmp_path / "log", **NODE) as living:
        living.start()
        wait_until(lambda: states(app) == ["sent"], "it was not sent again")
    assert keys(server) == {key: 2}


def test_what_a_killed_node_had_recorded_is_never_sent_again(
    app: Ostinato, url: str, tmp_path: Path, server: Server
) -> None:
    hook(app, server)
    key = die_at("recorded", app, url, tmp_path / "log")
    assert states(app) == ["sent"]
    with nodes(url, tmp_path / "log", **NODE) as living:
        living.start()
        newer = owe(app)
        wait_until(lambda: states(app) == ["sent", "sent"], "the newer one was not sent")
    assert keys(server) == {key: 1, newer.key: 1}
