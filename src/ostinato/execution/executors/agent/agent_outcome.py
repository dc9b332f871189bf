"""What is made of all that an agent said and of how it ended, pure: an Outcome, or that its conversation has vanished.

failure.py knows the words by which command lines say what went wrong.
"""

from __future__ import annotations

from ostinato.clock import Micros
from ostinato.execution.executors.agent.agent_stream import LAST_LINES, AgentStream, bounded
from ostinato.execution.executors.agent.failure import BRIEF, has_failed, named_cause, says_vanished, waits_for
from ostinato.execution.executors.group import end_of
from ostinato.execution.outcome import Blame, Outcome, OutcomeKind
from ostinato.models.states import Cause

__all__ = ["agent_outcome", "has_begun", "has_vanished"]

_OVER_BUDGET = frozenset({"error_max_budget_usd", "budget_exhausted"})
_OVER_TURNS = frozenset({"error_max_turns", "max_turns", "FatalTurnLimitedError"})
_REASON_CAP = 300
_STORY_CAP = 16_000


def has_vanished(stream: AgentStream, status: int) -> bool:
    """Whether the conversation that was to be continued is not there any more. Nothing has been done then."""
    spoke = stream.spoke or (stream.is_plain and (len(stream.text) > BRIEF or len(stream.last_lines) == LAST_LINES))
    return has_failed(stream, status) and not spoke and says_vanished(stream)


def agent_outcome(
    agent: str, stream: AgentStream, status: int, *, now: Micros, login: str, allowance: float | None = None
) -> Outcome:
    """The outcome of a call that ended with this exit status. `agent` is its name in the settings, `login` says how a
    person logs in to it."""
    if not has_failed(stream, status):
        return Outcome(OutcomeKind.RETURNED)
    text = stream.text if stream.is_error else ""
    cause = named_cause(stream)
    if cause is Cause.LOGGED_OUT:
        said = _short(stream, text or _last(stream))
        return Outcome(
            OutcomeKind.ABORTED,
            f"{agent} is not logged in ({said}): {login}; then enable the schedule",
            cause=cause,
            blame=Blame.SETUP,
            begun=has_begun(stream, cause),
        )
    if stream.subtype in _OVER_BUDGET:
        limit = "" if allowance is None else f" of ${allowance:g}"
        reason = f"the budget{limit} of this run is used up, and {agent} stopped: give it a larger one, or less to do"
        return Outcome(OutcomeKind.ABORTED, reason, _story(text), cause=Cause.BUDGET)
    if stream.subtype in _OVER_TURNS or stream.codes & _OVER_TURNS:
        said = _short(stream, text) or "max turns"
        reason = f"{agent} stopped at its maximum number of turns ({said}): give it less to do"
        return Outcome(OutcomeKind.ABORTED, reason, _story(text), cause=Cause.AGENT_ERROR)
    reason, story = _reason(agent, stream, status)
    return Outcome(
        OutcomeKind.FAILED,
        reason,
        story,
        cause=cause or Cause.AGENT_ERROR,
        delay=waits_for(stream, now) if cause in (Cause.RATE_LIMITED, Cause.OVERLOADED) else None,
        begun=has_begun(stream, cause),
    )


def _reason(agent: str, stream: AgentStream, status: int) -> tuple[str, str | None]:
    """A line that says how it failed, and the whole story if that is longer."""
    if stream.is_error:
        return _short(stream, stream.text) or f"{agent} failed ({stream.subtype or 'no reason'})", _story(stream.text)
    if stream.answered and not stream.is_plain:
        return f"{agent} gave a result, but {end_of(status)}", None
    ended = f"{agent} {end_of(status)}" + ("" if stream.is_plain else " and gave no result")
    last = _last(stream)
    said = _short(stream, f"{ended}: {last}") if last else ended
    return said, _story("\n".join(stream.last_lines))


def has_begun(stream: AgentStream, cause: Cause | None = None) -> bool:
    """Whether the model has said or done anything. Where nothing tells, it has: nothing may be done twice unasked."""
    if stream.spoke or stream.totals.get("tokens_out") or stream.totals.get("cost_usd"):
        return True
    if stream.is_live:
        return False
    # Of what speaks only at its end, a refusal is told by its name, and by that it says nothing else.
    return cause is None or (not stream.is_error and bool(stream.text))


def _last(stream: AgentStream) -> str:
    if stream.last_lines or not stream.is_plain:
        return stream.last_lines[-1] if stream.last_lines else ""
    return stream.text.rpartition("\n")[2]


def _short(stream: AgentStream, text: str) -> str:
    return stream.mask.shortened(text, _REASON_CAP)


def _story(text: str) -> str | None:
    """The whole of it, where the reason has only its beginning."""
    return bounded(text, _STORY_CAP) if "\n" in text.strip() or len(text) > _REASON_CAP else None
