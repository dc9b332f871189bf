"""The second half of a run: an outcome and what the work reported become the finish that is recorded.

retry.py decides what the outcome means; here that is joined by output, conversation and cost, and secrets are hidden.
"""

from __future__ import annotations

import random
from dataclasses import replace

import msgspec

from ostinato.clock import Micros
from ostinato.execution.context import RunContext
from ostinato.execution.outcome import Outcome, OutcomeKind
from ostinato.execution.retry import decide
from ostinato.execution.secrets import NO_SECRETS, Mask
from ostinato.execution.throttle import is_full
from ostinato.models.budget import MICRO, UNKNOWN
from ostinato.models.policy import Policy
from ostinato.models.project import Conversation
from ostinato.models.run import ClaimedRun, Finish, SessionUsage, is_failing
from ostinato.models.session import SHARED_TURN
from ostinato.models.states import RunState
from ostinato.models.work_kinds import Work
from ostinato.tracing import RunSpan

__all__ = ["end_span", "make_finish"]

_FAILURES = frozenset({OutcomeKind.FAILED, OutcomeKind.ABORTED, OutcomeKind.CUT_OFF})


def make_finish(
    claimed: ClaimedRun, policy: Policy, work: Work | None, context: RunContext, outcome: Outcome, now: Micros
) -> Finish:
    """What is recorded of an attempt that ended like this."""
    if context.mask is not NO_SECRETS:
        outcome = _masked(outcome, context.mask)
    finish = decide(claimed, policy, outcome, now, random.random, errors=context.totals.get("errors", 0))
    if context.has_report:
        finish.progress, finish.totals, finish.output = context.take_report(final=True)
    if claimed.totals is not None and finish.totals is None and finish.state is RunState.SUCCEEDED:
        finish.totals = _without_errors(claimed.totals)
    if outcome.conversation is not None and work is not None:
        finish.conversation = _conversation(work, claimed.project, outcome.conversation)
    if policy.budget is not None and (claimed.schedule_id is not None or claimed.session is not None):
        finish.cost = _cost(context)
    if claimed.session is not None:
        # What shares the turn of an outer run was executed for the session of that.
        session = policy.session if claimed.session.startswith(SHARED_TURN) else claimed.session
        told = outcome.context or {}
        used = {**(context.usage or {}), **told}
        finish.usage = SessionUsage(session, used) if used and session is not None else None
        finish.throttled = is_full(**told)
    return finish


def end_span(span: RunSpan, finish: Finish, outcome: Outcome, mask: Mask) -> None:
    """The span of an attempt ends as its finish says; of what it says, secrets are hidden as they are there."""
    finish.begins_trace = span.begins
    failed = None
    if outcome.kind in _FAILURES or is_failing(finish):
        failed = mask.hide_in(outcome.reason) or finish.reason or str(finish.cause)
    span.end(finish, failed, outcome.exception)


def _without_errors(totals: str) -> str | None:
    """What earlier attempts counted and stays; None for all of it. Their errors are not those of one that succeeded."""
    if '"errors"' not in totals:
        return None
    try:
        known = msgspec.json.decode(totals, type=dict[str, float])
    except (msgspec.DecodeError, RecursionError):  # of a row that somebody wrote by hand
        return None
    known.pop("errors", None)
    return msgspec.json.encode(known).decode()


def _masked(outcome: Outcome, mask: Mask) -> Outcome:
    return replace(
        outcome,
        reason=mask.hide_in(outcome.reason),
        error=mask.hide_in(outcome.error),
        result=outcome.result and mask.hide_json(outcome.result),
    )


def _conversation(work: Work, project: str | None, id: str) -> Conversation | None:
    key = work.conversation(project)
    # One whose key depends on the project goes with it.
    return None if key is None else Conversation(key, id, project if key != work.conversation(None) else None)


def _cost(context: RunContext) -> int:
    """What an attempt cost. Nobody knows of one that had begun to spend and never told."""
    told = context.totals.get("cost_usd")
    if told is None and context.spends:
        return UNKNOWN
    return max(0, round((told or 0) * MICRO))
