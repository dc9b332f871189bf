"""What becomes of runs that meet others of their schedule, pure: a part of plan.py and after.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from ostinato.models.ids import RunId
from ostinato.models.policy import Overlap, Policy
from ostinato.models.run import Ending, NewRun
from ostinato.models.schedule import DueSchedule
from ostinato.models.states import Cause, RunState

__all__ = ["REPLACED", "is_busy", "overlapped", "up_to_remaining"]

REPLACED = Ending(Cause.OVERLAP, "replaced by a newer due time (overlap is cancel_running)")


def up_to_remaining(schedule: DueSchedule, runs: list[NewRun]) -> list[NewRun]:
    """With the last run that remains the schedule ends: it was not due after that. What is skipped uses up none."""
    left = schedule.remaining
    if left is not None:
        for position, run in enumerate(runs):
            left -= run.state is RunState.QUEUED
            if left == 0:
                return runs[: position + 1]
    return runs


def is_busy(schedule: DueSchedule) -> bool:
    return bool(schedule.active or schedule.waiting or schedule.given_up)


def _busy_with(schedule: DueSchedule) -> str:
    if active := schedule.active + schedule.waiting:
        return f"{_named(active)} {'was' if len(active) == 1 else 'were'} still active"
    return f"the code of {_named(schedule.given_up)}, which was given up, was still running"


def _named(runs: Sequence[RunId]) -> str:
    return f"{'run' if len(runs) == 1 else 'runs'} {', '.join(map(str, runs))}"


def overlapped(schedule: DueSchedule, policy: Policy, runs: list[NewRun]) -> list[NewRun]:
    """Due times that meet an active run, or what was given up and goes on."""
    match policy.overlap:
        case Overlap.ALLOW | Overlap.QUEUE_ALL:
            return runs
        case Overlap.CANCEL_RUNNING:
            kept, dropped = runs[-1:], runs[:-1]
            why = "a newer due time replaced it (overlap is cancel_running)"
        case Overlap.QUEUE_ONE:
            # Beside what was given up, what has its turn does not start: it is the one that waits.
            room = 0 if schedule.waiting or (schedule.given_up and schedule.active) else 1
            kept, dropped = runs[:room], runs[room:]
            why = "another run of it was waiting already (overlap is queue_one)"
        case Overlap.SKIP:
            kept, dropped = [], runs
            why = f"{_busy_with(schedule)} (overlap is skip)"
        case _:
            assert_never(policy.overlap)
    skipped = [
        replace(
            run,
            state=RunState.SKIPPED,
            cause=Cause.OVERLAP,
            reason=why,
            session=None,
            waiting=False,
            mode=None,
            expires_at=None,
        )
        for run in dropped
    ]
    return sorted(skipped + kept, key=lambda run: run.due_at)
