"""Leases of processes that are engines, and of those that are none."""

from __future__ import annotations

from ostinato.models.ids import NodeId
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import MINUTE, NOW, beat, new_run


async def test_a_process_without_slots_has_a_lease_and_is_no_node(store: Store) -> None:
    await store.nodes.renew(beat("engine"))
    await store.nodes.renew(beat("hand", now=NOW + 1, slots=0, tasks=()))
    assert [node.id for node in await store.nodes.list_nodes(NOW)] == ["engine"]
    assert sorted(await store.nodes.signs_of_life()) == [("engine", NOW), ("hand", NOW + 1)]


async def test_what_such_a_process_ran_is_stale_when_it_is_lost(store: Store) -> None:
    await store.nodes.renew(beat("engine"))
    await store.nodes.renew(beat("hand", slots=0, tasks=()))
    started = await store.runs.start_run(new_run(), NodeId("hand"), NOW)
    assert (await store.runs.stale_runs([], NOW + MINUTE)).runs == []
    stale = (await store.runs.stale_runs([(NodeId("hand"), NOW)], NOW + MINUTE)).runs
    assert [run.id for run in stale] == [started.id]
    assert await store.nodes.signs_of_life() == [("engine", NOW)]
    assert not (await store.nodes.renew(beat("hand", now=NOW + MINUTE, slots=0, tasks=()))).held


async def test_a_name_that_another_process_has_is_refused(store: Store) -> None:
    """Two containers may have one host name and one process id; a name made by chance may be the same."""
    assert (await store.nodes.renew(beat("twin"))).held
    assert not (await store.nodes.renew(beat("twin", now=NOW + 1, started_at=NOW + 1))).held
    assert not (await store.nodes.renew(beat("twin", now=NOW + 1, pid=2))).held
    assert (await store.nodes.renew(beat("twin", now=NOW + 2))).held
    assert await store.nodes.signs_of_life() == [("twin", NOW + 2)]
