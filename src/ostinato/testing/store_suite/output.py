"""What runs print: parts in their order, a tail that is replaced while the run is under way, and nothing twice."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ostinato.models.ids import RunId
from ostinato.models.output import OutputPart
from ostinato.models.run import ClaimedRun, Report
from ostinato.models.states import RunState
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    claim,
    claim_one,
    finish,
    new_run,
    part,
    retry,
    said,
)


async def started(store: Store) -> ClaimedRun:
    await store.runs.insert_runs([new_run()])
    return await claim_one(store)


def tail(text: str, cut_lines: int = 0, cut: int = 0) -> OutputPart:
    return OutputPart(text, cut_lines, cut, is_tail=True)


async def report(store: Store, run: ClaimedRun, *parts: OutputPart) -> None:
    await store.runs.report_runs([Report(run.id, run.token, output=parts)])


async def output(store: Store, id: RunId) -> list[OutputPart]:
    return list(await store.runs.read_output(id))


async def test_parts_come_back_as_they_were_said_and_in_their_order(store: Store) -> None:
    run = await started(store)
    expected = [part(f"line {number}\n", cut_lines=number, cut=10 * number) for number in range(12)]
    await report(store, run, *expected[:1])
    await report(store, run, *expected[1:5])
    await store.runs.report_runs([Report(run.id, run.token, output=[each]) for each in expected[5:9]])
    assert await output(store, run.id) == expected[:9]
    await store.runs.finish_runs([finish(run, output=expected[9:])])
    assert await output(store, run.id) == expected


async def test_what_several_runs_say_in_one_batch_stays_apart(store: Store) -> None:
    await store.runs.insert_runs([new_run() for _ in range(3)])
    runs = (await store.runs.claim_runs(claim())).runs
    for turn in range(2):
        await store.runs.report_runs(
            [
                Report(run.id, run.token, output=[*said(f"{run.id}/{turn}/{place}\n"), tail(f"tail of {run.id}")])
                for place in range(2)
                for run in runs
            ]
        )
    for run in runs:
        lines = [f"{run.id}/{turn}/{place}\n" for turn in range(2) for place in range(2)]
        assert await output(store, run.id) == [*said(*lines), tail(f"tail of {run.id}")]
    await store.runs.finish_runs([finish(run, output=said(f"end of {run.id}\n")) for run in runs])
    assert [(await output(store, run.id))[-1].text for run in runs] == [f"end of {run.id}\n" for run in runs]
    assert [len(await output(store, run.id)) for run in runs] == [5, 5, 5]


async def test_a_tail_is_replaced_by_the_next_and_comes_last(store: Store) -> None:
    run = await started(store)
    await report(store, run, tail("on"))
    assert await output(store, run.id) == [tail("on")]
    await report(store, run, tail("one, tw", cut_lines=3, cut=40))
    assert await output(store, run.id) == [tail("one, tw", 3, 40)]
    await report(store, run, *said("one, two\n"), tail("thr"))
    await report(store, run, *said("more\n"))
    assert await output(store, run.id) == [*said("one, two\n", "more\n"), tail("thr")]
    await report(store, run, tail(""))
    assert await output(store, run.id) == [*said("one, two\n", "more\n")]
    await report(store, run, tail(""))
    assert await output(store, run.id) == [*said("one, two\n", "more\n")]


async def test_of_several_tails_in_one_batch_the_last_counts(store: Store) -> None:
    run = await started(store)
    said_of_it = [Report(run.id, run.token, output=[tail(text)]) for text in ("a", "ab", "abc")]
    await store.runs.report_runs(said_of_it)
    assert await output(store, run.id) == [tail("abc")]
    await store.runs.report_runs([*said_of_it, Report(run.id, run.token, output=[tail("")])])
    assert await output(store, run.id) == []
    await store.runs.report_runs([Report(run.id, run.token, output=[tail("")]), *said_of_it])
    assert await output(store, run.id) == [tail("abc")]


@pytest.mark.parametrize("kind", ["end", "retry"])
async def test_the_tail_goes_when_the_last_words_of_the_attempt_are_written(store: Store, kind: str) -> None:
    run = await started(store)
    await report(store, run, *said("one\n"), tail("tw", 5, 60))
    last = [part("two\n", 2, 30)]
    await store.runs.finish_runs([finish(run, output=last) if kind == "end" else retry(run, output=last)])
    assert await output(store, run.id) == [*said("one\n"), *last]


@pytest.mark.parametrize("kind", ["end", "retry"])
async def test_the_tail_of_an_abandoned_attempt_stays_as_an_ordinary_part(store: Store, kind: str) -> None:
    run = await started(store)
    await report(store, run, *said("one\n"), tail("tw", 5, 60))
    crashed = finish(run, RunState.FAILED, abandoned=True) if kind == "end" else retry(run, abandoned=True)
    await store.runs.finish_runs([crashed])
    assert await output(store, run.id) == [*said("one\n"), OutputPart("tw", 5, 60)]
    if kind == "retry":
        again = await claim_one(store, now=NOW + HOUR)
        await report(store, again, *said("three\n"), tail("fo"))
        assert await output(store, run.id) == [*said("one\n"), OutputPart("tw", 5, 60), *said("three\n"), tail("fo")]


async def test_an_abandoned_attempt_without_a_tail_leaves_its_output_alone(store: Store) -> None:
    run = await started(store)
    await report(store, run, *said("one\n"))
    await store.runs.finish_runs([retry(run, abandoned=True)])
    assert await output(store, run.id) == [*said("one\n")]


async def test_the_output_of_several_attempts_is_one_after_the_other(store: Store) -> None:
    run = await started(store)
    for number in range(1, 4):
        await report(store, run, *said(f"{number} begins\n"), tail(f"{number} is at w"))
        last_words = said(f"{number} is at work\n", f"{number} ends")
        await store.runs.finish_runs([retry(run, ready_at=NOW + number * MINUTE, output=last_words)])
        run = await claim_one(store, now=NOW + HOUR)
    await store.runs.finish_runs([finish(run, output=said("4 ends"))])
    expected = [f"{number} {what}" for number in range(1, 4) for what in ("begins\n", "is at work\n", "ends")]
    assert await output(store, run.id) == [*said(*expected, "4 ends")]


@pytest.mark.parametrize("abandoned", [False, True])
async def test_a_finish_whose_token_is_lost_touches_no_output(store: Store, abandoned: bool) -> None:
    run = await started(store)
    await store.runs.finish_runs([retry(run, ready_at=NOW)])
    again = await claim_one(store, now=NOW + HOUR)
    await report(store, again, *said("one\n"), tail("tw"))
    late = finish(run, output=() if abandoned else said("late\n"), abandoned=abandoned)
    assert list((await store.runs.finish_runs([late])).lost) == [run.id]
    await report(store, run, *said("stale\n"), tail("stale"))
    assert await output(store, run.id) == [*said("one\n"), tail("tw")]


async def test_an_end_that_is_written_twice_leaves_its_output_once(store: Store) -> None:
    run = await started(store)
    await report(store, run, tail("o"))
    end = finish(run, output=said("one\n"))
    for _ in range(2):
        assert list((await store.runs.finish_runs([end])).lost) == []
    assert await output(store, run.id) == [*said("one\n")]


async def test_parts_that_are_written_again_are_there_once(store: Store) -> None:
    run = await started(store)
    parts = said("one\n", "two\n", "three\n", "four\n")
    await report(store, run, *parts[:2], tail("th"))
    await report(store, run, *parts[:3], tail("fo"))
    await report(store, run, parts[1])
    assert await output(store, run.id) == [*parts[:3], tail("fo")]
    await store.runs.finish_runs([retry(run, ready_at=NOW, output=parts)])
    assert await output(store, run.id) == [*parts]
    again = await claim_one(store, now=NOW + HOUR)
    await report(store, again, *parts[:2])
    assert await output(store, run.id) == [*parts, *parts[:2]], "another attempt counts from one"


async def test_what_is_said_after_the_end_is_not_kept(store: Store) -> None:
    run = await started(store)
    await store.runs.finish_runs([finish(run)])
    await report(store, run, *said("late\n"), tail("la"))
    assert await output(store, run.id) == []


async def test_two_nodes_follow_each_others_output(first: Store, second: Store) -> None:
    run = await started(first)
    await report(first, run, *said("one\n"), tail("tw"))
    assert await output(second, run.id) == [*said("one\n"), tail("tw")]
    await first.runs.finish_runs([finish(run, output=said("two\n"))])
    assert await output(second, run.id) == [*said("one\n", "two\n")]


async def test_the_mark_differs_when_there_is_something_new_to_read(store: Store) -> None:
    run = await started(store)
    marks = [await store.runs.output_mark(run.id)]
    for each in (part("one\n"), tail("t"), tail("tw"), tail("tx"), tail(""), part("two\n")):
        await report(store, run, each)
        marks.append(await store.runs.output_mark(run.id))
    assert all(before != after for before, after in pairwise(marks))
    assert await store.runs.output_mark(run.id) == marks[-1]
