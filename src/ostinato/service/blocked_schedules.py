"""What keeps a schedule from doing its work: pure, over facts that blocking.py has read.

In this order: its own switch, the run of it that waits, the run of it that a due time was skipped for, and what would
keep a run from starting if one were due now. What is only busy for a moment is no such thing: nothing of it waits yet.
"""

from __future__ import annotations

from dataclasses import replace

from ostinato.command_hints import command
from ostinato.models.blocking import Action, BlockedBy, BlockedCause, Link, Verb
from ostinato.models.budget import enough
from ostinato.models.lane import FALLBACK_LANE
from ostinato.models.policy import Overlap
from ostinato.models.run import Run
from ostinato.models.schedule import Schedule, ScheduleState
from ostinato.models.states import Cause, RunState
from ostinato.models.work import CheckIn
from ostinato.service.blocked_runs import (
    Facts,
    blocked_run,
    cancelling,
    link_to,
    of_given_up,
    of_lane_switch,
    of_nodes,
    of_run_under_way,
)
from ostinato.service.schedules.drafts import first_due

__all__ = ["blocked_schedule", "blocked_upstream", "broken_for_good"]

_PUT_OFF = (BlockedCause.RETRY, BlockedCause.DELAYED)
"""Waits of a run that its end ends, for those that may not overlap it."""


def blocked_schedule(schedule: Schedule, facts: Facts) -> BlockedBy | None:
    """The root of what keeps it from running; None if nothing does, or nothing of it is to come."""
    switch = _of_switch(schedule, facts)
    if switch is not None:
        return switch
    now = _of_queued(schedule, facts) or _of_overlap(schedule, facts)
    return now or _of_next(schedule, facts) or _of_check(schedule)


def blocked_upstream(
    schedule: Schedule, name: str, upstream: Schedule | None, blocked: BlockedBy | None
) -> BlockedBy | None:
    """What keeps the upstream of this name from running, as this schedule sees it, which runs after that one; `blocked`
    is the upstream's own root."""
    if blocked is None and upstream is not None and upstream.state is not ScheduleState.FINISHED:
        return None
    why = "does not exist" if upstream is None else "has no further due time"
    gone = BlockedBy(BlockedCause.UPSTREAM_GONE, f"it runs after {name!r}, which {why}")
    return (blocked or _timed_anew(schedule, gone, "TIMING")).behind(Link("schedule", name))


def broken_for_good(schedule: Schedule, blocked: BlockedBy) -> BlockedBy:
    """What keeps it from running, of a schedule that cannot be enabled while one that it runs after is missing."""
    return _timed_anew(schedule, blocked, "TIMING")


def _of_switch(schedule: Schedule, facts: Facts) -> BlockedBy | None:
    """Why it has no due times, or none for a while. What is broken only because no node knows its task is not off."""
    if schedule.orphaned:
        return BlockedBy(
            BlockedCause.ORPHANED,
            f"the code no longer declares schedule {schedule.name!r}",
            command=command("schedule rm", schedule.name),
        )
    if schedule.state is ScheduleState.OFF or (schedule.broken is not None and not _is_unserved(schedule, facts)):
        return _of_off(schedule, facts)
    if not schedule.paused:
        return None
    is_removed = schedule.paused_cause is Cause.REMOVED
    paused = BlockedBy(
        BlockedCause.REMOVING if is_removed else BlockedCause.BUDGET,
        f"schedule {schedule.name!r} is {schedule.next_run_reason}",
        schedule.paused_since,
        schedule.next_run_at,
    )
    return paused if is_removed else _with_more_budget(schedule, paused, facts)


def _with_more_budget(schedule: Schedule, paused: BlockedBy, facts: Facts) -> BlockedBy:
    """What ends a pause by the budget. To enable it would not do while that is used up: it would pause once more."""
    budget = schedule.policy.budget
    wanted = {} if budget is None else enough(budget, facts.spending)
    if not wanted:
        return _enabling(schedule, paused, "Enable now")
    bounds = ",".join(f"{name}={value}" for name, value in wanted.items())
    return replace(
        paused,
        command=command("schedule edit", schedule.name, rest=f"--budget {bounds}"),
        action=Action(Verb.EDIT_SCHEDULE, schedule.name, "Raise its budget"),
    )


