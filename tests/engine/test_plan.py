"""The planner, pure: given a schedule and a time, what is run, missed, skipped, and when it is due next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.clock import SECOND, Micros
from ostinato.engine.plan import plan_fires
from ostinato.models.ids import RunId
from ostinato.models.policy import make_policy, policy_text
from ostinato.models.run import NewRun
from ostinato.models.schedule import DueSchedule, FirePlan
from ostinato.models.states import RunState, Trigger
from ostinato.timing import Every
from tests.rows import HOUR, START, due_schedule

MINUTE = 60 * SECOND
GRACE = 5 * SECOND


def schedule(timing: str = "every 1h", *, due: Micros = START + HOUR, **policy: Any) -> DueSchedule:
    """Enabled at START; `due` is its next due time."""
    settled = make_policy(policy)
    return due_schedule(timing=timing, policy=policy_text(settled), next_at=due, remaining=settled.remaining)


def plan(of: DueSchedule, now: Micros, random: float = 0.5) -> FirePlan:
    found = plan_fires(of, now, grace=GRACE, random=lambda: random)
    assert found is not None
    return found


def outcome(runs: tuple[NewRun, ...]) -> list[tuple[str, int]]:
    """State and hour (since START) of each row."""
    return [(str(run.state), (run.due_at - START) // HOUR) for run in runs]


def test_what_is_due_is_queued_and_the_next_due_time_is_on_the_grid() -> None:
    planned = plan(schedule(), START + HOUR)
    (run,) = planned.runs
    assert (run.state, run.trigger, run.due_at, run.ready_at) == (
        RunState.QUEUED,
        Trigger.SCHEDULE,
        START + HOUR,
        START + HOUR,
    )
    assert planned.next_at == START + 2 * HOUR
    assert planned.enabled


def test_a_plan_names_what_it_was_made_from() -> None:
    planned = plan(schedule(), START + HOUR)
    assert (planned.schedule_id, planned.read_next_at, planned.version) == (1, START + HOUR, 1)


@pytest.mark.parametrize(
    ("late", "trigger"),
    [(GRACE, Trigger.SCHEDULE), (GRACE + 1, Trigger.CATCH_UP)],
)
def test_a_due_time_up_to_the_grace_late_is_on_time(late: Micros, trigger: Trigger) -> None:
    assert plan(schedule(), START + HOUR + late).runs[0].trigger is trigger


@pytest.mark.parametrize(("late", "state"), [(GRACE, "queued"), (GRACE + 1, "missed")])
def test_without_catch_up_a_due_time_later_than_the_grace_is_missed(late: Micros, state: str) -> None:
    assert outcome(plan(schedule(catch_up="none"), START + HOUR + late).runs) == [(state, 1)]


@pytest.mark.parametrize("catch_up", ["none", "latest", "all"])
def test_every_due_time_within_the_grace_is_fired_whatever_catch_up_says(catch_up: str) -> None:
    """A node that was held up for some seconds is late, and has missed nothing."""
    planned = plan(schedule("every 1s", due=START + SECOND, catch_up=catch_up), START + 3 * SECOND + SECOND // 2)
    assert [(str(run.state), run.due_at - START) for run in planned.runs] == [
        ("queued", SECOND),
        ("queued", 2 * SECOND),
        ("queued", 3 * SECOND),
    ]
    assert {run.trigger for run in planned.runs} == {Trigger.SCHEDULE}
    assert [run.waiting for run in planned.runs] == [True] * 3, "one after the other"
    assert planned.next_at == START + 4 * SECOND


@pytest.mark.parametrize("catch_up", ["none", "latest"])
def test_the_cap_of_a_catch_up_is_none_of_what_is_on_time(catch_up: str) -> None:
    of = schedule("every 1s", due=START + SECOND, catch_up=catch_up, catch_up_cap=1)
    assert [str(run.state) for run in plan(of, START + 3 * SECOND).runs] == ["queued"] * 3


@pytest.mark.parametrize("catch_up", ["none", "latest"])
def test_due_times_before_the_grace_are_one_missed_row(catch_up: str) -> None:
    missed, *late = plan(schedule("every 1s", due=START + SECOND, catch_up=catch_up), START + 20 * SECOND).runs
    assert (missed.state, missed.count, missed.last_due_at) == (RunState.MISSED, 14, START + 14 * SECOND)
    assert [run.due_at - START for run in late] == [second * SECOND for second in range(15, 21)], (
        "at most 5 seconds late"
    )
    assert ("only those that are still on time are run" in (missed.reason or "")) == (catch_up == "latest")
    assert "only the latest" not in (missed.reason or "")


def test_the_row_says_why_nobody_saw_its_due_times() -> None:
    found = plan_fires(
        schedule(catch_up="none"), START + 2 * HOUR, grace=GRACE, random=lambda: 0.5, absence="the moon was full"
    )
    assert found is not None
    assert found.runs[0].reason == "due while the moon was full, and catch_up is none"


# Catch-up.


def test_catch_up_none_collapses_all_that_was_missed_into_one_row() -> None:
    planned = plan(schedule(catch_up="none"), START + 5 * HOUR + 30 * MINUTE)
    (missed,) = planned.runs
    assert (missed.state, missed.count) == (RunState.MISSED, 5)
    assert (missed.due_at, missed.last_due_at) == (START + HOUR, START + 5 * HOUR)
    assert "catch_up is none" in (missed.reason or "")
    assert planned.next_at == START + 6 * HOUR


def test_catch_up_latest_runs_the_last_and_misses_the_others() -> None:
    missed, caught_up = plan(schedule(), START + 5 * HOUR + MINUTE).runs
    assert (missed.state, missed.count, missed.last_due_at) == (RunState.MISSED, 4, START + 4 * HOUR)
    assert (caught_up.trigger, caught_up.due_at) == (Trigger.CATCH_UP, START + 5 * HOUR)
    assert "only the latest" in (missed.reason or "")


def test_catch_up_all_runs_each_oldest_first_and_one_after_the_other() -> None:
    runs = plan(schedule(catch_up="all"), START + 4 * HOUR + MINUTE).runs
    assert outcome(runs) == [("queued", 1), ("queued", 2), ("queued", 3), ("queued", 4)]
    assert all(run.waiting and run.session == "schedule:job" for run in runs)


def test_catch_up_all_with_overlap_allow_runs_them_side_by_side() -> None:
    runs = plan(schedule(catch_up="all", overlap="allow"), START + 3 * HOUR + MINUTE).runs
    assert [run.waiting for run in runs] == [False] * 3


def test_the_catch_up_cap_keeps_the_newest() -> None:
    runs = plan(schedule(catch_up="all", catch_up_cap=2), START + 6 * HOUR + MINUTE).runs
    assert outcome(runs) == [("missed", 1), ("queued", 5), ("queued", 6)]
    assert runs[0].count == 4


def test_the_catch_up_window_bounds_how_far_back_all_goes() -> None:
    runs = plan(schedule(catch_up="all", catch_up_window="90m"), START + 6 * HOUR).runs
    assert outcome(runs) == [("missed", 1), ("queued", 5), ("queued", 6)]


def test_the_latest_is_missed_too_when_it_is_outside_of_the_window() -> None:
    (missed,) = plan(schedule("daily 03:00", due=START + 3 * HOUR, catch_up_window="1h"), START + 12 * HOUR).runs
    assert (missed.state, missed.count) == (RunState.MISSED, 1)
    assert "window" in (missed.reason or "")


@contextmanager
def counting_calls() -> Iterator[list[str]]:
    """Every question that is asked of an Every."""
    calls: list[str] = []
    asked = {name: getattr(Every, name) for name in ("_next", "_previous", "_count")}

    def counted(name: str) -> Any:
        def call(self: Every, *args: Any) -> Any:
            calls.append(name)
            return asked[name](self, *args)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in asked:
            patch.setattr(Every, name, counted(name))
        yield calls


def test_two_weeks_of_downtime_of_a_five_second_schedule_are_counted_and_not_walked() -> None:
    fortnight = 14 * 24 * HOUR
    with counting_calls() as calls:
        missed, caught_up = plan(schedule("every 5s", due=START + 5 * SECOND), START + fortnight + 1).runs
    assert (missed.state, missed.count) == (RunState.MISSED, 241_919)
    assert (missed.due_at, missed.last_due_at) == (START + 5 * SECOND, START + fortnight - 5 * SECOND)
    assert caught_up.due_at == START + fortnight
    assert 0 < len(calls) < 10


# Overlap: what a due time does when a run of the schedule is active, or another one waits already.


def busy(overlap: str, *, waiting: int = 0, **policy: Any) -> DueSchedule:
    return replace(
        schedule(overlap=overlap, **policy), active=(RunId(7),), waiting=tuple(RunId(8 + n) for n in range(waiting))
    )


@pytest.mark.parametrize(
    ("overlap", "waiting", "state", "cancels"),
    [
        ("skip", 0, "skipped", False),
        ("skip", 1, "skipped", False),
        ("queue_one", 0, "queued", False),
        ("queue_one", 1, "skipped", False),
        ("queue_all", 0, "queued", False),
        ("queue_all", 9, "queued", False),
        ("cancel_running", 0, "queued", True),
        ("cancel_running", 1, "queued", True),
        ("allow", 0, "queued", False),
        ("allow", 3, "queued", False),
    ],
)
def test_a_due_time_that_meets_an_active_run(overlap: str, waiting: int, state: str, cancels: bool) -> None:
    planned = plan(busy(overlap, waiting=waiting), START + HOUR)
    assert outcome(planned.runs) == [(state, 1)]
    assert planned.cancel == ((7, 8)[: 1 + waiting] if cancels else ())
    if state == "skipped":
        assert overlap in (planned.runs[0].reason or "")


@pytest.mark.parametrize("overlap", ["skip", "queue_one", "queue_all", "cancel_running", "allow"])
def test_a_due_time_that_meets_nothing_is_queued_whatever_the_overlap(overlap: str) -> None:
    planned = plan(schedule(overlap=overlap), START + HOUR)
    assert outcome(planned.runs) == [("queued", 1)]
    assert planned.cancel == ()


@pytest.mark.parametrize("overlap", ["queue_one", "queue_all", "cancel_running"])
def test_queued_overlaps_wait_for_their_turn(overlap: str) -> None:
    (run,) = plan(busy(overlap), START + HOUR).runs
    assert (run.waiting, run.session) == (True, "schedule:job")


def test_a_backlog_that_meets_an_active_run_keeps_one_under_queue_one() -> None:
    runs = plan(busy("queue_one", catch_up="all"), START + 3 * HOUR).runs
    assert outcome(runs) == [("queued", 1), ("skipped", 2), ("skipped", 3)]


def test_a_backlog_that_meets_an_active_run_keeps_the_newest_under_cancel_running() -> None:
    runs = plan(busy("cancel_running", catch_up="all"), START + 3 * HOUR).runs
    assert outcome(runs) == [("skipped", 1), ("skipped", 2), ("queued", 3)]


def test_a_plan_that_took_the_schedule_for_idle_says_so() -> None:
    assert plan(schedule(), START + HOUR).idle
    assert not plan(schedule(overlap="allow"), START + HOUR).idle
    assert not plan(busy("skip"), START + HOUR).idle


# Ahead of time.


def test_a_due_time_that_comes_soon_is_recorded_ahead_of_it() -> None:
    planned = plan(schedule(), START + HOUR - SECOND)
    (run,) = planned.runs
    assert (run.trigger, run.due_at, run.ready_at) == (Trigger.SCHEDULE, START + HOUR, START + HOUR)
    assert planned.next_at == START + 2 * HOUR
    assert planned.idle


@pytest.mark.parametrize("overlap", ["skip", "queue_one", "queue_all", "cancel_running"])
def test_ahead_of_time_nothing_is_decided_while_a_run_is_active(overlap: str) -> None:
    assert plan_fires(busy(overlap), START + HOUR - 1, grace=GRACE, random=lambda: 0.5) is None


def test_ahead_of_time_overlap_allow_does_not_care() -> None:
    assert outcome(plan(busy("allow"), START + HOUR - 1).runs) == [("queued", 1)]


# The rest of the policy.


def test_jitter_moves_the_start_and_never_the_due_time() -> None:
    (run,) = plan(schedule("every 1h jitter 10m"), START + HOUR, random=0.25).runs
    assert run.due_at == START + HOUR
    assert run.ready_at == START + HOUR + 150 * SECOND


def test_stable_jitter_does_not_ask_the_dice() -> None:
    starts = {plan(schedule("every 1h jitter 10m stable"), START + HOUR, random=r).runs[0].ready_at for r in (0.1, 0.9)}
    assert len(starts) == 1
    assert START + HOUR <= starts.pop() <= START + HOUR + 10 * MINUTE


def test_max_age_counts_from_the_due_time() -> None:
    (run,) = plan(schedule(max_age="10m"), START + HOUR).runs
    assert run.expires_at == START + HOUR + 10 * MINUTE


def test_the_last_remaining_run_ends_the_schedule() -> None:
    planned = plan(schedule(remaining=1), START + HOUR)
    assert (planned.remaining, planned.enabled, planned.next_at) == (0, False, None)
    assert outcome(planned.runs) == [("queued", 1)]


def test_run_once_is_the_same_as_one_remaining() -> None:
    assert plan(schedule(run_once=True), START + HOUR).enabled is False


def test_what_is_missed_or_skipped_uses_up_nothing() -> None:
    assert plan(schedule(remaining=1, catch_up="none"), START + 3 * HOUR + MINUTE).remaining == 1
    assert plan(busy("skip", remaining=1), START + HOUR).remaining == 1


def test_a_backlog_ends_with_the_last_run_that_remains() -> None:
    planned = plan(schedule(catch_up="all", remaining=2), START + 5 * HOUR)
    assert outcome(planned.runs) == [("queued", 1), ("queued", 2)]
    assert (planned.remaining, planned.enabled) == (0, False)


def test_a_skipped_backlog_keeps_its_rows_and_what_remains() -> None:
    planned = plan(busy("skip", catch_up="all", remaining=2), START + 5 * HOUR)
    assert outcome(planned.runs) == [("skipped", hour) for hour in range(1, 6)]
    assert (planned.remaining, planned.enabled) == (2, True)


def test_after_finish_the_next_due_time_waits_for_the_end() -> None:
    assert plan(schedule("every 1h after finish"), START + HOUR).next_at is None


def test_after_finish_a_late_due_time_is_one_due_time() -> None:
    planned = plan(schedule("every 1h after finish"), START + 9 * HOUR)
    assert outcome(planned.runs) == [("queued", 1)]


def test_after_finish_a_missed_due_time_sets_the_next_itself() -> None:
    planned = plan(schedule("every 1h after finish", catch_up="none"), START + 9 * HOUR)
    assert outcome(planned.runs) == [("missed", 1)]
    assert planned.next_at == START + 10 * HOUR


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"timing": "every banana"}, "timing"),
        ({"zone": "Mars/Olympus"}, "timing"),
        ({"work": '{"kind":"dance"}'}, "unknown kind 'dance'"),
        ({"policy": '{"overlap":"hug"}'}, "policy"),
        ({"policy": "not json"}, "policy"),
    ],
)
def test_what_cannot_be_computed_gives_a_broken_schedule(wrong: dict[str, str], says: str) -> None:
    planned = plan(replace(schedule(), **wrong), START + HOUR)  # type: ignore[arg-type]
    assert not planned.enabled
    assert planned.next_at is None
    assert planned.runs == ()
    assert says in (planned.broken or "")


def test_a_timing_that_raises_breaks_its_schedule_and_not_the_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(Every, "_next", explode)
    assert "boom" in (plan(schedule(), START + HOUR).broken or "")


# The promise.


@given(
    interval=st.integers(1, 7200),
    gaps=st.lists(st.integers(0, 40_000), min_size=1, max_size=12),
    catch_up=st.sampled_from(["none", "latest", "all"]),
    overlap=st.sampled_from(["skip", "queue_one", "queue_all", "cancel_running", "allow"]),
    cap=st.integers(1, 20),
    window=st.integers(0, 20_000),
    busy_ticks=st.integers(0, 2**12),
    ahead=st.booleans(),
)
def test_whenever_the_ticks_come_every_due_time_has_exactly_one_row(
    interval: int, gaps: list[int], catch_up: str, overlap: str, cap: int, window: int, busy_ticks: int, ahead: bool
) -> None:
    due = START + interval * SECOND
    of = schedule(
        f"every {interval}s",
        due=due,
        catch_up=catch_up,
        overlap=overlap,
        catch_up_cap=cap,
        catch_up_window=timedelta(seconds=window),
    )
    rows: list[NewRun] = []
    now = START
    for tick, gap in enumerate(gaps):
        now += gap * SECOND
        is_busy = bool(busy_ticks >> tick & 1)
        of = replace(
            of, active=(RunId(1),) if is_busy else (), waiting=(RunId(2),) if is_busy and tick % 2 == 0 else ()
        )
        if of.next_at > now + (SECOND if ahead else 0):
            continue
        planned = plan_fires(of, now, grace=GRACE, random=lambda: 0.5)
        if planned is None:
            assert of.next_at > now
            continue
        assert planned.broken is None
        assert planned.next_at is not None
        rows += planned.runs
        of = replace(of, next_at=planned.next_at)

    expected = range(due, of.next_at, interval * SECOND)
    assert sum(row.count for row in rows) == len(expected)
    spans = [(row.due_at, row.last_due_at if row.last_due_at is not None else row.due_at) for row in rows]
    assert all(first <= last for first, last in spans)
    assert all(before[1] < after[0] for before, after in pairwise(spans))
    for row, (first, last) in zip(rows, spans, strict=True):
        assert first in expected
        assert last in expected
        assert row.count == (last - first) // (interval * SECOND) + 1


@pytest.mark.parametrize(
    ("fields", "row"),
    [({"work": "moonrise"}, [(START + HOUR, START + 4 * HOUR, 4)]), ({"timing": "moonrise"}, [])],
    ids=["its work", "its timing"],
)
def test_a_held_schedule_that_cannot_be_read_breaks_and_keeps_the_row_that_can_be_made(
    fields: dict[str, Any], row: list[tuple[Micros, Micros, int]]
) -> None:
    held = replace(schedule(due=START + 5 * HOUR), paused_since=START + HOUR, paused_reason="budget: spent")
    found = plan(replace(held, **fields), START + 5 * HOUR)
    assert (found.enabled, found.broken is not None, found.next_at) == (False, True, None)
    assert [(run.due_at, run.last_due_at, run.count) for run in found.runs] == row


def test_a_held_schedule_goes_on_with_a_row_of_what_it_left_out() -> None:
    held = replace(
        schedule(due=START + 5 * HOUR), paused_since=START + HOUR, paused_reason="budget: spent", remaining=2
    )
    found = plan(held, START + 5 * HOUR)
    assert [(run.state, run.due_at, run.count, run.reason) for run in found.runs] == [
        (RunState.SKIPPED, START + HOUR, 4, "budget: spent"),
        (RunState.QUEUED, START + 5 * HOUR, 1, None),
    ]
    assert found.remaining == 1
