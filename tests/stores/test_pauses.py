"""A paused schedule whose timing or policy cannot be read any more."""

from __future__ import annotations

import pytest

from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    NOW,
    change,
    draft,
)
from ostinato.testing.store_suite.pauses import DUE, HOLD, due, held, left_out
from tests.stores.places import raw


@pytest.mark.parametrize("column", ["timing", "policy"])
async def test_what_cannot_be_read_any_more_ends_it_without_a_row(store: Store, column: str) -> None:
    id = await held(store)
    await raw(store, f"UPDATE schedules SET {column} = 'moonrise' RETURNING id")
    before = await due(store)
    written = before.policy if column == "timing" else '{"retry":{"max":7}}'
    await store.schedules.put_schedules([draft(timing=before.timing, policy=written)], NOW + HOUR)
    assert await left_out(store) == []
    if column == "timing":
        assert (await due(store)).paused_since == DUE
        await store.schedules.put_schedules([draft(timing="moonrise", policy='{"budget":{"per_day_runs":9}}')], NOW)
        # It stays due: whoever plans its next fire finds out what is wrong, and says so.
        assert ((await due(store)).next_at, (await due(store)).paused_since) == (DUE, None)
        assert await store.schedules.pause_schedule(id, 2, HOLD, NOW)
        assert await store.schedules.change_schedule(id, 2, change(enabled=False, next_at=None), NOW + HOUR)
    assert await raw(store, "SELECT paused_since, paused_reason FROM schedules") == [(None, None)]
    assert await left_out(store) == []
