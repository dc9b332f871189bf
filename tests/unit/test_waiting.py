"""Why a queued run does not start: each cause in its own words, in the order in which a claim would meet it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ostinato.clock import SECOND, from_micros, to_micros
from ostinato.models.ids import NodeId, RunId
from ostinato.models.lane import Lane
from ostinato.models.node import Node
from ostinato.models.run import Run
from ostinato.models.states import RunState, Trigger
from ostinato.models.work import Function
from ostinato.service.waiting import why_waiting

START = datetime(2026, 1, 1, tzinfo=UTC)
NOW = to_micros(START)


def run(**values: Any) -> Run:
    fields: dict[str, Any] = {
        "schedule": "nightly", "task": "t", "cause": None, "reason": None, "trigger": Trigger.SCHEDULE,
        "due_at": START, "last_due_at": None, "count": 1, "ready_at": START, "started_at": None, "finished_at": None,
        "attempt": 0, "attempts": (), "totals": {}, "progress": None, "result": None, "error": None, "lane": "cron",
        "priority": 0, "session": None, "key": "7", "node": None, "work": Function("t"),
    }  # fmt: skip
    return Run(id=RunId(7), state=RunState.QUEUED, **{**fields, **values})


def node(id: str = "one", *, state: str = "alive", running: int = 0, drain: bool = False, task: str = "t") -> Node:
    return Node(NodeId(id), "here", 1, state, 4, running, (task,), START, START, drain=drain)


def lane(**values: Any) -> Lane:
    return Lane(**{"name": "cron", "limit": 30, **values})


def test_a_paused_lane_is_named_with_its_note_and_the_way_out() -> None:
    assert why_waiting(run(), [lane(paused=True, note="disk swap")], [node()], NOW) == (
        "its lane 'cron' is paused (disk swap): 'ostinato lane resume cron' starts its runs again"
    )
    assert why_waiting(run(), [lane(paused=True)], [node()], NOW).startswith("its lane 'cron' is paused: ")


def test_a_full_lane_says_how_full_it_is() -> None:
    assert why_waiting(run(), [lane(limit=2, used=2)], [node()], NOW) == "its lane 'cron' is full: 2 of 2 under way"
    assert "is full: 3 of 2" in why_waiting(run(), [lane(limit=2, used=3)], [node()], NOW)


def test_another_lane_that_is_paused_or_full_holds_nothing_up_here() -> None:
    others = [lane(name="main", paused=True), lane(name="team", limit=1, used=1), lane()]
    assert why_waiting(run(), others, [node()], NOW) == "nothing delays it: it is about to start"


def test_a_rate_that_is_used_up_says_when_the_next_one_starts() -> None:
    limited = lane(rate="6/m", rate_from=NOW - 4 * SECOND)
    assert why_waiting(run(), [limited], [node()], NOW) == (
        "its lane 'cron' starts no more than 6/m, which is used up: the next one starts at 2026-01-01 00:00:06 UTC"
    )
    assert "about to start" in why_waiting(run(), [limited], [node()], NOW + 6 * SECOND)


def test_no_engine_is_the_cause_when_no_node_is_there_or_all_are_lost() -> None:
    nobody = "no engine is running: start one with 'ostinato up'"
    assert why_waiting(run(), [lane()], [], NOW) == nobody
    assert why_waiting(run(), [lane()], [node(state="lost")], NOW) == nobody


@pytest.mark.parametrize("state", ["alive", "draining"])
def test_nodes_that_were_asked_to_drain_are_named_with_the_way_out(state: str) -> None:
    nodes = [node("one", state=state, drain=True), node("two", state="lost")]
    assert why_waiting(run(), [lane()], nodes, NOW) == (
        "every running node is draining: 'ostinato node resume one' lets it take work again"
    )


def test_nodes_that_shut_down_cannot_be_resumed() -> None:
    assert why_waiting(run(), [lane()], [node(state="draining")], NOW) == (
        "every running node is shutting down: start another one with 'ostinato up'"
    )


def test_one_node_that_takes_work_is_enough() -> None:
    nodes = [node("one", drain=True), node("two")]
    assert why_waiting(run(), [lane()], nodes, NOW) == "nothing delays it: it is about to start"


def test_a_task_that_no_running_node_knows_is_named() -> None:
    nodes = [node(task="other"), node("two", state="lost")]
    assert why_waiting(run(), [lane()], nodes, NOW) == "task 't' is not registered on any running node"
    assert "about to start" in why_waiting(run(task=None), [lane()], nodes, NOW)


def test_when_only_those_that_know_the_task_drain_the_others_are_no_way_out() -> None:
    nodes = [node("one", drain=True), node("two", task="other")]
    assert why_waiting(run(), [lane()], nodes, NOW) == (
        "every running node that knows task 't' is draining: 'ostinato node resume one' lets it take work again"
    )


def test_full_slots_are_those_of_the_nodes_that_could_take_it() -> None:
    full = [node(running=4), node("two", task="other"), node("three", drain=True)]
    assert why_waiting(run(), [lane()], full, NOW) == "the slots of node one are full: 4 of 4 under way"
    both = [node(running=4), node("two", running=5)]
    assert why_waiting(run(), [lane()], both, NOW) == (
        "the slots of all 2 nodes that could take it are full: 9 of 8 under way"
    )
    assert "about to start" in why_waiting(run(), [lane()], [node(running=4), node("two", running=3)], NOW)


def test_a_turn_in_a_session_names_the_session_and_the_run_before_it() -> None:
    waits = run(session="chat:ada", waiting=True)
    assert why_waiting(waits, [lane(paused=True)], [], NOW, RunId(3)) == (
        "it waits for its turn in its session 'chat:ada', behind run 3"
    )
    assert why_waiting(waits, [lane()], [], NOW) == "it waits for its turn in its session 'chat:ada'"


def test_a_turn_in_the_line_of_its_schedule_is_told_as_that() -> None:
    waits = run(session="schedule:nightly", waiting=True)
    assert why_waiting(waits, [lane()], [node()], NOW, RunId(3)) == (
        "it waits for its turn: the runs of its schedule go one after the other, behind run 3"
    )


def test_what_is_not_ready_says_when_it_is_whatever_else_there_is() -> None:
    later = run(ready_at=from_micros(NOW + 90 * SECOND), session="chat:ada", waiting=True)
    assert why_waiting(later, [lane(paused=True)], [], NOW) == "it is not ready before 2026-01-01 00:01:30 UTC"
    assert "behind run 3" in why_waiting(later, [lane()], [], NOW + 90 * SECOND, RunId(3))
