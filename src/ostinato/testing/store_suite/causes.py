"""Why a run did not simply succeed, as a word: written, kept, and listed by."""

from __future__ import annotations

from ostinato.models.run import INTERRUPTED, Ending, RunFilter
from ostinato.models.states import Cause, RunState
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import NOW, claim, claim_one, finish, new_run, retry


async def test_the_words_of_an_interrupt_do_not_make_one(store: Store) -> None:
    await store.runs.insert_runs([new_run(), new_run()])
    words = Ending(Cause.CANCELLED, f"{INTERRUPTED.reason}, as one wrote")
    run = await claim_one(store, room=1)
    await store.runs.cancel_runs([run.id], words, NOW)
    await store.runs.finish_runs([retry(run)])
    (queued,) = await store.runs.list_runs(RunFilter(states=(RunState.QUEUED,)))
    await store.runs.cancel_runs([queued.id], words, NOW)
    assert [(one.state, one.cause) for one in await store.runs.list_runs(RunFilter())] == [
        (RunState.CANCELLED, Cause.CANCELLED)
    ] * 2


async def test_a_run_keeps_its_cause_until_it_starts_anew_and_a_success_has_none(store: Store) -> None:
    await store.runs.insert_runs([new_run()])
    run = await claim_one(store)
    await store.runs.finish_runs([retry(run, ready_at=NOW, cause=Cause.TIMED_OUT, reason="timed out")])
    (waits,) = await store.runs.list_runs(RunFilter())
    assert (waits.state, waits.cause) == (RunState.QUEUED, Cause.TIMED_OUT)
    again = await claim_one(store)
    (runs,) = await store.runs.list_runs(RunFilter())
    assert (runs.state, runs.cause, runs.reason) == (RunState.RUNNING, None, None)
    await store.runs.finish_runs([finish(again)])
    (done,) = await store.runs.list_runs(RunFilter())
    assert (done.state, done.cause) == (RunState.SUCCEEDED, None)


async def test_a_run_that_succeeded_with_errors_has_succeeded_and_says_so(store: Store) -> None:
    await store.runs.insert_runs([new_run(), new_run()])
    plain, run = (await store.runs.claim_runs(claim(room=2))).runs
    totals = '{"copied":120.0,"errors":3,"share":0.5}'
    errors = finish(run, cause=Cause.ERRORS, reason="3 errors", totals=totals)
    await store.runs.finish_runs([finish(plain), errors])
    (found,) = await store.runs.list_runs(RunFilter(causes=(Cause.ERRORS,)))
    assert (found.id, found.state, found.cause, found.reason) == (run.id, RunState.SUCCEEDED, Cause.ERRORS, "3 errors")
    assert str(dict(found.totals)) == "{'copied': 120, 'errors': 3, 'share': 0.5}"
    assert [one.id for one in await store.runs.list_runs(RunFilter(states=(RunState.SUCCEEDED,)))] == [run.id, plain.id]


async def test_runs_are_listed_by_their_causes(store: Store) -> None:
    await store.runs.insert_runs([new_run() for _ in range(4)])
    runs = (await store.runs.claim_runs(claim(room=4))).runs
    causes = (Cause.TIMED_OUT, None, Cause.RAISED, Cause.TIMED_OUT)
    states = [RunState.SUCCEEDED if cause is None else RunState.FAILED for cause in causes]
    ends = [finish(run, state, cause=cause) for run, state, cause in zip(runs, states, causes, strict=True)]
    await store.runs.finish_runs(ends)
    ids = [run.id for run in runs]

    async def listed(*wanted: Cause, **more: RunState) -> list[int]:
        found = await store.runs.list_runs(RunFilter(causes=wanted, states=tuple(more.values())))
        return [ids.index(run.id) for run in found]

    assert await listed(Cause.TIMED_OUT) == [3, 0]
    assert await listed(Cause.TIMED_OUT, Cause.RAISED) == [3, 2, 0]
    assert await listed(Cause.TIMED_OUT, state=RunState.CANCELLED) == []
    assert await listed(Cause.OVERLAP) == []
