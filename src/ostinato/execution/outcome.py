"""What an executor makes of whatever happened: one Outcome. Executors know nothing of stores or policies."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from typing import Any

from ostinato.durations import parse_duration
from ostinato.errors import Abort, InvalidInput, Snooze, SoftTimeout
from ostinato.execution.arguments import TaskSignature, UnfitArguments, UnfitResult
from ostinato.execution.conversion import encode_json
from ostinato.logs import one_line
from ostinato.models.nesting import MOST_DEPTH, is_deeper
from ostinato.models.policy_values import exception_name
from ostinato.models.run import Ending
from ostinato.models.states import Cause
from ostinato.models.work import NotFinite
from ostinato.plurals import a_or_an

__all__ = ["Blame", "Outcome", "OutcomeKind", "cause_of", "ended", "raised", "returned"]

_ERROR_CAP = 16_000
_ABOVE_WORK = ("ostinato.execution", "ostinato.integrations")
"""The modules that call the work of users."""
MAX_RESULT = 1_048_576
"""How many bytes of JSON a task may return, unless the settings say another number."""


class OutcomeKind(Enum):
    """The ways an execution can end."""

    RETURNED = auto()
    FAILED = auto()
    """It may be tried again, if the policy has tries left."""
    ABORTED = auto()
    """Trying again would not help."""
    SNOOZED = auto()
    CANCELLED = auto()
    SKIPPED = auto()
    CUT_OFF = auto()
    """Its node was stopped while it ran: an attempt that counts, and no failure of the work."""
    PUT_BACK = auto()
    """The same of a task that goes back to the queue then, uncounted (`requeue_on_drain`)."""
    PUT_OFF = auto()
    """It has not begun, and goes back to the queue until the delay is over: it was no attempt."""


class Blame(Enum):
    """Who is to blame for an end: what the breaker of a schedule makes of it."""

    WORK = auto()
    """One more towards the breaker."""
    NODE = auto()
    """The node was lost, or lacks something: the breaker neither counts it nor forgets others for it."""
    SETUP = auto()
    """It cannot succeed until a person does something: the schedule breaks at once."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One end of one execution. `cause` is for programs, `reason` a line for people, `error` the whole story."""

    kind: OutcomeKind
    reason: str | None = None
    error: str | None = None
    result: str | None = None
    cause: Cause | None = None
    """None for what its kind says."""
    delay: timedelta | None = None
    """How long to wait before the next try: of a snooze, or what the other side asked for."""
    blame: Blame | None = None
    """None for what its kind says: a failure is the work's, and all others are nobody's."""
    begun: bool = True
    """Whether the work had begun: of an attempt that failed before that, a try more does nothing twice."""
    conversation: str | None = None
    """The id of the conversation that it leaves behind."""
    context: Mapping[str, int] | None = None
    """How full the context of its agent is, as far as that told: `context_used` of `context_window` tokens."""
    exception: str | None = None
    """The name of what was raised, for traces."""
    raised: Sequence[str] = ()
    """The same, and the names of what it inherits from: a retry may ask for them."""
    recorded: Callable[[], None] | None = None
    """Called once the ledger has it: what was kept until then can go."""


_CAUSES = {
    OutcomeKind.FAILED: Cause.RAISED,
    OutcomeKind.ABORTED: Cause.ABORTED,
    OutcomeKind.SNOOZED: Cause.SNOOZED,
    OutcomeKind.CANCELLED: Cause.CANCELLED,
    OutcomeKind.SKIPPED: Cause.GATE,
    OutcomeKind.CUT_OFF: Cause.CUT_OFF,
    OutcomeKind.PUT_BACK: Cause.CUT_OFF,
    OutcomeKind.PUT_OFF: Cause.POSTPONED,
}


def cause_of(outcome: Outcome) -> Cause | None:
    """Its own, or that of its kind; None for what simply succeeded."""
    return outcome.cause or (None if outcome.kind is OutcomeKind.RETURNED else _CAUSES[outcome.kind])


def ended(ending: Ending) -> Outcome:
    """It was told to stop, and did."""
    return Outcome(OutcomeKind.CANCELLED, ending.reason, cause=ending.cause)


_JSON_TYPES = "text, numbers, booleans, None, lists or dicts"
RETURNED_NOTHING = Outcome(OutcomeKind.RETURNED)
_TOO_DEEP = Outcome(
    OutcomeKind.ABORTED, reason=f"returned JSON that is nested more than {MOST_DEPTH} deep; return a flatter value"
)


def returned(value: Any, most: int = MAX_RESULT, signature: TaskSignature | None = None) -> Outcome:
    """The work returned; a value that is not JSON, has more than `most` bytes, or is not what the annotation of its
    task says, is a failure that no retry mends."""
    if value is None and (signature is None or signature.may_return_none):
        return RETURNED_NOTHING
    try:
        encoded = encode_json(value)
        if len(encoded) > most:
            return _too_large(len(encoded), most)
        if is_deeper(encoded):
            return _TOO_DEEP
        if signature is not None:
            encoded = signature.check_result(value, encoded)
        return Outcome(OutcomeKind.RETURNED, result=encoded.decode())
    except UnfitResult as error:
        return Outcome(OutcomeKind.ABORTED, reason=str(error))
    except RecursionError:
        return _TOO_DEEP
    except (TypeError, ValueError, OverflowError) as error:
        wrong = f"returned {a_or_an(type(value).__name__)} that is not JSON ({error})"
        way_out = "a finite number, or None" if isinstance(error, NotFinite) else _JSON_TYPES
        return Outcome(OutcomeKind.ABORTED, reason=f"{wrong}; return {way_out}")


def _too_large(size: int, most: int) -> Outcome:
    reason = (
        f"returned {size:,} bytes of JSON, and a result may have {most:,} (the setting max_result); "
        "store it elsewhere, and return where it is"
    )
    return Outcome(OutcomeKind.ABORTED, reason=reason)


def raised(error: BaseException) -> Outcome:
    """The work raised. Always an outcome, whatever the error's own methods do when they are asked."""
    try:
        return _read(error)
    except Exception as wrong:
        return Outcome(OutcomeKind.FAILED, f"{type(error).__name__}, which cannot be shown: {one_line(wrong)}")


def _read(error: BaseException) -> Outcome:
    if isinstance(error, Snooze):
        try:
            return Outcome(OutcomeKind.SNOOZED, reason=str(error), delay=parse_duration(error.delay))
        except InvalidInput as wrong:
            return Outcome(OutcomeKind.ABORTED, reason=f"Snooze: {wrong}")
    if isinstance(error, UnfitArguments):
        return Outcome(OutcomeKind.ABORTED, reason=str(error), cause=Cause.BAD_ARGUMENTS, begun=False)
    if isinstance(error, Abort):
        return Outcome(
            OutcomeKind.ABORTED,
            reason=str(error) or "aborted",
            error=story(error),
            exception=exception_name(type(error)),
        )
    cause = Cause.TIMED_OUT if isinstance(error, SoftTimeout) else None
    names = [exception_name(kind) for kind in type(error).__mro__ if kind is not object]
    return Outcome(
        OutcomeKind.FAILED, reason=one_line(error), error=story(error), exception=names[0], raised=names, cause=cause
    )


def story(error: BaseException) -> str:
    """The traceback, without our own frames above the work, of bounded length."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__", "").startswith(_ABOVE_WORK):
        frames = frames.tb_next
    text = "".join(traceback.format_exception(type(error), error, frames))
    return text if len(text) <= _ERROR_CAP else text[: _ERROR_CAP // 2] + "\n…\n" + text[-_ERROR_CAP // 2 :]
