"""Backfill: which due times of a span that has passed are run after all, and the runs for them. `schedules.py` asks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from ostinato.clock import MICROSECOND, Micros, from_micros
from ostinato.errors import Conflict, InvalidInput, TimingError
from ostinato.models.ids import RunId
from ostinato.models.policy import Overlap, Policy
from ostinato.models.run import NewRun, queued_run, stored_work
from ostinato.models.schedule import Schedule
from ostinato.models.session import in_turn, with_turn
from ostinato.models.states import Trigger
from ostinato.models.work import Unreadable
from ostinato.service.audit import asked_by
from ostinato.timing import At, Bounded, Cron, DaySet, Every, Except, Or, Timing, parse_timing
from ostinato.timing.calendar import CalendarTiming
from ostinato.timing.zones import check_aware
from ostinato.trace_context import current_trace

__all__ = ["BACKFILL_KEYS", "MOST", "Backfill", "backfill_runs", "due_between"]

MOST = 1_000
"""At most so many due times at once."""
BACKFILL_KEYS = "backfill:"
"""How the keys of its runs begin; nobody else's may."""
_FIRST = from_micros(0) - timedelta(days=365 * 1960)
"""Nothing is looked for before it: the first years of the calendar are no dates in every zone."""
_LONG = timedelta(days=10 * 366)


@dataclass(frozen=True, slots=True)
class Backfill:
    """What a backfill did, or would do: the due times and their runs, oldest first."""

    due: Sequence[datetime]
    runs: Sequence[RunId]
    """Their numbers; empty for a dry run."""
    left_out: int
    """How many due times already have a succeeded or active run."""


async def due_between(schedule: Schedule, start: datetime, until: datetime, now: datetime) -> list[Micros]:
    """The due times of a schedule from `start` to `until`, both included, at most 1,000."""
    _check_span(start, until, now)
    # In a thread: what people write may take long to look for, and an engine is on this loop.
    return await asyncio.to_thread(_found, schedule, max(start, _FIRST), until, now)


def _found(schedule: Schedule, start: datetime, until: datetime, now: datetime) -> list[Micros]:
    timing = _timing(schedule, start, now)
    times = list(islice(timing.stream(start - MICROSECOND, until), MOST + 1))
    if len(times) > MOST:
        raise InvalidInput(
            f"schedule {schedule.name!r} has {_how_often(timing, start, until)} due times from "
            f"{start:%Y-%m-%d %H:%M} to {until:%Y-%m-%d %H:%M} UTC, and a backfill takes {MOST:,} at most",
            field="from",
            hint="split it into shorter periods",
        )
    return times


def _check_span(start: datetime, until: datetime, now: datetime) -> None:
    for field, moment in (("from", start), ("until", until)):
        check_aware(moment, field)
    if until > now:
        raise InvalidInput(
            f"until {until:%Y-%m-%d %H:%M:%S %Z} is in the future", field="until", hint="a backfill runs what is past"
        )
    if start > until:
        raise InvalidInput(f"from {start} is after until {until}", field="from", hint="give the earlier time first")


def _timing(schedule: Schedule, start: datetime, now: datetime) -> Timing:
    """The timing as the engine has it, with the grid of an `every` carried on to before it was enabled."""
    if isinstance(schedule.work, Unreadable):
        raise Conflict(f"schedule {schedule.name!r} cannot be run: {schedule.work.reason}")
    try:
        timing = parse_timing(schedule.stored_timing, tz=schedule.zone, name=schedule.name, stored=True)
    except TimingError as error:
        raise Conflict(f"schedule {schedule.name!r} has no due times: {error.message}") from error
    if timing.after_finish is not None:
        raise Conflict(
            f"schedule {schedule.name!r} counts from the end of its last run: it has no due times to fill in"
        )
    if timing.follows:
        raise Conflict(f"schedule {schedule.name!r} runs after others: it has no due times to fill in")
    if isinstance(timing, At) and (due := timing.next_after(now)) is not None:
        raise Conflict(f"schedule {schedule.name!r} is due once, at {due:%Y-%m-%d %H:%M:%S} UTC: that is yet to come")
    return _carried_on(timing, schedule.anchor_at, start)


def _carried_on(timing: Timing, anchor: datetime, start: datetime) -> Timing:
    """The timing on its grid, or in its every nth week, carried on to before the anchor; a combination part by part."""
    match timing:
        case Every() if timing.anchor is None and start <= anchor:
            steps = (anchor - start) // timing.interval + 1
            with suppress(OverflowError):
                anchor -= steps * timing.interval
            return timing.anchored(anchor)
        case CalendarTiming() if timing.every > 1 and timing.anchor is None:
            bound = timing.anchored(anchor)
            return bound.carried_back(start) if isinstance(bound, CalendarTiming) else bound
        case Bounded():
            return Bounded(_carried_on(timing.base, anchor, start), timing.start, timing.end, timing.tz)
        case Or():
            return Or(*(_carried_on(part, anchor, start) for part in timing.parts))
        case Except():
            days = timing.days
            kept = days if isinstance(days, DaySet) else _carried_on(days, anchor, start)
            return Except(_carried_on(timing.base, anchor, start), kept, timing.tz)
        case _:
            return timing.anchored(anchor)


def _how_often(timing: Timing, start: datetime, until: datetime) -> str:
    """The number as far as arithmetic knows it quickly."""
    if isinstance(timing, (Every, Cron, CalendarTiming)) and until - start <= _LONG:
        return f"{timing.count_between(start - MICROSECOND, until):,}"
    return f"more than {MOST:,}"


def backfill_runs(schedule: Schedule, policy: Policy, due: Sequence[Micros], now: Micros) -> list[NewRun]:
    """A run by hand for each of these due times, one after the other unless its overlap policy is allow."""
    assert not isinstance(schedule.work, Unreadable)
    turn = with_turn(policy, schedule.work, schedule.project)
    stored, trace = stored_work(schedule.work, policy), current_trace()
    runs = [
        queued_run(
            stored,
            policy,
            Trigger.MANUAL,
            one,
            ready_at=now,
            asked_at=now,
            schedule_id=schedule.id,
            # Two people who ask for the same due time at once get the same run.
            key=f"{BACKFILL_KEYS}{schedule.id}:{one}",
            scope="backfill",
            project=schedule.project,
            trace=trace,
            started_by=asked_by(),
        )
        for one in due
    ]
    if turn.session is None and policy.overlap is Overlap.ALLOW:
        return runs
    return [in_turn(run, schedule.name, turn) for run in runs]
