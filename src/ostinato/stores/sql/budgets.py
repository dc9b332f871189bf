"""Budgets: what a run reserves when it starts, and what is settled when its attempt ends, in the caller's transaction.

Whoever touches a budget has named it to the writer (`budget_lock`), which locks it first and in the order that every
node takes: two nodes never see the same money, even on a day on which nothing was spent yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ostinato.clock import Micros
from ostinato.models.budget import UNKNOWN, BudgetOwner, Grant, Reservation, SessionBudget, Spending, day_of, grant
from ostinato.models.run import Finish
from ostinato.stores.sql.connection import Connection

__all__ = ["budget_lock", "budget_locks", "read_spending", "reserve_now", "settle_costs"]


class _Account(NamedTuple):
    """Where the days of one kind of owner are counted."""

    table: str
    owner: str
    """The column, in that table and in `runs`."""
    of_runs: str
    """Which runs are counted there."""

    def write(self, statement: str) -> str:
        return statement.format(table=self.table, owner=self.owner, of_runs=self.of_runs, unknown=UNKNOWN)


_OF_SCHEDULES = _Account("spending", "schedule_id", "r.schedule_id IS NOT NULL")
_OF_SESSIONS = _Account("session_spending", "session", "r.schedule_id IS NULL AND r.session IS NOT NULL")

_ZONE = "SELECT zone FROM schedules WHERE id = :owner"
# The schedule before the run, as everywhere; who removes it waits, or was first.
_ZONE_LOCKED = f"{_ZONE} FOR KEY SHARE"
_ASKING = """
SELECT budget_day, reserved FROM runs r
WHERE id = :run AND token = :token AND {owner} = :owner AND {of_runs} AND state || '' = 'running' FOR NO KEY UPDATE
"""
_SPEND = """
INSERT INTO {table} AS s ({owner}, day, runs, reserved) VALUES (:owner, :day, :runs, :amount)
ON CONFLICT ({owner}, day) DO UPDATE SET runs = s.runs + :runs, reserved = s.reserved + :amount
"""
_GIVE_BACK = "UPDATE {table} SET reserved = reserved - :amount WHERE {owner} = :owner AND day = :day"
_RESERVE = "UPDATE runs SET budget_day = :day, reserved = :amount WHERE id = :run"
_SPENDING = "SELECT runs, spent, reserved FROM {table} WHERE {owner} = :owner AND day = :day"

# A run that holds no reservation (any more) settles nothing, however often it is asked to.
_SETTLE = """
UPDATE {table} AS s SET reserved = s.reserved - t.reserved, spent = s.spent + t.cost
FROM (
    SELECT r.{owner}, r.budget_day, sum(r.reserved)::bigint AS reserved,
           sum(CASE WHEN f.cost = {unknown} THEN r.reserved ELSE f.cost END)::bigint AS cost
    FROM unnest(:ids::bigint[], :costs::bigint[]) f (id, cost)
    JOIN runs r ON r.id = f.id AND r.reserved IS NOT NULL AND {of_runs}
    GROUP BY r.{owner}, r.budget_day
) t
WHERE s.{owner} = t.{owner} AND s.day = t.budget_day
"""
_SETTLED = "UPDATE runs SET reserved = NULL WHERE id = ANY (:ids::bigint[]) AND reserved IS NOT NULL"


def _account(owner: BudgetOwner) -> _Account:
    return _OF_SESSIONS if isinstance(owner, SessionBudget) else _OF_SCHEDULES


def _owner(owner: BudgetOwner) -> int | str:
    """As its column has it."""
    return owner.session if isinstance(owner, SessionBudget) else owner


def budget_lock(owner: BudgetOwner | str) -> str:
    """The name under which the writer locks the budget of a schedule or, by its key, of a session. A session of this
    name would share the lock."""
    if isinstance(owner, int):
        return f"budget of schedule {owner}"
    return f"budget of session {owner if isinstance(owner, str) else owner.session}"


def budget_locks(finishes: Iterable[Finish]) -> set[str]:
    """The locks of the budgets that these finishes settle."""
    owners = (
        finish.schedule_id if finish.schedule_id is not None else finish.session
        for finish in finishes
        if finish.cost is not None
    )
    return {budget_lock(owner) for owner in owners if owner is not None}


async def settle_costs(db: Connection, ended: Sequence[Finish]) -> None:
    """Attempts have ended: what they cost takes the place of what they had reserved, if they had."""
    settled = [finish for finish in ended if finish.cost is not None]
    if settled:
        values = {"ids": [finish.id for finish in settled], "costs": [finish.cost for finish in settled]}
        for account in {_OF_SCHEDULES if finish.schedule_id is not None else _OF_SESSIONS for finish in settled}:
            await db.run(account.write(_SETTLE), values)
        await db.run(_SETTLED, values)


async def reserve_now(db: Connection, wanted: Reservation) -> Grant:
    """Let a run start, or say why not."""
    account, owner = _account(wanted.owner), _owner(wanted.owner)
    zone = await _zone(db, wanted.owner, _ZONE_LOCKED)
    asking = {"run": wanted.run, "token": wanted.token, "owner": owner}
    rows = [] if zone is None else await db.fetch(account.write(_ASKING), asking)
    if zone is None or not rows:
        return Grant(refusal="its claim no longer holds")
    day = day_of(wanted.now, zone)
    counted_on, held = rows[0]
    if held is not None:
        # It asked before, and nobody knows whether it heard the answer.
        await db.run(account.write(_GIVE_BACK), {"amount": held, "owner": owner, "day": counted_on})
    counted = counted_on == day
    answer = grant(wanted.budget, await _spending(db, wanted.owner, day), counted=counted)
    amount = None
    if answer.refusal is None:
        amount, counted_on = answer.amount or 0, day
        spent = {"owner": owner, "day": day, "runs": 0 if counted else 1, "amount": amount}
        await db.run(account.write(_SPEND), spent)
    if amount is not None or held is not None:
        await db.run(_RESERVE, {"day": counted_on, "amount": amount, "run": wanted.run})
    return answer


async def read_spending(db: Connection, owner: BudgetOwner, now: Micros) -> Spending:
    """What a schedule or a session has used of its day."""
    zone = await _zone(db, owner)
    return Spending() if zone is None else await _spending(db, owner, day_of(now, zone))


async def _zone(db: Connection, owner: BudgetOwner, query: str = _ZONE) -> str | None:
    """Whose days they are; None of a schedule that is gone."""
    if isinstance(owner, SessionBudget):
        return owner.zone
    rows = await db.fetch(query, {"owner": owner})
    return str(rows[0][0]) if rows else None


async def _spending(db: Connection, owner: BudgetOwner, day: str) -> Spending:
    rows = await db.fetch(_account(owner).write(_SPENDING), {"owner": _owner(owner), "day": day})
    return Spending(*rows[0]) if rows else Spending()
