"""What retention leaves in the tables."""

from __future__ import annotations

from ostinato.models.ids import NodeId
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    NOW,
    beat,
)
from ostinato.testing.store_suite.upkeep import DAY, ended, left, sweep
from tests.stores.places import raw


async def test_ended_runs_go_when_they_are_older_than_their_policy_keeps(store: Store) -> None:
    default = await ended(store, NOW, NOW + DAY)
    short = await ended(store, NOW + 29 * DAY, NOW + 30 * DAY, policy='{"keep":{"age":"1d"}}')
    forever = await ended(store, NOW - 300 * DAY, policy='{"keep":{"age":null}}')
    runs, _, _ = await sweep(store, NOW + 30 * DAY + HOUR)
    assert runs == 2
    assert await left(store) == sorted([default[1], short[1], *forever])
    for table in ("attempts", "output"):
        assert {row[0] for row in await raw(store, f"SELECT run_id FROM {table}")} == set(await left(store))


async def test_what_a_node_has_counted_goes_as_soon_as_it_is_lost(store: Store) -> None:
    for node in ("lost", "alive"):
        await store.nodes.renew(beat(node, statistics='{"runs":{}}'))
    assert await store.nodes.read_statistics() == {"lost": {"runs": {}}, "alive": {"runs": {}}}
    await store.runs.stale_runs([(NodeId("lost"), NOW)], NOW + HOUR)
    assert await store.nodes.read_statistics() == {"alive": {"runs": {}}}
    assert await raw(store, "SELECT statistics FROM nodes WHERE id = 'lost'") == [("{}",)]
