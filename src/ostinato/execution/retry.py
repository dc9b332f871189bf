"""The decision after an execution, pure: an outcome becomes the finish that is recorded."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import assert_never

from ostinato.clock import Micros, micros_of, to_micros
from ostinato.durations import duration_text
from ostinato.execution.outcome import Blame, Outcome, OutcomeKind, cause_of
from ostinato.execution.output import storable
from ostinato.logs import one_line
from ostinato.models.budget import UNKNOWN
from ostinato.models.policy import Covers, Policy, Retry
from ostinato.models.run import ClaimedRun, Finish, ended_as
from ostinato.models.states import Cause, RunState, check_transition
from ostinato.models.work_kinds import counted_as, subject_of
from ostinato.plurals import counted

__all__ = ["LATEST", "decide", "retry_delay", "undecided"]

LATEST: Micros = to_micros(datetime(9999, 1, 1, tzinfo=UTC))
"""No try is put off beyond it: the last year there is, with room for every zone."""


def retry_delay(retry: Retry, failed: int, random: Callable[[], float]) -> Micros:
    """How long to wait after the `failed`-th failure (1 is the first): doubling, capped, spread."""
    base, longest = micros_of(retry.base), micros_of(retry.longest)
    # The exponent is bounded, so that the thousandth retry does not make a number of a thousand bits.
    delay = min(base << min(failed - 1, 40), longest)
    return round(delay * (1 + retry.spread * (2 * random() - 1)))


def decide(
    run: ClaimedRun,
    policy: Policy,
    outcome: Outcome,
    now: Micros,
    random: Callable[[], float],
    *,
    errors: float = 0,
) -> Finish:
    """What is recorded for this outcome. `errors` is what the work counted under that name."""
    finish = _finish(run, RunState.SUCCEEDED, now, cause_of(outcome), outcome.reason)
    finish.error = outcome.error and storable(outcome.error)
    finish.result = outcome.result and storable(outcome.result)
    match outcome.kind:
        case OutcomeKind.RETURNED:
            _succeeded(finish, run, policy, errors)
        case OutcomeKind.FAILED:
            if outcome.blame is not Blame.SETUP and _is_tried_again(finish, run, policy, outcome):
                _retried(finish, run, policy, outcome.delay, random)
            else:
                _failed(finish, run, policy, outcome.blame)
        case OutcomeKind.ABORTED:
            _failed(finish, run, policy, outcome.blame)
        case OutcomeKind.SNOOZED:
            delay = micros_of(outcome.delay) if outcome.delay is not None else 0
            _requeued(finish, min(now + delay, LATEST), "snoozed", counted=False)
        case OutcomeKind.CUT_OFF:
            _cut_off(finish, run, policy, outcome)
        case OutcomeKind.PUT_BACK:
            finish.error = finish.reason
            _requeued(finish, now, "cut_off", counted=False)
        case OutcomeKind.PUT_OFF:
            delay = micros_of(outcome.delay) if outcome.delay is not None else 0
            _requeued(finish, min(max(now + delay, run.ready_at), LATEST), None, counted=False)
        case OutcomeKind.CANCELLED:
            finish.state = ended_as(finish.cause or Cause.CANCELLED)
        case OutcomeKind.SKIPPED:
            finish.state = RunState.SKIPPED
            if outcome.blame is Blame.WORK:
                _count(finish, run, policy, finish.reason or "skipped")
        case _:
            assert_never(outcome.kind)
    finish.begun = outcome.begun
    finish.notify = policy.notify
    check_transition(RunState.RUNNING, finish.state)
    is_outcome = finish.state in (RunState.SUCCEEDED, RunState.FAILED)
    finish.ends_schedule = policy.delete_after_run and is_outcome and run.by_itself
    return finish


def undecided(run: ClaimedRun, error: Exception, now: Micros) -> Finish:
    """The end of a run whose real one cannot be told: rather this than a run that is under way for ever."""
    reason = f"its outcome could not be recorded: {one_line(error)}"
    finish = _finish(run, RunState.FAILED, now, Cause.NOT_RECORDED, reason)
    finish.cost, finish.abandoned = UNKNOWN, True
    return finish


def _finish(run: ClaimedRun, state: RunState, now: Micros, cause: Cause | None, reason: str | None) -> Finish:
    return Finish(
        id=run.id,
        token=run.token,
        state=state,
        started_at=run.started_at,
        finished_at=now,
        cause=cause,
        reason=reason and storable(reason),
        schedule_id=run.schedule_id,
        schedule=run.schedule,
        session=run.session,
        task=run.task,
        attempt=run.attempt,
        due_at=run.due_at,
        count=run.count,
        name=counted_as(run.task, run.schedule, run.kind),
        subject="" if run.schedule else subject_of(run.task, run.kind, run.work, run.session),
        project=run.project,
        trace=run.trace,
    )


def _succeeded(finish: Finish, run: ClaimedRun, policy: Policy, errors: float) -> None:
    """Done. What counted errors says so in its row, and is one more towards the breaker."""
    if errors > 0:
        said = counted(errors, "error")
        finish.cause, finish.reason = Cause.ERRORS, f"{said}: {finish.reason}" if finish.reason else said
        _count(finish, run, policy, f"it counted {said}")
        return
    if run.by_itself:
        finish.breaks = False
        finish.probe = _probe(policy)
    if policy.fresh is not None:
        finish.fresh = micros_of(policy.fresh)


def _failed(finish: Finish, run: ClaimedRun, policy: Policy, blame: Blame | None) -> None:
    finish.state = RunState.FAILED
    reason = finish.reason or "failed"
    finish.reason = f"{reason} (attempt {run.attempt})" if run.attempt > 1 else reason
    if blame is not Blame.NODE:
        _count(finish, run, policy, reason)
    if blame is Blame.SETUP and finish.breaks:
        finish.break_after, finish.broken = 1, reason


def _cut_off(finish: Finish, run: ClaimedRun, policy: Policy, outcome: Outcome) -> None:
    """An attempt that its node did not let end: it counts, but the breaker counts only failures of the work."""
    reason = finish.reason or "its node was stopped while it ran"
    finish.error = finish.error or reason
    if _is_tried_again(finish, run, policy, outcome):
        _requeued(finish, finish.finished_at, "cut_off", counted=True)
        finish.reason = f"attempt {run.attempt} of {policy.retry.max + 1} was cut off, next at once: {reason}"
    else:
        finish.state = RunState.FAILED
        reason = finish.reason or reason
        finish.reason = f"{reason} (attempt {run.attempt})" if run.attempt > 1 else reason


def _is_tried_again(finish: Finish, run: ClaimedRun, policy: Policy, outcome: Outcome) -> bool:
    """Whether its retry has an attempt left that covers this failure; the reason says if it does not cover it."""
    if run.attempt > policy.retry.max:
        return False
    if not policy.retry.allows(outcome.raised):
        why = f"not tried again, because its retry does not cover {outcome.exception}"
        finish.reason = f"{finish.reason}; {why}" if finish.reason else why
        return False
    if policy.retry.covers is Covers.ALL or not outcome.begun:
        return True
    who = "the agent" if run.kind == "agent" else "the work"
    why = f"not tried again, because {who} had begun; set retry to have it tried again even then"
    finish.reason = f"{finish.reason}; {why}" if finish.reason else why
    return False


def _count(finish: Finish, run: ClaimedRun, policy: Policy, reason: str) -> None:
    """A scheduled run did not do its work: one more towards the breaker."""
    if run.by_itself:
        finish.breaks = True
        finish.probe = _probe(policy)
        finish.break_after = policy.break_after
        if policy.break_after is not None:
            finish.broken = _broken(policy.break_after, reason)


def _broken(break_after: int, reason: str) -> str:
    if break_after == 1:
        return f"a scheduled run failed: {reason}"
    return f"{break_after} scheduled runs failed in a row; the last: {reason}"


def _probe(policy: Policy) -> Micros | None:
    return None if policy.probe is None else micros_of(policy.probe)


def _retried(
    finish: Finish, run: ClaimedRun, policy: Policy, least: timedelta | None, random: Callable[[], float]
) -> None:
    delay = max(retry_delay(policy.retry, run.attempt, random), 0 if least is None else micros_of(least))
    ready_at = min(finish.finished_at + delay, LATEST)
    _requeued(finish, ready_at, "failed", counted=True)
    finish.error = finish.error or finish.reason  # what the attempt keeps, when the run's own reason is another
    wait = _wait_text(ready_at - finish.finished_at)
    finish.reason = f"attempt {run.attempt} of {policy.retry.max + 1} failed, next in {wait}: {finish.reason}"


def _wait_text(delay: Micros) -> str:
    """A delay as people read it: to a tenth of a second."""
    return duration_text(timedelta(milliseconds=round(delay / 100_000) * 100))


def _requeued(finish: Finish, ready_at: Micros, attempt_state: str | None, *, counted: bool) -> None:
    finish.state = RunState.QUEUED
    finish.ready_at = ready_at
    finish.attempt_state = attempt_state
    finish.counted = counted
    finish.result = None
