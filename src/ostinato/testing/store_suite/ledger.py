"""Reading the ledger, and ending runs from outside: lists, cancel, rescue, and what nobody can execute."""

from __future__ import annotations

import pytest

from ostinato.clock import SECOND, from_micros
from ostinato.models.ids import NodeId, RunId
from ostinato.models.project import NO_PROJECT
from ostinato.models.run import Ending, RunFilter
from ostinato.models.schedule import ScheduleFilter
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.stores.base import Renewed, Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    beat,
    claim,
    claim_one,
    finish,
    ids,
    new_run,
    put,
    retry,
)


async def test_runs_are_listed_newest_first_and_page_by_page(store: Store) -> None:
    inserted = await store.runs.insert_runs([new_run()] * 7)
    page = await store.runs.list_runs(RunFilter(limit=3))
    assert [run.id for run in page] == inserted[:3:-1]
    page = await store.runs.list_runs(RunFilter(limit=3, before_id=page[-1].id))
    assert [run.id for run in page] == inserted[3:0:-1]


@pytest.mark.parametrize(
    ("wanted", "places"),
    [
        (RunFilter(task="other"), [1]),
        (RunFilter(states=(RunState.MISSED,)), [2]),
        (RunFilter(states=(RunState.QUEUED, RunState.MISSED), task="report"), [3, 2, 0]),
        (RunFilter(due_from=NOW + 5), [3, 2]),
        (RunFilter(due_until=NOW + 5), [2, 1, 0]),
        (RunFilter(due_from=NOW + 6, due_until=NOW + 8), [2]),
        (RunFilter(before_id=RunId(0)), []),
    ],
)
async def test_lists_hold_only_what_is_asked_for(store: Store, wanted: RunFilter, places: list[int]) -> None:
    inserted = await store.runs.insert_runs(
        [
            new_run(due_at=NOW),
            new_run(due_at=NOW + 1, task="other"),
            new_run(due_at=NOW + 2, last_due_at=NOW + 9, state=RunState.MISSED, count=3),
            new_run(due_at=NOW + 10),
        ]
    )
    assert [run.id for run in await store.runs.list_runs(wanted)] == [inserted[place] for place in places]


@pytest.mark.parametrize(
    ("search", "places"),
    [
        ("BACK", [4, 0]),
        ("_mail", [2]),
        ("dm:4", [3]),
        ("nobody", []),
        ("*", []),
        ("p", [4, 1, 0]),
        ("\0", []),
    ],
)
async def test_a_search_finds_part_of_the_name_of_schedule_task_or_session(
    store: Store, search: str, places: list[int]
) -> None:
    backup = await put(store, "Backup-of-web", task="tools.zip")
    inserted = await store.runs.insert_runs(
        [
            new_run(schedule_id=backup, task="tools.zip"),
            new_run(task="report", session="conversation:dm:4"),
            new_run(task="send_mail"),
            new_run(task=None, kind="agent", session="dm:42", mode="queue"),
            new_run(schedule_id=backup, task="tools.zip", due_at=NOW + 1),
        ]
    )
    found = await store.runs.list_runs(RunFilter(search=search))
    assert [run.id for run in found] == [inserted[place] for place in places]
    behind = RunFilter(search=search, before_id=inserted[4], from_id=inserted[1])
    assert [run.id for run in await store.runs.list_runs(behind)] == [inserted[p] for p in places if 0 < p < 4]


async def test_runs_and_schedules_without_a_project_are_listed_by_the_word_none(store: Store) -> None:
    await store.projects.put_project("blog", "/srv/blog", {}, NOW)
    await put(store, "inside", project="blog")
    outside = await put(store, "outside")
    inserted = await store.runs.insert_runs([new_run(project="blog"), new_run(schedule_id=outside)])
    assert [run.id for run in await store.runs.list_runs(RunFilter(project=NO_PROJECT))] == inserted[1:]
    listed = await store.schedules.list_schedules(ScheduleFilter(project=NO_PROJECT))
    assert [schedule.name for schedule in listed] == ["outside"]


async def test_runs_of_one_schedule_are_listed_alone(store: Store) -> None:
    id, other = await put(store), await put(store, "other")
    await store.runs.insert_runs([new_run(schedule_id=other), new_run()])
    (mine,) = await store.runs.insert_runs([new_run(schedule_id=id)])
    assert [run.id for run in await store.runs.list_runs(RunFilter(schedule_id=id))] == [mine]


