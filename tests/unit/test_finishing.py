"""What is recorded of an attempt beside its outcome: what it alone used up, for the sums of its session."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ostinato.execution.context import RunContext
from ostinato.execution.finishing import make_finish
from ostinato.execution.outcome import Outcome, OutcomeKind
from ostinato.models.policy import DEFAULT
from ostinato.models.run import Finish, SessionUsage
from ostinato.models.states import Cause, RunState
from tests.rows import START, claimed_run


def finished(counted: dict[str, float], **row: Any) -> Finish:
    claimed = claimed_run(attempt=2, **row)
    context = RunContext(claimed, lambda _: None)
    for name, value in counted.items():
        context.count(name, value)
    return make_finish(claimed, DEFAULT, None, context, Outcome(OutcomeKind.RETURNED), START)


def test_the_usage_of_an_attempt_is_its_own_and_the_totals_are_the_runs() -> None:
    earlier = '{"cost_usd":0.1,"turns":3,"copied":9}'
    finish = finished({"cost_usd": 0.2, "copied": 1}, session="dm:42", totals=earlier)
    assert finish.usage == SessionUsage("dm:42", {"cost_usd": 0.2})
    assert msgspec.json.decode(finish.totals or "") == {"cost_usd": 0.3, "turns": 3, "copied": 1}


@pytest.mark.parametrize(
    ("counted", "row"), [({"copied": 1}, {"session": "dm:42"}), ({"cost_usd": 1}, {}), ({}, {"session": "dm:42"})]
)
def test_without_usage_or_without_a_session_there_is_none(counted: dict[str, float], row: dict[str, Any]) -> None:
    assert finished(counted, **row).usage is None


@pytest.mark.parametrize("earlier", ["", "nonsense", "[]", '{"cost_usd":null}', '{"cost_usd":1' + "0" * 400 + "}"])
def test_earlier_totals_that_cannot_be_read_do_no_harm(earlier: str) -> None:
    assert msgspec.json.decode(finished({"cost_usd": 1}, totals=earlier).totals or "") == {"cost_usd": 1}


def test_a_sum_that_is_no_number_any_more_is_not_stored() -> None:
    assert finished({"cost_usd": 1e308}, totals='{"cost_usd":1e308}').totals == '{"cost_usd":1e308}'


def test_errors_of_an_attempt_that_failed_are_not_those_of_the_run() -> None:
    finish = finished({}, totals='{"errors":2,"copied":9,"turns":3}')
    assert (finish.state, finish.cause) == (RunState.SUCCEEDED, None)
    assert msgspec.json.decode(finish.totals or "") == {"copied": 9, "turns": 3}
    again = finished({"errors": 1}, totals='{"errors":2}')
    assert (again.cause, again.reason, again.totals) == (Cause.ERRORS, "1 error", '{"errors":1}')


@pytest.mark.parametrize("earlier", [None, '{"copied":9}', '{"errors":', '["errors"]'])
def test_a_run_that_counts_nothing_writes_no_totals(earlier: str | None) -> None:
    assert finished({}, totals=earlier).totals is None
