"""What is made of an agent's words and its end."""

from __future__ import annotations

from collections import deque

import pytest

from ostinato.execution.executors.agent.agent_outcome import agent_outcome, has_vanished
from ostinato.execution.executors.agent.agent_stream import AgentStream
from ostinato.execution.outcome import Blame, OutcomeKind


def failed(text: str, **fields: object) -> AgentStream:
    return AgentStream(answered=True, is_error=True, text=text, subtype="success", **fields)  # type: ignore[arg-type]


def printed(*lines: str, is_plain: bool = False) -> AgentStream:
    return AgentStream(is_plain=is_plain, answered=is_plain, last_lines=deque(lines))


def test_is_error_decides_and_not_the_subtype() -> None:
    fine = AgentStream(answered=True, text="ok", subtype="error_during_execution")
    assert agent_outcome("claude", fine, 0).kind is OutcomeKind.RETURNED
    outcome = agent_outcome("claude", failed("API Error: 529 overloaded"), 0)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.FAILED, "API Error: 529 overloaded")


@pytest.mark.parametrize(
    "heard",
    [
        failed("Not logged in · Please run /login"),
        failed("Invalid API key · Fix external API key"),
        failed("Invalid API key · Please run /login"),
        failed("OAuth token has expired. Please obtain a new token"),
        failed("OAuth token revoked · Please run /login"),
        failed("Failed to authenticate: OAuth session expired and could not be refreshed"),
        failed(
            'API Error: 401 {"type":"error","error":{"type":"authentication_error","message":"Invalid bearer token"}}'
        ),
        failed("Something", status=401),
        failed("Something", codes={"authentication_failed"}),
        failed("Your organization has disabled access", codes={"oauth_org_not_allowed"}),
        printed("npm warn", "Invalid API key · Please run /login"),
        printed("ERROR: unexpected status 401 Unauthorized: Missing bearer", is_plain=True),
        AgentStream(is_plain=True, answered=True, text="Not logged in"),
    ],
)
def test_an_authentication_error_breaks_and_says_how_to_log_in(heard: AgentStream) -> None:
    outcome = agent_outcome("claude", heard, 1)
    assert (outcome.kind, outcome.blame) == (OutcomeKind.ABORTED, Blame.SETUP)
    assert outcome.reason is not None
    assert outcome.reason.startswith("claude is not logged in (")
    assert "type /login" in outcome.reason
    assert "log in to it" in (agent_outcome("codex", heard, 1).reason or "")


@pytest.mark.parametrize(
    "heard",
    [
        failed("API Error: 500 internal server error", status=500),
        failed("You've hit your session limit · resets 3pm", codes={"rate_limit"}, status=429),
        failed("the page /srv/login/index.html is broken"),
        failed("see https://example.com/login"),
        failed("a" * 5000 + " please run /login"),
        printed("panic: out of luck"),
        printed("tests/login failed", is_plain=True),
    ],
)
def test_other_errors_may_be_tried_again(heard: AgentStream) -> None:
    outcome = agent_outcome("claude", heard, 1)
    assert (outcome.kind, outcome.blame) == (OutcomeKind.FAILED, None)
    assert len(outcome.reason or "") <= 310


def test_an_agent_that_succeeded_may_speak_of_logins() -> None:
    for heard in (
        AgentStream(answered=True, text="Not logged in · Please run /login"),
        AgentStream(is_plain=True, answered=True, text="Invalid API key", last_lines=deque(["not logged in"])),
    ):
        assert agent_outcome("claude", heard, 0).kind is OutcomeKind.RETURNED
    answered = AgentStream(answered=True, text="Please run /login", last_lines=deque(["not logged in"]))
    assert agent_outcome("claude", answered, 3).blame is None


def test_a_budget_that_is_used_up_is_not_tried_again() -> None:
    heard = failed("Reached maximum budget ($0.5)")
    heard.subtype = "error_max_budget_usd"
    outcome = agent_outcome("claude", heard, 1, 0.5)
    assert (outcome.kind, outcome.blame) == (OutcomeKind.ABORTED, None)
    assert (outcome.reason or "").startswith("the budget of $0.5 of this run is used up")


def test_too_many_turns_are_not_tried_again() -> None:
    heard = failed("Reached maximum number of turns (40)")
    heard.subtype = "error_max_turns"
    outcome = agent_outcome("claude", heard, 1)
    assert outcome.kind is OutcomeKind.ABORTED
    assert "Reached maximum number of turns (40)" in (outcome.reason or "")


@pytest.mark.parametrize(
    ("heard", "status", "reason"),
    [
        (printed("a", "panic"), -9, "claude was killed by SIGKILL and gave no result: panic"),
        (AgentStream(), 0, "claude exited with status 0 and gave no result"),
        (AgentStream(answered=True, text="ok"), 3, "claude gave a result, but exited with status 3"),
        (printed("a", "no such file", is_plain=True), 2, "claude exited with status 2: no such file"),
        (AgentStream(is_plain=True, answered=True, text="a\nlast words"), 2, "claude exited with status 2: last words"),
        (failed(""), 1, "claude failed (success)"),
    ],
)
def test_how_it_ended_is_in_the_reason(heard: AgentStream, status: int, reason: str) -> None:
    outcome = agent_outcome("claude", heard, status)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.FAILED, reason)


def test_a_long_error_is_a_short_reason_and_the_whole_story() -> None:
    outcome = agent_outcome("claude", failed("line\n" * 10_000), 1)
    assert len(outcome.reason or "") <= 300
    assert "\n" not in (outcome.reason or "")
    assert 10_000 < len(outcome.error or "") < 17_000


@pytest.mark.parametrize(
    "heard",
    [
        failed("No conversation found with session ID: 35814092-99b2-4a66-99e1-1dc2cbd7fc10"),
        printed("No conversation found with session ID: 35814092-99b2-4a66-99e1-1dc2cbd7fc10"),
        printed("Error: no rollout found for thread id 1", is_plain=True),
        printed("Error: session abc not found", is_plain=True),
    ],
)
def test_a_vanished_conversation_is_seen(heard: AgentStream) -> None:
    assert has_vanished(heard, 1)
    heard.spoke = True
    assert not has_vanished(heard, 1)  # something was done: it must not be done twice


def test_a_text_that_has_said_much_is_no_vanished_conversation() -> None:
    assert not has_vanished(printed(*["thinking"] * 19, "session not found", is_plain=True), 1)
    assert not has_vanished(AgentStream(is_plain=True, answered=True, text="a" * 600 + " session not found"), 1)


def test_what_stands_far_from_the_end_of_a_text_is_no_authentication_error() -> None:
    assert agent_outcome("codex", printed("not logged in", *"abcde", is_plain=True), 1).blame is None
    assert (
        agent_outcome("codex", AgentStream(is_plain=True, answered=True, text="not logged in" + "a" * 600), 1).blame
        is None
    )


def test_other_failures_and_successes_are_no_vanished_conversation() -> None:
    assert not has_vanished(failed("API Error: 500"), 1)
    assert not has_vanished(AgentStream(answered=True, text="No conversation found"), 0)


def test_the_name_of_a_failure_is_short() -> None:
    heard = AgentStream()
    heard.take_result({"is_error": True, "subtype": "z" * 5_000_000})
    assert len(agent_outcome("claude", heard, 1).reason or "") < 200
