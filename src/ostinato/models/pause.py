"""What becomes of a schedule that was paused, pure: the row of the due times it left out, and when it is due again.

The planner asks when a fire ends the pause; the stores ask when something else does, inside their transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from ostinato.clock import MICROSECOND, Micros, from_micros, to_micros
from ostinato.errors import NotLoadable
from ostinato.logs import get_logger
from ostinato.models.policy import load_policy
from ostinato.models.run import NewRun
from ostinato.models.schedule import DueSchedule, Schedule, ScheduleDraft
from ostinato.models.states import Cause, RunState

__all__ = ["due_again", "ends_pause", "paused_run", "paused_runs", "resumes_at"]

log = get_logger("ostinato")


def paused_run(schedule: DueSchedule, until: Micros) -> NewRun | None:
    """One skipped row for its due times from the first one that it left out up to and with `until`.

    None if there is none: it is not paused, none has come, or its due times count from the end of its runs.
    """
    since, timing = schedule.paused_since, schedule.anchored_timing
    previous = timing.previous(from_micros(until)) if timing.after_finish is None else None
    if since is None or previous is None or to_micros(previous) < since:
        return None
    reason = schedule.paused_reason or "it was paused"
    count = 1 + timing.count_between(from_micros(since), previous)
    return schedule.left_out(
        RunState.SKIPPED, schedule.paused_cause or Cause.BUDGET, reason, since, to_micros(previous), count
    )


def paused_runs(schedules: Iterable[DueSchedule], now: Micros) -> list[NewRun]:
    """The rows of schedules whose pause ends now; one that cannot be computed is left out, and the pause ends."""
    runs = []
    for schedule in schedules:
        try:
            # From `next_at` on it was not paused any more, only nobody was there to fire it.
            run = paused_run(schedule, min(now, schedule.next_at - 1))
        except Exception as error:  # whatever a timing raises, the write that ends the pause goes on
            log.warning("schedule %r: the due times it was paused for get no row: %s", schedule.name, error)
            continue
        if run is not None:
            runs.append(run)
    return runs


def resumes_at(schedule: Schedule, until: datetime) -> datetime | None:
    """When a schedule goes on that is paused until then: at its first due time from then on. None if nothing is due
    before, or nothing more after it."""
    if schedule.next_run_at is None or schedule.next_run_at >= until:
        return None
    timing = schedule.anchored_timing
    return until if timing.after_finish else timing.next_after(until - MICROSECOND)


def due_again(schedule: DueSchedule, now: Micros) -> Micros | None:
    """The next due time of a paused schedule on its own grid, if its pause ends now."""
    if schedule.paused_since is not None and schedule.paused_since > now:
        return schedule.paused_since
    try:
        following = schedule.anchored_timing.next_after(from_micros(now))
    except Exception:  # the planner breaks it when it is due, and says why
        return schedule.next_at
    return None if following is None else to_micros(following)


def ends_pause(schedule: DueSchedule, draft: ScheduleDraft) -> bool:
    """Whether the draft changes what a paused schedule is paused by, its timing or its budget, or switches it off."""
    if not draft.enabled or (draft.timing, draft.zone) != (schedule.timing, schedule.zone):
        return True
    if draft.policy == schedule.policy:
        return False
    try:
        return load_policy(draft.policy).budget != load_policy(schedule.policy).budget
    except NotLoadable:
        return True
