"""Budgets: what a run reserves when it starts, and what is settled when its attempt ends, in the caller's transaction.

Whoever touches a budget has named it to the writer (`budget_lock`), which locks it first and in the order that every
node takes: two nodes never see the same money, even on a day on which nothing was spent yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ostinato.clock import Micros
from ostinato.models.budget import UNKNOWN, Grant, Reservation, Spending, day_of, grant
from ostinato.models.ids import ScheduleId
from ostinato.models.run import Finish
from ostinato.stores.sql.connection import Connection

__all__ = ["budget_lock", "budget_locks", "read_spending", "reserve_now", "settle_costs"]

# The schedule before the run, as everywhere; who removes it waits, or was first.
_ZONE = "SELECT zone FROM schedules WHERE id = :schedule FOR KEY SHARE"
_ASKING = """
SELECT budget_day, reserved FROM runs
WHERE id = :run AND token = :token AND schedule_id = :schedule AND state || '' = 'running' FOR NO KEY UPDATE
"""
_SPEND = """
INSERT INTO spending AS s (schedule_id, day, runs, reserved) VALUES (:schedule, :day, :runs, :amount)
ON CONFLICT (schedule_id, day) DO UPDATE SET runs = s.runs + :runs, reserved = s.reserved + :amount
"""
_GIVE_BACK = "UPDATE spending SET reserved = reserved - :amount WHERE schedule_id = :schedule AND day = :day"
_RESERVE = "UPDATE runs SET budget_day = :day, reserved = :amount WHERE id = :run"
_SPENDING = "SELECT runs, spent, reserved FROM spending WHERE schedule_id = :schedule AND day = :day"

# A run that holds no reservation (any more) settles nothing, however often it is asked to.
_SETTLE = f"""
UPDATE spending AS s SET reserved = s.reserved - t.reserved, spent = s.spent + t.cost
FROM (
    SELECT r.schedule_id, r.budget_day, sum(r.reserved)::bigint AS reserved,
           sum(CASE WHEN f.cost = {UNKNOWN} THEN r.reserved ELSE f.cost END)::bigint AS cost
    FROM unnest(:ids::bigint[], :costs::bigint[]) f (id, cost) JOIN runs r ON r.id = f.id AND r.reserved IS NOT NULL
    GROUP BY r.schedule_id, r.budget_day
) t
WHERE s.schedule_id = t.schedule_id AND s.day = t.budget_day
"""
_SETTLED = "UPDATE runs SET reserved = NULL WHERE id = ANY (:ids::bigint[]) AND reserved IS NOT NULL"


def budget_lock(schedule_id: ScheduleId | int) -> str:
    """The name under which the writer locks the budget of a schedule. A session of this name would share the lock."""
    return f"budget of schedule {schedule_id}"


def budget_locks(finishes: Iterable[Finish]) -> set[str]:
    """The locks of the budgets that these finishes settle."""
    return {
        budget_lock(finish.schedule_id)
        for finish in finishes
        if finish.cost is not None and finish.schedule_id is not None
    }


async def settle_costs(db: Connection, ended: Sequence[Finish]) -> None:
    """Attempts have ended: what they cost takes the place of what they had reserved, if they had."""
    costs = {finish.id: finish.cost for finish in ended if finish.cost is not None}
    if costs:
        values = {"ids": list(costs), "costs": list(costs.values())}
        await db.run(_SETTLE, values)
        await db.run(_SETTLED, values)


async def reserve_now(db: Connection, wanted: Reservation) -> Grant:
    """Let a run start, or say why not."""
    asking = {"run": wanted.run, "token": wanted.token, "schedule": wanted.schedule_id}
    zones = await db.fetch(_ZONE, asking)
    rows = await db.fetch(_ASKING, asking) if zones else []
    if not rows:
        return Grant(refusal="its claim no longer holds")
    day = day_of(wanted.now, zones[0][0])
    counted_on, held = rows[0]
    if held is not None:
        # It asked before, and nobody knows whether it heard the answer.
        await db.run(_GIVE_BACK, {"amount": held, "schedule": wanted.schedule_id, "day": counted_on})
    counted = counted_on == day
    answer = grant(wanted.budget, await _spending(db, wanted.schedule_id, day), counted=counted)
    amount = None
    if answer.refusal is None:
        amount, counted_on = answer.amount or 0, day
        spent = {"schedule": wanted.schedule_id, "day": day, "runs": 0 if counted else 1, "amount": amount}
        await db.run(_SPEND, spent)
    if amount is not None or held is not None:
        await db.run(_RESERVE, {"day": counted_on, "amount": amount, "run": wanted.run})
    return answer


async def read_spending(db: Connection, schedule_id: ScheduleId, now: Micros) -> Spending:
    """What a schedule has used of its day."""
    rows = await db.fetch("SELECT zone FROM schedules WHERE id = :schedule", {"schedule": schedule_id})
    return await _spending(db, schedule_id, day_of(now, rows[0][0])) if rows else Spending()


async def _spending(db: Connection, schedule_id: int, day: str) -> Spending:
    rows = await db.fetch(_SPENDING, {"schedule": schedule_id, "day": day})
    return Spending(*rows[0]) if rows else Spending()
