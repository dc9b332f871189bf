"""Step two of a fire, pure: what a tick does to one due schedule. No I/O, no clock.

`plan_fires` decides what is run, missed or skipped, and when the schedule is due next. The ticker above asks, the
store's `record_fires` carries it out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from ostinato.clock import Micros, from_micros, micros_of, to_micros
from ostinato.durations import parse_duration
from ostinato.engine.after import plan_after
from ostinato.engine.overlap import REPLACED, is_busy, overlapped, up_to_remaining
from ostinato.errors import NotLoadable
from ostinato.models.check_in import awaiting, expected_for
from ostinato.models.ids import RunId
from ostinato.models.pause import paused_run, paused_runs
from ostinato.models.policy import CatchUp, Overlap, Policy, load_policy
from ostinato.models.run import NewRun, StoredWork, queued_run
from ostinato.models.schedule import DueSchedule, FirePlan
from ostinato.models.session import in_turn, with_turn
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.models.work import CheckIn, read_work
from ostinato.models.work_kinds import is_added
from ostinato.timing import Timing

__all__ = ["NOBODY", "plan_fires"]

NOBODY = "no engine was running"
_MOST_ON_TIME = 1000
"""Due times of one schedule, however long the grace is."""


def plan_fires(
    schedule: DueSchedule, now: Micros, *, grace: Micros, random: Callable[[], float], absence: str = NOBODY
) -> FirePlan | None:
    """The plan for a schedule whose `next_at` has come or comes soon.

    None means: not yet due, and what is active decides when it is. A due time up to `grace` late is on time; `absence`
    says why later ones were not seen. A timing that raises gives a broken schedule, never a dead loop.
    """
    try:
        policy = _fitting(schedule, load_policy(schedule.policy))
        timing = schedule.anchored_timing
        if schedule.broken is not None:
            return _plan_probe(schedule, timing, policy, now, random)
        if timing.after_finish is not None and policy.overlap is Overlap.ALLOW:
            policy = replace(policy, overlap=Overlap.SKIP)  # what counts from its end cannot overlap itself
        if schedule.follows:
            plan = plan_after(schedule, timing, policy, now, grace=grace, random=random, absence=absence)
        elif schedule.next_at > now:
            plan = _plan_ahead(schedule, timing, policy, random)
        else:
            plan = _plan_due(schedule, timing, policy, now, grace, random, absence)
        if plan is None:
            return None
        notices = schedule.notices(plan.runs, plan.broken, now)
        if notices:
            plan = replace(plan, notices=notices)
        if schedule.paused_since is None:
            return plan
        left_out = paused_run(schedule, schedule.next_at - 1)
        return plan if left_out is None else replace(plan, runs=(left_out, *plan.runs))
    except Exception as error:  # whatever a timing raises, its schedule is broken and the tick goes on
        reason = str(error) if isinstance(error, NotLoadable) else f"its timing cannot be computed: {error}"
        paused_before = [] if schedule.paused_since is None else paused_runs([schedule], schedule.next_at)
        return FirePlan(
            schedule.id,
            schedule.next_at,
            schedule.version,
            runs=tuple(paused_before),
            enabled=False,
            broken=reason,
            remaining=schedule.remaining,
            notices=schedule.notices((), reason, now),
        )


def _fitting(schedule: DueSchedule, policy: Policy) -> Policy:
    """The policy, with the session of a conversation if its work continues one. NotLoadable if nobody can read it.

    Of a downtime, a check-in can only be awaited for the latest due time, and only while it would not be late.
    """
    if schedule.kind == CheckIn.kind:
        in_time = parse_duration(expected_for(schedule.work), field="late_after")
        return replace(policy, catch_up=CatchUp.LATEST, catch_up_window=in_time)
    try:
        return with_turn(policy, read_work(schedule.work), schedule.project)
    except NotLoadable:
        if not is_added(schedule.task):
            raise
        return policy  # its package is not here, or in another version: the node that takes the run will see


def _plan_probe(
    schedule: DueSchedule, timing: Timing, policy: Policy, now: Micros, random: Callable[[], float]
) -> FirePlan | None:
    """Try one run of a schedule that the breaker has switched off; the next one follows unless this one succeeds."""
    if schedule.next_at > now:
        return None
    runs: tuple[NewRun, ...] = ()
    remaining = schedule.remaining
    if policy.probe is not None and remaining != 0 and not is_busy(schedule):
        runs = (_run(schedule, timing, policy, schedule.next_at, Trigger.SCHEDULE, random),)
        remaining = None if remaining is None else remaining - 1
    return FirePlan(
        schedule.id,
        schedule.next_at,
        schedule.version,
        runs=runs,
        next_at=None if policy.probe is None or remaining == 0 else now + micros_of(policy.probe),
        remaining=remaining,
        enabled=False,
        broken=schedule.broken,
        probes=True,
    )


def _plan_ahead(schedule: DueSchedule, timing: Timing, policy: Policy, random: Callable[[], float]) -> FirePlan | None:
    """Record a due time a moment before it comes, unless what is active might end until then."""
    if is_busy(schedule) and policy.overlap is not Overlap.ALLOW:
        return None
    run = _run(schedule, timing, policy, schedule.next_at, Trigger.SCHEDULE, random)
    plan = _plan(schedule, timing, [run], schedule.next_at)
    return replace(plan, idle=policy.overlap is not Overlap.ALLOW)


def _plan_due(
    schedule: DueSchedule,
    timing: Timing,
    policy: Policy,
    now: Micros,
    grace: Micros,
    random: Callable[[], float],
    absence: str,
) -> FirePlan:
    """Decide over every due time from `next_at` to now, found by arithmetic."""
    first = schedule.next_at
    last = first if timing.after_finish else _latest(timing, first, now)
    wanted = _wanted(timing, policy, first, last, now, grace)
    runs: list[NewRun] = []
    if not wanted or wanted[0] > first:
        runs.append(_missed(schedule, timing, policy, first, wanted[0] if wanted else None, last, absence))
    trigger = {due: Trigger.SCHEDULE if now - due <= grace else Trigger.CATCH_UP for due in wanted}
    due_runs = [_run(schedule, timing, policy, due, trigger[due], random) for due in wanted]
    cancel: tuple[RunId, ...] = ()
    if is_busy(schedule):
        due_runs = overlapped(schedule, policy, due_runs)
        if policy.overlap is Overlap.CANCEL_RUNNING and due_runs:
            cancel = schedule.active + schedule.waiting
    elif len(due_runs) > 1 and policy.overlap is not Overlap.ALLOW and schedule.kind != CheckIn.kind:
        # A backlog goes one after the other, whatever the overlap policy says of a single due time.
        due_runs = [in_turn(run, schedule.name, policy) for run in due_runs]
    due_runs = up_to_remaining(schedule, due_runs)
    plan = _plan(schedule, timing, runs + due_runs, max(now, last))
    return replace(
        plan,
        cancel=cancel,
        ending=REPLACED if cancel else None,
        idle=not is_busy(schedule) and policy.overlap is Overlap.SKIP and bool(due_runs),
    )


def _latest(timing: Timing, first: Micros, now: Micros) -> Micros:
    """The last due time that has come; `first` has."""
    previous = timing.previous(from_micros(now))
    return first if previous is None else max(first, to_micros(previous))


def _wanted(timing: Timing, policy: Policy, first: Micros, last: Micros, now: Micros, grace: Micros) -> list[Micros]:
    """Which of the due times are run, oldest first; the others were missed.

    Those that are on time are run whatever catch_up says: it is about downtime.
    """
    oldest = now - max(grace, micros_of(policy.catch_up_window))
    match policy.catch_up:
        case CatchUp.NONE:
            return _on_time(timing, first, last, now, grace)
        case CatchUp.LATEST:
            on_time = _on_time(timing, first, last, now, grace)
            return on_time or ([last] if last >= oldest else [])
        case CatchUp.ALL:
            return _newest(timing, max(first, oldest), last, policy.catch_up_cap)
        case _:
            assert_never(policy.catch_up)


def _on_time(timing: Timing, first: Micros, last: Micros, now: Micros, grace: Micros) -> list[Micros]:
    """The due times that are at most `grace` late."""
    return _newest(timing, max(first, now - grace), last, _MOST_ON_TIME) if now - last <= grace else []


def _newest(timing: Timing, oldest: Micros, last: Micros, most: int) -> list[Micros]:
    """The due times from `oldest` up to `last`, which is one, at most so many of them."""
    found: list[Micros] = []
    due: Micros | None = last
    while due is not None and due >= oldest and len(found) < most:
        found.append(due)
        before = timing.previous(from_micros(due - 1)) if due > oldest else None
        due = None if before is None else to_micros(before)
    return found[::-1]


def _missed(
    schedule: DueSchedule,
    timing: Timing,
    policy: Policy,
    first: Micros,
    before: Micros | None,
    last: Micros,
    absence: str,
) -> NewRun:
    """One row for all due times from `first` up to `before` (or to `last`), which nobody ran."""
    is_one_run = before == last
    if before is not None:
        previous = timing.previous(from_micros(before - 1))
        last = first if previous is None else max(first, to_micros(previous))
    count = 1 + timing.count_between(from_micros(first), from_micros(last))
    cause, reason = Cause.DOWNTIME, f"due while {absence}, and catch_up is {policy.catch_up}"
    if schedule.kind == CheckIn.kind:
        reason = f"due while {absence}: nobody can know whether it was done"
    elif policy.catch_up is CatchUp.LATEST and before is not None:
        reason += f": only {'the latest due time is' if is_one_run else 'those that are still on time are'} run"
    elif policy.catch_up is not CatchUp.NONE:
        cause = Cause.OUTSIDE_WINDOW
        reason += ", but this was outside of its window or above its cap"
    return schedule.left_out(RunState.MISSED, cause, reason, first, last, count)


def _run(
    schedule: DueSchedule,
    timing: Timing,
    policy: Policy,
    due: Micros,
    trigger: Trigger,
    random: Callable[[], float],
) -> NewRun:
    """A queued run for one due time; jitter moves its start, never its due time."""
    delay = micros_of(timing.start_delay(schedule.name, from_micros(due), random)) if timing.jitter else 0
    stored = StoredWork(schedule.kind, schedule.task, schedule.work, schedule.policy)
    run = queued_run(
        stored, policy, trigger, due, ready_at=due + delay, schedule_id=schedule.id, project=schedule.project
    )
    if schedule.kind == CheckIn.kind:
        return awaiting(run)
    if policy.session is None and policy.overlap in (Overlap.SKIP, Overlap.ALLOW):
        return run
    return in_turn(run, schedule.name, policy)


def _plan(schedule: DueSchedule, timing: Timing, runs: list[NewRun], after: Micros) -> FirePlan:
    """The plan that records these runs and moves the schedule past `after`."""
    remaining = schedule.remaining
    if remaining is not None:
        remaining -= sum(run.state is RunState.QUEUED for run in runs)
    finished = remaining == 0
    next_at = None
    if not finished and timing.after_finish is None:
        following = timing.next_after(from_micros(after))
        next_at = None if following is None else to_micros(following)
    elif not finished and all(run.state is not RunState.QUEUED for run in runs):
        # Nothing will end that could set the next due time.
        assert timing.after_finish is not None
        next_at = after + micros_of(timing.after_finish)
    return FirePlan(
        schedule.id,
        schedule.next_at,
        schedule.version,
        runs=tuple(runs),
        next_at=next_at,
        remaining=remaining,
        enabled=not finished,
    )
