"""The small values of sessions: keys, answers to what was sent twice, and how a cancel ends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.clock import SECOND
from ostinato.errors import InvalidInput
from ostinato.models.finishes import cancelled
from ostinato.models.ids import RunId
from ostinato.models.policy import Policy, check_session, load_policy, make_policy, policy_text
from ostinato.models.run import CLEARED, INTERRUPTED, WAITED_TOO_LONG, Ending, Finish, NewRun
from ostinato.models.session import (
    DROPPED,
    MESSAGE_KEYS,
    STALE,
    STOPPED,
    Delivery,
    Sent,
    carrier_text,
    debounced,
    in_shared_turn,
    in_turn,
    is_stale,
    known_message,
    message_key,
)
from ostinato.models.states import Cause, RunState, Trigger


@pytest.mark.parametrize("key", ["dm:42", "a", "x" * 200, "two words", "gruppe:ä☃", "a/b?c=d&e", "schedules:x", "null"])
def test_a_session_may_have_any_key_that_can_be_read(key: str) -> None:
    assert check_session(key) == key


@pytest.mark.parametrize("wrong", ["", "  ", "two\nlines", "nul\0", "\x1b[31m", None, 42, ["dm:42"], b"dm"])
def test_what_is_no_key_is_refused_with_a_right_one(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="dm:42") as raised:
        check_session(wrong, "key")
    assert raised.value.field == "key"


def test_a_key_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidInput, match="key has 201 characters; 200 is the most"):
        check_session("x" * 201, "key")


@pytest.mark.parametrize(
    ("sent_at", "cutoff", "now", "stale"),
    [
        (5, None, 9, False),
        (4, 5, 9, True),
        (5, 5, 9, False),
        (4, 9 + 300 * SECOND, 9, True),
        (4, 10 + 300 * SECOND, 9, False),
    ],
    ids=["never stopped", "before", "at", "a clock a little ahead", "a clock that was wrong"],
)
def test_stale_is_what_was_sent_before_the_cutoff(sent_at: int, cutoff: int | None, now: int, stale: bool) -> None:
    assert is_stale(sent_at, cutoff, now) is stale


@given(st.text("1:a", max_size=4), st.text("1:a", max_size=4), st.text("1:a", max_size=4), st.text("1:a", max_size=4))
def test_no_two_messages_have_the_same_key(session: str, id: str, other_session: str, other_id: str) -> None:
    is_same = (session, id) == (other_session, other_id)
    assert (message_key(session, id) == message_key(other_session, other_id)) is is_same
    assert message_key(session, id).startswith(MESSAGE_KEYS)


def test_a_session_and_a_message_that_share_their_letters_have_keys_of_their_own() -> None:
    assert message_key("a:b", "c") != message_key("a", "b:c")


@pytest.mark.parametrize("taken", ["schedule:", "schedule:report"])
def test_our_own_keys_are_nobody_elses(taken: str) -> None:
    with pytest.raises(InvalidInput, match="reserved for the scheduler"):
        check_session(taken)


def test_a_policy_may_name_its_session() -> None:
    assert make_policy({"session": "dm:42"}).session == "dm:42"
    assert make_policy({"session": None}).session is None
    assert load_policy(policy_text(make_policy({"session": "dm:42"}))).session == "dm:42"
    with pytest.raises(InvalidInput, match="schedule:"):
        make_policy({"session": "schedule:report"})


def test_a_message_that_joined_is_known_by_its_carrier() -> None:
    known = known_message(RunId(5), Cause.DEBOUNCED, carrier_text(RunId(3)))
    assert known == Sent(Delivery.DEBOUNCED, RunId(3))
    assert "run 3" in debounced(RunId(3)).reason


@pytest.mark.parametrize("cause", [None, Cause.RAISED, Cause.INTERRUPTED])
@pytest.mark.parametrize("result", [None, '"a text"', "[1]", '{"run":3}'])
def test_a_message_with_a_run_of_its_own_is_known_by_that(cause: Cause | None, result: str | None) -> None:
    assert known_message(RunId(5), cause, result) == Sent(Delivery.QUEUED, RunId(5))


def test_a_message_that_came_too_late_is_known_as_such() -> None:
    assert known_message(RunId(5), Cause.STALE, None) == Sent(Delivery.STALE, RunId(5))


@pytest.mark.parametrize(
    ("ending", "state"),
    [
        (INTERRUPTED, RunState.SUPERSEDED),
        (Ending(Cause.INTERRUPTED, "in other words"), RunState.SUPERSEDED),
        (Ending(Cause.CANCELLED, INTERRUPTED.reason), RunState.CANCELLED),
        (STOPPED, RunState.CANCELLED),
        (CLEARED, RunState.CANCELLED),
        (STALE, RunState.SKIPPED),
        (DROPPED, RunState.SKIPPED),
        (WAITED_TOO_LONG, RunState.EXPIRED),
    ],
)
def test_the_cause_decides_how_a_run_ends_whatever_the_words_are(ending: Ending, state: RunState) -> None:
    assert ending.state is state


@pytest.mark.parametrize("ending", [INTERRUPTED, STOPPED])
def test_a_try_that_somebody_wants_to_stop_becomes_an_end(ending: Ending) -> None:
    again = Finish(
        RunId(1), 2, RunState.QUEUED, 3, 4, error="boom", session="s", ready_at=9, attempt_state="failed", counted=False
    )
    end = cancelled(again, ending)
    assert (end.state, end.cause, end.reason) == (ending.state, *ending)
    assert (end.ready_at, end.attempt_state) == (None, None)
    assert (end.id, end.token, end.started_at, end.finished_at, end.session) == (RunId(1), 2, 3, 4, "s")
    assert (end.error, end.counted) == ("boom", True)


def test_a_run_waits_in_the_session_of_its_policy_or_in_its_schedules_own() -> None:
    run = NewRun("function", "report", "{}", "{}", Trigger.SCHEDULE, 1, 1, "cron")
    own = in_turn(run, "report", Policy())
    assert (own.session, own.waiting, own.mode) == ("schedule:report", True, None)
    shared = in_turn(run, "report", Policy(session="dm:42"))
    assert (shared.session, shared.waiting, shared.mode) == ("dm:42", True, "queue")


@pytest.mark.parametrize(
    ("around", "line"),
    [
        ([], None),
        ([(1, None)], None),
        ([(1, "other")], None),
        ([(1, "q")], "schedule: run 1"),
        ([(2, None), (1, "q")], "schedule: run 1"),
        ([(2, "schedule: run 1"), (1, "q")], "schedule: run 2"),
        ([(2, "schedule: run 1"), (1, "other")], None),
        ([(3, "q"), (2, "other"), (1, "q")], "schedule: run 3"),
    ],
)
def test_a_run_shares_the_turn_of_the_innermost_run_around_it_that_has_it(
    around: list[tuple[RunId, str | None]], line: str | None
) -> None:
    run = NewRun("shell", None, "{}", "{}", Trigger.MANUAL, 0, 0, "main", session="q", waiting=True, mode="queue")
    shared = in_shared_turn(run, around)
    assert shared is run if line is None else (shared.session, shared.mode, shared.waiting) == (line, None, True)


def test_a_run_in_no_session_shares_nothing() -> None:
    run = NewRun("shell", None, "{}", "{}", Trigger.MANUAL, 0, 0, "main")
    assert in_shared_turn(run, [(RunId(1), None), (RunId(2), "q")]) is run
