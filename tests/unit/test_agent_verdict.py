"""What is made of an agent's words and its end."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ostinato.agent_clis import CLAUDE, AgentCli
from ostinato.clock import SECOND
from ostinato.execution.executors.agent.agent_outcome import agent_outcome, has_vanished
from ostinato.execution.executors.agent.agent_stream import AgentStream
from ostinato.execution.outcome import Blame, Outcome, OutcomeKind
from ostinato.models.states import Cause

NOW = 1_760_000_000 * SECOND


def judged(heard: AgentStream, status: int, **given: Any) -> Outcome:
    return agent_outcome("claude", heard, status, **{"now": NOW, "login": CLAUDE.login, **given})


def failed(text: str, **fields: object) -> AgentStream:
    return AgentStream(answered=True, is_error=True, text=text, subtype="success", **fields)  # type: ignore[arg-type]


def printed(*lines: str, is_plain: bool = False) -> AgentStream:
    return AgentStream(is_plain=is_plain, answered=is_plain, last_lines=deque(lines))


def test_is_error_decides_and_not_the_subtype() -> None:
    fine = AgentStream(answered=True, text="ok", subtype="error_during_execution")
    assert judged(fine, 0).kind is OutcomeKind.RETURNED
    outcome = judged(failed("API Error: 529 overloaded"), 0)
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
        failed("Login expired · Please run /login"),
        failed("Please run /login · API Error: 401 OAuth token has expired."),
        failed("Failed to authenticate. API Error: 401 Invalid authentication credentials"),
        failed('API Error: 403 {"type":"error","error":{"type":"authentication_error"}}'),
        failed("exceeded retry limit, last status: 401 Unauthorized, request id: 99438b59"),
        failed("Failed to refresh token: 401 Unauthorized: Your refresh token has already been used."),
        failed("Your access token could not be refreshed. Please log out and sign in again."),
        failed("unexpected status 401 Unauthorized: Incorrect API key provided: sk-x"),
        failed("[API Error: API key not valid. Please pass a valid API key.]"),
        failed("User not found.", codes={"APIError"}, status=401),
        failed("It needs a key", codes={"ProviderAuthError"}),
        printed("Please set an Auth method in your settings.json, or specify GEMINI_API_KEY"),
        printed('Error: Unauthorized: {"error":{"message":"User not found.","code":401}}', is_plain=True),
        printed("2026-01-01T00:00:00.0Z ERROR Not logged in. Please run `codex login`"),
        printed("npm warn", "Invalid API key · Please run /login"),
        printed("ERROR: unexpected status 401 Unauthorized: Missing bearer", is_plain=True),
        AgentStream(is_plain=True, answered=True, text="Not logged in"),
    ],
)
def test_an_authentication_error_breaks_and_says_how_to_log_in(heard: AgentStream) -> None:
    outcome = judged(heard, 1)
    assert (outcome.kind, outcome.blame) == (OutcomeKind.ABORTED, Blame.SETUP)
    assert outcome.reason is not None
    assert outcome.reason.startswith("claude is not logged in (")
    assert "type /login" in outcome.reason
    assert "log in to it" in (judged(heard, 1, login=AgentCli(()).login).reason or "")


@pytest.mark.parametrize(
    "heard",
    [
        failed("API Error: 500 internal server error", status=500),
        failed("You've hit your session limit · resets 3pm", codes={"rate_limit"}, status=429),
        failed("git said 401 unauthorized"),
        failed("I stopped: git said\nNot logged in"),
        failed("The deploy failed: curl answered HTTP 401 Unauthorized. Please log in to the registry."),
        failed("gh: To get started with GitHub CLI, please run: gh auth login"),
        failed("Error: Please run `docker login`"),
        failed("Invalid API key for the payment provider"),
        failed("Failed to authenticate with the mail server"),
        failed("npm error: not logged in to registry.example"),
        failed("The tests of authentication_error fail"),
        failed("Insufficient balance. Manage your billing", codes={"APIError"}, status=401),
        printed("remote: HTTP Basic: Access denied", "fatal: 401 Unauthorized"),
        printed("error: you are not logged in to any GitHub hosts", is_plain=True),
        AgentStream(is_plain=True, answered=True, text="I could not push: git said 401 unauthorized, please sign in"),
        failed("the page /srv/login/index.html is broken"),
        failed("see https://example.com/login"),
        failed("a" * 5000 + " please run /login"),
        printed("panic: out of luck"),
        printed("tests/login failed", is_plain=True),
    ],
)
def test_other_errors_may_be_tried_again(heard: AgentStream) -> None:
    outcome = judged(heard, 1)
    assert (outcome.kind, outcome.blame) == (OutcomeKind.FAILED, None)
    assert len(outcome.reason or "") <= 310


def test_an_agent_that_succeeded_may_speak_of_logins() -> None:
    for heard in (
        AgentStream(answered=True, text="Not logged in · Please run /login"),
        AgentStream(is_plain=True, answered=True, text="Invalid API key", last_lines=deque(["not logged in"])),
    ):
        assert judged(heard, 0).kind is OutcomeKind.RETURNED
    answered = AgentStream(answered=True, text="Please run /login", last_lines=deque(["not logged in"]))
    assert judged(answered, 3).blame is None


def test_a_budget_that_is_used_up_is_not_tried_again() -> None:
    heard = failed("Reached maximum budget ($0.5)")
    heard.subtype = "error_max_budget_usd"
    outcome = judged(heard, 1, allowance=0.5)
    assert (outcome.kind, outcome.blame) == (OutcomeKind.ABORTED, None)
    assert (outcome.reason or "").startswith("the budget of $0.5 of this run is used up")


def test_too_many_turns_are_not_tried_again() -> None:
    heard = failed("Reached maximum number of turns (40)")
    heard.subtype = "error_max_turns"
    outcome = judged(heard, 1)
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
    outcome = judged(heard, status)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.FAILED, reason)


def test_a_long_error_is_a_short_reason_and_the_whole_story() -> None:
    outcome = judged(failed("line\n" * 10_000), 1)
    assert len(outcome.reason or "") <= 300
    assert "\n" not in (outcome.reason or "")
    assert 10_000 < len(outcome.error or "") < 17_000


@pytest.mark.parametrize(
    "heard",
    [
        failed("No conversation found with session ID: 35814092-99b2-4a66-99e1-1dc2cbd7fc10"),
        printed("No conversation found with session ID: 35814092-99b2-4a66-99e1-1dc2cbd7fc10"),
        printed("[ERROR] Error resuming session: No previous sessions found for this project."),
        printed('Error resuming session: Invalid session identifier "7".', "Use --list-sessions to see them."),
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
    assert judged(printed("not logged in", *"abcde", is_plain=True), 1).blame is None
    assert judged(AgentStream(is_plain=True, answered=True, text="not logged in" + "a" * 600), 1).blame is None


def test_other_failures_and_successes_are_no_vanished_conversation() -> None:
    assert not has_vanished(failed("API Error: 500"), 1)
    assert not has_vanished(AgentStream(answered=True, text="No conversation found"), 0)


def test_the_name_of_a_failure_is_short() -> None:
    heard = AgentStream()
    heard.take_result({"is_error": True, "subtype": "z" * 5_000_000})
    assert len(judged(heard, 1).reason or "") < 200


@pytest.mark.parametrize(
    ("heard", "cause"),
    [
        (failed("You've hit your session limit · resets 3pm", codes={"rate_limit"}), Cause.RATE_LIMITED),
        (failed("Something", status=429), Cause.RATE_LIMITED),
        (failed("Claude AI usage limit reached|1760000600"), Cause.RATE_LIMITED),
        (failed("exceeded retry limit, last status: 429 Too Many Requests"), Cause.RATE_LIMITED),
        (failed("You've hit your usage limit. Try again later."), Cause.RATE_LIMITED),
        (failed("[API Error: You have exhausted your daily quota on this model.]"), Cause.RATE_LIMITED),
        (failed("Something", codes={"TerminalQuotaError"}), Cause.RATE_LIMITED),
        (AgentStream(retrying="rate_limit"), Cause.RATE_LIMITED),
        (failed("API Error: 529 {\"type\":\"overloaded_error\"}"), Cause.OVERLOADED),
        (failed("API Error: 500 Internal server error"), Cause.OVERLOADED),
        (failed("Something", status=503), Cause.OVERLOADED),
        (failed("Selected model is at capacity. Please try a different model."), Cause.OVERLOADED),
        (printed("unexpected status 503 Service Unavailable: try later"), Cause.OVERLOADED),
        (failed("API Error: Unable to connect to API (ENOTFOUND)"), Cause.NO_NETWORK),
        (failed("stream disconnected before completion: error sending request for url (https://a.example/)"),
         Cause.NO_NETWORK),
        (printed("TypeError: fetch failed"), Cause.NO_NETWORK),
        (AgentStream(retrying="ECONNRESET"), Cause.NO_NETWORK),
        (failed("the tests of src/limits.py fail"), Cause.AGENT_ERROR),
        (failed("port 5003 is taken"), Cause.AGENT_ERROR),
        (failed("see line 429 of 500"), Cause.AGENT_ERROR),
        (AgentStream(answered=True, text="429", last_lines=deque(["rate limit"])), Cause.AGENT_ERROR),
        (AgentStream(answered=True, is_error=True, text="no", retrying="rate_limit"), Cause.AGENT_ERROR),
    ],
)  # fmt: skip
def test_what_programs_want_to_tell_apart_has_a_cause(heard: AgentStream, cause: Cause) -> None:
    outcome = judged(heard, 1)
    assert (outcome.kind, outcome.cause) == (OutcomeKind.FAILED, cause)


@pytest.mark.parametrize(
    ("heard", "begun"),
    [
        (failed("API Error: 529 overloaded", is_live=True), False),
        (AgentStream(is_live=True), False),
        (AgentStream(is_live=True, last_lines=deque(["error: unknown option"])), False),
        (failed("Not logged in", is_live=True), False),
        (failed("API Error: 529 overloaded", is_live=True, spoke=True), True),
        (AgentStream(is_live=True, spoke=True), True),
        (failed("API Error: 529 overloaded", is_live=True, totals={"tokens_out": 3.0}), True),
        (failed("API Error: 529 overloaded", is_live=True, totals={"cost_usd": 0.1}), True),
        (failed("API Error: 529 overloaded", is_live=True, totals={"tokens_out": 0.0, "cost_usd": 0.0}), False),
        # What speaks only at its end may have done anything before that, unless it says what stopped it.
        (AgentStream(), True),
        (failed("it went wrong"), True),
        (failed("rate limit reached"), False),
        (printed("Error: connection refused", is_plain=True), False),
        (printed("Error: no such model", is_plain=True), True),
        (AgentStream(is_plain=True, answered=True, text="Done.", last_lines=deque(["connection lost"])), True),
    ],
)
def test_an_agent_has_begun_when_it_has_said_or_done_something(heard: AgentStream, begun: bool) -> None:
    assert judged(heard, 1).begun is begun


def local(text: str) -> timedelta:
    """How long after NOW a time of this machine is."""
    return timedelta(seconds=datetime.strptime(text, "%b %d %Y %I:%M %p").astimezone().timestamp() - NOW / SECOND)


_TODAY = datetime.fromtimestamp(NOW / SECOND, UTC).astimezone()


@pytest.mark.parametrize(
    ("heard", "delay"),
    [
        (failed("limit", status=429, limit_ends=1_760_000_600.0), timedelta(minutes=10)),
        (failed("limit", status=429, limit_ends=1_759_000_000.0), None),
        (failed("limit", status=429, limit_ends=1_790_000_000.0), None),
        (failed("limit", status=429, retry_after=30.0), timedelta(seconds=30)),
        (failed("limit", status=503, retry_after=30.0), timedelta(seconds=30)),
        (failed("Claude AI usage limit reached|1760000060"), timedelta(minutes=1)),
        (failed("Claude AI usage limit reached|1760000060000"), timedelta(minutes=1)),
        (failed("Quota exceeded. Please retry in 34.5s."), timedelta(seconds=34.5)),
        (failed("exhausted your capacity. Your quota will reset after 8h30m."), timedelta(hours=8.5)),
        (failed("5 hour usage limit reached. It will reset in 2 hours 5 minutes."), timedelta(minutes=125)),
        (failed(f"You've hit your usage limit. Try again later, or try again at {_TODAY:%b} {_TODAY.day}th, 2025 "
                "11:59 PM."), local(f"{_TODAY:%b %d %Y} 11:59 PM") + timedelta(minutes=1)),
        (failed("You've hit your usage limit. Try again at 11:59 PM."),
         local(f"{_TODAY:%b %d %Y} 11:59 PM") + timedelta(minutes=1)),
        (failed("You've hit your usage limit. Or try again at 99:99 PM."), None),
        (failed("You've hit your usage limit. Try again later."), None),
        (failed("the mail says: try again in 5 hours", limit_ends=1_760_000_600.0), None),
    ],
)  # fmt: skip
def test_the_next_try_is_not_before_a_limit_ends(heard: AgentStream, delay: timedelta | None) -> None:
    assert judged(heard, 1).delay == delay
