"""Each column of a batch of new runs."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.models.states import RunState
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    NOW,
    new_run,
    put,
)
from tests.stores.places import raw


@pytest.mark.parametrize(
    "field",
    [
        {"state": RunState.MISSED},
        {"reason": "because"},
        {"schedule_id": 1},
        {"last_due_at": NOW + 3},
        {"count": 4},
        {"priority": -5},
        {"expires_at": NOW + HOUR},
        {"session": "talk"},
        {"waiting": True},
        {"mode": "queue"},
        {"burst": True},
        {"later": True},
        {"key": "k"},
        {"project": "site"},
    ],
    ids=lambda field: next(iter(field)),
)
async def test_a_field_that_one_run_of_a_batch_has_is_written_for_it_and_for_no_other(
    store: Store, field: dict[str, Any]
) -> None:
    await put(store)
    await store.runs.insert_runs([new_run(), new_run(**field), new_run()])
    ((name, value),) = field.items()
    default = getattr(new_run(), name)
    columns = await raw(store, f"SELECT {name}, finished_at FROM runs ORDER BY id")
    ended = NOW if name == "state" else None
    assert columns == [(default, None), (value, ended), (default, None)]
