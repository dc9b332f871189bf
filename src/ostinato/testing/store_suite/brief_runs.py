"""Runs in lists: what is long in one is cut, and says so; a run for itself is whole."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from ostinato.models.run import Run, RunFilter
from ostinato.models.schedule import ScheduleFilter
from ostinato.models.states import RunState, Trigger
from ostinato.models.work import Agent, Function, Http, Shell, Unreadable, Work, work_text
from ostinato.stores.base import Store
from ostinato.stores.brief import LONGEST, json_beginning
from ostinato.testing.store_suite.builders import HOUR, MINUTE, NOW, claim_one, finish, new_run, put, retry

LONG = "ä" * 100_000
BEGINS = "ä" * (LONGEST - 200)


async def insert(store: Store, work: Work, **fields: Any) -> None:
    await store.runs.insert_runs([new_run(work=work_text(work), **fields)])


async def one(store: Store) -> Run:
    """The only run, as a list shows it."""
    (run,) = await store.runs.list_runs(RunFilter(brief=True))
    return run


async def test_a_small_run_is_the_same_in_a_list_as_for_itself(store: Store) -> None:
    await insert(store, Function("report", ["x" * 1000], {"n": 1}))
    await store.runs.finish_runs([finish(await claim_one(store), result='{"a":[1,2]}', error="x" * LONGEST)])
    run = await one(store)
    assert run == await store.runs.get_run(run.id)
    assert (run.cut, run.result, len(run.error or "")) == ((), {"a": [1, 2]}, LONGEST)


@pytest.mark.parametrize("length", [LONGEST - 1, LONGEST, LONGEST + 1])
async def test_what_has_just_the_length_that_is_shown_is_whole(store: Store, length: int) -> None:
    await insert(store, Function("report"))
    result = json.dumps("ä" * (length - 2), ensure_ascii=False)
    await store.runs.finish_runs([finish(await claim_one(store), result=result, error="e" * length)])
    run = await one(store)
    assert run.cut == (("result", "error") if length > LONGEST else ())
    assert (run.result.endswith("…"), str(run.error).startswith("…")) == (bool(run.cut), bool(run.cut))


async def test_of_work_and_result_a_list_has_the_beginning_and_of_an_error_the_end(store: Store) -> None:
    await insert(store, Function("report", [1, LONG], {"n": 2}))
    result = msgspec.json.encode({"rows": [LONG], "last": 1}).decode()
    error = f"Traceback\n{LONG}\nValueError: in the end"
    await store.runs.finish_runs([finish(await claim_one(store), RunState.FAILED, result=result, error=error)])
    run = await one(store)
    assert run.cut == ("work", "result", "error")
    assert isinstance(run.work, Function)
    assert (run.work.task, run.work.args[0], run.work.kwargs) == ("report", 1, {})
    assert run.work.args[1].startswith(BEGINS)
    assert run.work.args[1].endswith("ä…")
    assert list(run.result) == ["rows"]
    assert run.result["rows"][0].startswith(BEGINS)
    assert str(run.error).startswith("…ä")
    assert str(run.error).endswith("\nValueError: in the end")
    assert (len(run.error or ""), run.attempts[-1].error) == (LONGEST + 1, run.error)
    whole = await store.runs.get_run(run.id)
    assert whole is not None
    assert (whole.cut, whole.work, whole.error) == ((), Function("report", [1, LONG], {"n": 2}), error)
    assert whole.result == {"rows": [LONG], "last": 1}
    assert await store.runs.list_runs(RunFilter()) == [whole], "who does not ask for it gets nothing cut"


@pytest.mark.parametrize(
    ("work", "shown"),
    [
        (Shell(LONG, env={"KEY": "secret"}), lambda work: isinstance(work, Shell) and work.command[:9] == "ä" * 9),
        (Shell(["sh", "-c", LONG]), lambda work: isinstance(work, Shell) and work.command[:2] == ["sh", "-c"]),
        (Agent(LONG, model="opus"), lambda work: isinstance(work, Agent) and work.prompt.endswith("…")),
        (Agent("hi", system=LONG), lambda work: isinstance(work, Agent) and work.prompt == "hi"),
        (Http("PUT", "https://a.b/c", body=LONG), lambda work: isinstance(work, Http) and work.url == "https://a.b/c"),
        (Http("PUT", "https://a.b/c", json=[LONG]), lambda work: isinstance(work, Http) and work.method == "PUT"),
    ],
)
async def test_work_that_is_cut_is_of_its_kind_and_begins_as_it_does(store: Store, work: Work, shown: Any) -> None:
    await insert(store, work, kind=work.kind, task=None)
    run = await one(store)
    assert shown(run.work), run.work
    assert run.cut == ("work",)


async def test_a_mode_that_would_be_cut_off_is_left_out(store: Store) -> None:
    work = Agent("x" * (LONGEST - len('{"kind":"agent","prompt":"","context":"ses')), context="session:desk")
    await insert(store, work, kind="agent", task=None)
    found = (await one(store)).work
    assert isinstance(found, Agent)
    assert (found.prompt, found.context) == (work.prompt, None)


async def test_long_work_that_nobody_can_read_is_cut_and_says_why(store: Store) -> None:
    await store.runs.insert_runs([new_run(work="}" + LONG), new_run(work='{"kind":"later","text":"' + LONG)])
    for run in await store.runs.list_runs(RunFilter(brief=True)):
        assert isinstance(run.work, Unreadable)
        assert "not readable" in run.work.reason or "unknown kind" in run.work.reason
        assert 0 < len(run.work.text) < LONGEST + 10


async def test_every_list_is_brief(store: Store) -> None:
    id = await put(store)
    await insert(store, Function("report", [LONG]), schedule_id=id, trigger=Trigger.MANUAL)
    (late,) = await store.runs.late_runs(NOW + HOUR, 5)
    assert late.cut == ("work",)
    await store.runs.finish_runs([retry(await claim_one(store), ready_at=NOW)])
    await store.runs.finish_runs([finish(await claim_one(store), RunState.FAILED)])
    ((bar,), _) = await store.runs.runs_between(NOW - MINUTE, NOW + MINUTE, None, 5)
    ((row,), _) = await store.schedules.page_schedules(ScheduleFilter(limit=5))
    assert row.schedule.last_run is not None
    for run in (bar, row.schedule.last_run, await one(store)):
        assert run.cut == ("work",)
        assert [attempt.state for attempt in run.attempts] == ["failed"], "the last one alone"
    whole = await store.runs.get_run(late.id)
    assert whole is not None
    assert len(whole.attempts) == 2


def test_the_beginning_of_a_json_text_is_json_wherever_it_is_cut() -> None:
    document = {
        "kind": "function",
        "args": ['say \\ "hi"\n\u0001 ä😀' * 30, 1.5, None, True, {"a": [[], {}, "z" * 300], "b": "q" * 300}],
        "kwargs": {"payloads": ["m" * 300, {"k": -1e5}]},
    }
    for text in (msgspec.json.encode(document).decode(), json.dumps(document), json.dumps(document, indent=1)):
        assert json_beginning(text) == text
        for length in range(1, len(text)):
            found = json.loads(json_beginning(text[:length]))
            assert list(found) == list(document)[: len(found)]
    assert [json_beginning(text) for text in ("", "}", "[}", "12", '"short')] == [""] * 5
