"""Claims: who gets what, in which order, and never more than a lane allows on all nodes together."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from ostinato.clock import SECOND, from_micros
from ostinato.errors import StoreError
from ostinato.models.ids import NodeId
from ostinato.models.run import RunFilter
from ostinato.models.states import RunState
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    all_runs,
    claim,
    claim_one,
    finish,
    ids,
    new_run,
    put,
    retry,
)


async def test_a_claimed_run_belongs_to_its_node_and_carries_what_to_execute(store: Store) -> None:
    (id,) = await store.runs.insert_runs([new_run(policy='{"priority":1}', key="k", due_at=NOW - 1, count=2)])
    run = await claim_one(store, now=NOW + 5)
    assert (run.id, run.token, run.attempt, run.node) == (id, 1, 1, "node-1")
    assert (run.kind, run.task, run.policy, run.trigger) == ("function", "report", '{"priority":1}', "api")
    assert (run.due_at, run.ready_at, run.key, run.count) == (NOW - 1, NOW, "k", 2)
    assert (run.schedule_id, run.schedule, run.session, run.zone, run.totals) == (None, None, None, None, None)
    shown = await store.runs.get_run(id)
    assert shown is not None
    assert (shown.state, shown.node, shown.attempt) == (RunState.RUNNING, "node-1", 1)
    assert shown.started_at == from_micros(NOW + 5)


async def test_the_highest_priority_goes_first_then_what_was_ready_first_then_the_older(store: Store) -> None:
    rows = [(0, NOW), (5, NOW), (0, NOW - 9), (5, NOW - 1), (-3, NOW - 99), (5, NOW - 1)]
    inserted = await store.runs.insert_runs(
        [new_run(priority=priority, ready_at=ready_at) for priority, ready_at in rows]
    )
    claimed = await store.runs.claim_runs(claim())
    assert ids(claimed.runs) == [inserted[place] for place in (3, 5, 1, 2, 0, 4)]


async def test_with_little_room_only_the_first_ones_go(store: Store) -> None:
    inserted = await store.runs.insert_runs([new_run(priority=n) for n in (1, 3, 2)])
    claimed = await store.runs.claim_runs(claim(room=2))
    assert ids(claimed.runs) == [inserted[1], inserted[2]]
    assert claimed.crowded


async def test_no_room_claims_nothing_and_says_crowded(store: Store) -> None:
    await store.runs.insert_runs([new_run()])
    claimed = await store.runs.claim_runs(claim(room=0))
    assert (list(claimed.runs), claimed.crowded) == ([], True)


async def test_an_empty_queue_is_neither_crowded_nor_expected(store: Store) -> None:
    claimed = await store.runs.claim_runs(claim())
    assert (list(claimed.runs), claimed.next_ready_at, claimed.crowded) == ([], None, False)


async def test_what_is_claimed_is_not_claimed_again(store: Store) -> None:
    await store.runs.insert_runs([new_run()] * 3)
    assert len((await store.runs.claim_runs(claim())).runs) == 3
    assert (await store.runs.claim_runs(claim(node="node-2"))).runs == []


async def test_a_lane_starts_no_more_than_its_limit(store: Store) -> None:
    await store.lanes.ensure_lanes({"narrow": 2}, [])
    await store.runs.insert_runs([new_run(lane="narrow")] * 5)
    claimed = await store.runs.claim_runs(claim())
    assert len(claimed.runs) == 2
    assert claimed.crowded
    more = await store.runs.claim_runs(claim())
    assert (list(more.runs), more.crowded) == ([], True)
    await store.runs.finish_runs([finish(claimed.runs[0])])
    assert len((await store.runs.claim_runs(claim())).runs) == 1


async def test_a_full_lane_does_not_hold_up_the_next(store: Store) -> None:
    await store.lanes.ensure_lanes({"a": 1, "b": 1}, [])
    await store.runs.insert_runs([new_run(lane="a")] * 3 + [new_run(lane="b")])
    assert len((await store.runs.claim_runs(claim())).runs) == 2


async def test_a_run_of_a_lane_that_does_not_exist_waits_for_it(store: Store) -> None:
    await store.runs.insert_runs([new_run(lane="made later")])
    assert (await store.runs.claim_runs(claim())).runs == []
    await store.lanes.ensure_lanes({"made later": 1}, [])
    assert len((await store.runs.claim_runs(claim())).runs) == 1


async def test_each_lane_gets_a_fair_share_of_little_room(store: Store) -> None:
    for lane in ("cron", "main", "team"):
        await store.runs.insert_runs([new_run(lane=lane)] * 20)
    claimed = await store.runs.claim_runs(claim(room=7))
    await store.runs.finish_runs([])
    lanes = [(await store.runs.get_run(run.id)).lane for run in claimed.runs]  # type: ignore[union-attr]
    assert sorted(lanes) == ["cron"] * 3 + ["main"] * 2 + ["team"] * 2


async def test_what_one_lane_leaves_of_its_share_goes_to_the_next(store: Store) -> None:
    await store.runs.insert_runs([new_run(lane="cron")] + [new_run(lane="main")] * 20)
    claimed = await store.runs.claim_runs(claim(room=10))
    assert len(claimed.runs) == 10


async def test_only_tasks_that_the_node_knows_are_claimed(store: Store) -> None:
    strange, known = await store.runs.insert_runs([new_run(task="strange", ready_at=NOW - 9), new_run()])
    assert ids((await store.runs.claim_runs(claim(room=1))).runs) == [known]
    assert ids((await store.runs.claim_runs(claim(tasks=["other", "strange"]))).runs) == [strange]
    await store.runs.insert_runs([new_run()])
    assert list((await store.runs.claim_runs(claim(tasks=[]))).runs) == []


async def test_work_without_a_task_is_claimed_by_every_node(store: Store) -> None:
    work = {"kind": "shell", "task": None, "work": '{"kind":"shell","command":"true"}'}
    shell, other, known, later = await store.runs.insert_runs(
        [new_run(**work), new_run(task="other"), new_run(), new_run(**work)]
    )
    assert ids((await store.runs.claim_runs(claim(tasks=(), room=1))).runs) == [shell]
    assert ids((await store.runs.claim_runs(claim(tasks=("report",), node="node-2"))).runs) == [known, later]
    assert ids((await store.runs.claim_runs(claim(tasks=()))).runs) == []
    assert ids((await store.runs.claim_runs(claim(tasks=("other",)))).runs) == [other]


async def test_a_node_without_tasks_still_hears_when_the_next_run_is_ready(store: Store) -> None:
    await store.runs.insert_runs([new_run(task=None, kind="shell", ready_at=NOW + HOUR)])
    claimed = await store.runs.claim_runs(claim(tasks=()))
    assert (list(claimed.runs), claimed.next_ready_at, claimed.crowded) == ([], NOW + HOUR, False)


async def test_work_without_a_task_goes_in_the_order_of_all_others(store: Store) -> None:
    tasks = ["report", None, "report", None, None]
    inserted = await store.runs.insert_runs([new_run(task=task, ready_at=NOW - n) for n, task in enumerate(tasks)])
    assert ids((await store.runs.claim_runs(claim(room=3))).runs) == inserted[:1:-1]
    assert ids((await store.runs.claim_runs(claim(room=3))).runs) == inserted[1::-1]


async def test_a_run_that_is_started_at_once_is_claimed_by_nobody_else(store: Store) -> None:
    run = await store.runs.start_run(new_run(task=None, kind="shell", project="blog"), NodeId("node-9"), NOW + 5)
    assert (run.token, run.attempt, run.node, run.project, run.kind) == (1, 1, "node-9", "blog", "shell")
    assert (run.work, run.policy, run.trigger, run.due_at) == (new_run().work, "{}", "api", NOW)
    assert (await store.runs.claim_runs(claim(now=NOW + HOUR))).runs == []
    shown = await store.runs.get_run(run.id)
    assert shown is not None
    assert (shown.state, shown.node, shown.started_at) == (RunState.RUNNING, "node-9", from_micros(NOW + 5))
    assert list((await store.runs.finish_runs([finish(run)])).lost) == []


async def test_a_run_that_is_started_at_once_asks_no_lane(store: Store) -> None:
    await store.lanes.ensure_lanes({"main": 1}, ["main"])
    await store.lanes.pause_lane("main", True, None)
    runs = [await store.runs.start_run(new_run(), NodeId("node-9"), NOW) for _ in range(3)]
    assert len(set(ids(runs))) == 3
    assert len(await store.runs.list_runs(RunFilter(states=(RunState.RUNNING,)))) == 3


async def test_a_run_that_is_started_at_once_is_rescued_like_any_other(store: Store) -> None:
    run = await store.runs.start_run(new_run(), NodeId("node-9"), NOW)
    (stale,) = (await store.runs.stale_runs([], NOW)).runs
    assert (stale.id, stale.token, stale.node) == (run.id, 1, "node-9")
    await store.runs.finish_runs([retry(stale, ready_at=NOW)])
    again = await claim_one(store)
    assert (again.id, again.token, again.attempt) == (run.id, 2, 2)


async def test_a_run_of_a_schedule_that_is_started_at_once_knows_its_name(store: Store) -> None:
    id = await put(store)
    run = await store.runs.start_run(new_run(schedule_id=id), NodeId("node-9"), NOW)
    assert (run.schedule_id, run.schedule) == (id, "report")


async def test_a_key_that_is_active_keeps_its_run(store: Store) -> None:
    (queued,) = await store.runs.insert_runs([new_run(key="k")])
    with pytest.raises(StoreError):
        await store.runs.start_run(new_run(key="k"), NodeId("node-9"), NOW)
    run = await claim_one(store)
    assert (run.id, run.token, run.node) == (queued, 1, "node-1")


async def test_a_task_name_may_hold_anything(store: Store) -> None:
    names = ['quo"te', "back\\slash", "com,ma", "{brace}", "näme ☃", "NULL", " "]
    await store.runs.insert_runs([new_run(task=name) for name in names])
    claimed = await store.runs.claim_runs(claim(tasks=names))
    assert [run.task for run in claimed.runs] == names


async def test_what_is_ready_after_the_horizon_is_announced_and_not_claimed(store: Store) -> None:
    await store.runs.insert_runs([new_run(ready_at=NOW + HOUR), new_run(ready_at=NOW + MINUTE, priority=-1), new_run()])
    claimed = await store.runs.claim_runs(claim())
    assert len(claimed.runs) == 1
    assert claimed.next_ready_at == NOW + MINUTE
    assert not claimed.crowded


async def test_the_horizon_may_be_ahead_of_now(store: Store) -> None:
    await store.runs.insert_runs([new_run(ready_at=NOW + SECOND)])
    run = await claim_one(store, now=NOW, horizon=NOW + SECOND)
    assert run.ready_at == NOW + SECOND


async def test_each_claim_raises_the_token(store: Store) -> None:
    await store.runs.insert_runs([new_run()])
    first = await claim_one(store)
    await store.runs.finish_runs([retry(first, ready_at=NOW)])
    second = await claim_one(store)
    assert (first.token, second.token) == (1, 2)
    assert (first.attempt, second.attempt) == (1, 2)


async def test_what_waits_for_its_turn_is_not_claimed(store: Store) -> None:
    await store.runs.insert_runs([new_run(session="s", waiting=True)])
    claimed = await store.runs.claim_runs(claim())
    assert (list(claimed.runs), claimed.next_ready_at) == ([], None)


async def test_what_waited_longer_than_its_max_age_expires_and_is_not_run(store: Store) -> None:
    old, young = await store.runs.insert_runs([new_run(expires_at=NOW), new_run(expires_at=NOW + 1)])
    claimed = await store.runs.claim_runs(claim(now=NOW))
    assert ids(claimed.runs) == [young]
    run = await store.runs.get_run(old)
    assert run is not None
    assert run.state == RunState.EXPIRED
    assert run.reason is not None
    assert "max age" in run.reason
    assert run.finished_at == from_micros(NOW)


async def test_when_one_expires_the_next_of_its_session_goes_in_the_same_claim(store: Store) -> None:
    _, waiting = await store.runs.insert_runs(
        [new_run(session="s", expires_at=NOW), new_run(session="s", waiting=True)]
    )
    assert ids((await store.runs.claim_runs(claim())).runs) == [waiting]


async def test_what_has_been_tried_once_no_longer_expires(store: Store) -> None:
    await store.runs.insert_runs([new_run(expires_at=NOW + MINUTE)])
    run = await claim_one(store)
    await store.runs.finish_runs([retry(run, ready_at=NOW + HOUR)])
    assert (await claim_one(store, now=NOW + 2 * HOUR)).id == run.id


async def test_thousands_of_delayed_runs_do_not_hide_what_is_ready(store: Store) -> None:
    for priority in (0, 1, 2):
        await store.runs.insert_runs([new_run(ready_at=NOW + HOUR + n, priority=priority) for n in range(700)])
    (ready,) = await store.runs.insert_runs([new_run(priority=-5)])
    claimed = await store.runs.claim_runs(claim())
    assert ids(claimed.runs) == [ready]
    assert claimed.next_ready_at == NOW + HOUR


async def test_two_nodes_together_never_pass_a_lanes_limit(first: Store, second: Store) -> None:
    await first.lanes.ensure_lanes({"narrow": 7, "other": 3}, [])
    await first.runs.insert_runs([new_run(lane=lane) for lane in ("narrow", "other") for _ in range(60)])
    highest: Counter[str] = Counter()

    async def work(store: Store, node: str) -> int:
        nonlocal highest
        done = 0
        while True:
            claimed = (await store.runs.claim_runs(claim(node=node, room=4))).runs
            highest |= Counter(run.lane for run in await all_runs(first, states=(RunState.RUNNING,)))
            if not claimed:
                if not await store.runs.list_runs(RunFilter(states=(RunState.QUEUED,), limit=1)):
                    return done
                await asyncio.sleep(0)
                continue
            finished = await store.runs.finish_runs([finish(run) for run in claimed])
            assert list(finished.lost) == []
            done += len(claimed)

    done = await asyncio.gather(*(work(s, f"{n}{w}") for n, s in enumerate((first, second)) for w in "ab"))
    assert sum(done) == 120
    assert highest["narrow"] <= 7
    assert highest["other"] <= 3


async def test_no_run_is_claimed_by_two_nodes(first: Store, second: Store) -> None:
    await first.lanes.ensure_lanes({"wide": 1000}, [])
    inserted = await first.runs.insert_runs([new_run(lane="wide") for _ in range(200)])
    claims = [store.runs.claim_runs(claim(node=f"n{n}", room=9)) for n in range(15) for store in (first, second)]
    got = [run.id for claimed in await asyncio.gather(*claims) for run in claimed.runs]
    assert len(got) == len(set(got)) == 200
    assert sorted(got) == inserted


async def test_not_one_of_many_expired_runs_is_claimed(store: Store) -> None:
    await store.runs.insert_runs([new_run(ready_at=NOW - 9, expires_at=NOW - 1) for _ in range(1_100)])
    fresh, *_ = await store.runs.insert_runs([new_run()])
    claimed = await store.runs.claim_runs(claim(room=2_000))
    assert ids(claimed.runs) == [fresh]