def _of_off(schedule: Schedule, facts: Facts) -> BlockedBy:
    if schedule.broken is not None:
        probe = "" if schedule.probe_at is None else f"; one run is tried at {facts.at(schedule.probe_at)}"
        sentence = f"schedule {schedule.name!r} is broken: {schedule.broken}{probe}"
        if schedule.probe_at is None and _is_over(schedule, facts):
            finished = BlockedBy(BlockedCause.FINISHED, f"{sentence}; it has no further due time")
            return _timed_anew(schedule, finished, "'in 1m'")
        broken = BlockedBy(BlockedCause.BROKEN, sentence, schedule.off_at, schedule.probe_at)
        return _enabling(schedule, broken, "Re-enable")
    by = "" if schedule.off_by is None else f" by {schedule.off_by}"
    since = "" if schedule.off_at is None else f" at {facts.at(schedule.off_at)}"
    note = f" ({schedule.off_note})" if schedule.off_note else ""
    sentence = f"schedule {schedule.name!r} is switched off{by}{since}{note}"
    return _enabling(schedule, BlockedBy(BlockedCause.OFF, sentence, schedule.off_at), "Enable")


def _timed_anew(schedule: Schedule, blocked: BlockedBy, timing: str) -> BlockedBy:
    """The same, ended by another timing."""
    return replace(
        blocked,
        command=command("schedule edit", schedule.name, rest=f"--timing {timing}"),
        action=Action(Verb.EDIT_SCHEDULE, schedule.name, "Give it another timing"),
    )


def _is_over(schedule: Schedule, facts: Facts) -> bool:
    """Whether it could not be switched on as it is: nothing of its timing is to come."""
    if schedule.follows or not schedule.sentence:
        return False
    return first_due(schedule.anchored_timing, facts.now) is None


def _enabling(schedule: Schedule, blocked: BlockedBy, label: str) -> BlockedBy:
    return BlockedBy(
        blocked.cause,
        blocked.sentence,
        blocked.since,
        blocked.until,
        command("schedule enable", schedule.name),
        Action(Verb.ENABLE_SCHEDULE, schedule.name, label),
    )


def _is_unserved(schedule: Schedule, facts: Facts) -> bool:
    """Whether lists show it as broken because no running node knows its task, which nobody has stored."""
    blocked = of_nodes(schedule.work.needs, facts)
    return schedule.enabled and blocked is not None and blocked.cause is BlockedCause.UNKNOWN_TASK


def _of_queued(schedule: Schedule, facts: Facts) -> BlockedBy | None:
    """What its oldest run waits for. That a machine has not checked in yet is how such a schedule is."""
    run = facts.first.queued.get(schedule.id)
    if run is None or isinstance(run.work, CheckIn):
        return None
    blocked = blocked_run(run, facts)
    if blocked is None:
        return None
    if blocked.cause in _PUT_OFF and blocked.command is None and _was_skipped(schedule.last_run, Cause.OVERLAP):
        blocked = cancelling(run, blocked)
    return blocked.behind(link_to(run))


def _of_overlap(schedule: Schedule, facts: Facts) -> BlockedBy | None:
    """The run that its latest due time was skipped for, while it goes on; or the one whose node was lost."""
    run = facts.first.running.get(schedule.id)
    if run is None or run.started_at is None:
        return None
    step = of_run_under_way(run, facts)
    if step is not None:
        return step.blocked.behind(link_to(run))
    if not _was_skipped(schedule.last_run, Cause.OVERLAP):
        return None
    sentence = (
        f"run {run.id} of {schedule.name!r} is running since {facts.at(run.started_at)}, "
        f"and its overlap policy is {schedule.policy.overlap}"
    )
    return cancelling(run, BlockedBy(BlockedCause.RUN_ACTIVE, sentence, run.started_at, chain=(link_to(run),)))


def _of_next(schedule: Schedule, facts: Facts) -> BlockedBy | None:
    """What would keep its next run from starting, however long it were to wait."""
    if schedule.next_run_at is None and not (schedule.follows and schedule.state is ScheduleState.ON):
        return None
    given_up = None if schedule.policy.overlap is Overlap.ALLOW else of_given_up(schedule.name, facts)
    if isinstance(schedule.work, CheckIn):
        return None if facts.running_nodes else of_nodes(None, facts)
    lane = facts.lanes.get(schedule.policy.lane) or facts.lanes.get(FALLBACK_LANE)
    return given_up or of_nodes(schedule.work.needs, facts) or of_lane_switch(lane, facts)


def _of_check(schedule: Schedule) -> BlockedBy | None:
    """The check that its latest due time failed; the next one asks it again. A run by hand would ask none."""
    last = schedule.last_run
    if schedule.next_run_at is None or last is None or not _was_skipped(last, Cause.CHECK):
        return None
    return BlockedBy(
        BlockedCause.CHECK,
        f"run {last.id} was skipped: {last.reason}",
        last.due_at,
        schedule.next_run_at,
        chain=(link_to(last),),
    )


def _was_skipped(run: Run | None, cause: Cause) -> bool:
    return run is not None and run.state is RunState.SKIPPED and run.cause is cause
