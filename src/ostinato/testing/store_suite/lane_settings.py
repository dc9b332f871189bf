"""Limits of lanes by settings: while a node has one, and what there is after it."""

from __future__ import annotations

from ostinato.models.ids import NodeId
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import HOUR, MINUTE, NOW, beat


async def test_a_lane_has_its_limit_again_when_no_living_node_has_the_setting(store: Store) -> None:
    limits, first, second = {"main": 30, "mail": 2}, (NodeId("first"), NOW), (NodeId("second"), NOW + MINUTE)
    await store.lanes.ensure_lanes({"main": 30}, [])
    await store.lanes.set_lane("mail", 9, None)
    await store.lanes.ensure_lanes(limits, ["mail"], None, first)
    await store.nodes.renew(beat("first", lease_until=NOW + HOUR))
    assert await limit_of(store, "mail") == 2
    await store.lanes.ensure_lanes({"main": 30}, [], None, second)
    assert await limit_of(store, "mail") == 2, "the first node lives"
    await store.lanes.ensure_lanes(limits, ["mail"], None, first)
    await store.nodes.leave(NodeId("first"))
    await store.lanes.ensure_lanes({"main": 30}, [])
    assert await limit_of(store, "mail") == 2, "only an engine that starts decides it"
    await store.lanes.ensure_lanes({"main": 30}, [], None, second)
    assert await limit_of(store, "mail") == 9


async def test_what_somebody_sets_while_a_setting_holds_is_what_there_is_after_it(store: Store) -> None:
    node = (NodeId("one"), NOW)
    await store.lanes.ensure_lanes({"main": 3}, ["main"], None, node)
    await store.lanes.set_lane("main", 7, None)
    await store.lanes.ensure_lanes({"main": 3}, ["main"], None, node)
    assert await limit_of(store, "main") == 3
    await store.lanes.ensure_lanes({"main": 30}, [], None, node)
    assert await limit_of(store, "main") == 7


async def test_a_default_lane_that_was_made_by_a_setting_has_its_default_after_it(store: Store) -> None:
    node = (NodeId("one"), NOW)
    await store.lanes.ensure_lanes({"main": 3}, ["main"], None, node)
    await store.lanes.ensure_lanes({"main": 30}, [], None, node)
    assert await limit_of(store, "main") == 30


async def limit_of(store: Store, name: str) -> int:
    return {lane.name: lane.limit for lane in await store.lanes.list_lanes()}[name]
