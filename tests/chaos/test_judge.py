"""The judge, on evidence of a good history in which one thing was changed."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import pytest

from ostinato.testing import chaos
from ostinato.testing.chaos.evidence import Evidence, Row
from ostinato.testing.chaos.judge import SCHEDULED

Change = Callable[[Evidence], None]


@pytest.fixture(scope="module")
def history() -> Evidence:
    return chaos.Simulation(1, hours=0.03, nodes=1).run()


def rewrite(evidence: Evidence, is_wanted: Callable[[Row], bool], change: Callable[[Row], Row | None]) -> None:
    """Change the first row that is wanted, or leave it out."""
    wanted = next(row for row in evidence.rows if is_wanted(row))
    changed = change(wanted)
    others = [row for row in evidence.rows if row is not wanted]
    evidence.rows = [*others, *([] if changed is None else [changed])]


def is_success(row: Row) -> bool:
    return row.state == "succeeded" and row.trigger in SCHEDULED and row.count == 1


def a_row_is_missing(evidence: Evidence) -> None:
    rewrite(evidence, is_success, lambda _: None)


def a_due_time_has_two_rows(evidence: Evidence) -> None:
    row = next(filter(is_success, evidence.rows))
    evidence.rows = [*evidence.rows, replace(row, id=1_000_000)]


def a_row_counts_too_many(evidence: Evidence) -> None:
    rewrite(evidence, is_success, lambda row: replace(row, count=2))


def the_next_due_time_is_wrong(evidence: Evidence) -> None:
    name, schedule = next(iter(evidence.schedules.items()))
    assert schedule.next_at is not None
    evidence.schedules = {**evidence.schedules, name: replace(schedule, next_at=schedule.next_at + 1)}


def a_schedule_is_off(evidence: Evidence) -> None:
    name, schedule = next(iter(evidence.schedules.items()))
    evidence.schedules = {**evidence.schedules, name: replace(schedule, next_at=None)}


def a_run_is_left_running(evidence: Evidence) -> None:
    rewrite(evidence, is_success, lambda row: replace(row, state="running"))


def a_failure_has_no_reason(evidence: Evidence) -> None:
    rewrite(evidence, is_success, lambda row: replace(row, state="failed", cause=None, reason=None))


def a_success_was_not_seen(evidence: Evidence) -> None:
    row = next(filter(is_success, evidence.rows))
    for execution in evidence.executions:
        execution.returned = execution.returned and execution.run != row.id


def successes_are_recorded_as_failures(evidence: Evidence) -> None:
    """All of them: of one whose node was killed a moment later, it might be true."""
    failed = [replace(row, state="failed", cause="raised", reason="no") for row in evidence.rows]
    evidence.rows = [new if is_success(row) else row for row, new in zip(evidence.rows, failed, strict=True)]


def a_run_starts_twice(evidence: Evidence) -> None:
    row = next(filter(is_success, evidence.rows))
    once = next(execution for execution in evidence.executions if execution.run == row.id)
    later = replace(once, started_at=once.started_at + 1, token=once.token + 1)
    evidence.executions = [*evidence.executions, later, replace(later, token=once.token + 2)]


def a_token_is_used_twice(evidence: Evidence) -> None:
    execution = evidence.executions[0]
    evidence.executions = [*evidence.executions, replace(execution, started_at=execution.started_at + 1)]


def a_start_is_early(evidence: Evidence) -> None:
    execution = next(execution for execution in evidence.executions if execution.schedule is not None)
    execution.started_at = execution.due_at - 1_000_000


def an_acknowledged_run_is_gone(evidence: Evidence) -> None:
    evidence.asked_for = {**evidence.asked_for, 1_000_000: 0}


def a_run_was_made_up(evidence: Evidence) -> None:
    evidence.asked_for = dict(list(evidence.asked_for.items())[1:])


def a_message_overtook_another(evidence: Evidence) -> None:
    box = max(evidence.mailboxes, key=lambda box: len(box.messages))
    turned = replace(box, messages=list(reversed(box.messages)))
    evidence.mailboxes = [turned if other is box else other for other in evidence.mailboxes]


def a_lane_is_too_full(evidence: Evidence) -> None:
    evidence.lanes = {**evidence.lanes, "main": 1}


def a_process_is_left_over(evidence: Evidence) -> None:
    evidence.left_over = ["process 42 of run 7"]


def the_database_is_damaged(evidence: Evidence) -> None:
    evidence.damage = "row 1 missing from index runs_due"


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (a_row_is_missing, "due_times_have_one_row_each"),
        (a_due_time_has_two_rows, "due_times_have_one_row_each"),
        (a_row_counts_too_many, "due_times_have_one_row_each"),
        (the_next_due_time_is_wrong, "due_times_have_one_row_each"),
        (a_schedule_is_off, "due_times_have_one_row_each"),
        (a_run_is_left_running, "ends_have_a_reason"),
        (a_failure_has_no_reason, "ends_have_a_reason"),
        (a_success_was_not_seen, "success_was_seen"),
        (successes_are_recorded_as_failures, "success_was_seen"),
        (a_run_starts_twice, "starts_are_counted"),
        (a_token_is_used_twice, "tokens_grow"),
        (a_start_is_early, "nothing_starts_early_or_expired"),
        (an_acknowledged_run_is_gone, "nothing_was_made_up"),
        (a_run_was_made_up, "nothing_was_made_up"),
        (a_message_overtook_another, "sessions_hold"),
        (a_lane_is_too_full, "lanes_hold"),
        (a_process_is_left_over, "nothing_is_left_over"),
        (the_database_is_damaged, "nothing_is_left_over"),
    ],
)
def test_what_does_not_agree_is_named(history: Evidence, change: Change, rule: str) -> None:
    evidence = deepcopy(history)
    assert chaos.judge(evidence) == []
    change(evidence)
    assert rule in {violation.rule for violation in chaos.judge(evidence)}
