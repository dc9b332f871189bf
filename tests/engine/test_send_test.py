"""A test of a channel: a node sends it, or the process that asks, if no node lives."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from ostinato import Ostinato
from ostinato.clock import SECOND, Micros
from ostinato.engine.node import Engine
from ostinato.models.ids import NodeId
from ostinato.models.node import Node
from ostinato.models.notification import Delivery, DeliveryFilter, DeliveryState
from ostinato.stores.base import Settled
from ostinato.testing.store_suite.builders import beat
from ostinato.tuning import Tuning
from ostinato.wiring import Container
from tests.engine.conftest import PATIENCE, MakeApp
from tests.engine.http_server import Server, answer
from tests.engine.notify_fixtures import app, deliveries, hook, owe, said, server

__all__ = ["app", "server"]


def send_test(app: Ostinato, channel: str = "phone") -> Delivery:
    return app._host.run(lambda container: container.send_test(channel))


def test_without_a_node_the_process_that_asks_sends_it(app: Ostinato, server: Server) -> None:
    hook(app, server)
    hook(app, server, name="mail")
    owe(app, "mail")
    sent = send_test(app)
    assert (sent.state, sent.error) == (DeliveryState.SENT, None)
    assert [said(one)["title"] for one in server.received] == ["Test of the channel phone"]
    assert [one.state for one in deliveries(app)] == ["pending", "sent"], "what others are owed is left to nodes"


def test_a_started_engine_sends_it(app: Ostinato, server: Server) -> None:
    hook(app, server)
    app.start()
    assert send_test(app).state is DeliveryState.SENT


def test_a_node_of_another_process_sends_it(make_app: MakeApp, server: Server, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    node, asking = make_app(url, notify_allow=("127.0.0.1",)), make_app(url)
    hook(node, server)
    node.start()
    assert send_test(asking).state is DeliveryState.SENT, "the asking process is not allowed to call it"


def test_an_engine_that_only_executes_is_not_waited_for(make_app: MakeApp, server: Server, tuning: Tuning) -> None:
    """As that of `ostinato exec`, which its own work asks."""
    app = make_app("sqlite://:memory:", notify_allow=("private",), tuning=replace(tuning, send_test_seconds=PATIENCE))
    hook(app, server)

    async def inside(container: Container) -> Delivery:
        container.engine = container.make_engine()
        await container.engine.prepare(takes_work=False)
        try:
            return await container.send_test("phone")
        finally:
            await container.engine.stop(grace=0)
            container.engine = None

    assert app._host.run(inside).state is DeliveryState.SENT


def test_a_node_that_is_lost_meanwhile_is_not_waited_for(app: Ostinato, server: Server) -> None:
    hook(app, server)

    async def beside(container: Container) -> Delivery:
        nodes = container.store.nodes
        await nodes.renew(replace(beat("killed"), now=app.clock.now(), lease_until=app.clock.now() + SECOND))
        asking = asyncio.ensure_future(container.send_test("phone"))
        listed, list_nodes = asyncio.Event(), nodes.list_nodes

        async def listing(now: Micros) -> list[Node]:
            listed.set()
            return await list_nodes(now)

        nodes.list_nodes = listing  # type: ignore[method-assign]
        await listed.wait()
        app.clock.advance("2s")  # type: ignore[attr-defined]
        return await asking

    assert app._host.run(beside).state is DeliveryState.SENT


def test_a_message_under_way_on_a_node_that_drains_is_waited_for(app: Ostinato, server: Server) -> None:
    hook(app, server)
    owe(app)

    async def beside(container: Container) -> tuple[Delivery, list[int]]:
        notifications, now = container.store.notifications, app.clock.now()
        node = NodeId("leaving")
        await container.store.nodes.renew(replace(beat(node, draining=True), now=now, lease_until=now + 60 * SECOND))
        (parcel,) = await notifications.claim_deliveries(node, now, [], 100)
        made, make_engine, seen = [0], container.make_engine, []

        def counted() -> Engine:
            made[0] += 1
            return make_engine()

        container.make_engine = counted  # type: ignore[method-assign]
        looked, list_deliveries = asyncio.Event(), notifications.list_deliveries

        async def listing(wanted: DeliveryFilter) -> list[Delivery]:
            seen.append(wanted)
            if len(seen) > 8:
                looked.set()
            return await list_deliveries(wanted)

        notifications.list_deliveries = listing  # type: ignore[method-assign]
        asking = asyncio.ensure_future(container.send_test("phone"))
        await looked.wait()
        meanwhile = made[0]
        ids = [one.id for one in parcel.deliveries]
        assert await notifications.settle_delivery(node, Settled("phone", parcel.key, ids, now))
        return await asking, [meanwhile, made[0]]

    sent, engines = app._host.run(beside)
    assert (sent.state, engines) == (DeliveryState.SENT, [0, 1])


def test_a_failure_says_why_at_once(app: Ostinato, server: Server) -> None:
    hook(app, server, answer("403 Forbidden"))
    failed = send_test(app)
    assert failed.state is DeliveryState.FAILED
    assert "403" in (failed.error or "")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("json://127.0.0.1:1/", None),
        ("json://10.0.0.1/", "10.0.0.1, which is a private address"),
        ("mailto://ada:secret@example.org?smtp=10.0.0.1", "10.0.0.1, which is a private address"),
        ("slack://not-enough", "apprise cannot use slack://***"),
        ("nothing://here", "apprise cannot use nothing://***"),
        ("just text", "apprise cannot use ***"),
        ("env:NO_SUCH_VARIABLE", "the engine's environment has no NO_SUCH_VARIABLE"),
        ("telegram://42", "no Telegram bot"),
    ],
)
def test_a_url_is_checked_without_sending_anything(make_app: MakeApp, url: str, problem: str | None) -> None:
    app = make_app("sqlite://:memory:", notify_allow=("127.0.0.1",))
    found = app._host.run(lambda container: container.check_channel(url))
    assert found == problem if problem is None else problem in (found or "")
