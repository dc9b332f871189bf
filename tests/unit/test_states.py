"""The states of a run and the one table of moves between them."""

from __future__ import annotations

import itertools

import pytest

from ostinato.errors import IllegalTransition
from ostinato.models.states import ACTIVE, ENDS, STARTS, TRANSITIONS, RunState, check_transition


def test_every_state_has_its_row_in_the_table() -> None:
    assert set(TRANSITIONS) == set(RunState)


def test_every_state_is_reachable_from_a_start() -> None:
    reached = set(STARTS)
    while more := {after for state in reached for after in TRANSITIONS[state]} - reached:
        reached |= more
    assert reached == set(RunState)


def test_every_state_is_either_active_or_an_end() -> None:
    assert {RunState.QUEUED, RunState.RUNNING} == ACTIVE
    assert set(RunState) == ACTIVE | ENDS
    assert not ACTIVE & ENDS


@pytest.mark.parametrize(("before", "after"), list(itertools.product(RunState, RunState)))
def test_a_move_that_the_table_does_not_have_raises(before: RunState, after: RunState) -> None:
    if after in TRANSITIONS[before]:
        check_transition(before, after)
    else:
        with pytest.raises(IllegalTransition, match=f"from {before} to {after}"):
            check_transition(before, after)


def test_the_error_says_what_would_have_been_allowed() -> None:
    with pytest.raises(IllegalTransition, match="nothing: it has ended"):
        check_transition(RunState.SUCCEEDED, RunState.RUNNING)
    with pytest.raises(IllegalTransition, match="it may go to cancelled, expired, failed, missed, running"):
        check_transition(RunState.QUEUED, RunState.SUCCEEDED)


def test_only_what_runs_can_succeed() -> None:
    assert [state for state in RunState if RunState.SUCCEEDED in TRANSITIONS[state]] == [RunState.RUNNING]


def test_a_missed_due_time_is_born_that_way_or_waited_for_a_check_in() -> None:
    assert RunState.MISSED in STARTS
    assert [state for state in RunState if RunState.MISSED in TRANSITIONS[state]] == [RunState.QUEUED]
