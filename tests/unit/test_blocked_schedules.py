"""What keeps a schedule from running: its switch, the run that waits, the run under way, or what holds up all."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ostinato.clock import from_micros
from ostinato.models.blocking import Action, BlockedBy, BlockedCause, Link, Verb
from ostinato.models.budget import MICRO, Spending
from ostinato.models.given_up import GivenUp
from ostinato.models.ids import NodeId, RunId, ScheduleId
from ostinato.models.policy import make_policy
from ostinato.models.schedule import Schedule
from ostinato.models.states import Cause, RunState
from ostinato.models.work import CheckIn, Function
from ostinato.service.blocked_schedules import blocked_schedule, blocked_upstream
from ostinato.stores.base import FirstActive
from tests.unit.waiting import NOW, START, facts, lane, node, run, running

TOMORROW = START + timedelta(days=1)
ID = ScheduleId(1)


def schedule(**values: Any) -> Schedule:
    fields: dict[str, Any] = {
        "id": ID, "name": "nightly", "timing": "every 1h", "zone": "UTC", "sentence": "Every hour.",
        "work": Function("t"), "policy": make_policy({}), "project": None, "owner": "user", "enabled": True,
        "broken": None, "orphaned": False, "note": None, "off_note": None, "next_run_at": TOMORROW,
        "next_run_reason": None, "paused_since": None, "remaining": None, "failures": 0, "last_run": None,
        "version": 1, "created_at": START, "updated_at": START, "anchor_at": START, "made_by": None,
    }  # fmt: skip
    return Schedule(**{**fields, **values})


def found(of: Schedule | None = None, **given: Any) -> BlockedBy:
    blocked = blocked_schedule(of or schedule(), facts(**given))
    assert blocked is not None
    return blocked


def test_a_schedule_that_nothing_holds_up_is_not_blocked() -> None:
    assert blocked_schedule(schedule(), facts()) is None


def test_one_that_has_finished_is_not_blocked() -> None:
    assert blocked_schedule(schedule(next_run_at=None, remaining=0, enabled=False), facts(nodes=[])) is None


def test_one_that_is_off_says_who_switched_it_off_when_and_why() -> None:
    off = schedule(enabled=False, next_run_at=None, off_by="ada", off_at=START, off_note="moving house")
    blocked = found(off, nodes=[])
    assert blocked == BlockedBy(
        BlockedCause.OFF,
        "schedule 'nightly' is switched off by ada at 2026-01-01 00:00:00 UTC (moving house)",
        START,
        None,
        "ostinato schedule enable nightly",
        Action(Verb.ENABLE_SCHEDULE, "nightly", "Enable"),
    )
    unknown = found(schedule(name="it's", enabled=False, next_run_at=None))
    assert unknown.sentence == 'schedule "it\'s" is switched off'
    assert unknown.command == "ostinato schedule enable 'it'\"'\"'s'"


def test_one_that_is_broken_says_why() -> None:
    blocked = found(schedule(enabled=False, broken="3 scheduled runs failed in a row", next_run_at=None))
    assert (blocked.cause, blocked.sentence) == (
        BlockedCause.BROKEN,
        "schedule 'nightly' is broken: 3 scheduled runs failed in a row",
    )
    assert blocked.action == Action(Verb.ENABLE_SCHEDULE, "nightly", "Re-enable")


def test_one_that_is_broken_says_when_a_run_of_it_is_tried() -> None:
    blocked = found(schedule(enabled=False, broken="boom", next_run_at=None, probe_at=TOMORROW))
    tried = "one run is tried at 2026-01-02 00:00:00 UTC"
    assert (blocked.sentence, blocked.until) == (f"schedule 'nightly' is broken: boom; {tried}", TOMORROW)


def test_one_that_is_broken_and_has_no_further_due_time_needs_another_timing() -> None:
    once = schedule(enabled=False, broken="its last run failed: exit 3", next_run_at=None, timing="at 2025-12-31T00:00")
    blocked = found(once)
    assert (blocked.cause, blocked.sentence) == (
        BlockedCause.FINISHED,
        "schedule 'nightly' is broken: its last run failed: exit 3; it has no further due time",
    )
    assert blocked.command == "ostinato schedule edit nightly --timing 'in 1m'"
    assert blocked.action == Action(Verb.EDIT_SCHEDULE, "nightly", "Give it another timing")


def test_what_runs_after_another_is_held_up_by_what_holds_that_up() -> None:
    off = schedule(name="import", enabled=False, next_run_at=None, off_by="ada")
    blocked = blocked_upstream(schedule(), "import", off, blocked_schedule(off, facts()))
    assert blocked is not None
    assert (blocked.sentence, blocked.chain) == (
        "schedule 'import' is switched off by ada",
        (Link("schedule", "import"),),
    )
    assert blocked.command == "ostinato schedule enable import"
    assert blocked_upstream(schedule(), "import", schedule(name="import"), None) is None
    for upstream, why in ((None, "does not exist"), (finished(), "has no further due time")):
        blocked = blocked_upstream(schedule(), "import", upstream, None)
        assert blocked is not None
        assert blocked.cause is BlockedCause.UPSTREAM_GONE
        assert blocked.command == "ostinato schedule edit nightly --timing TIMING"
        assert blocked.sentence == f"it runs after 'import', which {why}"


def finished() -> Schedule:
    return schedule(name="import", next_run_at=None, remaining=0, enabled=False)


def test_one_whose_timing_cannot_be_read_is_broken_though_it_is_on() -> None:
    blocked = found(schedule(broken="its timing 'x' is not readable", next_run_at=None))
    assert blocked.cause is BlockedCause.BROKEN


def test_one_whose_task_no_node_knows_waits_for_a_node_and_not_for_a_switch() -> None:
    shown = schedule(broken="task 't' is not registered on any running node")
    for one in (schedule(), shown):
        blocked = found(one, nodes=[node(task="other")])
        assert (blocked.cause, blocked.command) == (BlockedCause.UNKNOWN_TASK, "ostinato worker --app jobs:app")


def test_one_that_the_code_no_longer_declares_says_so() -> None:
    blocked = found(schedule(orphaned=True, next_run_at=None))
    assert (blocked.cause, blocked.command) == (BlockedCause.ORPHANED, "ostinato schedule rm nightly")
    assert blocked.sentence == "the code no longer declares schedule 'nightly'"


def paused_by_budget(**budget: Any) -> Schedule:
    reason = "paused: budget: 3 of 3 runs used today"
    policy = make_policy({"budget": budget})
    return schedule(paused_since=START, paused_cause=Cause.BUDGET, next_run_reason=reason, policy=policy)


def test_one_that_is_paused_by_its_budget_says_until_when_and_what_ends_that() -> None:
    blocked = found(paused_by_budget(per_day_runs=3, per_day_usd=5), spending=Spending(runs=3))
    assert (blocked.cause, blocked.since, blocked.until) == (BlockedCause.BUDGET, START, TOMORROW)
    assert blocked.sentence == "schedule 'nightly' is paused: budget: 3 of 3 runs used today"
    assert blocked.command == "ostinato schedule edit nightly --budget per_day_runs=6"
    assert blocked.action == Action(Verb.EDIT_SCHEDULE, "nightly", "Raise its budget")


@pytest.mark.parametrize(
    ("budget", "spent", "bounds"),
    [
        ({"per_day_usd": 5}, Spending(spent=5_020_000), "per_day_usd=10.02"),
        ({"per_day_usd": 5, "per_run_usd": 1}, Spending(spent=4_500_000), "per_day_usd=9.50"),
        ({"per_day_usd": 5, "per_day_runs": 2}, Spending(2, 5_000_000), "per_day_usd=10,per_day_runs=4"),
        ({"per_day_usd": 0.001}, Spending(spent=1_000), "per_day_usd=0.01"),
        ({"per_day_usd": 1_000_000}, Spending(spent=MICRO * 1_000_000), "per_day_usd=1000000"),
    ],
)
def test_as_much_again_ends_the_pause_by_a_budget(budget: dict[str, Any], spent: Spending, bounds: str) -> None:
    blocked = found(paused_by_budget(**budget), spending=spent)
    assert blocked.command == f"ostinato schedule edit nightly --budget {bounds}"


def test_one_whose_budget_is_no_longer_used_up_is_just_enabled() -> None:
    blocked = found(paused_by_budget(per_day_runs=3), spending=Spending(runs=2))
    assert blocked.command == "ostinato schedule enable nightly"
    assert blocked.action == Action(Verb.ENABLE_SCHEDULE, "nightly", "Enable now")


def test_one_that_is_being_removed_says_so_and_nothing_ends_it() -> None:
    removed = schedule(paused_since=START, paused_cause=Cause.REMOVED, next_run_reason="paused: it is being removed")
    blocked = found(removed)
    assert (blocked.cause, blocked.command, blocked.action) == (BlockedCause.REMOVING, None, None)


def test_the_run_that_waits_leads_to_the_root_and_the_sentence_is_that_of_the_run() -> None:
    paused = [lane(paused=True, paused_by="ada", note="disk swap")]
    last = run(state=RunState.SKIPPED, cause=Cause.OVERLAP, reason="run 7 was still active (overlap is skip)")
    blocked = found(schedule(last_run=last), lanes=paused, first=FirstActive(queued={ID: run()}))
    assert (blocked.cause, blocked.sentence) == (BlockedCause.LANE_PAUSED, "lane 'cron' is paused by ada (disk swap)")
    assert blocked.chain == (Link("run", "7"), Link("lane", "cron"))


def test_a_run_that_a_due_time_was_skipped_for_blocks_it_until_its_end() -> None:
    skipped = run(id=RunId(8), state=RunState.SKIPPED, cause=Cause.OVERLAP)
    under_way = FirstActive(running={ID: running(7)})
    blocked = found(schedule(last_run=skipped), first=under_way)
    assert (blocked.cause, blocked.sentence) == (
        BlockedCause.RUN_ACTIVE,
        "run 7 of 'nightly' is running since 2026-01-01 00:00:00 UTC, and its overlap policy is skip",
    )
    assert (blocked.command, blocked.chain) == ("ostinato run cancel 7", (Link("run", "7"),))
    lost = found(schedule(last_run=skipped), first=under_way, nodes=[node("two"), node("one", state="lost")])
    assert lost.cause is BlockedCause.NODE_LOST
    assert lost.chain == (Link("run", "7"), Link("node", "one"))


def test_a_run_that_is_simply_under_way_blocks_nothing() -> None:
    under_way = FirstActive(running={ID: running(7)})
    assert blocked_schedule(schedule(last_run=running(7)), facts(first=under_way)) is None


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ({"nodes": []}, BlockedCause.NO_ENGINE),
        ({"nodes": [node(drain=True)]}, BlockedCause.DRAINING),
        ({"nodes": [node(state="draining")]}, BlockedCause.SHUTTING_DOWN),
        ({"lanes": [lane(paused=True)]}, BlockedCause.LANE_PAUSED),
        (
            {"given_up": [GivenUp(RunId(4), 1, "nightly", "nightly", NodeId("one"), from_micros(NOW))]},
            BlockedCause.GIVEN_UP,
        ),
    ],
)
def test_what_would_keep_its_next_run_from_starting_is_told_before_it_is_due(
    given: dict[str, Any], cause: BlockedCause
) -> None:
    assert found(**given).cause is cause


def test_one_that_follows_others_has_no_due_time_and_is_held_up_all_the_same() -> None:
    follows = schedule(follows=True, next_run_at=None)
    assert blocked_schedule(follows, facts()) is None
    assert found(follows, nodes=[]).cause is BlockedCause.NO_ENGINE
    assert found(schedule(follows=True, next_run_at=None, enabled=False)).cause is BlockedCause.OFF


def test_what_is_full_for_a_moment_blocks_nothing_that_does_not_wait_yet() -> None:
    assert blocked_schedule(schedule(), facts(lanes=[lane(limit=1, used=1)], nodes=[node(running=4)])) is None


def test_the_lane_of_a_schedule_whose_lane_does_not_exist_is_main() -> None:
    of = schedule(policy=make_policy({"lane": "nowhere"}))
    assert found(of, lanes=[lane(name="main", paused=True)]).sentence == "lane 'main' is paused"


def test_what_was_given_up_does_not_block_what_may_overlap() -> None:
    going_on = GivenUp(RunId(4), 1, "nightly", "nightly", NodeId("one"), START)
    of = schedule(policy=make_policy({"overlap": "allow"}))
    assert blocked_schedule(of, facts(given_up=[going_on])) is None


def test_a_schedule_that_waits_for_a_machine_needs_neither_a_lane_nor_a_task() -> None:
    of = schedule(work=CheckIn(late_after="30m"))
    paused = [lane(paused=True)]
    assert blocked_schedule(of, facts(lanes=paused, first=FirstActive(queued={ID: run(work=of.work)}))) is None
    assert found(of, nodes=[]).cause is BlockedCause.NO_ENGINE


def test_a_check_that_failed_at_the_latest_due_time_is_told_until_the_next() -> None:
    refused = run(id=RunId(9), state=RunState.SKIPPED, cause=Cause.CHECK, reason="check failed: ink: empty")
    blocked = found(schedule(last_run=refused))
    assert (blocked.cause, blocked.sentence) == (BlockedCause.CHECK, "run 9 was skipped: check failed: ink: empty")
    # A run that somebody starts asks no check: it would do the work that the check says no to.
    assert (blocked.until, blocked.command, blocked.action) == (TOMORROW, None, None)
