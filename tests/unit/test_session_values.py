"""The small values of sessions: keys, answers to what was sent twice, and how a cancel ends."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.errors import InvalidInput
from ostinato.models.ids import RunId
from ostinato.models.policy import Policy, check_session, load_policy, make_policy, policy_text
from ostinato.models.run import INTERRUPTED, Finish, NewRun, cancelled, end_of_cancel
from ostinato.models.session import STALE, STOPPED, Delivery, Sent, carrier_text, debounced, in_turn, known_message
from ostinato.models.states import RunState, Trigger


@pytest.mark.parametrize("key", ["dm:42", "a", "x" * 200, "two words", "gruppe:ä☃", "a/b?c=d&e", "schedules:x", "null"])
def test_a_session_may_have_any_key_that_can_be_read(key: str) -> None:
    assert check_session(key) == key


@pytest.mark.parametrize("wrong", ["", "  ", "x" * 201, "two\nlines", "nul\0", "\x1b[31m", None, 42, ["dm:42"], b"dm"])
def test_what_is_no_key_is_refused_with_a_right_one(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="dm:42") as raised:
        check_session(wrong, "key")
    assert raised.value.field == "key"


@pytest.mark.parametrize("taken", ["schedule:", "schedule:report"])
def test_the_keys_of_the_house_are_its_own(taken: str) -> None:
    with pytest.raises(InvalidInput, match="used by the scheduler itself"):
        check_session(taken)


def test_a_policy_may_name_its_session() -> None:
    assert make_policy({"session": "dm:42"}).session == "dm:42"
    assert make_policy({"session": None}).session is None
    assert load_policy(policy_text(make_policy({"session": "dm:42"}))).session == "dm:42"
    with pytest.raises(InvalidInput, match="schedule:"):
        make_policy({"session": "schedule:report"})


def test_a_message_that_joined_is_known_by_its_carrier() -> None:
    known = known_message(RunId(5), RunState.SKIPPED, debounced(RunId(3)), carrier_text(RunId(3)))
    assert known == Sent(Delivery.DEBOUNCED, RunId(3))
    assert "run 3" in debounced(RunId(3))


@pytest.mark.parametrize("state", [RunState.QUEUED, RunState.RUNNING, RunState.SUCCEEDED, RunState.SUPERSEDED])
@pytest.mark.parametrize("result", [None, '"a text"', "[1]", '{"run":3}'])
def test_a_message_with_a_run_of_its_own_is_known_by_that(state: RunState, result: str | None) -> None:
    assert known_message(RunId(5), state, None, result) == Sent(Delivery.QUEUED, RunId(5))


def test_a_message_that_came_too_late_is_known_as_such() -> None:
    assert known_message(RunId(5), RunState.SKIPPED, STALE, None) == Sent(Delivery.STALE, RunId(5))


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        (INTERRUPTED, RunState.SUPERSEDED),
        (INTERRUPTED + " (attempt 2)", RunState.SUPERSEDED),
        (STOPPED, RunState.CANCELLED),
        ("stopped; " + INTERRUPTED, RunState.CANCELLED),
        ("", RunState.CANCELLED),
        (None, RunState.CANCELLED),
    ],
)
def test_only_what_a_newer_message_interrupted_is_superseded(reason: str | None, state: RunState) -> None:
    assert end_of_cancel(reason) is state


@pytest.mark.parametrize("reason", [INTERRUPTED, STOPPED])
def test_a_try_that_somebody_wants_to_stop_becomes_an_end(reason: str) -> None:
    again = Finish(
        RunId(1), 2, RunState.QUEUED, 3, 4, error="boom", session="s", ready_at=9, attempt_state="failed", counted=False
    )
    end = cancelled(again, reason)
    assert (end.state, end.reason, end.ready_at, end.attempt_state) == (end_of_cancel(reason), reason, None, None)
    assert (end.id, end.token, end.started_at, end.finished_at, end.session) == (RunId(1), 2, 3, 4, "s")
    assert (end.error, end.counted) == ("boom", True)


def test_a_run_waits_in_the_session_of_its_policy_or_in_its_schedules_own() -> None:
    run = NewRun("function", "report", "{}", "{}", Trigger.SCHEDULE, 1, 1, "cron")
    own = in_turn(run, "report", Policy())
    assert (own.session, own.waiting, own.mode) == ("schedule:report", True, None)
    shared = in_turn(run, "report", Policy(session="dm:42"))
    assert (shared.session, shared.waiting, shared.mode) == ("dm:42", True, "queue")
