"""What is made of all that an agent said and of how it ended, pure: an Outcome, or that its conversation has vanished.

Here are all the texts by which command lines say things that they have no field for.
"""

from __future__ import annotations

import re

from ostinato.execution.executors.agent.agent_stream import LAST_LINES, AgentStream, bounded
from ostinato.execution.executors.group import end_of
from ostinato.execution.outcome import Blame, Outcome, OutcomeKind
from ostinato.models.states import Cause

__all__ = ["agent_outcome", "has_vanished"]

_LOGGED_OUT = re.compile(
    r"(?<![\w/.-])/login(?![\w/-])"
    r"|not logged in|logged out|login (?:is )?required|please (?:log|sign) ?in"
    r"|invalid (?:api key|x-api-key|bearer token|authentication credentials)"
    r"|(?:missing|no|incorrect) api key|api[_ ]key[_ ]invalid|api key (?:is )?(?:not (?:found|set|valid)|expired)"
    r"|oauth (?:token|session)(?: has| was)?(?: been)? (?:expired|revoked)|token has been revoked"
    r"|failed to authenticate|could not resolve authentication|authentication_(?:error|failed)"
    r"|\b401 unauthorized|oauth_org_not_allowed",
    re.IGNORECASE,
)
_LOGGED_OUT_CODES = frozenset({"authentication_failed", "authentication_error", "oauth_org_not_allowed"})
_VANISHED = re.compile(
    r"no (?:conversation|session|rollout|thread|saved session)s?\b.{0,40}\bfound"
    r"|(?:conversation|session|thread)\b.{0,80}\b(?:not found|does not exist)",
    re.IGNORECASE,
)
_OVER_BUDGET = frozenset({"error_max_budget_usd", "budget_exhausted"})
_OVER_TURNS = frozenset({"error_max_turns", "max_turns"})
_REASON_CAP = 300
_STORY_CAP = 16_000
_SEARCHED = 2_000
_BRIEF = 500
_LINES = 5
"""What a CLI says of itself is short, and said last; what is longer, or stands before it, is the work's own."""


def has_vanished(stream: AgentStream, status: int) -> bool:
    """Whether the conversation that was to be continued is not there any more. Nothing has been done then."""
    spoke = stream.spoke or (stream.is_plain and (len(stream.text) > _BRIEF or len(stream.last_lines) == LAST_LINES))
    return _has_failed(stream, status) and not spoke and _VANISHED.search(_complaint(stream)) is not None


def agent_outcome(agent: str, stream: AgentStream, status: int, allowance: float | None = None) -> Outcome:
    """The outcome of a call that ended with this exit status. `agent` is its name in the settings."""
    if not _has_failed(stream, status):
        return Outcome(OutcomeKind.RETURNED)
    text = stream.text if stream.is_error else ""
    if _is_logged_out(stream):
        said = _short(stream, text or _last(stream))
        return Outcome(
            OutcomeKind.ABORTED,
            f"{agent} is not logged in ({said}): {_login_hint(agent)}",
            cause=Cause.LOGGED_OUT,
            blame=Blame.SETUP,
        )
    if stream.subtype in _OVER_BUDGET:
        limit = "" if allowance is None else f" of ${allowance:g}"
        reason = f"the budget{limit} of this run is used up, and {agent} stopped: give it a larger one, or less to do"
        return Outcome(OutcomeKind.ABORTED, reason, _story(text), cause=Cause.BUDGET)
    if stream.subtype in _OVER_TURNS:
        said = _short(stream, text) or "max turns"
        reason = f"{agent} stopped at its maximum number of turns ({said}): give it less to do"
        return Outcome(OutcomeKind.ABORTED, reason, _story(text), cause=Cause.AGENT_ERROR)
    if stream.is_error:
        reason = _short(stream, text) or f"{agent} failed ({stream.subtype or 'no reason'})"
        return Outcome(OutcomeKind.FAILED, reason, _story(text), cause=Cause.AGENT_ERROR)
    ended = f"{agent} {end_of(status)}"
    if stream.is_plain:
        return _failed(ended, stream)
    if not stream.answered:
        return _failed(f"{ended} and gave no result", stream)
    return Outcome(OutcomeKind.FAILED, f"{agent} gave a result, but {end_of(status)}", cause=Cause.AGENT_ERROR)


def _has_failed(stream: AgentStream, status: int) -> bool:
    return stream.is_error or status != 0 or not stream.answered


def _failed(reason: str, stream: AgentStream) -> Outcome:
    last = _last(stream)
    said = _short(stream, f"{reason}: {last}") if last else reason
    return Outcome(OutcomeKind.FAILED, said, _story("\n".join(stream.last_lines)), cause=Cause.AGENT_ERROR)


def _is_logged_out(stream: AgentStream) -> bool:
    """An agent that has answered may speak of logins as it likes: then only what it says of its failure counts."""
    if stream.codes & _LOGGED_OUT_CODES or stream.status == 401:
        return True
    if stream.answered and not stream.is_error and not stream.is_plain:
        return False
    return _LOGGED_OUT.search(_complaint(stream)) is not None


def _complaint(stream: AgentStream) -> str:
    """What is said of a failure: by the result, or else by the last lines, and by a text that is all there is."""
    if stream.is_error and stream.text:
        return stream.text[:_SEARCHED]
    printed = stream.text if stream.is_plain and len(stream.text) <= _BRIEF else ""
    return "\n".join([printed, *list(stream.last_lines)[-_LINES:]])


def _login_hint(agent: str) -> str:
    if agent == "claude":
        return (
            "run 'claude' and type /login as the user that runs the engine, or set CLAUDE_CODE_OAUTH_TOKEN "
            "(from 'claude setup-token') or ANTHROPIC_API_KEY; then enable the schedule"
        )
    return "log in to it as the user that runs the engine, or set its API key; then enable the schedule"


def _last(stream: AgentStream) -> str:
    if stream.last_lines or not stream.is_plain:
        return stream.last_lines[-1] if stream.last_lines else ""
    return stream.text.rpartition("\n")[2]


def _short(stream: AgentStream, text: str) -> str:
    return stream.mask.shortened(text, _REASON_CAP)


def _story(text: str) -> str | None:
    """The whole of it, where the reason has only its beginning."""
    return bounded(text, _STORY_CAP) if "\n" in text.strip() or len(text) > _REASON_CAP else None
