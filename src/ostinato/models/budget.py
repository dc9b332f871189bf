"""What a schedule or a session may cost: a budget, what is spent of it, and the pure decision whether one more run may
start.

Money is in millionths of a dollar, whole numbers, so that sums are exact on every database.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import NamedTuple

from ostinato.clock import Micros, from_micros
from ostinato.models.policy_values import MOST, MOST_USD, Budget
from ostinato.plurals import counted
from ostinato.timing.zones import zone_info

__all__ = [
    "MICRO",
    "UNKNOWN",
    "Budget",
    "BudgetOwner",
    "Grant",
    "Reservation",
    "SessionBudget",
    "Spending",
    "day_of",
    "dollars",
    "end_of_day",
    "enough",
    "grant",
    "spent_up",
]

UNKNOWN = -1
"""The cost of a run that nobody could tell: it counts as all that was reserved for it."""

MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class Spending:
    """What a schedule or a session has used of one day: runs started, money spent, and money reserved by what runs."""

    runs: int = 0
    spent: int = 0
    reserved: int = 0


class SessionBudget(NamedTuple):
    """The budget of messages to one session, whose days are those of a zone."""

    session: str
    zone: str


BudgetOwner = int | SessionBudget
"""Whose runs a budget counts: those of a schedule, by its id, or the messages of a session."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A run asks to be let start."""

    run: int
    token: int
    owner: BudgetOwner
    budget: Budget
    now: Micros


@dataclass(frozen=True, slots=True)
class Grant:
    """The answer: an amount to reserve (None: no bound on money), or why not."""

    amount: int | None = None
    refusal: str | None = None
    is_final: bool = False
    """With a refusal: the day's budget is used up. Else it is only reserved by others, who may not use all of it."""


def grant(budget: Budget, day: Spending, *, counted: bool) -> Grant:
    """Whether a run may start on a day on which this much is used. `counted`: it is one of the day's runs already."""
    # A further attempt of a run was counted with its first.
    used = replace(day, runs=day.runs - 1) if counted else day
    if (why := spent_up(budget, used)) is not None:
        return Grant(refusal=why, is_final=True)
    if budget.per_day_usd is None:
        return Grant(None if budget.per_run_usd is None else _micro(budget.per_run_usd))
    left = _micro(budget.per_day_usd) - day.spent - day.reserved
    wanted = left if budget.per_run_usd is None else _micro(budget.per_run_usd)
    if left <= 0 or wanted > left:
        return Grant(refusal=f"{_spent(budget, day)}, {dollars(day.reserved)} more reserved by active runs")
    return Grant(wanted)


def spent_up(budget: Budget, day: Spending) -> str | None:
    """Why nothing more may start on this day; None if something may."""
    if _no_money_left(budget, day):
        per_run = _micro(budget.per_run_usd or 0)
        is_too_little = day.spent < _micro(budget.per_day_usd or 0)
        return f"{_spent(budget, day)}{f', and a run may cost {dollars(per_run)}' if is_too_little else ''}"
    if _no_run_left(budget, day):
        return f"{day.runs} of {counted(budget.per_day_runs or 0, 'run')} used today"
    return None


def enough(budget: Budget, day: Spending) -> dict[str, str]:
    """What the bounds that are used up on this day would have to be, for as much again to start on it."""
    wanted: dict[str, str] = {}
    if _no_money_left(budget, day):
        cents = -(-(day.spent + _micro(budget.per_day_usd or 0)) // (MICRO // 100))
        wanted["per_day_usd"] = f"{min(cents / 100, MOST_USD):.2f}".removesuffix(".00")
    if _no_run_left(budget, day):
        wanted["per_day_runs"] = str(min(day.runs + (budget.per_day_runs or 0), MOST))
    return wanted


def _no_money_left(budget: Budget, day: Spending) -> bool:
    if budget.per_day_usd is None:
        return False
    return _micro(budget.per_day_usd) - day.spent < max(1, _micro(budget.per_run_usd or 0))


def _no_run_left(budget: Budget, day: Spending) -> bool:
    return budget.per_day_runs is not None and day.runs >= budget.per_day_runs


def _spent(budget: Budget, day: Spending) -> str:
    return f"{dollars(day.spent)} of {dollars(_micro(budget.per_day_usd or 0))} spent today"


def day_of(now: Micros, zone: str) -> str:
    """The day of an instant in a schedule's zone, as it is stored: 2026-11-16."""
    return f"{from_micros(now).astimezone(zone_info(zone)):%Y-%m-%d}"


def end_of_day(now: Micros, zone: str) -> datetime:
    """When the next day begins there."""
    tomorrow = from_micros(now).astimezone(zone_info(zone)).date() + timedelta(days=1)
    return datetime.combine(tomorrow, time(), zone_info(zone))


def _micro(amount: float) -> int:
    return round(amount * MICRO)


def dollars(amount: int) -> str:
    """`$1.25`, with as many digits as it takes to see a small sum."""
    return f"${amount / MICRO:.2f}" if amount % 10_000 == 0 else f"${amount / MICRO:.4f}"
