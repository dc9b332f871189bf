"""The decision after an execution, pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.clock import SECOND, Micros, from_micros
from ostinato.execution.outcome import Blame, Outcome, OutcomeKind
from ostinato.execution.retry import LATEST, decide, retry_delay, undecided
from ostinato.models.ids import ScheduleId
from ostinato.models.policy import Policy, Retry, make_policy
from ostinato.models.run import ClaimedRun, Finish
from ostinato.models.states import Cause, RunState, Trigger
from tests.rows import claimed_run

NOW: Micros = 1_000 * SECOND


def run(attempt: int = 1, trigger: Trigger = Trigger.SCHEDULE) -> ClaimedRun:
    return claimed_run(
        token=7, trigger=trigger, due_at=0, ready_at=0, attempt=attempt, schedule_id=ScheduleId(3), schedule="job"
    )


def decided(
    kind: OutcomeKind,
    *,
    attempt: int = 1,
    trigger: Trigger = Trigger.SCHEDULE,
    policy: Policy | None = None,
    errors: float = 0,
    **outcome_fields: Any,
) -> Finish:
    outcome = Outcome(kind, reason="why", error="story", **outcome_fields)
    return decide(run(attempt, trigger), policy or Policy(break_after=3), outcome, NOW, lambda: 0.5, errors=errors)


def test_the_delay_doubles_up_to_its_longest() -> None:
    retry = Retry(10, base="2s", longest="30s", spread=0)
    delays = [retry_delay(retry, failed, lambda: 0.9) / SECOND for failed in range(1, 8)]
    assert delays == [2, 4, 8, 16, 30, 30, 30]


@given(st.integers(1, 5000), st.floats(0, 1, exclude_max=True))
def test_the_delay_is_within_a_quarter_of_its_middle(failed: int, random: float) -> None:
    middle = min(2 * 2 ** min(failed - 1, 40), 30) * SECOND
    assert 0.75 * middle <= retry_delay(Retry(), failed, lambda: random) <= 1.25 * middle


@pytest.mark.parametrize(("random", "factor"), [(0.0, 0.75), (0.5, 1.0), (1.0, 1.25)])
def test_the_dice_decide_where_in_the_spread(random: float, factor: float) -> None:
    assert retry_delay(Retry(), 1, lambda: random) == 2 * SECOND * factor


def test_a_failure_with_tries_left_goes_back_to_the_queue() -> None:
    finish = decided(OutcomeKind.FAILED, attempt=3)
    assert (finish.state, finish.ready_at, finish.counted) == (RunState.QUEUED, NOW + 8 * SECOND, True)
    assert finish.attempt_state == "failed"
    assert finish.reason == "attempt 3 of 4 failed, next in 8s: why"
    assert finish.breaks is None


def test_the_last_failure_fails_the_run_and_counts_for_the_breaker() -> None:
    finish = decided(OutcomeKind.FAILED, attempt=4)
    assert (finish.state, finish.reason, finish.error) == (RunState.FAILED, "why (attempt 4)", "story")
    assert (finish.breaks, finish.break_after) == (True, 3)
    assert finish.broken == "3 scheduled runs failed in a row; the last: why"


def test_without_a_breaker_a_failure_counts_and_switches_nothing_off() -> None:
    finish = decided(OutcomeKind.ABORTED, policy=Policy())
    assert (finish.breaks, finish.break_after, finish.broken) == (True, None, None)


def test_an_abort_fails_whatever_tries_are_left() -> None:
    finish = decided(OutcomeKind.ABORTED, attempt=1)
    assert (finish.state, finish.reason, finish.breaks) == (RunState.FAILED, "why", True)


def test_a_snooze_is_not_counted() -> None:
    finish = decided(OutcomeKind.SNOOZED, delay=timedelta(minutes=5))
    assert (finish.state, finish.ready_at) == (RunState.QUEUED, NOW + 300 * SECOND)
    assert (finish.counted, finish.attempt_state, finish.breaks) == (False, "snoozed", None)


def test_what_was_cut_off_is_an_attempt_that_counts_and_is_ready_at_once() -> None:
    finish = decided(OutcomeKind.CUT_OFF)
    assert (finish.state, finish.ready_at) == (RunState.QUEUED, NOW)
    assert (finish.counted, finish.attempt_state) == (True, "cut_off")
    assert finish.reason == "attempt 1 of 4 was cut off, next at once: why"
    assert finish.breaks is None


@pytest.mark.parametrize(("attempt", "retry"), [(1, 0), (4, 3)])
def test_what_was_cut_off_in_its_last_attempt_has_failed_and_is_no_failure_of_the_work(
    attempt: int, retry: int
) -> None:
    policy = make_policy({"retry": retry, "break_after": 1, "delete_after_run": True})
    finish = decided(OutcomeKind.CUT_OFF, attempt=attempt, policy=policy)
    assert (finish.state, finish.reason) == (RunState.FAILED, "why" if attempt == 1 else "why (attempt 4)")
    assert (finish.breaks, finish.ends_schedule) == (None, True)


def test_what_a_task_wants_back_after_a_drain_is_an_attempt_that_does_not_count() -> None:
    finish = decided(OutcomeKind.PUT_BACK, policy=make_policy({"retry": 0}))
    assert (finish.state, finish.ready_at) == (RunState.QUEUED, NOW)
    assert (finish.counted, finish.attempt_state, finish.breaks) == (False, "cut_off", None)


def test_what_never_began_leaves_no_attempt_and_keeps_its_instant() -> None:
    early = run()
    early.ready_at = NOW + SECOND
    finish = decide(early, Policy(), Outcome(OutcomeKind.PUT_OFF), NOW, lambda: 0.5)
    assert (finish.state, finish.ready_at) == (RunState.QUEUED, NOW + SECOND)
    assert (finish.counted, finish.attempt_state) == (False, None)


@pytest.mark.parametrize(
    ("kind", "state"),
    [(OutcomeKind.CANCELLED, RunState.CANCELLED), (OutcomeKind.SKIPPED, RunState.SKIPPED)],
)
def test_cancelled_and_skipped_end_the_run_and_leave_the_breaker_alone(kind: OutcomeKind, state: RunState) -> None:
    finish = decided(kind)
    assert (finish.state, finish.breaks) == (state, None)


def test_a_success_resets_the_breaker() -> None:
    finish = decided(OutcomeKind.RETURNED)
    assert (finish.state, finish.breaks) == (RunState.SUCCEEDED, False)


def test_a_success_has_no_cause() -> None:
    assert decide(run(), Policy(), Outcome(OutcomeKind.RETURNED), NOW, lambda: 0.5).cause is None


def test_a_success_with_errors_counts_for_the_breaker() -> None:
    finish = decided(OutcomeKind.RETURNED, errors=2)
    assert (finish.state, finish.breaks, finish.break_after) == (RunState.SUCCEEDED, True, 3)
    assert finish.broken == "3 scheduled runs failed in a row; the last: it counted 2 errors"


@pytest.mark.parametrize("trigger", Trigger)
@pytest.mark.parametrize(
    ("errors", "reason"), [(1, "1 error"), (3.0, "3 errors"), (2.5, "2.5 errors"), (0.5, "0.5 errors")]
)
def test_a_success_with_errors_says_how_many_whatever_started_it(trigger: Trigger, errors: float, reason: str) -> None:
    finish = decide(run(1, trigger), Policy(), Outcome(OutcomeKind.RETURNED), NOW, lambda: 0.5, errors=errors)
    assert (finish.state, finish.cause, finish.reason) == (RunState.SUCCEEDED, Cause.ERRORS, reason)


@pytest.mark.parametrize("errors", [0, 0.0, -1])
def test_without_errors_there_is_nothing_to_say(errors: float) -> None:
    finish = decide(run(), Policy(), Outcome(OutcomeKind.RETURNED), NOW, lambda: 0.5, errors=errors)
    assert (finish.cause, finish.reason, finish.breaks) == (None, None, False)


@pytest.mark.parametrize("kind", [kind for kind in OutcomeKind if kind is not OutcomeKind.RETURNED])
def test_only_what_succeeded_has_succeeded_with_errors(kind: OutcomeKind) -> None:
    assert decided(kind, errors=2).cause is not Cause.ERRORS


def test_a_success_with_errors_is_done() -> None:
    policy = make_policy({"delete_after_run": True})
    assert decided(OutcomeKind.RETURNED, policy=policy, errors=2).ends_schedule is True


@pytest.mark.parametrize("trigger", [Trigger.MANUAL, Trigger.API, Trigger.MESSAGE])
@pytest.mark.parametrize("kind", [OutcomeKind.RETURNED, OutcomeKind.ABORTED])
def test_what_was_not_scheduled_neither_trips_nor_resets(trigger: Trigger, kind: OutcomeKind) -> None:
    assert decided(kind, trigger=trigger, errors=1).breaks is None


def test_a_caught_up_run_counts_as_scheduled() -> None:
    assert decided(OutcomeKind.ABORTED, trigger=Trigger.CATCH_UP).breaks is True


@pytest.mark.parametrize("kind", OutcomeKind)
def test_only_what_succeeded_or_failed_decides_over_a_schedule_to_be_deleted(kind: OutcomeKind) -> None:
    policy = make_policy({"retry": 0, "delete_after_run": True})
    finish = decided(kind, policy=policy)
    assert finish.ends_schedule is (finish.state in (RunState.SUCCEEDED, RunState.FAILED))


@pytest.mark.parametrize("kind", OutcomeKind)
def test_every_outcome_carries_the_token_and_the_time(kind: OutcomeKind) -> None:
    finish = decided(kind)
    assert (finish.id, finish.token, finish.finished_at) == (1, 7, NOW)


def test_a_snooze_without_end_is_ready_in_the_last_year_there_is() -> None:
    finish = decided(OutcomeKind.SNOOZED, delay=timedelta.max)
    assert finish.ready_at == LATEST
    assert from_micros(LATEST).year == 9999


def test_a_retry_is_not_put_off_beyond_the_last_year() -> None:
    policy = make_policy({"retry": Retry(3, base="3652500d", longest="3652500d")})
    finish = decide(run(), policy, Outcome(OutcomeKind.FAILED, "why"), NOW, lambda: 1.0)
    assert (finish.state, finish.ready_at) == (RunState.QUEUED, LATEST)


def test_what_is_recorded_is_text_that_a_database_can_hold() -> None:
    outcome = Outcome(OutcomeKind.ABORTED, reason="no \udce9", error="story\0", result='"\udce9"')
    finish = decide(run(), Policy(break_after=3), outcome, NOW, lambda: 0.5)
    assert (finish.reason, finish.error, finish.result) == ("no \\udce9", "story\\x00", '"\\udce9"')
    assert "no \\udce9" in (finish.broken or "")


def test_an_outcome_that_cannot_be_told_is_a_failure_that_says_so() -> None:
    finish = undecided(run(), TypeError("not \udce9"), NOW)
    assert (finish.id, finish.token, finish.state) == (1, 7, RunState.FAILED)
    assert finish.reason == "its outcome could not be recorded: TypeError: not \\udce9"


def test_what_the_other_side_asked_for_is_waited_for_if_that_is_longer() -> None:
    assert decided(OutcomeKind.FAILED, delay=timedelta(minutes=5)).ready_at == NOW + 300 * SECOND
    assert decided(OutcomeKind.FAILED, delay=timedelta(seconds=1)).ready_at == NOW + 2 * SECOND


@pytest.mark.parametrize("kind", [OutcomeKind.FAILED, OutcomeKind.ABORTED])
def test_what_only_a_person_can_mend_breaks_the_schedule_at_once(kind: OutcomeKind) -> None:
    finish = decided(kind, blame=Blame.SETUP)
    assert (finish.state, finish.breaks, finish.break_after, finish.broken) == (RunState.FAILED, True, 1, "why")
    by_hand = decided(kind, blame=Blame.SETUP, trigger=Trigger.MANUAL)
    assert (by_hand.state, by_hand.breaks) == (RunState.FAILED, None)


def test_a_skip_that_counts_goes_towards_the_breaker() -> None:
    finish = decided(OutcomeKind.SKIPPED, blame=Blame.WORK)
    assert (finish.state, finish.breaks, finish.break_after) == (RunState.SKIPPED, True, 3)
    assert finish.broken == "3 scheduled runs failed in a row; the last: why"
    assert decided(OutcomeKind.SKIPPED).breaks is None
    assert decided(OutcomeKind.SKIPPED, blame=Blame.WORK, trigger=Trigger.MANUAL).breaks is None


def test_what_has_not_begun_goes_back_without_a_trace() -> None:
    finish = decided(OutcomeKind.PUT_OFF, delay=timedelta(seconds=30))
    assert (finish.state, finish.ready_at, finish.counted, finish.attempt_state) == (
        RunState.QUEUED,
        NOW + 30 * SECOND,
        False,
        None,
    )


def test_what_the_node_is_to_blame_for_is_neither_counted_nor_forgotten_by_the_breaker() -> None:
    finish = decided(OutcomeKind.FAILED, policy=Policy(retry=Retry(0)), blame=Blame.NODE)
    assert (finish.state, finish.breaks) == (RunState.FAILED, None)


# What a retry covers.

CAREFUL = Policy(retry=Retry(covers="start"))


@pytest.mark.parametrize("kind", [OutcomeKind.FAILED, OutcomeKind.CUT_OFF])
def test_a_retry_of_what_failed_before_it_began_is_not_for_work_that_had_begun(kind: OutcomeKind) -> None:
    finish = decided(kind, policy=CAREFUL)
    assert finish.state is RunState.FAILED
    assert finish.reason == (
        "why; not tried again, because the work had begun; set retry to have it tried again even then"
    )
    assert decided(kind, policy=CAREFUL, begun=False).state is RunState.QUEUED
    assert decided(kind, begun=True).state is RunState.QUEUED


def test_without_attempts_left_nothing_is_said_of_what_a_retry_covers() -> None:
    assert decided(OutcomeKind.FAILED, policy=CAREFUL, attempt=4).reason == "why (attempt 4)"
    assert decided(OutcomeKind.FAILED, policy=Policy(retry=Retry(0, covers="start"))).reason == "why"


def test_a_second_attempt_that_had_begun_is_the_last() -> None:
    finish = decided(OutcomeKind.FAILED, policy=CAREFUL, attempt=2)
    assert (finish.state, (finish.reason or "").endswith("tried again even then (attempt 2)")) == (
        RunState.FAILED,
        True,
    )


def test_a_snooze_is_no_failure_whatever_a_retry_covers() -> None:
    assert decided(OutcomeKind.SNOOZED, policy=CAREFUL, delay=timedelta(seconds=5)).state is RunState.QUEUED
