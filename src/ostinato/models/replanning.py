"""What a clock that was set back, or another calendar, means for a schedule, pure: when it is due by now.

The engine's replanner asks for whole schedules, the stores for rows that cover due times which have not come, and for
what uses a calendar that was changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ostinato.clock import Micros, from_micros, micros_of, to_micros
from ostinato.errors import OstinatoError
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.schedule import DueSchedule, ScheduleDraft
from ostinato.models.states import RunState
from ostinato.timing import Timing, parse_timing

__all__ = ["AheadRun", "Replan", "due_by_calendar", "due_by_now", "has_come", "off_by_calendar", "replan"]


@dataclass(frozen=True, slots=True)
class Replan:
    """A schedule to be planned anew: written only if `next_at` and version still are what was read."""

    schedule: DueSchedule
    anchor_at: Micros
    next_at: Micros

    @property
    def id(self) -> ScheduleId:
        return self.schedule.id


def due_by_now(name: str, timing: str, zone: str, anchor_at: Micros, now: Micros) -> Micros | None:
    """The first due time after now; what counts from a finish is due one interval from now at the latest."""
    parsed = parse_timing(timing, tz=zone, name=name, stored=True).anchored(from_micros(min(anchor_at, now)))
    if parsed.after_finish is not None:
        return now + micros_of(parsed.after_finish)
    following = parsed.next_after(from_micros(now))
    return None if following is None else to_micros(following)


def replan(schedule: DueSchedule, now: Micros) -> Replan | None:
    """The new plan of a schedule that sleeps beyond its next due time by the clock of now; None if it does not.

    One that is paused does so on purpose. One that was enabled in the future begins now.
    """
    if schedule.paused_since is not None or schedule.follows:
        return None
    due = due_by_now(schedule.name, schedule.timing, schedule.zone, schedule.anchor_at, now)
    if due is None or due >= schedule.next_at:
        return None
    return Replan(schedule, min(schedule.anchor_at, now), due)


def has_come(schedule: DueSchedule, first: Micros, now: Micros) -> tuple[Micros, int]:
    """Of due times from `first` on, which has come: the last one that has too, and how many they are."""
    timing = schedule.anchored_timing
    last = timing.previous(from_micros(now))
    if last is None or to_micros(last) <= first:
        return first, 1
    return to_micros(last), 1 + timing.count_between(from_micros(first), last)


class AheadRun(NamedTuple):
    """A run that was recorded for a due time that has not come."""

    id: RunId
    due_at: Micros
    state: str


def off_by_calendar(schedule: ScheduleDraft, ahead: Sequence[AheadRun]) -> list[RunId]:
    """Of what was recorded ahead, the queued runs whose day is off by the timing that the schedule has now."""
    try:
        timing = _anchored(schedule)
        return [run.id for run in ahead if run.state == RunState.QUEUED and not timing.is_due(from_micros(run.due_at))]
    except OstinatoError:
        return []


def due_by_calendar(schedule: ScheduleDraft, answered: Sequence[Micros], now: Micros) -> Micros | None:
    """When a schedule whose timing has the new dates is due next; what was recorded ahead and stays is answered. Its
    grid stays where it is, and so does what was due before now and nobody has answered, unless its day is off.
    """
    try:
        timing = _anchored(schedule)
        overdue = schedule.next_at is not None and schedule.next_at <= now
        since = schedule.next_at - 1 if overdue and schedule.next_at is not None else max([now, *answered])
        due = timing.next_after(from_micros(since))
    except OstinatoError:
        return schedule.next_at  # the ticker breaks it when it is due, and says why
    return None if due is None else to_micros(due)


def _anchored(schedule: ScheduleDraft) -> Timing:
    timing = parse_timing(schedule.timing, tz=schedule.zone, name=schedule.name, stored=True)
    return timing.anchored(from_micros(schedule.anchor_at))