async def test_a_list_shows_the_attempts_of_each_run(store: Store) -> None:
    await store.runs.insert_runs([new_run()] * 2)
    for _ in range(2):
        claimed = (await store.runs.claim_runs(claim())).runs
        await store.runs.finish_runs([retry(run, ready_at=NOW, error=f"{run.id}/{run.attempt}") for run in claimed])
    for run in await store.runs.list_runs(RunFilter()):
        assert [attempt.error for attempt in run.attempts] == [f"{run.id}/1", f"{run.id}/2"]


async def test_a_run_tells_who_asked_for_it_and_who_for_its_end(store: Store) -> None:
    id = await put(store)
    (one, two) = await store.runs.insert_runs([new_run(started_by="ada"), new_run()])
    by_hand = await store.runs.trigger_run(new_run(schedule_id=id, trigger=Trigger.MANUAL, started_by="bo"), None)
    assert by_hand is not None
    again = await store.runs.repeat_run(one, NOW, by="cy")
    assert again is not None
    assert [run.started_by for run in await store.runs.list_runs(RunFilter())] == ["cy", "bo", None, "ada"]
    running = await claim_one(store, room=1)
    await store.runs.cancel_runs([running.id, two], Ending(Cause.CANCELLED, "no"), NOW, "dee")
    await store.runs.cancel_runs([running.id, by_hand], Ending(Cause.CANCELLED, "no"), NOW, "ed")
    found = [await store.runs.get_run(id) for id in (one, two, by_hand, again)]
    assert [run.cancelled_by for run in found if run is not None] == ["dee", "dee", "ed", None]
    await store.runs.finish_runs([finish(running)])
    ended = await store.runs.get_run(one)
    assert ended is not None
    assert (ended.state, ended.started_by, ended.cancelled_by) == (RunState.SUCCEEDED, "ada", None)


async def test_what_is_cleared_and_stopped_tells_by_whom(store: Store) -> None:
    (queued,) = await store.runs.insert_runs([new_run()])
    await store.lanes.clear_lane("main", NOW, None, 100, "ada")
    (message,) = await store.runs.insert_runs([new_run(session="s", mode="queue")])
    await store.sessions.stop("s", everything=True, now=NOW + 1, by="bo")
    found = [await store.runs.get_run(id) for id in (queued, message)]
    assert [(run.state, run.cancelled_by) for run in found if run is not None] == [
        (RunState.CANCELLED, "ada"),
        (RunState.CANCELLED, "bo"),
    ]


async def test_a_run_that_is_claimed_ahead_of_its_time_has_not_started_before_it(store: Store) -> None:
    await store.runs.insert_runs([new_run(ready_at=NOW + SECOND)])
    run = await claim_one(store, horizon=NOW + SECOND)
    (shown,) = await store.runs.list_runs(RunFilter())
    assert (shown.started_at, shown.attempts[0].started_at) == (shown.ready_at, shown.ready_at)
    await store.runs.finish_runs([finish(run, started_at=NOW + 2 * SECOND)])
    (shown,) = await store.runs.list_runs(RunFilter())
    assert shown.started_at == from_micros(NOW + 2 * SECOND)


async def test_active_are_those_that_run_are_ready_or_wait_for_their_turn(store: Store) -> None:
    await store.runs.insert_runs(
        [
            new_run(),
            new_run(ready_at=NOW + HOUR),
            new_run(ready_at=NOW + HOUR, session="s", waiting=True),
            new_run(state=RunState.SKIPPED),
        ]
    )
    assert await store.runs.count_active(NOW) == 2
    run = await claim_one(store)
    assert await store.runs.count_active(NOW) == 2
    await store.runs.finish_runs([finish(run)])
    assert await store.runs.count_active(NOW) == 1
    assert await store.runs.count_active(NOW + HOUR) == 2


async def states(store: Store, *ids: RunId) -> list[tuple[RunState, str | None]]:
    """The state of each run, and why it was asked to stop."""
    runs = [await store.runs.get_run(id) for id in ids]
    return [(run.state, run.cancelling) for run in runs if run is not None]


