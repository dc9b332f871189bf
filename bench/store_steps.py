"""The store's operations alone, one after the other, with nothing executed: what batches of a size cost each run."""

from __future__ import annotations

import time

from ostinato.clock import SystemClock
from ostinato.models.ids import NodeId
from ostinato.models.policy import policy_text
from ostinato.models.run import ClaimedRun, Finish, NewRun
from ostinato.models.states import RunState, Trigger
from ostinato.models.work import Function, work_text
from ostinato.service.schedules.drafts import policy_for_enqueue
from ostinato.stores.base import Claim, Store
from ostinato.wiring import open_store

__all__ = ["store_steps"]

INSERT_BATCH = 500


async def store_steps(db: str, n: int, batch: int) -> dict[str, tuple[float, float]]:
    """Step → (microseconds per run, runs per call): insert, claim, finish, and finish fused with the next claim."""
    store = open_store(db, "steps")
    await store.open()
    try:
        await store.lanes.ensure_lanes({"main": 10_000}, ["main"])
        found = {"insert_runs": (await _insert(store, n) / n * 1e6, float(INSERT_BATCH))}
        claiming, finishing = await _apart(store, n, batch)
        found["claim_runs"] = (claiming / n * 1e6, float(batch))
        found["finish_runs"] = (finishing / n * 1e6, float(batch))
        await _insert(store, n)
        found["finish_runs with the next claim"] = (await _fused(store, batch) / n * 1e6, float(batch))
        return found
    finally:
        await store.close()


async def _insert(store: Store, n: int) -> float:
    now = SystemClock().now()
    policy = policy_text(policy_for_enqueue({}))
    run = NewRun(Function.kind, "noop", work_text(Function("noop")), policy, Trigger.API, now, now, "main")
    start = time.perf_counter()
    for first in range(0, n, INSERT_BATCH):
        await store.runs.insert_runs([run] * min(INSERT_BATCH, n - first))
    return time.perf_counter() - start


async def _apart(store: Store, n: int, batch: int) -> tuple[float, float]:
    """Claim, then finish, each in a transaction of its own."""
    claiming = finishing = 0.0
    done = 0
    while done < n:
        start = time.perf_counter()
        claimed = await store.runs.claim_runs(_claim(batch))
        middle = time.perf_counter()
        await store.runs.finish_runs([_finish(run) for run in claimed.runs])
        finishing += time.perf_counter() - middle
        claiming += middle - start
        done += len(claimed.runs)
    return claiming, finishing


async def _fused(store: Store, batch: int) -> float:
    """Finish a batch and claim the next in one transaction, as the engine does."""
    runs = (await store.runs.claim_runs(_claim(batch))).runs
    start = time.perf_counter()
    while runs:
        runs = (await store.runs.finish_runs([_finish(run) for run in runs], _claim(batch))).claimed.runs
    return time.perf_counter() - start


def _claim(room: int) -> Claim:
    now = SystemClock().now()
    return Claim(NodeId("bench"), now, now, room, ["noop"], '["noop"]')


def _finish(run: ClaimedRun) -> Finish:
    now = SystemClock().now()
    return Finish(run.id, run.token, RunState.SUCCEEDED, now, now)
