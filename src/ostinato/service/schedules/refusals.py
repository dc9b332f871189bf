"""Why a schedule is not triggered."""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.errors import AlreadyActive
from ostinato.models.given_up import GivenUp
from ostinato.models.schedule import Schedule

__all__ = ["already_active"]


def already_active(schedule: Schedule, given_up: Sequence[GivenUp]) -> AlreadyActive:
    """Something of it runs, or goes on though it was given up."""
    going_on = next((one for one in given_up if one.schedule == schedule.name), None)
    busy = "it has an active run" if going_on is None else going_on.sentence
    end = "cancel it" if going_on is None else "restart that node"
    return AlreadyActive(
        f"schedule {schedule.name!r} is not triggered: {busy}, and its overlap policy is {schedule.policy.overlap}: "
        f"wait for it, {end}, or force another one"
    )
