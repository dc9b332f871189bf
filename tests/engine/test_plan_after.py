"""The planner of schedules that follow others, pure: which ends are run for, which get a row that says why not."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.clock import SECOND, Micros
from ostinato.engine.plan import plan_fires
from ostinato.models.ids import RunId
from ostinato.models.policy import make_policy, policy_text
from ostinato.models.schedule import DueSchedule, FirePlan
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.models.upstream import UpstreamEnd
from tests.rows import HOUR, START, due_schedule

MINUTE = 60 * SECOND
GRACE = 5 * SECOND
NOW = START + HOUR


def end(run: int, schedule: str = "a", state: str = "succeeded", at: Micros = NOW, **fields: Any) -> UpstreamEnd:
    return UpstreamEnd(RunId(run), schedule, RunState(state), at, **fields)


def following(timing: str, *ends: UpstreamEnd, active: tuple[int, ...] = (), **policy: Any) -> DueSchedule:
    settled = make_policy(policy)
    return due_schedule(
        timing=timing,
        policy=policy_text(settled),
        next_at=min((one.ended_at for one in ends if not one.held), default=NOW),
        remaining=settled.remaining,
        follows=True,
        ends=ends,
        active=tuple(map(RunId, active)),
    )


def plan(of: DueSchedule, now: Micros = NOW) -> FirePlan:
    found = plan_fires(of, now, grace=GRACE, random=lambda: 0.5)
    assert found is not None
    assert found.broken is None
    answered = [run for row in found.runs for run in row.after]
    assert sorted([*answered, *found.held]) == sorted(one.run for one in of.ends), "every end once"
    return found


def rows(of: FirePlan) -> list[tuple[str, tuple[int, ...]]]:
    """The state of each row, and which runs it answers."""
    return [(str(row.state), row.after) for row in of.runs]


def test_a_success_is_followed_by_a_run_that_is_due_when_it_ended() -> None:
    planned = plan(following("after a", end(7, at=NOW - 1)))
    (run,) = planned.runs
    assert (run.state, run.trigger, run.due_at, run.after) == (RunState.QUEUED, Trigger.AFTER, NOW - 1, (7,))
    assert (planned.next_at, planned.follows, planned.enabled) == (None, True, True)


@pytest.mark.parametrize(
    ("on", "followed"),
    [("success", {"succeeded"}), ("failure", {"failed", "expired"}),
     ("end", {"succeeded", "failed", "expired", "cancelled", "skipped", "superseded"})],
)  # fmt: skip
def test_each_end_is_followed_or_says_why_not(on: str, followed: set[str]) -> None:
    timing = "after a" if on == "success" else f"after a on {on}"
    for state in ("succeeded", "failed", "expired", "cancelled", "skipped", "superseded"):
        (run,) = plan(following(timing, end(7, state=state))).runs
        assert (run.state is RunState.QUEUED) == (state in followed), state
        if state not in followed:
            assert (run.state, run.cause) == (RunState.SKIPPED, Cause.UPSTREAM)
            assert run.reason is not None
            assert run.reason.startswith("run 7 of 'a' ")
            assert run.reason.endswith(f"{state}, and this runs on {on}")


def test_any_of_several_is_enough_and_each_end_counts() -> None:
    planned = plan(following("after a or b", end(1, "a"), end(2, "b"), overlap="allow"))
    assert rows(planned) == [("queued", (1,)), ("queued", (2,))]


def test_two_that_end_at_once_go_one_after_the_other() -> None:
    planned = plan(following("after a or b", end(1, "a"), end(2, "b")))
    assert rows(planned) == [("queued", (1,)), ("queued", (2,))]
    assert {run.session for run in planned.runs} == {planned.runs[0].session} != {None}


def test_all_of_several_are_one_run_that_is_due_with_the_last() -> None:
    planned = plan(following("after a and b within 1h", end(1, "a", at=NOW - MINUTE, held=True), end(2, "b")))
    assert rows(planned) == [("queued", (1, 2))]
    assert (planned.runs[0].due_at, planned.next_at) == (NOW, None)


def test_the_first_of_all_waits_for_the_others_within_its_window() -> None:
    planned = plan(following("after a and b within 1h", end(1, "a")))
    assert (planned.runs, planned.held, planned.next_at) == ((), (1,), NOW + HOUR + 1)


def test_what_waits_in_vain_is_skipped_and_says_for_whom() -> None:
    of = following("after a and b and c within 1h", end(1, "a", at=NOW - HOUR - 1, held=True), end(2, "b"))
    planned = plan(of)
    (run,) = planned.runs
    assert (run.state, run.cause, run.after) == (RunState.SKIPPED, Cause.UPSTREAM, (1,))
    assert run.reason == "run 1 of 'a' waited 1h for 'b' and 'c'"
    assert (planned.held, planned.next_at) == ((2,), NOW + HOUR + 1)


def test_a_newer_end_of_the_same_schedule_takes_the_place_of_the_older() -> None:
    planned = plan(following("after a and b within 1h", end(1, "a", at=NOW - 2, held=True), end(3, "a", at=NOW - 1)))
    (run,) = planned.runs
    assert (run.state, run.after, run.reason) == (
        RunState.SKIPPED,
        (1,),
        "run 3 of 'a' ended before all the others had",
    )
    assert planned.held == (3,)


def test_a_failure_does_not_count_towards_all() -> None:
    planned = plan(following("after a and b within 1h", end(1, "a", "failed"), end(2, "b")))
    assert rows(planned) == [("skipped", (1,))]
    assert planned.held == (2,)


def test_of_one_that_it_no_longer_follows_it_says_so() -> None:
    (run,) = plan(following("after a", end(1, "old"))).runs
    assert (run.state, run.reason) == (RunState.SKIPPED, "it does not run after 'old' any more")


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [
        ("none", [("missed", (1, 2, 3))]),
        ("latest", [("missed", (1, 2)), ("queued", (3,))]),
        ("all", [("queued", (1,)), ("queued", (2,)), ("queued", (3,))]),
    ],
)
def test_of_ends_that_nobody_saw_in_time_catch_up_decides(
    catch_up: str, expected: list[tuple[str, tuple[int, ...]]]
) -> None:
    ends = [end(number, at=NOW - (5 - number) * MINUTE) for number in (1, 2, 3)]
    planned = plan(following("after a", *ends, catch_up=catch_up))
    assert rows(planned) == expected
    if catch_up != "all":
        missed = planned.runs[0]
        assert (missed.cause, missed.count, missed.due_at) == (Cause.DOWNTIME, len(missed.after), NOW - 4 * MINUTE)
        assert f"and catch_up is {catch_up}" in str(missed.reason)
        assert [notice.cause for notice in planned.notices] == ["downtime"]


def test_what_is_older_than_the_window_is_missed() -> None:
    planned = plan(following("after a", end(1, at=NOW - 2 * HOUR), catch_up="all", catch_up_window="1h"))
    assert [(row.state, row.cause) for row in planned.runs] == [(RunState.MISSED, Cause.OUTSIDE_WINDOW)]


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [("skip", ["skipped"]), ("queue_one", ["queued"]), ("queue_all", ["queued"]), ("allow", ["queued"])],
)
def test_an_active_run_meets_the_overlap_policy(overlap: str, expected: list[str]) -> None:
    planned = plan(following("after a", end(7), active=(5,), overlap=overlap))
    assert [str(run.state) for run in planned.runs] == expected
    assert planned.runs[0].after == (7,)


def test_the_newer_end_replaces_what_runs_where_the_policy_says_so() -> None:
    planned = plan(following("after a", end(7), active=(5,), overlap="cancel_running"))
    assert (planned.cancel, rows(planned)) == ((5,), [("queued", (7,))])


def test_with_the_last_run_that_remains_it_ends() -> None:
    of = following("after a", end(1, at=NOW - 1), end(2), remaining=1)
    found = plan_fires(of, NOW, grace=GRACE, random=lambda: 0.5)
    assert found is not None
    assert (rows(found), found.remaining, found.enabled) == ([("queued", (1,))], 0, False)


def test_jitter_moves_the_start_and_not_the_due_time() -> None:
    (run,) = plan(following("after a jitter 10s", end(1))).runs
    assert (run.due_at, run.ready_at) == (NOW, NOW + 5 * SECOND)


def test_an_end_that_has_not_come_by_this_clock_waits() -> None:
    assert plan_fires(following("after a", end(1, at=NOW + 1)), NOW, grace=GRACE, random=lambda: 0.5) is None