async def test_cancel_ends_what_is_queued_and_asks_what_runs(store: Store) -> None:
    running, ended = await store.runs.insert_runs([new_run(), new_run()])
    one, two = (await store.runs.claim_runs(claim())).runs
    await store.runs.finish_runs([finish(two)])
    queued, waiting = await store.runs.insert_runs([new_run(), new_run(session="s", waiting=True)])
    everything = [running, ended, queued, waiting, RunId(999)]
    cancelled = await store.runs.cancel_runs(everything, Ending(Cause.CANCELLED, "not needed"), NOW + 5)
    assert (sorted(cancelled.ended), list(cancelled.asked)) == ([queued, waiting], [one.id])
    for id in (queued, waiting):
        run = await store.runs.get_run(id)
        assert run is not None
        assert (run.state, run.cause, run.reason, run.finished_at) == (
            RunState.CANCELLED,
            Cause.CANCELLED,
            "not needed",
            from_micros(NOW + 5),
        )
    assert await states(store, running, ended) == [(RunState.RUNNING, "not needed"), (RunState.SUCCEEDED, None)]
    watch = await store.watch()
    try:
        assert list((await watch.wake_hints(NodeId("node-1"))).cancel) == [
            (running, Ending(Cause.CANCELLED, "not needed"))
        ]
        assert list((await watch.wake_hints(NodeId("node-2"))).cancel) == []
    finally:
        await watch.close()
    await store.runs.finish_runs([finish(one, RunState.CANCELLED)])
    assert await states(store, running) == [(RunState.CANCELLED, None)]


async def test_cancelling_nothing_is_not_an_error(store: Store) -> None:
    cancelled = await store.runs.cancel_runs([], Ending(Cause.CANCELLED, "no"), NOW)
    assert (list(cancelled.ended), list(cancelled.asked)) == ([], [])


async def test_what_ran_on_a_node_that_lost_its_lease_is_stale(store: Store) -> None:
    id = await put(store)
    await store.runs.insert_runs([new_run(schedule_id=id, trigger=Trigger.MANUAL), new_run()])
    assert await store.nodes.renew(beat("dies")) == Renewed(held=True)
    assert (await store.nodes.renew(beat("lives", lease_until=NOW + HOUR))).held
    dying = await claim_one(store, node="dies", room=1, now=NOW + 3)
    await claim_one(store, node="lives", room=1)
    assert (await store.runs.stale_runs([(NodeId("dies"), NOW - 1)], NOW + MINUTE)).runs == [], "it was heard of since"
    (stale,) = (await store.runs.stale_runs([(NodeId("dies"), NOW)], NOW + MINUTE)).runs
    assert (stale.id, stale.token, stale.attempt, stale.node) == (dying.id, dying.token, 1, "dies")
    assert (stale.schedule_id, stale.schedule, stale.started_at) == (id, "report", NOW + 3)
    assert await store.nodes.renew(beat("dies", now=NOW + MINUTE)) == Renewed(held=False)
    states = {node.id: node.state for node in await store.nodes.list_nodes(NOW + MINUTE)}
    assert states == {"dies": "lost", "lives": "alive"}
    await store.runs.finish_runs([retry(stale, ready_at=NOW, error="its node was lost")])
    assert (await store.runs.stale_runs([], NOW + MINUTE)).runs == []
    assert list((await store.runs.finish_runs([finish(dying)])).lost) == [dying.id]


async def test_what_ran_on_a_node_that_vanished_is_stale(store: Store) -> None:
    await store.runs.insert_runs([new_run()])
    await store.nodes.renew(beat("gone"))
    run = await claim_one(store, node="gone")
    assert (await store.runs.stale_runs([], NOW)).runs == []
    await store.nodes.leave(NodeId("gone"))
    assert ids((await store.runs.stale_runs([], NOW)).runs) == [run.id]


async def test_a_node_that_was_declared_lost_claims_nothing(store: Store) -> None:
    await store.runs.insert_runs([new_run()])
    await store.nodes.renew(beat("lost"))
    await store.runs.stale_runs([(NodeId("lost"), NOW)], NOW)
    assert list((await store.runs.claim_runs(claim(node="lost"))).runs) == []
    assert len((await store.runs.claim_runs(claim(node="other"))).runs) == 1


async def test_nobody_can_claim_a_task_that_no_living_node_knows(store: Store) -> None:
    await store.nodes.renew(beat("alive", tasks=("report", 'quo"te')))
    await store.nodes.renew(beat("lost", tasks=("strange",)))
    await store.runs.stale_runs([(NodeId("lost"), NOW)], NOW)
    strange, _, _, _, _ = await store.runs.insert_runs(
        [
            new_run(task="strange", ready_at=NOW - 10),
            new_run(task="strange", ready_at=NOW),
            new_run(task="strange", ready_at=NOW - 10, session="s", waiting=True),
            new_run(ready_at=NOW - 10),
            new_run(task='quo"te', ready_at=NOW - 10),
        ]
    )
    (run,) = await store.runs.unclaimable_runs(NOW)
    assert (run.id, run.task) == (strange, "strange")


async def test_work_without_a_task_is_never_unknown(store: Store) -> None:
    await store.runs.insert_runs([new_run(task=None, kind="shell")])
    assert await store.runs.unclaimable_runs(NOW + HOUR) == []


