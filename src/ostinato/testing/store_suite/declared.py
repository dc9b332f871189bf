"""What code declares: for each field what the code changed is obeyed, and what a person changed stays. The rules
themselves are pure (`stores/drafts.py`); here is what else a store does with them."""

from __future__ import annotations

from ostinato.clock import from_micros
from ostinato.models.schedule import Schedule
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import HOUR, MINUTE, NOW, all_runs, change, draft, plan, put

CODE = {"owner": "code", "origin": "app"}


async def get(store: Store) -> Schedule:
    found = await store.schedules.get_schedule("report")
    assert found is not None
    return found


async def test_what_a_person_edits_stays_when_the_same_code_is_declared_again(store: Store) -> None:
    id = await put(store, **CODE)
    edited = draft(owner="code", timing="every 7m", policy='{"timeout":"9m"}', by="ada")
    assert await store.schedules.edit_schedule(edited, id, 1, NOW + HOUR) == 2
    await put(store, **CODE)
    kept = await get(store)
    assert (kept.timing, str(kept.policy.timeout), kept.version) == ("every 7m", "0:09:00", 2)
    assert [(one.field, one.by, one.at) for one in kept.changes] == [
        ("timeout", "ada", from_micros(NOW + HOUR)),
        ("timing", "ada", from_micros(NOW + HOUR)),
    ]
    await put(store, **CODE, timing="every 9m")
    changed = await get(store)
    assert (changed.timing, [one.field for one in changed.changes]) == ("every 9m", ["timeout"])


async def test_a_persons_switch_is_kept_with_its_record(store: Store) -> None:
    id = await put(store, **CODE)
    overrides = '{"enabled":{"by":"ada","at":1800000000000000}}'
    switched = change(enabled=False, next_at=None, overrides=overrides)
    assert await store.schedules.change_schedule(id, 1, switched, NOW)
    await put(store, **CODE)
    kept = await get(store)
    assert (kept.enabled, [(one.field, one.by, one.code) for one in kept.changes]) == (
        False,
        [("enabled", "ada", "on")],
    )


async def test_code_that_switches_off_takes_back_what_was_recorded_ahead(store: Store) -> None:
    id = await put(store, **CODE)
    await store.schedules.record_fires([plan(id)], NOW)
    assert len(await all_runs(store)) == 1
    await put(store, **CODE, enabled=False)
    off = await get(store)
    assert (off.enabled, off.next_run_at, off.next_run_reason) == (False, None, "disabled")
    assert await all_runs(store) == []
    await put(store, **CODE, anchor_at=NOW + HOUR, next_at=NOW + HOUR + MINUTE)
    assert (await get(store)).next_run_at == from_micros(NOW + HOUR + MINUTE)


async def test_what_a_person_edits_of_an_orphan_leaves_it_one(store: Store) -> None:
    id = await put(store, **CODE)
    await store.schedules.mark_orphans("app", [], NOW)
    assert await store.schedules.edit_schedule(draft(owner="code", note="why"), id, 2, NOW) == 3
    orphan = await get(store)
    assert (orphan.orphaned, orphan.next_run_at, orphan.note) == (True, None, "why")
