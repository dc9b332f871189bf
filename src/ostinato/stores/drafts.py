"""A draft against the schedule that has its name, pure: what a store writes, and whether it writes at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any

from ostinato.clock import Micros
from ostinato.errors import NotLoadable
from ostinato.models.policy import load_policy
from ostinato.models.schedule import ScheduleDraft

__all__ = ["STORED_COLUMNS", "StoredSchedule", "load_stored", "merged"]


@dataclass(slots=True, kw_only=True)
class StoredSchedule(ScheduleDraft):
    """A schedule as it is stored: what a draft may change of it, and what it asks about."""

    id: int
    broken: str | None
    orphaned: bool
    failures: int
    paused_since: Micros | None


_NAMES = [field.name for field in fields(StoredSchedule)]
STORED_COLUMNS = ", ".join(_NAMES)


def load_stored(row: Sequence[Any]) -> StoredSchedule:
    """A schedule from STORED_COLUMNS."""
    return StoredSchedule(**dict(zip(_NAMES, row, strict=True)))


def merged(known: StoredSchedule, draft: ScheduleDraft) -> StoredSchedule | None:
    """The schedule as the draft makes it; None if nothing of it differs.

    A person's switch stays. Another timing takes the draft's due time and mends what was broken; one that code declares
    again is due again.
    """
    is_retimed = (draft.timing, draft.zone) != (known.timing, known.zone)
    note = known.note if draft.note is None else draft.note
    origin = known.origin if draft.origin is None else draft.origin
    before = (known.note, known.origin, known.work, known.policy, known.project, known.owner)
    after = (note, origin, draft.work, draft.policy, draft.project, draft.owner)
    if not is_retimed and not known.orphaned and before == after:
        return None
    now_known = replace(
        known,
        timing=draft.timing,
        zone=draft.zone,
        work=draft.work,
        kind=draft.kind,
        task=draft.task,
        policy=draft.policy,
        project=draft.project,
        owner=draft.owner,
        origin=origin,
        note=note,
        after_finish=draft.after_finish,
        orphaned=False,
    )
    if is_retimed or known.orphaned:
        is_due = known.enabled or known.broken is not None
        now_known = replace(now_known, next_at=draft.next_at if is_due else None)
    if is_retimed or draft.policy != known.policy:
        now_known = replace(now_known, remaining=draft.remaining)
    if _fresh(draft.policy) != _fresh(known.policy):
        now_known = replace(now_known, fresh_at=draft.fresh_at)
    if is_retimed:
        now_known = replace(now_known, anchor_at=draft.anchor_at, broken=None, failures=0)
        if known.broken is not None:
            now_known = replace(now_known, enabled=True, off_note=None)
    return now_known


def _fresh(policy: str) -> timedelta | None:
    """For how long a success counts; of a policy that cannot be read nobody knows."""
    try:
        return load_policy(policy).fresh
    except NotLoadable:
        return None