async def test_queued_runs_say_why_nobody_starts_them(store: Store) -> None:
    queued, running = await store.runs.insert_runs([new_run(ready_at=NOW + n) for n in (1, 0)])
    await claim_one(store, now=NOW)
    await store.runs.explain_queued([queued, running], Cause.UNKNOWN_TASK, "no node knows its task")
    reasons = {}
    for id in (queued, running):
        run = await store.runs.get_run(id)
        assert run is not None
        reasons[run.state] = (run.cause, run.reason)
    assert reasons == {
        RunState.QUEUED: (Cause.UNKNOWN_TASK, "no node knows its task"),
        RunState.RUNNING: (None, None),
    }


async def test_a_node_is_listed_with_what_it_said_last(store: Store) -> None:
    await store.nodes.renew(beat("a", started_at=NOW + 1))
    await store.nodes.renew(beat("b", started_at=NOW))
    await store.nodes.renew(
        beat(
            "a",
            now=NOW + SECOND,
            started_at=NOW + 1,
            running=3,
            slots=4,
            draining=True,
            tasks=("x", "y"),
            services='{"ticker":{"ok":true}}',
            statistics='{"runs":{"report":3}}',
        )
    )
    b, a = await store.nodes.list_nodes(NOW + SECOND)
    assert (b.id, b.state) == ("b", "alive")
    assert (a.id, a.host, a.pid, a.state, a.slots, a.running) == ("a", "here", 1, "draining", 4, 3)
    assert (a.tasks, a.services) == (("x", "y"), {"ticker": {"ok": True}})
    assert await store.nodes.read_statistics() == {"a": {"runs": {"report": 3}}, "b": {}}
    assert (a.started_at, a.seen_at) == (from_micros(NOW + 1), from_micros(NOW + SECOND))
    assert [node.state for node in await store.nodes.list_nodes(NOW + HOUR)] == ["lost", "lost"]


async def test_a_node_learns_with_its_next_beat_that_it_is_asked_to_take_no_more_work(store: Store) -> None:
    await store.nodes.renew(beat("a"))
    await store.nodes.renew(beat("b"))
    assert await store.nodes.ask_drain(NodeId("a"), True)
    assert await store.nodes.renew(beat("a", now=NOW + SECOND)) == Renewed(held=True, drain=True)
    assert await store.nodes.renew(beat("b", now=NOW + SECOND)) == Renewed(held=True, drain=False)
    assert {node.id: node.drain for node in await store.nodes.list_nodes(NOW)} == {"a": True, "b": False}
    assert await store.nodes.ask_drain(NodeId("a"), False)
    assert await store.nodes.renew(beat("a", now=NOW + 2 * SECOND)) == Renewed(held=True, drain=False)


async def test_the_first_beat_of_a_name_says_whether_it_is_drained_and_later_ones_do_not(store: Store) -> None:
    assert await store.nodes.renew(beat("a", drain=True)) == Renewed(held=True, drain=True)
    assert await store.nodes.renew(beat("a", now=NOW + SECOND, drain=False)) == Renewed(held=True, drain=True)
    await store.nodes.ask_drain(NodeId("a"), False)
    assert await store.nodes.renew(beat("a", now=NOW + SECOND, drain=True)) == Renewed(held=True, drain=False)


async def test_a_node_that_is_gone_or_lost_cannot_be_asked(store: Store) -> None:
    await store.nodes.renew(beat("lost"))
    await store.nodes.renew(beat("left"))
    await store.nodes.leave(NodeId("left"))
    await store.runs.stale_runs([(NodeId("lost"), NOW)], NOW + HOUR)
    for name in ("lost", "left", "nobody"):
        assert not await store.nodes.ask_drain(NodeId(name), True)


async def test_lanes_are_made_once_and_a_persons_limit_stays(store: Store) -> None:
    assert await store.lanes.set_lane("main", 5, None)
    assert await store.lanes.pause_lane("main", False, "smaller")
    await store.lanes.ensure_lanes({"main": 30, "extra": 2}, [])
    lanes = {lane.name: lane for lane in await store.lanes.list_lanes()}
    assert list(lanes) == sorted(lanes)
    assert {name: lane.limit for name, lane in lanes.items()} == {
        "cron": 30,
        "extra": 2,
        "main": 5,
        "subagent": 50,
        "team": 100,
    }
    assert lanes["main"].note == "smaller"


async def test_a_fixed_limit_is_set_each_time(store: Store) -> None:
    await store.lanes.ensure_lanes({"main": 7, "cron": 9}, ["main"])
    limits = {lane.name: lane.limit for lane in await store.lanes.list_lanes()}
    assert (limits["main"], limits["cron"]) == (7, 30)
