"""The trace of a run: kept whichever way the run comes in, given to whoever claims it, and written by an end once."""

from __future__ import annotations

from typing import Any

from ostinato.clock import SECOND
from ostinato.models.ids import NodeId
from ostinato.models.outbox import Arrival
from ostinato.models.states import RunState
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    MINUTE,
    NOW,
    all_runs,
    claim,
    claim_one,
    finish,
    new_run,
    plan,
    put,
    retry,
    scheduled_run,
)
from ostinato.testing.store_suite.mailbox import send

_QUIET = SECOND


def trace(number: int) -> str:
    """A trace whose id ends with this number."""
    return f"00-{number:032x}-00000000000000ab-01 vendor=a b"


def trace_id(number: int) -> str:
    return f"{number:032x}"


async def claimed_traces(store: Store) -> list[str | None]:
    return [run.trace for run in (await store.runs.claim_runs(claim(now=NOW + 10 * MINUTE, room=100))).runs]


async def test_a_run_is_claimed_with_its_trace_and_one_without_has_none(store: Store) -> None:
    given: list[str | None] = [trace(1), None, trace(2)]
    await store.runs.insert_runs([new_run(trace=one, due_at=NOW + place) for place, one in enumerate(given)])
    assert [run.trace_id for run in await all_runs(store)] == [trace_id(1), None, trace_id(2)]
    assert await claimed_traces(store) == given


async def test_a_trace_is_kept_of_many_of_fires_of_keys_of_triggers_and_of_what_starts_at_once(store: Store) -> None:
    await store.runs.insert_runs([new_run(trace=trace(1)) for _ in range(45)])
    assert [run.trace_id for run in await all_runs(store)] == [trace_id(1)] * 45
    id = await put(store)
    fired = scheduled_run(id, trace=trace(2))
    await store.schedules.record_fires([plan(id, runs=(fired,))], NOW)
    await store.runs.insert_runs([new_run(key="k", trace=trace(3))])
    await store.runs.trigger_run(scheduled_run(id, NOW, trace=trace(4)), None)
    started = await store.runs.start_run(new_run(trace=trace(5)), NodeId("here"), NOW)
    await store.outbox.take([Arrival("row", new_run(trace=trace(6)), NOW)], NOW)
    await store.outbox.take([Arrival("other", new_run(trace=trace(7), session="s"), NOW)], NOW)
    shown = [run.trace_id for run in (await all_runs(store))[45:]]
    assert shown == [trace_id(number) for number in range(2, 8)]
    assert started.trace == trace(5)


async def test_a_run_that_is_repeated_belongs_to_the_trace_of_whoever_asks(store: Store) -> None:
    await store.runs.insert_runs([new_run(trace=trace(1))])
    run = await claim_one(store)
    await store.runs.finish_runs([finish(run)])
    await store.runs.repeat_run(run.id, NOW, None, trace(2))
    await store.runs.repeat_run(run.id, NOW)
    assert [one.trace_id for one in await all_runs(store)] == [trace_id(1), trace_id(2), None]


async def test_the_next_attempt_has_the_same_trace_and_so_has_one_that_is_rescued(store: Store) -> None:
    await store.runs.insert_runs([new_run(trace=trace(1))])
    await store.runs.finish_runs([retry(await claim_one(store))])
    again = await claim_one(store, now=NOW + MINUTE, node="lost")
    (rescued,) = (await store.runs.stale_runs([], NOW + MINUTE)).runs
    assert (again.trace, rescued.trace, rescued.attempt) == (trace(1), trace(1), 2)


async def test_a_trace_that_begins_with_an_attempt_is_kept_from_then_on(store: Store) -> None:
    await store.runs.insert_runs([new_run(due_at=NOW + place) for place in range(3)])
    first, second, third = (await store.runs.claim_runs(claim())).runs
    begun: dict[str, Any] = {"trace": trace(7), "begins_trace": True}
    await store.runs.finish_runs([retry(first, **begun), finish(second, **begun), finish(third, trace=trace(8))])
    assert [run.trace_id for run in await all_runs(store)] == [trace_id(7), trace_id(7), None]
    again = await claim_one(store, now=NOW + MINUTE)
    await store.runs.finish_runs([finish(again, trace=trace(9), begins_trace=True)])
    run = await store.runs.get_run(again.id)
    assert run is not None
    assert (run.trace_id, run.state) == (trace_id(7), RunState.SUCCEEDED), "what it has stays"


async def test_what_a_burst_gathers_has_the_traces_of_all_its_messages(store: Store) -> None:
    await send(store, "a", debounce=_QUIET)
    await send(store, "b", debounce=_QUIET, trace=trace(1))
    await send(store, "c", debounce=_QUIET)
    await send(store, "d", debounce=_QUIET, trace=trace(2))
    carrier, *joined = await all_runs(store)
    assert [run.trace_id for run in joined] == [trace_id(1), None, trace_id(2)]
    assert carrier.trace_id == trace_id(1)
    assert await claimed_traces(store) == [f"{trace(1)}\n{trace(2)}"]


async def test_the_traces_of_a_burst_do_not_grow_without_end(store: Store) -> None:
    for number in range(150):
        await send(store, number, debounce=_QUIET, trace=trace(number + 1))
    (kept,) = await claimed_traces(store)
    assert kept is not None
    assert kept.startswith(trace(1))
    assert 7_000 < len(kept) < 9_000


async def test_a_row_whose_trace_is_none_is_shown_without_one(store: Store) -> None:
    await store.runs.insert_runs([new_run(trace="nonsense"), new_run(trace="")])
    assert [run.trace_id for run in await all_runs(store)] == [None, None]
