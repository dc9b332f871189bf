"""Budgets in PostgreSQL: what is reserved when a run starts, and settled when its attempt ends, in the caller's
transaction. Whoever touches a budget has named it to the writer (`budget_lock`), which locks it first and in the order
that every node takes: two nodes never see the same money, even on a day on which nothing was spent yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ostinato.clock import Micros
from ostinato.models.budget import UNKNOWN, Grant, Reservation, Spending, day_of, grant
from ostinato.models.ids import ScheduleId
from ostinato.models.run import Finish
from ostinato.stores.postgres.query import Connection, fetch, numbers

__all__ = ["budget_lock", "budget_locks", "read_spending", "reserve_now", "settle_costs"]

# The schedule before the run, as everywhere; who removes it waits, or was first.
_ZONE = "SELECT zone FROM schedules WHERE id = %s FOR KEY SHARE"
_ASKING = """
SELECT budget_day, reserved FROM runs WHERE id = %s AND token = %s AND schedule_id = %s AND state || '' = 'running'
FOR NO KEY UPDATE
"""
_SPEND = """
INSERT INTO spending AS s (schedule_id, day, runs, reserved) VALUES (%(schedule)s, %(day)s, %(runs)s, %(amount)s)
ON CONFLICT (schedule_id, day) DO UPDATE SET runs = s.runs + %(runs)s, reserved = s.reserved + %(amount)s
"""
_GIVE_BACK = "UPDATE spending SET reserved = reserved - %s WHERE schedule_id = %s AND day = %s"
# A run that holds no reservation (any more) settles nothing, however often it is asked to.
_SETTLE = f"""
WITH settled AS (
    UPDATE runs r SET reserved = NULL
    FROM unnest(%s::bigint[], %s::bigint[]) f (id, cost)
    JOIN runs held ON held.id = f.id AND held.reserved IS NOT NULL
    WHERE r.id = held.id
    RETURNING r.schedule_id, r.budget_day, held.reserved,
              CASE WHEN f.cost = {UNKNOWN} THEN held.reserved ELSE f.cost END AS cost
)
UPDATE spending s SET reserved = s.reserved - t.reserved, spent = s.spent + t.cost
FROM (
    SELECT schedule_id, budget_day, sum(reserved)::bigint AS reserved, sum(cost)::bigint AS cost
    FROM settled GROUP BY schedule_id, budget_day
) t
WHERE s.schedule_id = t.schedule_id AND s.day = t.budget_day
"""


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


async def reserve_now(connection: Connection, wanted: Reservation) -> Grant:
    """Let a run start, or say why not."""
    zones = await fetch(connection, _ZONE, (wanted.schedule_id,))
    rows = await fetch(connection, _ASKING, (wanted.run, wanted.token, wanted.schedule_id)) if zones else []
    if not rows:
        return Grant(refusal="its claim no longer holds")
    day = day_of(wanted.now, zones[0][0])
    counted_on, held = rows[0]
    if held is not None:
        # It asked before, and nobody knows whether it heard the answer.
        await connection.execute(_GIVE_BACK, (held, wanted.schedule_id, counted_on))
    counted = counted_on == day
    answer = grant(wanted.budget, await _spending(connection, wanted.schedule_id, day), counted=counted)
    amount = None
    if answer.refusal is None:
        amount, counted_on = answer.amount or 0, day
        spent = {"schedule": wanted.schedule_id, "day": day, "runs": 0 if counted else 1, "amount": amount}
        await connection.execute(_SPEND, spent)
    if amount is not None or held is not None:
        await connection.execute(
            "UPDATE runs SET budget_day = %s, reserved = %s WHERE id = %s", (counted_on, amount, wanted.run)
        )
    return answer


async def read_spending(connection: Connection, schedule_id: ScheduleId, now: Micros) -> Spending:
    """What a schedule has used of its day."""
    rows = await fetch(connection, "SELECT zone FROM schedules WHERE id = %s", (schedule_id,))
    return await _spending(connection, schedule_id, day_of(now, rows[0][0])) if rows else Spending()


async def _spending(connection: Connection, schedule_id: int, day: str) -> Spending:
    query = "SELECT runs, spent, reserved FROM spending WHERE schedule_id = %s AND day = %s"
    rows = await fetch(connection, query, (schedule_id, day))
    return Spending(*rows[0]) if rows else Spending()


async def settle_costs(connection: Connection, ended: Sequence[Finish]) -> None:
    """Attempts have ended: what they cost takes the place of what they had reserved, if they had."""
    costs = {finish.id: finish.cost for finish in ended if finish.cost is not None}
    if costs:
        await connection.execute(_SETTLE, (numbers(costs), numbers(costs.values())))
