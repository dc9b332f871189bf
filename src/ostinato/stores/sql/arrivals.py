"""Runs that come into user sessions, inside the caller's transaction, which has locked them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from ostinato.clock import Micros
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId
from ostinato.models.session import STALE, is_stale
from ostinato.stores.sql.connection import Connection
from ostinato.stores.sql.ends import end_queued
from ostinato.stores.sql.events import note_runs
from ostinato.stores.sql.parts import Parts

__all__ = ["cut_off", "cutoffs_of", "let_in", "remember"]

C = TypeVar("C", bound=Connection)

_CUTOFFS = "SELECT key, cutoff_at FROM sessions WHERE key = ANY (:keys::text[]) AND cutoff_at IS NOT NULL"
_REMEMBER = """
INSERT INTO sessions AS s (key, max_concurrent, sent_at)
SELECT key, coalesce(:max_concurrent::bigint, 1), sent_at
FROM unnest(:keys::text[], :sent_at::bigint[]) k (key, sent_at) WHERE TRUE ORDER BY key
ON CONFLICT (key) DO UPDATE SET
    max_concurrent = coalesce(:max_concurrent::bigint, s.max_concurrent),
    sent_at = CASE WHEN s.sent_at > excluded.sent_at THEN s.sent_at ELSE excluded.sent_at END
WHERE s.max_concurrent <> :max_concurrent::bigint OR s.sent_at < excluded.sent_at
"""


async def remember(db: Connection, sent_at: Mapping[str, Micros], max_concurrent: int | None = None) -> None:
    """Make sessions be there, with this limit; None leaves what was said last."""
    values = {"keys": list(sent_at), "sent_at": list(sent_at.values())}
    await db.run(_REMEMBER, {**values, "max_concurrent": max_concurrent})


async def cutoffs_of(db: Connection, sessions: Iterable[str]) -> dict[str, Micros]:
    """When those of the sessions were stopped that were."""
    return {key: at for key, at in await db.fetch(_CUTOFFS, {"keys": sorted(set(sessions))}) if at is not None}


async def cut_off(db: Connection, sessions: Iterable[str], now: Micros) -> set[str]:
    """Which sessions were stopped after this instant, at which something began that puts runs into them."""
    return {session for session, cutoff in (await cutoffs_of(db, sessions)).items() if is_stale(now, cutoff, now)}


async def let_in(db: C, parts: Parts[C], session: str, ids: Sequence[RunId], now: Micros) -> None:
    """Something that began at this instant put runs into a session: let them queue up, unless it is too late."""
    if await cut_off(db, [session], now):
        await end_queued(db, parts, ids, STALE, now)
        return
    await remember(db, {session: now})
    await note_runs(db, EventKind.ENQUEUED, ids, now)
    await parts.give_turns(db, [session])
