"""Rows to what is told of them, the same for every store: without what may be large and is not told. As rows.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.clock import from_micros
from ostinato.models.ids import ScheduleId
from ostinato.models.live import ChangedSchedule
from ostinato.stores.rows import RUN_COLUMNS

__all__ = ["CHANGED_COLUMNS", "TOLD_COLUMNS", "load_changed"]

TOLD_COLUMNS = RUN_COLUMNS.replace("r.result", "NULL").replace("r.work", "''")
"""A run for `load_run`; its work cannot be read, and nobody does."""
CHANGED_COLUMNS = "s.id, s.name, s.version, s.enabled, s.broken, s.updated_at"


def load_changed(row: Sequence[Any]) -> ChangedSchedule:
    """A changed schedule, from CHANGED_COLUMNS."""
    id, name, version, enabled, broken, updated_at = row
    return ChangedSchedule(ScheduleId(id), name, version, bool(enabled), broken, from_micros(updated_at))
