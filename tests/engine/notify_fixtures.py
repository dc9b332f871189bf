"""Fixtures of the tests of the notifier: a server to send to, an app that may, and what is owed and became of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ostinato import Ostinato
from ostinato.models.notification import Channel, ChannelDraft, Delivery, DeliveryFilter, NoticeKind
from tests.engine.conftest import MakeApp
from tests.engine.http_server import Handler, Received, Server, answer, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def app(db: str, make_app: MakeApp) -> Ostinato:
    """On each database; it may send to this machine."""
    return make_app(db, notify_allow=("127.0.0.1",))


@pytest.fixture
def memory_app(make_app: MakeApp) -> Ostinato:
    """The same in memory alone."""
    return make_app("sqlite://:memory:", notify_allow=("127.0.0.1",))


def channel(app: Ostinato, url: str, name: str = "phone", **fields: Any) -> None:
    """Add a channel to this URL."""
    draft = ChannelDraft(name, url, **fields)
    app.with_engine(lambda engine: engine.store.notifications.put_channel(draft, engine.clock.now()))


def hook(app: Ostinato, server: Server, handler: Handler | None = None, name: str = "phone", **fields: Any) -> None:
    """Add a channel that posts to a path of its own on the server."""
    url = server.on(f"/{name}", handler or answer())
    channel(app, url.replace("http://", "json://"), name, **fields)


def owe(
    app: Ostinato, name: str = "phone", kind: NoticeKind = NoticeKind.FAILED, subject: str = "nightly", **data: Any
) -> Delivery:
    """Owe a channel a message."""
    return app.with_engine(
        lambda engine: engine.store.notifications.add_delivery(name, kind, subject, data, engine.clock.now())
    )


def deliveries(app: Ostinato) -> list[Delivery]:
    """All of them, the oldest first."""
    listed = app.with_engine(lambda engine: engine.store.notifications.list_deliveries(DeliveryFilter(limit=1000)))
    return listed[::-1]


def states(app: Ostinato) -> list[str]:
    """What has become of each, the oldest first."""
    return [one.state for one in deliveries(app)]


def channel_of(app: Ostinato, name: str = "phone") -> Channel:
    (found,) = app.with_engine(lambda engine: engine.store.notifications.list_channels([name]))
    return found


def said(received: Received) -> dict[str, Any]:
    """What apprise posted."""
    body: dict[str, Any] = json.loads(received.body)
    return body
