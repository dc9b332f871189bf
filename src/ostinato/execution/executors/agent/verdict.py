"""What is made of all that an agent said and of how it ended, pure: an Outcome, or that its conversation has vanished.

Here are all the texts by which command lines say things that they have no field for.
"""

from __future__ import annotations

import re

from ostinato.execution.executors.agent.heard import LAST_LINES, Heard, bounded
from ostinato.execution.executors.group import end_of
from ostinato.execution.outcome import Blame, Outcome, OutcomeKind
from ostinato.models.states import Cause

__all__ = ["has_vanished", "judge"]

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


def has_vanished(heard: Heard, status: int) -> bool:
    """Whether the conversation that was to be continued is not there any more. Nothing has been done then."""
    spoke = heard.spoke or (heard.is_plain and (len(heard.text) > _BRIEF or len(heard.last_lines) == LAST_LINES))
    return _has_failed(heard, status) and not spoke and _VANISHED.search(_complaint(heard)) is not None


def judge(agent: str, heard: Heard, status: int, allowance: float | None = None) -> Outcome:
    """The outcome of a call that ended with this exit status. `agent` is its name in the settings."""
    if not _has_failed(heard, status):
        return Outcome(OutcomeKind.RETURNED)
    text = heard.text if heard.is_error else ""
    if _is_logged_out(heard):
        said = _short(heard, text or _last(heard))
        return Outcome(
            OutcomeKind.ABORTED,
            f"{agent} is not logged in ({said}): {_login_hint(agent)}",
            cause=Cause.LOGGED_OUT,
            blame=Blame.SETUP,
        )
    if heard.subtype in _OVER_BUDGET:
        limit = "" if allowance is None else f" of ${allowance:g}"
        reason = f"the budget{limit} of this run is used up, and {agent} stopped: give it a larger one, or less to do"
        return Outcome(OutcomeKind.ABORTED, reason, _story(text), cause=Cause.BUDGET)
    if heard.subtype in _OVER_TURNS:
        said = _short(heard, text) or "max turns"
        reason = f"{agent} stopped after as many turns as it may take ({said}): give it less to do"
        return Outcome(OutcomeKind.ABORTED, reason, _story(text), cause=Cause.AGENT_ERROR)
    if heard.is_error:
        reason = _short(heard, text) or f"{agent} failed ({heard.subtype or 'no reason'})"
        return Outcome(OutcomeKind.FAILED, reason, _story(text), cause=Cause.AGENT_ERROR)
    ended = f"{agent} {end_of(status)}"
    if heard.is_plain:
        return _failed(ended, heard)
    if not heard.answered:
        return _failed(f"{ended} and gave no result", heard)
    return Outcome(OutcomeKind.FAILED, f"{agent} gave a result, but {end_of(status)}", cause=Cause.AGENT_ERROR)


def _has_failed(heard: Heard, status: int) -> bool:
    return heard.is_error or status != 0 or not heard.answered


def _failed(reason: str, heard: Heard) -> Outcome:
    last = _last(heard)
    said = _short(heard, f"{reason}: {last}") if last else reason
    return Outcome(OutcomeKind.FAILED, said, _story("\n".join(heard.last_lines)), cause=Cause.AGENT_ERROR)


def _is_logged_out(heard: Heard) -> bool:
    """An agent that has answered may speak of logins as it likes: then only what it says of its failure counts."""
    if heard.codes & _LOGGED_OUT_CODES or heard.status == 401:
        return True
    if heard.answered and not heard.is_error and not heard.is_plain:
        return False
    return _LOGGED_OUT.search(_complaint(heard)) is not None


def _complaint(heard: Heard) -> str:
    """What is said of a failure: by the result, or else by the last lines, and by a text that is all there is."""
    if heard.is_error and heard.text:
        return heard.text[:_SEARCHED]
    printed = heard.text if heard.is_plain and len(heard.text) <= _BRIEF else ""
    return "\n".join([printed, *list(heard.last_lines)[-_LINES:]])


def _login_hint(agent: str) -> str:
    if agent == "claude":
        return (
            "run 'claude' and type /login as the user that runs the engine, or set CLAUDE_CODE_OAUTH_TOKEN "
            "(from 'claude setup-token') or ANTHROPIC_API_KEY; then enable the schedule"
        )
    return "log in to it as the user that runs the engine, or set its API key; then enable the schedule"


def _last(heard: Heard) -> str:
    if heard.last_lines or not heard.is_plain:
        return heard.last_lines[-1] if heard.last_lines else ""
    return heard.text.rpartition("\n")[2]


def _short(heard: Heard, text: str) -> str:
    return heard.mask.shortened(text, _REASON_CAP)


def _story(text: str) -> str | None:
    """The whole of it, where the reason has only its beginning."""
    return bounded(text, _STORY_CAP) if "\n" in text.strip() or len(text) > _REASON_CAP else None
