"""What becomes of the ends that a schedule follows, pure: the part of plan.py for timings such as `after import`.

Every end gets exactly one row: a run, or one that says why there is none. Ends that wait for those of others are held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from ostinato.clock import Micros, from_micros, micros_of
from ostinato.durations import duration_text
from ostinato.engine.overlap import REPLACED, is_busy, overlapped, up_to_remaining
from ostinato.models.ids import RunId
from ostinato.models.policy import CatchUp, Overlap, Policy
from ostinato.models.run import NewRun, StoredWork, queued_run
from ostinato.models.schedule import DueSchedule, FirePlan
from ostinato.models.session import in_turn
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.models.upstream import FOLLOWED, UpstreamEnd, ended_text, left_out
from ostinato.plurals import counted
from ostinato.timing import After, Timing

__all__ = ["plan_after"]


@dataclass(slots=True)
class _Sorted:
    """The ends of a schedule by what they mean for it."""

    groups: list[list[UpstreamEnd]] = field(default_factory=list)
    """Each is answered by one run."""
    left_out: list[tuple[UpstreamEnd, str]] = field(default_factory=list)
    """Each with the reason why nothing is run for it."""
    held: dict[str, UpstreamEnd] = field(default_factory=dict)
    """Those that wait, by their schedule."""


def plan_after(
    schedule: DueSchedule,
    timing: Timing,
    policy: Policy,
    now: Micros,
    *,
    grace: Micros,
    random: Callable[[], float],
    absence: str,
) -> FirePlan | None:
    """The plan for a schedule that follows others and has something to answer, or has waited long enough for it.

    None means: not yet. Ends up to `grace` old are new; of older ones catch-up decides.
    """
    if schedule.next_at > now:
        return None
    assert isinstance(timing, After)
    found = _sort(timing, schedule.ends, now)
    wanted = _wanted(policy, found.groups, now, grace)
    runs = [_skipped(schedule, end, why) for end, why in found.left_out]
    missed = [end for group in found.groups if group not in wanted for end in group]
    if missed:
        runs.append(_missed(schedule, policy, missed, absence, all_of_them=not wanted))
    due_runs = [_run(schedule, timing, policy, group, random) for group in wanted]
    cancel: tuple[RunId, ...] = ()
    if is_busy(schedule):
        due_runs = overlapped(schedule, policy, due_runs)
        if policy.overlap is Overlap.CANCEL_RUNNING and due_runs:
            cancel = schedule.active + schedule.waiting
    elif len(due_runs) > 1 and policy.overlap is not Overlap.ALLOW:
        due_runs = [in_turn(run, schedule.name, policy) for run in due_runs]
    due_runs = up_to_remaining(schedule, due_runs)
    remaining = schedule.remaining
    if remaining is not None:
        remaining -= sum(run.state is RunState.QUEUED for run in due_runs)
    until = None
    if found.held and remaining != 0:
        until = min(end.ended_at for end in found.held.values()) + _within(timing) + 1
    return FirePlan(
        schedule.id,
        schedule.next_at,
        schedule.version,
        runs=tuple(sorted([*runs, *due_runs], key=lambda run: run.due_at)),
        next_at=until,
        remaining=remaining,
        enabled=remaining != 0,
        idle=not is_busy(schedule) and policy.overlap is Overlap.SKIP and bool(due_runs),
        cancel=cancel,
        ending=REPLACED if cancel else None,
        follows=True,
        held=tuple(sorted(end.run for end in found.held.values())),
    )


def _sort(timing: After, ends: Iterable[UpstreamEnd], now: Micros) -> _Sorted:
    """Which ends go together, which do not count, and which wait."""
    found = _Sorted()
    for end in ends:
        if end.schedule not in timing.upstreams:
            found.left_out.append((end, f"it does not run after {end.schedule!r} any more"))
        elif end.state not in FOLLOWED[timing.on]:
            why = ended_text(end.run, end.schedule, end.state)
            found.left_out.append((end, left_out(why, timing.on)))
        elif timing.within is None:
            found.groups.append([end])
        else:
            _hold(found, timing, end)
    _give_up(found, timing, now)
    return found


def _hold(found: _Sorted, timing: After, end: UpstreamEnd) -> None:
    """One more of those that go together; with the last of them they do."""
    _give_up(found, timing, end.ended_at)
    if (before := found.held.pop(end.schedule, None)) is not None:
        found.left_out.append((before, f"run {end.run} of {end.schedule!r} ended before all the others had"))
    found.held[end.schedule] = end
    if len(found.held) == len(timing.upstreams):
        found.groups.append(sorted(found.held.values(), key=_when))
        found.held.clear()


def _give_up(found: _Sorted, timing: After, now: Micros) -> None:
    """What has waited for the others for longer than the timing allows waits no more."""
    missing = [name for name in timing.upstreams if name not in found.held]
    for name, end in list(found.held.items()):
        if end.ended_at + _within(timing) < now:
            del found.held[name]
            listed = " and ".join(f"{one!r}" for one in missing)
            within = duration_text(timing.within) if timing.within is not None else ""
            found.left_out.append((end, f"run {end.run} of {name!r} waited {within} for {listed}"))


def _within(timing: After) -> Micros:
    return 0 if timing.within is None else micros_of(timing.within)


def _when(end: UpstreamEnd) -> tuple[Micros, RunId]:
    return (end.ended_at, end.run)


def _wanted(policy: Policy, groups: Sequence[list[UpstreamEnd]], now: Micros, grace: Micros) -> list[list[UpstreamEnd]]:
    """Which ends are followed: the new ones, and of those that nobody saw in time what catch-up says."""
    oldest = now - max(grace, micros_of(policy.catch_up_window))
    new = [group for group in groups if now - group[-1].ended_at <= grace]
    match policy.catch_up:
        case CatchUp.NONE:
            return new
        case CatchUp.LATEST:
            return new or [group for group in groups[-1:] if group[-1].ended_at >= oldest]
        case CatchUp.ALL:
            return [group for group in groups if group[-1].ended_at >= oldest][-policy.catch_up_cap :]
        case _:
            assert_never(policy.catch_up)


def _run(
    schedule: DueSchedule, timing: After, policy: Policy, group: Sequence[UpstreamEnd], random: Callable[[], float]
) -> NewRun:
    """A queued run, due when the last of these ended; jitter moves its start."""
    due = group[-1].ended_at
    delay = micros_of(timing.start_delay(schedule.name, from_micros(due), random)) if timing.jitter else 0
    run = queued_run(
        StoredWork(schedule.kind, schedule.task, schedule.work, schedule.policy),
        policy,
        Trigger.AFTER,
        due,
        ready_at=due + delay,
        schedule_id=schedule.id,
        project=schedule.project,
    )
    run.after = tuple(end.run for end in group)
    if policy.session is None and policy.overlap in (Overlap.SKIP, Overlap.ALLOW):
        return run
    return in_turn(run, schedule.name, policy)


def _skipped(schedule: DueSchedule, end: UpstreamEnd, why: str) -> NewRun:
    run = schedule.left_out(RunState.SKIPPED, Cause.UPSTREAM, why, end.ended_at, end.ended_at, 1, trigger=Trigger.AFTER)
    return replace(run, last_due_at=None, after=(end.run,))


def _missed(
    schedule: DueSchedule, policy: Policy, ends: Sequence[UpstreamEnd], absence: str, *, all_of_them: bool
) -> NewRun:
    """One row for all ends that nobody saw in time and that are not followed."""
    times = [end.ended_at for end in ends]
    many = counted(len(ends), "run")
    reason = f"{many} it comes after ended while {absence}, and catch_up is {policy.catch_up}"
    cause = Cause.DOWNTIME
    if policy.catch_up is CatchUp.LATEST and not all_of_them:
        reason += ": only the latest is followed"
    elif policy.catch_up is not CatchUp.NONE:
        cause = Cause.OUTSIDE_WINDOW
        reason += ", but this was outside of its window or above its cap"
    run = schedule.left_out(RunState.MISSED, cause, reason, min(times), max(times), len(ends), trigger=Trigger.AFTER)
    return replace(run, after=tuple(end.run for end in ends))
