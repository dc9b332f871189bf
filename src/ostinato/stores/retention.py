"""Retention: which ended runs are past what their policy keeps (both stores ask here), and a whole sweep."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from ostinato.clock import Micros, micros_of
from ostinato.errors import NotLoadable
from ostinato.models.budget import day_of
from ostinato.models.policy import Keep, load_policy
from ostinato.stores.upkeep import PruneCursor, UpkeepStore

__all__ = [
    "AUDIT_KEPT",
    "DELIVERIES_KEPT",
    "EVENTS_KEPT",
    "INCIDENTS_KEPT",
    "NODE_KEPT",
    "OUTBOX_IDS_KEPT",
    "TOKEN_KEPT",
    "keep_of",
    "old_day",
    "past_age",
    "sweep",
]

NODE_KEPT: Micros = 24 * 3_600 * 1_000_000
"""How long a lost node stays visible."""
EVENTS_KEPT: Micros = 7 * NODE_KEPT
"""How long events stay, and sessions in which nothing happens."""
TOKEN_KEPT: Micros = 30 * NODE_KEPT
"""How long a token stays visible after it has expired."""
AUDIT_KEPT: Micros = 400 * NODE_KEPT
"""How long it is known who did what."""
DELIVERIES_KEPT: Micros = 30 * NODE_KEPT
"""How long it is known who was told of what."""
INCIDENTS_KEPT: Micros = 90 * NODE_KEPT
"""How long incidents stay after they have closed."""
OUTBOX_IDS_KEPT: Micros = 30 * NODE_KEPT
"""How long it is known which rows of outboxes have come, after they were seen there last."""
_SPENDING_KEPT: Micros = 30 * NODE_KEPT
"""How long it is known what a day of a budget has used."""
_STEP = 1_000


def old_day(now: Micros) -> str:
    """Days before this one are no longer asked what they have used of a budget, in whatever zone."""
    return day_of(now - _SPENDING_KEPT, "UTC")


def keep_of(policy: str) -> Keep:
    """What a stored policy keeps; everything, if it cannot be read."""
    try:
        return load_policy(policy).keep
    except NotLoadable:
        return Keep(age=None, count=None)


def past_age(ended: Iterable[tuple[int, Micros, str]], now: Micros) -> list[int]:
    """Of (id, finished_at, policy), the ids whose age is past what their policy keeps."""
    old = []
    for id, finished_at, policy in ended:
        age = keep_of(policy).age
        if age is not None and finished_at + micros_of(age) < now:
            old.append(id)
    return old


async def sweep(upkeep: UpkeepStore, now: Micros, rest: Callable[[], Awaitable[object]]) -> int:
    """One whole sweep in small steps; `rest` lets others go in between. Answers how many runs it removed."""
    removed = 0
    cursor: PruneCursor | None = PruneCursor()
    while cursor is not None:
        pruned = await upkeep.prune(now, cursor, _STEP)
        removed += pruned.runs
        await rest()
        cursor = pruned.cursor
    return removed
