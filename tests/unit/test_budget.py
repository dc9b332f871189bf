"""Budgets, decided without a database: what may start, what must wait, and what is used up."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato import Budget
from ostinato.clock import to_micros
from ostinato.errors import InvalidInput
from ostinato.models.budget import MICRO, Spending, day_of, dollars, end_of_day, grant, spent_up
from ostinato.models.policy import make_policy, policy_json


def test_a_run_reserves_what_one_run_may_cost() -> None:
    assert grant(Budget(per_run_usd=1, per_day_usd=5), Spending(), counted=False).amount == MICRO


def test_without_a_bound_for_one_run_it_reserves_what_is_left_of_the_day() -> None:
    assert grant(Budget(per_day_usd=5), Spending(spent=2 * MICRO), counted=False).amount == 3 * MICRO


def test_a_budget_of_runs_alone_reserves_no_money() -> None:
    answer = grant(Budget(per_day_runs=2), Spending(runs=1, spent=99 * MICRO), counted=False)
    assert (answer.amount, answer.refusal) == (None, None)


@pytest.mark.parametrize(
    ("budget", "day", "why"),
    [
        (Budget(per_day_usd=5), Spending(spent=5 * MICRO), "$5.00 of $5.00 spent today"),
        (
            Budget(per_run_usd=1, per_day_usd=5),
            Spending(spent=4_500_000),
            "$4.50 of $5.00 spent today, and a run may cost $1.00",
        ),
        (Budget(per_day_runs=3), Spending(runs=3), "3 of 3 runs used today"),
    ],
)
def test_what_is_used_up_refuses_for_the_rest_of_the_day(budget: Budget, day: Spending, why: str) -> None:
    answer = grant(budget, day, counted=False)
    assert (answer.refusal, answer.is_final) == (why, True)
    assert spent_up(budget, day) == why


def test_what_is_only_reserved_by_others_is_waited_for() -> None:
    day = Spending(runs=1, spent=MICRO, reserved=4 * MICRO)
    answer = grant(Budget(per_day_usd=5), day, counted=False)
    assert answer.refusal == "$1.00 of $5.00 spent today, $4.00 more reserved by active runs"
    assert not answer.is_final
    assert spent_up(Budget(per_day_usd=5), day) is None


def test_another_attempt_of_a_run_is_not_another_run() -> None:
    assert grant(Budget(per_day_runs=1), Spending(runs=1), counted=True).refusal is None
    assert grant(Budget(per_day_runs=1), Spending(runs=1), counted=False).is_final


amounts = st.integers(0, 10 * MICRO)


@given(per_run=st.none() | st.integers(1, 5), per_day=st.integers(5, 9), spent=amounts, reserved=amounts)
def test_what_is_spent_and_reserved_never_passes_the_day(
    per_run: int | None, per_day: int, spent: int, reserved: int
) -> None:
    answer = grant(Budget(per_run, per_day), Spending(1, spent, reserved), counted=False)
    if answer.refusal is None:
        assert answer.amount is not None
        assert answer.amount > 0
        assert spent + reserved + answer.amount <= per_day * MICRO
        assert per_run is None or answer.amount == per_run * MICRO
    else:
        # It is refused only if it would not have fitted.
        assert spent + reserved + (per_run * MICRO if per_run else 1) > per_day * MICRO


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"per_run_usd": 0},
        {"per_day_usd": -1},
        {"per_day_usd": float("nan")},
        {"per_day_usd": "5"},
        {"per_day_runs": 0},
        {"per_day_runs": 1.5},
        {"per_run_usd": 6, "per_day_usd": 5},
        {"a_day": 5},
    ],
)
def test_a_budget_that_cannot_be_is_told(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as raised:
        make_policy({"budget": wrong})
    assert str(raised.value.field).split(".")[0] == "budget"


def test_a_part_of_a_budget_changes_what_is_there() -> None:
    policy = make_policy({"budget": {"per_day_usd": 5, "per_day_runs": 20}})
    assert policy_json(policy)["budget"] == {"per_run_usd": None, "per_day_usd": 5, "per_day_runs": 20}
    assert make_policy({"budget": {"per_day_usd": 9}}, policy).budget == Budget(None, 9, 20)
    assert make_policy({"budget": None}, policy).budget is None


def test_a_day_is_one_of_the_schedules_zone() -> None:
    late = to_micros(datetime(2026, 3, 28, 23, 30, tzinfo=ZoneInfo("UTC")))
    assert (day_of(late, "UTC"), day_of(late, "Europe/Berlin")) == ("2026-03-28", "2026-03-29")
    # The 29th has 23 hours there.
    assert end_of_day(late, "Europe/Berlin") == datetime(2026, 3, 30, tzinfo=ZoneInfo("Europe/Berlin"))


def test_small_sums_are_shown_with_their_digits() -> None:
    assert (dollars(1_250_000), dollars(1_234), dollars(0)) == ("$1.25", "$0.0012", "$0.00")
