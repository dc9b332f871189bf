"""Causes of runs that an older or a newer version wrote."""

from __future__ import annotations

import pytest

from ostinato.models.run import INTERRUPTED, RunFilter
from ostinato.models.states import Cause, RunState
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import NOW, claim_one, finish, new_run, retry
from tests.stores.places import StorePlace, opened, raw
from tests.stores.test_migrations import OLD_RUN, OLD_SCHEDULE, bring_to

OLD = [
    ("missed", "function", "due while no engine was running, and catch_up is none", "downtime"),
    ("missed", "function", "due while no engine was running, and catch_up is all, but this was outside of its window "
     "or above its cap", "outside_window"),
    ("expired", "function", "waited longer than its max age before it could start", "expired"),
    ("superseded", "function", "interrupted by a newer message of its session", "interrupted"),
    ("skipped", "function", "run 3 was still active (overlap is skip)", "overlap"),
    ("skipped", "function", "check failed: disk: full", "check"),
    ("skipped", "function", "the gate said no: nothing new", "gate"),
    ("skipped", "agent", "budget: $1 of $1 is spent", "budget"),
    ("skipped", "function", "debounced: its payload goes with run 3", "debounced"),
    ("skipped", "function", "dropped: its session''s queue was full and a newer message came", "dropped"),
    ("skipped", "function", "stale: it was sent before its session was stopped", "stale"),
    ("cancelled", "function", "cancelled by a person", "cancelled"),
    ("cancelled", "function", "lane cleared", "lane_cleared"),
    ("cancelled", "function", "its session was stopped; it did not end when told to and may still be running",
     "session_stopped"),
    ("cancelled", "function", "replaced by a newer due time (overlap is cancel_running)", "overlap"),
    ("cancelled", "function", "its schedule is to be removed", "removed"),
    ("cancelled", "function", "its schedule is wrong, says Bob", "cancelled"),
    ("failed", "function", "ValueError: boom (attempt 3)", "raised"),
    ("failed", "function", "returned a set that is not JSON", "aborted"),
    ("failed", "function", "timed out after 5m", "timed_out"),
    ("failed", "function", "node n1 was lost while it ran this (attempt 2)", "node_lost"),
    ("failed", "function", "its node was stopped while it ran", "cut_off"),
    ("failed", "function", "this run cannot be executed: task ''x'' is not registered here; known tasks: none",
     "unknown_task"),
    ("failed", "function", "its process exited with status 1 before the function returned", "crashed"),
    ("failed", "shell", "exited with status 1: no such file", "exit_status"),
    ("failed", "shell", "there is no program ''nothing''", "not_started"),
    ("failed", "http", "HTTP 500 Internal Server Error from http://x/ (expected 200)", "http_status"),
    ("failed", "http", "no connection to http://x/", "no_answer"),
    ("failed", "http", "http://x/ resolves to 10.0.0.1, which is a private address", "request_refused"),
    ("failed", "agent", "claude is not logged in (run /login): log in", "logged_out"),
    ("failed", "agent", "claude exited with status 1", "agent_error"),
    ("succeeded", "function", "", None),
]  # fmt: skip


async def test_old_rows_get_their_cause_by_what_they_say(shared_place: StorePlace) -> None:
    bring_to(shared_place, 9)
    error = {"raised": "'Traceback'"}
    shared_place.execute(
        "".join(
            "INSERT INTO runs (kind, work, policy, state, trigger, due_at, ready_at, lane, finished_at, reason, error) "
            f"VALUES ('{kind}', '{{}}', '{{}}', '{state}', 'api', 1, 1, 'main', 2, '{reason}', "
            f"{error.get(cause or '', 'NULL')});"
            for state, kind, reason, cause in OLD
        )
    )
    async with opened(shared_place.store()) as store:
        rows = await raw(store, "SELECT state, kind, cause FROM runs ORDER BY id")
        assert rows == [(state, kind, cause) for state, kind, _, cause in OLD]
        assert await store.upkeep.check() == []


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (INTERRUPTED.reason, "superseded"),
        (f"{INTERRUPTED.reason}, as one wrote", "cancelled"),
        ("enough", "cancelled"),
    ],
)
async def test_what_an_older_version_told_to_stop_ends_as_it_meant(
    shared_place: StorePlace, words: str, state: str
) -> None:
    bring_to(shared_place, 9)
    yes = "1" if shared_place.kind == "sqlite" else "true"
    shared_place.execute(
        OLD_SCHEDULE.replace("{yes}", yes)
        + OLD_RUN % ("running", 1, "'node-1'", 1, 1, 1)
        + f"UPDATE runs SET cancel = '{words}';"
    )
    async with opened(shared_place.store()) as store:
        (run,) = (await store.runs.stale_runs([], NOW)).runs
        await store.runs.finish_runs([retry(run)])
        (shown,) = await store.runs.list_runs(RunFilter())
        assert (shown.state, shown.reason) == (state, words)


async def test_a_cause_that_this_version_does_not_know_hides_no_run(store: Store) -> None:
    await store.runs.insert_runs([new_run()])
    await store.runs.finish_runs([finish(await claim_one(store), RunState.FAILED, reason="in other words")])
    await raw(store, "UPDATE runs SET cause = 'of_tomorrow'")
    (run,) = await store.runs.list_runs(RunFilter())
    assert (run.state, run.cause, run.reason) == (RunState.FAILED, Cause.NOT_LOADABLE, "in other words")


OLD_TOTALS = [
    ("succeeded", '{"copied":5,"errors":3}', "errors", "3 errors"),
    ("succeeded", '{"errors":1.0}', "errors", "1 error"),
    ("succeeded", '{"errors":2.50}', "errors", "2.5 errors"),
    ("succeeded", '{"errors":1000000.0}', "errors", "1000000 errors"),
    ("succeeded", '{"errors":0}', None, None),
    ("succeeded", '{"errors":-1}', None, None),
    ("succeeded", '{"copied":5}', None, None),
    ("succeeded", '{"errors":"many"}', None, None),
    ("succeeded", '{"errors":', None, None),
    ("succeeded", '["errors"]', None, None),
    ("failed", '{"errors":3}', "raised", None),
]


async def test_old_runs_that_counted_errors_have_succeeded_with_errors(shared_place: StorePlace) -> None:
    bring_to(shared_place, 14)
    shared_place.execute(
        "".join(
            "INSERT INTO runs (kind, work, policy, state, trigger, due_at, ready_at, lane, finished_at, totals, cause) "
            f"VALUES ('function', '{{}}', '{{}}', '{state}', 'api', 1, 1, 'main', 2, '{totals}', "
            f"{'NULL' if state == 'succeeded' else repr(cause)});"
            for state, totals, cause, _ in OLD_TOTALS
        )
    )
    async with opened(shared_place.store()) as store:
        rows = await raw(store, "SELECT state, totals, cause, reason FROM runs ORDER BY id")
        assert rows == OLD_TOTALS
