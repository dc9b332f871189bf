"""One verb for many schedules: each is a verb of `schedules.py`, which notes itself in the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ostinato.errors import Draining, InvalidInput, OstinatoError, SchemaTooNew, StoreError, StoreUnavailable
from ostinato.logs import get_logger
from ostinato.plurals import counted
from ostinato.service.schedules.service import ScheduleService

__all__ = ["BulkAction", "BulkOutcome", "do_with_many"]

log = get_logger("ostinato")

BulkAction = Literal["enable", "disable", "trigger", "remove"]


@dataclass(frozen=True, slots=True)
class BulkOutcome:
    """With which schedules it was done, and with which not, and why."""

    done: list[str] = field(default_factory=list)
    failed: list[tuple[str, OstinatoError]] = field(default_factory=list)


async def do_with_many(
    schedules: ScheduleService,
    action: BulkAction,
    names: Sequence[str],
    *,
    note: str | None = None,
    force: bool = False,
) -> BulkOutcome:
    """Do the same with each, one after the other; what cannot be done with one does not hinder the others.

    A database that cannot be reached, or a container that shuts down, ends it: the others would fare no better.
    """
    _check_used(action, note, force=force)
    outcome = BulkOutcome()
    for name in dict.fromkeys(names):
        try:
            await _do(schedules, action, name, note, force)
        except (StoreUnavailable, SchemaTooNew, Draining):
            log.warning("%s of %s ended after %d", action, counted(len(names), "schedule"), len(outcome.done))
            raise
        except OstinatoError as error:
            if isinstance(error, StoreError):
                log.error("unexpected error: %s of schedule %r", action, name, exc_info=error)
            outcome.failed.append((name, error))
        else:
            outcome.done.append(name)
    return outcome


def _check_used(action: BulkAction, note: str | None, *, force: bool) -> None:
    """What only another verb would read is a mistake of whoever gave it."""
    if note is not None and action != "disable":
        raise InvalidInput(f"{action} takes no note", field="note", hint="only disable takes one")
    if force and action not in ("trigger", "remove"):
        raise InvalidInput(f"{action} cannot be forced", field="force", hint="only trigger and remove can")


async def _do(schedules: ScheduleService, action: BulkAction, name: str, note: str | None, force: bool) -> None:
    match action:
        case "enable":
            await schedules.enable(name)
        case "disable":
            await schedules.disable(name, note=note)
        case "trigger":
            await schedules.trigger(name, force=force)
        case "remove":
            await schedules.remove(name, force=force)
