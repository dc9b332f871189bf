"""Runs out of outboxes: in the transaction that inserts a run, the id of its row decides whether it has come before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from ostinato.clock import Micros
from ostinato.models.ids import RunId
from ostinato.models.outbox import Arrival
from ostinato.models.session import Message
from ostinato.stores.sql.connection import Connection, Database
from ostinato.stores.sql.messages import send_all
from ostinato.stores.sql.parts import Parts

__all__ = ["Outbox"]

C = TypeVar("C", bound=Connection)

# In one order: who takes the same rows at the same time waits here, and then finds them.
_REMEMBER = """
INSERT INTO outbox_ids (id, at) SELECT id, :now::bigint FROM unnest(:ids::text[]) k (id) WHERE TRUE ORDER BY id
ON CONFLICT (id) DO NOTHING RETURNING id
"""
# What comes again is still in its outbox: it is not forgotten before it is gone there.
_SEEN_AGAIN = "UPDATE outbox_ids SET at = :now WHERE id = ANY (:ids::text[])"
_NAME = """
UPDATE outbox_ids AS o SET run_id = k.run FROM unnest(:ids::text[], :runs::bigint[]) k (row_id, run)
WHERE o.id = k.row_id
"""
_FIND = "SELECT run_id FROM outbox_ids WHERE id = :id AND run_id IS NOT NULL"


class Outbox(Generic[C]):
    """Answers stores.transactions.OutboxStore."""

    def __init__(self, database: Database[C], parts: Parts[C]) -> None:
        self._database = database
        self._parts = parts

    async def take(self, arrivals: Sequence[Arrival], now: Micros) -> None:
        if not arrivals:
            return
        sessions = {arrival.run.session for arrival in arrivals if arrival.run.session is not None}
        # Twice is as once: the ids are there the second time.
        await self._database.write(
            lambda db: _take(db, self._parts, arrivals, now), wakes=True, once=False, sessions=sessions
        )

    async def find_run(self, id: str) -> RunId | None:
        rows = await self._database.read(lambda db: db.fetch(_FIND, {"id": id}))
        return RunId(rows[0][0]) if rows else None


async def _take(db: C, parts: Parts[C], arrivals: Sequence[Arrival], now: Micros) -> None:
    given = {arrival.id: arrival for arrival in arrivals}
    rows = await db.fetch(_REMEMBER, {"ids": sorted(given), "now": now})
    new = {id for (id,) in rows}
    if again := sorted(given.keys() - new):
        await db.run(_SEEN_AGAIN, {"ids": again, "now": now})
    plain = [arrival for arrival in given.values() if arrival.id in new and arrival.run.session is None]
    sent = [arrival for arrival in given.values() if arrival.id in new and arrival.run.session is not None]
    runs: dict[str, RunId] = {}
    if plain:
        ids = await parts.insert_all(db, [arrival.run for arrival in plain])
        runs.update(zip([arrival.id for arrival in plain], ids, strict=True))
    if sent:
        messages = [Message(arrival.run, min(arrival.sent_at, now)) for arrival in sent]
        answers = await (await send_all(db, parts, messages, now))()
        runs.update({arrival.id: one.id for arrival, one in zip(sent, answers, strict=True) if one.id is not None})
    if runs:
        await db.run(_NAME, {"ids": list(runs), "runs": list(runs.values())})
