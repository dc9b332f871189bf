"""A schedule that the breaker has switched off recovers by itself: a probe of it has succeeded.

Everything here happens inside the caller's transaction; finishes.py asks, engine/plan.py plans the probes.
"""

from __future__ import annotations

from ostinato.clock import Micros, from_micros, micros_of, to_micros
from ostinato.logs import get_logger
from ostinato.models.ids import ScheduleId
from ostinato.stores.sql.connection import Connection
from ostinato.timing import parse_timing

__all__ = ["recover"]

log = get_logger("ostinato")

# One that is not tried again broke for another reason than failures, or ran as often as it should with its probe.
_PROBED = """
SELECT name, timing, zone, anchor_at, remaining FROM schedules
WHERE id = :id AND broken IS NOT NULL AND NOT enabled AND NOT orphaned AND (next_at IS NOT NULL OR remaining = 0)
FOR NO KEY UPDATE
"""
_RECOVER = """
UPDATE schedules SET enabled = :enabled, broken = NULL, failures = 0, next_at = :next_at, version = version + 1,
                     updated_at = :at
WHERE id = :id
"""


async def recover(db: Connection, id: ScheduleId, at: Micros) -> None:
    """Switch it on again, from this success on; nothing, if it is not one that is tried. One that is not due again is
    finished."""
    for name, timing, zone, anchor_at, remaining in await db.fetch(_PROBED, {"id": id}):
        try:
            next_at = None if remaining == 0 else _next_due(name, timing, zone, anchor_at, at)
        except Exception:  # whatever a timing raises
            log.exception("schedule %r stays broken: its timing cannot be computed", name)
            continue
        await db.run(_RECOVER, {"id": id, "enabled": remaining != 0, "next_at": next_at, "at": at})


def _next_due(name: str, timing: str, zone: str, anchor_at: Micros, at: Micros) -> Micros | None:
    """When it is due again."""
    bound = parse_timing(timing, tz=zone, name=name, stored=True).anchored(from_micros(anchor_at))
    if bound.after_finish is not None:
        return at + micros_of(bound.after_finish)
    due = bound.next_after(from_micros(at))
    return None if due is None else to_micros(due)
