"""What a clock that was set back means for a schedule, pure: when it is due by the clock of now.

The engine's replanner asks for whole schedules, the stores for rows that cover due times which have not come.
"""

from __future__ import annotations

from dataclasses import dataclass

from ostinato.clock import Micros, from_micros, micros_of, to_micros
from ostinato.models.ids import ScheduleId
from ostinato.models.schedule import DueSchedule
from ostinato.timing import parse_timing

__all__ = ["Replan", "due_by_now", "has_come", "replan"]


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
