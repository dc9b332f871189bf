"""Budgets in SQLite: what a run reserves when it starts, and what is settled when its attempt ends. Everything here
happens inside the caller's transaction."""

from __future__ import annotations

from ostinato.clock import Micros
from ostinato.models.budget import UNKNOWN, Grant, Reservation, Spending, day_of, grant
from ostinato.models.ids import RunId, ScheduleId
from ostinato.stores.sqlite.query import Connection, fetch

__all__ = ["read_spending", "reserve_now", "settle_cost"]

_ASKING = """
SELECT s.zone, r.budget_day, r.reserved FROM runs r JOIN schedules s ON s.id = r.schedule_id
WHERE r.id = ? AND r.token = ? AND r.state = 'running'
"""
_SPEND = """
INSERT INTO spending (schedule_id, day, runs, reserved) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (schedule_id, day) DO UPDATE SET runs = runs + ?3, reserved = reserved + ?4
"""
_GIVE_BACK = "UPDATE spending SET reserved = reserved - ? WHERE schedule_id = ? AND day = ?"
# A run that holds no reservation (any more) settles nothing, however often it is asked to.
_SETTLE = f"""
UPDATE spending SET reserved = spending.reserved - r.reserved,
                    spent = spent + CASE WHEN ?2 = {UNKNOWN} THEN r.reserved ELSE ?2 END
FROM (SELECT schedule_id, budget_day, reserved FROM runs WHERE id = ?1 AND reserved IS NOT NULL) r
WHERE spending.schedule_id = r.schedule_id AND spending.day = r.budget_day
"""


def reserve_now(connection: Connection, wanted: Reservation) -> Grant:
    """Let a run start, or say why not."""
    rows = fetch(connection, _ASKING, (wanted.run, wanted.token))
    if not rows:
        return Grant(refusal="its claim no longer holds")
    zone, counted_on, held = rows[0]
    day = day_of(wanted.now, zone)
    if held is not None:
        # It asked before, and nobody knows whether it heard the answer.
        connection.execute(_GIVE_BACK, (held, wanted.schedule_id, counted_on))
    counted = counted_on == day
    answer = grant(wanted.budget, _spending(connection, wanted.schedule_id, day), counted=counted)
    amount = None
    if answer.refusal is None:
        amount, counted_on = answer.amount or 0, day
        connection.execute(_SPEND, (wanted.schedule_id, day, 0 if counted else 1, amount))
    if amount is not None or held is not None:
        connection.execute(
            "UPDATE runs SET budget_day = ?, reserved = ? WHERE id = ?", (counted_on, amount, wanted.run)
        )
    return answer


def read_spending(connection: Connection, schedule_id: ScheduleId, now: Micros) -> Spending:
    """What a schedule has used of its day."""
    rows = fetch(connection, "SELECT zone FROM schedules WHERE id = ?", (schedule_id,))
    return _spending(connection, schedule_id, day_of(now, rows[0][0])) if rows else Spending()


def _spending(connection: Connection, schedule_id: int, day: str) -> Spending:
    query = "SELECT runs, spent, reserved FROM spending WHERE schedule_id = ? AND day = ?"
    rows = fetch(connection, query, (schedule_id, day))
    return Spending(*rows[0]) if rows else Spending()


def settle_cost(connection: Connection, run: RunId, cost: int) -> None:
    """An attempt has ended: what it cost takes the place of what it had reserved, if it had."""
    connection.execute(_SETTLE, (run, cost))
    connection.execute("UPDATE runs SET reserved = NULL WHERE id = ? AND reserved IS NOT NULL", (run,))
