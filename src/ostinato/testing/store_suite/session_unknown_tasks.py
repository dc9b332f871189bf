"""What no node knows in a session: it steps aside, and queues up again when a node knows it."""

from __future__ import annotations

from ostinato.models.run import Ending
from ostinato.models.states import Cause, RunState
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import HOUR, MINUTE, NOW, beat, claim, claim_one, finish
from ostinato.testing.store_suite.mailbox import outcome, outcomes, payloads, row, send

WHY = "task 'strange' is not registered on any running node"
QUEUED = (RunState.QUEUED, None)


async def aside(store: Store, before: int = NOW + 1) -> int:
    return await store.runs.step_aside(["s"], "strange", before, NOW + HOUR, WHY)


async def test_what_no_node_knows_steps_aside_and_says_why_and_the_next_gets_the_turn(store: Store) -> None:
    strange = [await send(store, number, task="strange") for number in range(2)]
    known = await send(store, "known")
    assert list((await store.runs.claim_runs(claim())).runs) == []
    assert await aside(store) == 2
    assert [await outcome(store, one.id) for one in strange] == [(RunState.QUEUED, Ending(Cause.UNKNOWN_TASK, WHY))] * 2
    run = await claim_one(store)
    assert (run.id, payloads(run)) == (known.id, ["known"])
    assert await aside(store) == 0, "it is aside"


async def test_what_has_not_waited_so_long_or_runs_or_is_of_another_session_stays(store: Store) -> None:
    sent = [await send(store, 1, session=session, task="strange") for session in ("s", "t", "u")]
    await claim_one(store, tasks=["strange"], room=1)
    assert await aside(store) == 0
    assert await store.runs.step_aside(["t"], "strange", NOW, NOW + HOUR, WHY) == 0
    assert await outcomes(store, [one.id for one in sent if one.id]) == ["running", "queued", "queued"]
    assert [await outcome(store, one.id) for one in sent[1:]] == [QUEUED, QUEUED]


async def test_it_queues_up_again_when_a_node_knows_it(store: Store) -> None:
    strange = await send(store, 1, task="strange")
    await send(store, 2)
    await aside(store)
    await store.nodes.renew(beat("old", tasks=("report",)))
    assert await store.runs.step_back(NOW) == 0
    await store.nodes.renew(beat("new", tasks=("strange",)))
    assert await store.runs.step_back(NOW + MINUTE) == 1
    assert await outcome(store, strange.id) == QUEUED
    await store.runs.finish_runs([finish(await claim_one(store))])
    assert (await claim_one(store, now=NOW + MINUTE, tasks=["strange"])).id == strange.id


async def test_at_the_latest_it_queues_up_again_when_the_time_is_over(store: Store) -> None:
    strange = await send(store, 1, task="strange")
    await aside(store)
    assert list((await store.runs.claim_runs(claim(now=NOW + HOUR - 1, tasks=["strange"]))).runs) == []
    assert (await claim_one(store, now=NOW + HOUR, tasks=["strange"])).id == strange.id
    assert (await row(store, strange.id)).reason is None
