"""Why a queued run does not start, followed to its root: each cause in its own words, in the order of a claim."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from ostinato.clock import SECOND, from_micros
from ostinato.command_hints import with_flags
from ostinato.models.blocking import Action, BlockedBy, BlockedCause, Link, Verb
from ostinato.models.given_up import GivenUp
from ostinato.models.ids import NodeId, RunId
from ostinato.models.states import Cause, RunState
from ostinato.models.work import CheckIn
from ostinato.service.blocked_runs import blocked_run
from ostinato.stores.base import FirstActive
from tests.unit.waiting import NOW, START, facts, lane, node, run, running


def found(of: Any = None, **given: Any) -> BlockedBy:
    blocked = blocked_run(of or run(), facts(**given))
    assert blocked is not None
    return blocked


def sentence(of: Any = None, **given: Any) -> str:
    return found(of, **given).sentence


def test_a_run_that_nothing_delays_is_not_blocked() -> None:
    assert blocked_run(run(), facts()) is None


def test_a_paused_lane_says_who_paused_it_since_when_and_why_and_what_ends_it() -> None:
    blocked = found(lanes=[lane(paused=True, note="disk swap", paused_by="ada", paused_at=START)])
    assert blocked == BlockedBy(
        BlockedCause.LANE_PAUSED,
        "lane 'cron' is paused by ada since 2026-01-01 00:00:00 UTC (disk swap)",
        START,
        None,
        "ostinato lane resume cron",
        Action(Verb.RESUME_LANE, "cron", "Resume lane cron"),
        (Link("lane", "cron"),),
    )
    assert sentence(lanes=[lane(paused=True)]) == "lane 'cron' is paused"
    assert blocked.told == f"{blocked.sentence}; this ends it: 'ostinato lane resume cron'"


def test_a_command_is_quoted_for_the_shell() -> None:
    name = "it's; rm -rf /"
    blocked = found(run(lane=name), lanes=[lane(name=name, paused=True)])
    assert blocked.command is not None
    assert shlex.split(blocked.command) == ["ostinato", "lane", "resume", name]


def test_a_name_that_begins_like_a_flag_stays_a_name_with_the_ledger_before_it() -> None:
    paused = found(run(lane="-x"), lanes=[lane(name="-x", paused=True)])
    assert paused.command == "ostinato lane resume -- -x"
    assert with_flags(paused.command, "--db 'a b'") == "ostinato lane resume --db 'a b' -- -x"
    assert with_flags("ostinato lane resume 'a -- b'", "--db x") == "ostinato lane resume 'a -- b' --db x"
    assert with_flags("ostinato worker --app a:b", "--db x --app c:d") == "ostinato worker --app a:b --db x"
    rate = found(run(lane="-x"), lanes=[lane(name="-x", rate="6/m", rate_from=NOW)])
    assert rate.command == "ostinato lane set --rate none -- -x"


def test_times_are_in_the_zone_of_the_settings() -> None:
    blocked = found(lanes=[lane(paused=True, paused_at=START)], zone="Europe/Berlin")
    assert blocked.sentence == "lane 'cron' is paused since 2026-01-01 01:00:00 +01:00"


def test_a_full_lane_says_how_full_it_is_and_with_what_since_when() -> None:
    full = [lane(limit=2, used=2)]
    assert sentence(lanes=full) == "lane 'cron' is full: 2 of 2 under way"
    blocked = found(lanes=full, first=FirstActive(lanes={"cron": running(5)}))
    assert (blocked.cause, blocked.sentence, blocked.since) == (
        BlockedCause.LANE_FULL,
        "lane 'cron' is full: 2 of 2 under way, the longest of them run 5 of 'nightly' since 2026-01-01 00:00:00 UTC",
        START,
    )
    assert blocked.chain == (Link("lane", "cron"), Link("run", "5"))
    assert blocked.command == "ostinato lane set cron 3"
    assert blocked.action == Action(Verb.SET_LANE, "cron", "Allow 3 in lane cron", {"limit": 3})


def test_a_lane_that_is_full_with_runs_of_a_lost_node_waits_for_that_node() -> None:
    nodes = [node("two"), node("one", state="lost")]
    blocked = found(lanes=[lane(limit=1, used=1)], nodes=nodes, first=FirstActive(lanes={"cron": running(5)}))
    assert blocked.cause is BlockedCause.NODE_LOST
    assert blocked.sentence == (
        "run 5 was on node one, which is lost since 2026-01-01 00:00:00 UTC: another node takes it over in a moment"
    )
    assert blocked.chain == (Link("lane", "cron"), Link("run", "5"), Link("node", "one"))
    assert blocked.command is None


def test_another_lane_that_is_paused_or_full_holds_nothing_up_here() -> None:
    others = [lane(name="main", paused=True), lane(name="team", limit=1, used=1), lane()]
    assert blocked_run(run(), facts(lanes=others)) is None


def test_a_rate_that_is_used_up_says_when_the_next_one_starts() -> None:
    limited = [lane(rate="6/m", rate_from=NOW - 4 * SECOND)]
    blocked = found(lanes=limited)
    assert blocked.cause is BlockedCause.LANE_RATE
    assert blocked.sentence == (
        "lane 'cron' starts no more than 6/m, which is used up: the next one starts at 2026-01-01 00:00:06 UTC"
    )
    assert (blocked.until, blocked.command) == (from_micros(NOW + 6 * SECOND), "ostinato lane set cron --rate none")
    assert blocked_run(run(), facts(lanes=limited, now=NOW + 6 * SECOND)) is None


def test_no_engine_is_the_cause_when_no_node_is_there_or_all_are_lost() -> None:
    blocked = found(nodes=[])
    assert (blocked.cause, blocked.sentence) == (BlockedCause.NO_ENGINE, "no engine is running")
    assert blocked.command == "ostinato worker --app jobs:app"
    lost = found(nodes=[node(state="lost")])
    assert lost.sentence == "no engine is running: node one is lost since 2026-01-01 00:00:00 UTC"
    assert (lost.cause, lost.since) == (BlockedCause.NO_ENGINE, START)


@pytest.mark.parametrize("state", ["alive", "draining"])
def test_nodes_that_were_asked_to_drain_are_named_with_the_way_out(state: str) -> None:
    blocked = found(nodes=[node("one", state=state, drain=True), node("two", state="lost")])
    assert blocked.cause is BlockedCause.DRAINING
    assert blocked.sentence == "every running node is draining: it was asked to take no more work"
    assert (blocked.command, blocked.action) == (
        "ostinato node resume one",
        Action(Verb.RESUME_NODE, "one", "Resume node one"),
    )


def test_nodes_that_shut_down_cannot_be_resumed() -> None:
    blocked = found(nodes=[node(state="draining")])
    assert (blocked.cause, blocked.sentence) == (BlockedCause.SHUTTING_DOWN, "every running node is shutting down")
    assert (blocked.command, blocked.action) == ("ostinato worker --app jobs:app", None)


def test_one_node_that_takes_work_is_enough() -> None:
    assert blocked_run(run(), facts(nodes=[node("one", drain=True), node("two")])) is None


def test_a_task_that_no_running_node_knows_is_named() -> None:
    nodes = [node(task="other"), node("two", state="lost")]
    blocked = found(nodes=nodes)
    assert (blocked.cause, blocked.sentence) == (
        BlockedCause.UNKNOWN_TASK,
        "task 't' is not registered on any running node",
    )
    assert blocked.command == "ostinato worker --app jobs:app"
    assert blocked_run(run(task=None), facts(nodes=nodes)) is None


def test_when_only_those_that_know_the_task_drain_the_others_are_no_way_out() -> None:
    assert sentence(nodes=[node("one", drain=True), node("two", task="other")]) == (
        "every running node that knows task 't' is draining: it was asked to take no more work"
    )


def test_full_slots_are_those_of_the_nodes_that_could_take_it() -> None:
    full = [node(running=4), node("two", task="other"), node("three", drain=True)]
    blocked = found(nodes=full, first=FirstActive(nodes={"one": running(5, schedule=None)}))
    assert (blocked.cause, blocked.sentence) == (
        BlockedCause.NODE_FULL,
        "the slots of node one are full: 4 of 4 under way, the longest of them run 5 since 2026-01-01 00:00:00 UTC",
    )
    assert blocked.chain == (Link("node", "one"), Link("run", "5"))
    both = [node(running=4), node("two", running=5)]
    assert sentence(nodes=both) == "the slots of all 2 nodes that could take it are full: 9 of 8 under way"
    assert blocked_run(run(), facts(nodes=[node(running=4), node("two", running=3)])) is None


def test_a_turn_in_a_session_names_the_run_that_has_it() -> None:
    waits = run(session="chat:ada", waiting=True)
    blocked = found(waits, first=FirstActive(sessions={"chat:ada": running(3, schedule=None)}))
    assert (blocked.cause, blocked.sentence, blocked.since) == (
        BlockedCause.SESSION_BUSY,
        "session 'chat:ada' is busy: run 3 is running since 2026-01-01 00:00:00 UTC",
        START,
    )
    assert blocked.chain == (Link("session", "chat:ada"), Link("run", "3"))
    assert (blocked.command, blocked.action) == (
        "ostinato run cancel 3",
        Action(Verb.CANCEL_RUN, "3", "Cancel run 3"),
    )


def test_a_turn_behind_a_run_that_waits_itself_is_what_that_one_waits_for() -> None:
    waits = run(session="chat:ada", waiting=True)
    before = FirstActive(sessions={"chat:ada": run(id=RunId(3), session="chat:ada")})
    paused = found(waits, lanes=[lane(paused=True, note="disk swap")], first=before)
    assert (paused.cause, paused.sentence) == (BlockedCause.LANE_PAUSED, "lane 'cron' is paused (disk swap)")
    assert paused.chain == (Link("session", "chat:ada"), Link("run", "3"), Link("lane", "cron"))
    full = FirstActive(sessions=before.sessions, lanes={"cron": running(2)})
    assert [link.name for link in found(waits, lanes=[lane(limit=1, used=1)], first=full).chain] == [
        "chat:ada",
        "3",
        "cron",
        "2",
    ]
    about_to_start = found(waits, first=before)
    assert about_to_start.sentence == "session 'chat:ada' is busy: run 3 of 'nightly' is queued before it"


def test_a_turn_in_the_line_of_its_schedule_is_told_as_that() -> None:
    waits = run(session="schedule:nightly", waiting=True)
    blocked = found(waits, first=FirstActive(sessions={"schedule:nightly": running(3)}))
    assert (blocked.cause, blocked.sentence) == (
        BlockedCause.RUN_ACTIVE,
        "run 3 of 'nightly' is running since 2026-01-01 00:00:00 UTC, "
        "and the runs of schedule 'nightly' go one after the other",
    )
    assert blocked.chain == (Link("run", "3"),)


def test_a_turn_that_is_shared_with_an_outer_run_names_that() -> None:
    waits = run(session="schedule: run 9", waiting=True)
    told = sentence(waits, first=FirstActive(sessions={"schedule: run 9": running(3, schedule=None)}))
    assert told.endswith("and what shares the turn of run 9 goes one after the other")


def test_runs_that_wait_for_each_other_do_not_go_round_for_ever() -> None:
    one, two = (run(id=RunId(id), session="s", waiting=True) for id in (1, 2))
    other = run(id=RunId(2), session="t", waiting=True)
    first = FirstActive(sessions={"s": other, "t": one})
    assert found(one, first=first).chain[-1] == Link("run", "1")
    assert found(two, first=FirstActive(sessions={"s": two})).cause is BlockedCause.SESSION_BUSY


def test_a_step_of_a_chain_says_which_run_it_waits_for() -> None:
    waits = run(waiting=True)
    blocked = found(waits, first=FirstActive(after={waits.id: [running(3)]}))
    assert (blocked.cause, blocked.sentence, blocked.since, blocked.command) == (
        BlockedCause.UPSTREAM,
        "run 7 waits for run 3 of 't', which is running since 2026-01-01 00:00:00 UTC",
        START,
        None,
    )
    assert blocked.chain == (Link("run", "3"),)


def test_a_step_of_a_chain_waits_for_what_the_first_step_waits_for() -> None:
    waits, second, first = run(waiting=True), run(id=RunId(3), waiting=True), run(id=RunId(2))
    before = FirstActive(after={waits.id: [second], second.id: [first]})
    assert sentence(waits, first=before) == "run 3 waits for run 2 of 't', which is queued"
    paused = found(waits, lanes=[lane(paused=True, note="disk swap")], first=before)
    assert (paused.sentence, paused.command) == ("lane 'cron' is paused (disk swap)", "ostinato lane resume cron")
    assert paused.chain == (Link("run", "3"), Link("run", "2"), Link("lane", "cron"))


def test_what_is_given_up_and_goes_on_is_named_with_its_node() -> None:
    going_on = GivenUp(RunId(4), 1, "nightly", "nightly", NodeId("one"), START)
    blocked = found(given_up=[going_on])
    assert (blocked.cause, blocked.since, blocked.command) == (BlockedCause.GIVEN_UP, START, None)
    assert blocked.sentence == (
        "run 4 was given up and its code still runs on node one: "
        "what comes next starts when that has ended; a restart of the node ends it"
    )
    assert blocked_run(run(schedule="other"), facts(given_up=[going_on])) is None


@pytest.mark.parametrize(
    ("row_cause", "cause"),
    [
        (None, BlockedCause.DELAYED),
        (Cause.SNOOZED, BlockedCause.DELAYED),
        (Cause.BUDGET, BlockedCause.BUDGET),
        (Cause.RAISED, BlockedCause.RETRY),
        (Cause.NODE_LOST, BlockedCause.RETRY),
    ],
)
def test_what_is_not_ready_says_when_it_is_and_why_whatever_else_there_is(
    row_cause: Cause | None, cause: BlockedCause
) -> None:
    later = from_micros(NOW + 90 * SECOND)
    waits = run(ready_at=later, session="chat:ada", waiting=True, cause=row_cause, reason=row_cause and "why")
    blocked = found(waits, lanes=[lane(paused=True)], nodes=[])
    why = ": why" if row_cause else ""
    assert (blocked.cause, blocked.until) == (cause, later)
    assert blocked.sentence == f"run 7 is not ready before 2026-01-01 00:01:30 UTC{why}"
    # It starts by itself then: a cancel would end the run, not the wait.
    assert (blocked.command, blocked.action) == (None, None)


def test_a_machine_that_has_not_checked_in_is_waited_for() -> None:
    blocked = found(run(work=CheckIn(late_after="30m")))
    assert (blocked.cause, blocked.command) == (BlockedCause.CHECK_IN, None)
    assert blocked.sentence == "run 7 waits for its machine to check in, and is late 30m after its due time"


def test_what_a_process_is_about_to_start_itself_is_not_blocked() -> None:
    assert blocked_run(run(node="exec-1"), facts(nodes=[])) is None


def test_a_run_that_is_under_way_is_only_blocked_by_the_loss_of_its_node() -> None:
    busy = run(state=RunState.RUNNING, node="one", started_at=START)
    assert blocked_run(busy, facts()) is None
    lost = found(busy, nodes=[node(state="lost")])
    assert (lost.cause, lost.command) == (BlockedCause.NODE_LOST, "ostinato worker --app jobs:app")
    assert lost.sentence.endswith("no other engine is running to take it over")


def test_what_nothing_else_ends_ends_with_the_run_that_has_it() -> None:
    retried = run(id=RunId(3), ready_at=from_micros(NOW + 30), cause=Cause.RAISED, reason="attempt 1 of 4 failed")
    before = FirstActive(sessions={"chat": retried})
    blocked = found(run(session="chat", waiting=True), first=before)
    assert (blocked.cause, blocked.command) == (BlockedCause.RETRY, "ostinato run cancel 3")
    assert blocked.action == Action(Verb.CANCEL_RUN, "3", "Cancel run 3")
    assert found(retried).command is None
    paused = found(run(session="chat", waiting=True), first=FirstActive(sessions={"chat": run(id=RunId(3))}), nodes=[])
    assert (paused.cause, paused.command) == (BlockedCause.NO_ENGINE, "ostinato worker --app jobs:app")


def test_of_several_that_a_step_waits_for_the_first_that_is_kept_from_going_on_is_told() -> None:
    waits, join = run(waiting=True), run(id=RunId(6), waiting=True)
    under_way, kept = running(2), run(id=RunId(3))
    first = FirstActive(after={waits.id: [under_way, join], join.id: [under_way, kept]})
    paused = found(waits, lanes=[lane(paused=True)], first=first)
    assert paused.chain == (Link("run", "6"), Link("run", "3"), Link("lane", "cron"))
    assert found(waits, first=first).chain == (Link("run", "2"),)
