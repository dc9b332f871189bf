"""Whether the schedule that is there still is the one that was read: `service.py` asks.

Whether it is somebody else's is asked where it is written: `stores/drafts.py`.
"""

from __future__ import annotations

from ostinato.errors import VersionConflict
from ostinato.models.schedule import Revision, Schedule

__all__ = ["is_version", "overtaken"]


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
