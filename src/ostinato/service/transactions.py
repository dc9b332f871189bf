"""Runs that are enqueued in a transaction of their caller: through the same database, or by way of an outbox."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ostinato.clock import Clock
from ostinato.durations import Duration, duration_text, parse_duration
from ostinato.errors import InvalidInput, NotFound, NotLoadable, StoreUnavailable, WaitTimeout
from ostinato.models.ids import RunId
from ostinato.models.outbox import OUTBOX_SERVICE, Arrival, OutboxRow, Refusal, Taken, read_body
from ostinato.models.policy import load_policy, policy_text
from ostinato.models.run import NewRun, queued_run
from ostinato.models.states import Trigger
from ostinato.models.work import read_work
from ostinato.service.lanes import LaneService
from ostinato.service.notifications import NotificationService
from ostinato.service.runs import EnqueueSpec, RunService, check_run_key, check_scope
from ostinato.stores.base import SharedLedger, Store
from ostinato.trace_context import own_trace

__all__ = ["Prepared", "TransactionService"]

_FIRST_LOOK, _LONGEST_LOOK = 0.005, 0.1


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is to be inserted through the connection of a caller, and the ledger as that reaches it."""

    runs: Sequence[NewRun]
    ledger: SharedLedger | None


class TransactionService:
    """What is done in the database for transactions of others."""

    def __init__(
        self, store: Store, clock: Clock, lanes: LaneService, notifications: NotificationService, runs: RunService
    ) -> None:
        self._store = store
        self._clock = clock
        self._lanes = lanes
        self._notifications = notifications
        self._runs = runs

    async def prepare(self, spec: EnqueueSpec, calls: Iterable[tuple[Sequence[Any], Mapping[str, Any]]]) -> Prepared:
        """Check everything that can be wrong with these calls before the caller's transaction is touched."""
        return Prepared(await self._runs.draft_calls(spec, calls), await self._store.shared_ledger())

    async def find(self, row: str) -> RunId:
        """The run that came out of a row of an outbox."""
        found = await self._store.outbox.find_run(row)
        if found is None:
            raise NotFound(
                f"no run has come out of the outbox for row {row}: its transaction is not committed or was rolled "
                "back, or the row is still there; 'ostinato outbox ls' lists what is"
            )
        return found

    async def arrive(self, row: str, *, timeout: Duration | None = None) -> RunId:
        """Wait until a row of an outbox has become a run; WaitTimeout if that takes too long."""
        seconds = None if timeout is None else parse_duration(timeout, field="timeout").total_seconds()
        pause = _FIRST_LOOK
        try:
            async with asyncio.timeout(seconds):
                while (found := await self._store.outbox.find_run(row)) is None:
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, _LONGEST_LOOK)
        except TimeoutError:
            waited = duration_text(timedelta(seconds=seconds or 0))
            why = await self._why_not_out()
            raise WaitTimeout(f"row {row} is not out of its outbox after {waited}: {why}") from None
        return found

    async def _why_not_out(self) -> str:
        """Why a row may still be in its outbox, as far as the ledger knows."""
        nodes = [node for node in await self._store.nodes.list_nodes(self._clock.now()) if node.state != "lost"]
        if not nodes:
            return "no engine is running: start one of an app that has called app.add_outbox(…)"
        if not any(name.startswith(OUTBOX_SERVICE) for node in nodes for name in node.services):
            return "is it committed? No running node has said that it drains an outbox: app.add_outbox(…) lets it"
        return "is it committed? 'ostinato outbox ls' lists what waits, and what was refused and why"

    async def take(self, rows: Sequence[OutboxRow]) -> Taken:
        """Take rows into the ledger, each once by its id, in one transaction; what cannot be taken is refused."""
        arrivals: list[Arrival] = []
        refused: list[Refusal] = []
        for row in rows:
            try:
                arrivals.append(await self._arrival(row))
            except (InvalidInput, NotLoadable) as error:
                refused.append(Refusal(row, str(error)))
        refused += await self._insert(arrivals, {row.id: row for row in rows})
        not_taken = {refusal.row.id for refusal in refused}
        return Taken(tuple(row.id for row in rows if row.id not in not_taken), tuple(refused))

    async def _insert(self, arrivals: Sequence[Arrival], rows: Mapping[str, OutboxRow]) -> list[Refusal]:
        """Insert them all, or each alone if the database refuses one."""
        try:
            await self._store.outbox.take(arrivals, self._clock.now())
        except StoreUnavailable:
            raise
        except Exception as error:  # whatever one row does to the database, the others must not wait for it
            if len(arrivals) == 1:
                return [Refusal(rows[arrivals[0].id], str(error) or type(error).__name__)]
            return [refusal for one in arrivals for refusal in await self._insert([one], rows)]
        return []

    async def _arrival(self, row: OutboxRow) -> Arrival:
        body = read_body(row.body)
        stored = body.stored(row.task)
        if (needs := read_work(body.work, body.kind).needs) != row.task:
            raise InvalidInput(f"its work is one of {needs!r}, and not of {row.task!r}", field="task")
        if body.key is not None:
            check_run_key(body.key)
        if body.scope is not None:
            check_scope(body.scope)
        policy = await self._lanes.settle(load_policy(body.policy))
        if policy.notify:
            await self._notifications.warn(policy.notify)
        stored = stored._replace(policy=policy_text(policy))
        trace = own_trace(body.trace)
        run = queued_run(
            stored,
            policy,
            Trigger.API,
            body.due_at,
            session=policy.session,
            key=body.key,
            scope=body.scope,
            trace=trace,
        )
        return Arrival(row.id, run, row.created_micros)
