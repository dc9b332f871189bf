"""Whether a change may be written over the schedule that is there: `service.py` asks.

It may have another version by now; or somebody else made it, who is not to lose it to whoever adds the same name.
"""

from __future__ import annotations

from ostinato.command_hints import hint
from ostinato.errors import Conflict, VersionConflict
from ostinato.models.policy import policy_text
from ostinato.models.schedule import Revision, Schedule, ScheduleDraft
from ostinato.models.work import Unreadable, work_text

__all__ = ["check_replaced", "is_version", "overtaken"]

_PERSONS = "user"
"""The owner of what people add; what else has an owner is its own, whoever brings it up to date."""


def check_replaced(known: Schedule, draft: ScheduleDraft) -> None:
    """Conflict if the draft would change what another owner or person made."""
    if not _is_anothers(known, draft) or _is_same(known, draft):
        return
    whose = f"by {known.made_by}" if known.owner == _PERSONS and known.made_by is not None else f"by {known.owner!r}"
    raise Conflict(
        f"schedule {known.name!r} exists and was made {whose}: it is not replaced; choose another name, change it with "
        f"{hint('schedule edit', known.name)}, or ask for it with --replace (replace=True)"
    )


def is_version(schedule: Schedule, version: int | Revision) -> bool:
    """Whether the schedule is the one that somebody has read."""
    return version in (schedule.version, schedule.revision)


def overtaken(name: str, version: int | None, *, is_new: bool = False) -> VersionConflict:
    """Somebody was faster; `version` is the one there is now."""
    if is_new:
        return VersionConflict(f"a schedule {name!r} already exists", version=version)
    return VersionConflict(
        f"schedule {name!r} was changed by somebody else: read it again and repeat the change", version=version
    )


def _is_anothers(known: Schedule, draft: ScheduleDraft) -> bool:
    if known.orphaned:
        return False  # its code says nothing of it any more: it is whose will
    if known.owner != draft.owner:
        return True
    return known.owner == _PERSONS and known.made_by is not None and known.made_by != draft.made_by


def _is_same(known: Schedule, draft: ScheduleDraft) -> bool:
    """Whether it says the same of when, what, where and how; the note and the switch are nobody's loss."""
    if isinstance(known.work, Unreadable):
        return False
    before = (known.stored_timing, known.zone, work_text(known.work), policy_text(known.policy), known.project)
    return before == (draft.timing, draft.zone, draft.work, draft.policy, draft.project)
