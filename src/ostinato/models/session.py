"""Sessions: keys whose runs go one after the other, each a durable mailbox.

`Message` goes in, `Sent` comes back, `Session` is what people read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Literal

import msgspec

from ostinato.clock import Micros
from ostinato.models.budget import MICRO
from ostinato.models.ids import RunId
from ostinato.models.policy import Policy
from ostinato.models.run import Ending, NewRun
from ostinato.models.states import Cause, RunState
from ostinato.models.work import Agent, JoinableWork
from ostinato.models.work_kinds import Work

__all__ = [
    "CONTEXT",
    "CONTINUES",
    "DROPPED",
    "MESSAGE_KEYS",
    "REFUSED",
    "SHARED_TURN",
    "STALE",
    "STOPPED",
    "Delivery",
    "Drop",
    "DropName",
    "Message",
    "Mode",
    "ModeName",
    "Sent",
    "Session",
    "Stopped",
    "carrier_text",
    "debounced",
    "goes_alone",
    "in_shared_turn",
    "in_turn",
    "is_stale",
    "known_message",
    "message_key",
    "queued_message",
    "skipped_message",
    "used",
    "with_turn",
]

DROPPED = Ending(Cause.DROPPED, "dropped: its session's queue was full and a newer message came")
REFUSED = "refused: its session's queue is full"
STALE = Ending(Cause.STALE, "stale: it was sent before its session was stopped")
STOPPED = Ending(Cause.SESSION_STOPPED, "its session was stopped")
MESSAGE_KEYS = "message:"
"""What the keys of messages begin with; others may not."""
SHARED_TURN = "schedule: run "
"""How the lines are called in which runs wait that share the turn of another one: no schedule can have such a name."""


_JUMPED: Micros = 5 * 60 * 1_000_000


def is_stale(sent_at: Micros, cutoff_at: Micros | None, now: Micros) -> bool:
    """Whether a message was sent before its session was stopped. A cutoff far ahead is a clock that was wrong."""
    return cutoff_at is not None and sent_at < cutoff_at <= now + _JUMPED


def message_key(session: str, message_id: str) -> str:
    """The key of a message's run: no other pair has it, nor a key that people give to a run."""
    return f"{MESSAGE_KEYS}{len(session)}:{session}:{message_id}"


def debounced(into: RunId) -> Ending:
    """What becomes of a message whose payload another run carries."""
    return Ending(Cause.DEBOUNCED, f"debounced: its payload goes with run {into}")


class _Carrier(msgspec.Struct):
    run: int


def carrier_text(run: RunId) -> str:
    """The result of such a message: the run that carries its payload."""
    return msgspec.json.encode(_Carrier(run)).decode()


class Mode(StrEnum):
    """What a message does to its session."""

    QUEUE = "queue"
    """Wait for the turn, first come, first served."""
    FOLLOWUP = "followup"
    """Wait until nothing of the session is under way, and run alone; what gathers meanwhile can join it."""
    INTERRUPT = "interrupt"
    """Stop what is under way, drop what waits, and go next."""


class Drop(StrEnum):
    """Who goes when a session's queue is full."""

    OLD = "old"
    NEW = "new"


class Delivery(StrEnum):
    """What a send did with its message."""

    QUEUED = "queued"
    DEBOUNCED = "debounced"
    """Its payload joined a run that was sent before and has not started."""
    REFUSED = "refused"
    """The queue is full, and `drop` says that the new one goes."""
    STALE = "stale"
    """The session was stopped after it was sent."""


ModeName = Literal["queue", "followup", "interrupt"]
DropName = Literal["old", "new"]


CONTINUES = ('"context":"session:', '"context":"group"')
"""What the text of an agent's work has that continues a conversation. In a prompt it cannot be: quotes are escaped."""


def goes_alone(mode: str | None, kind: str, work: str) -> bool:
    """Whether such a run goes beside no other of its session: a followup, or what continues a conversation. The stores
    give turns by the same rule."""
    return mode == Mode.FOLLOWUP or (kind == Agent.kind and any(words in work for words in CONTINUES))


def with_turn(policy: Policy, work: Work, project: str | None) -> Policy:
    """The policy with a session if its work continues a conversation: those go one after the other."""
    if policy.session is not None or (turn := work.turn(project)) is None:
        return policy
    return replace(policy, session=turn)


def in_turn(run: NewRun, schedule: str, policy: Policy) -> NewRun:
    """A run of a schedule that waits its turn: in the session of its policy, or in the schedule's own."""
    if policy.session is None:
        return replace(run, session=f"schedule:{schedule}", waiting=True)
    return replace(run, session=policy.session, waiting=True, mode=Mode.QUEUE)


def in_shared_turn(run: NewRun, around: Sequence[tuple[RunId, str | None]]) -> NewRun:
    """A run that is executed inside of others, the innermost first, each with its session. Where one of them has the
    turn that it would wait for, it shares that: then it only waits for others that share it too."""
    line = None
    for id, session in reversed(around):
        if session is not None and session in (run.session, line):
            line = f"{SHARED_TURN}{id}"
    return run if line is None else replace(run, session=line, mode=None)


@dataclass(frozen=True, slots=True)
class Message:
    """One run for a session, and how to put it there."""

    run: NewRun
    sent_at: Micros
    mode: Mode = Mode.QUEUE
    max_concurrent: int | None = None
    """How many runs of the session may be under way from now on; None leaves that."""
    cap: int | None = None
    """How many may be queued; None is no bound."""
    drop: Drop = Drop.OLD
    debounce: Micros = 0
    ceiling: Micros = 0
    """How long a burst may be drawn out, from its first message."""
    joinable: JoinableWork | None = None
    """Its work in parts, if it may join a burst, or be joined."""

    @property
    def key(self) -> str:
        assert self.run.session is not None
        return self.run.session

    def closes_at(self, first_at: Micros, now: Micros) -> Micros:
        """When a burst that this joins or begins is over: the timer starts anew with each, up to the ceiling."""
        return min(now + self.debounce, first_at + max(self.debounce, self.ceiling))

    def joins(self, mode: str | None, ready_at: Micros, now: Micros) -> bool:
        """Whether it may join such a burst, if that is for the same work: of the same mode, and open; a followup is,
        until it starts."""
        return mode == self.mode and (ready_at > now or mode == Mode.FOLLOWUP)


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a message in the moment it was sent."""

    delivery: Delivery
    id: RunId | None
    """The run that carries the payload; None if it was refused."""
    dropped: Sequence[RunId] = ()
    """Queued runs that had to go for it."""
    cancelled: Sequence[RunId] = ()
    """Runs under way that it interrupts."""
    is_new: bool = field(default=True, compare=False)
    """Whether it had not been sent before."""


def queued_message(message: Message, now: Micros) -> NewRun:
    """The run of a message as it is put into its session's queue."""
    run, burst = message.run, message.debounce > 0
    ready_at = message.closes_at(run.due_at, now) if burst else run.ready_at
    return replace(
        run, waiting=True, mode=message.mode, burst=burst, later=not burst and ready_at > now, ready_at=ready_at
    )


def skipped_message(message: Message, ending: Ending, now: Micros) -> NewRun:
    """The row of a message that gets no run of its own."""
    return replace(
        message.run,
        state=RunState.SKIPPED,
        cause=ending.cause,
        reason=ending.reason,
        ready_at=now,
        expires_at=None,
        mode=message.mode,
    )


def known_message(id: RunId, cause: str | None, result: str | None) -> Sent:
    """What was answered to a message that is sent a second time, by its row."""
    if cause == Cause.DEBOUNCED and result is not None:
        return Sent(Delivery.DEBOUNCED, RunId(msgspec.json.decode(result, type=_Carrier).run), is_new=False)
    return Sent(Delivery.STALE if cause == Cause.STALE else Delivery.QUEUED, id, is_new=False)


def used(usage: Mapping[str, float]) -> dict[str, int | None]:
    """What an attempt used, as the session's row counts it: money in millionths of a dollar."""
    sums: dict[str, int | None] = {name: round(usage.get(name, 0)) for name in ("tokens_in", "tokens_out", "turns")}
    told = {name: None if (found := usage.get(name)) is None else round(found) for name in CONTEXT}
    return {"cost": round(usage.get("cost_usd", 0) * MICRO), **sums, **told}


CONTEXT = ("context_used", "context_window")
"""What an agent tells of its context, in tokens."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """What a stop did: active runs that were told to stop, and queued runs that will never start."""

    cancelled: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Session:
    """A durable mailbox: a key whose runs go one after the other."""

    key: str
    running: int
    queued: int
    oldest_at: datetime | None
    """When the message that has waited longest was sent."""
    max_concurrent: int
    throttled: bool
    stopped_at: datetime | None
    """The cutoff of the last stop_all: messages sent before it never start."""
    sent_at: datetime
    cost_usd: float = 0
    """What its runs have cost so far, and used, as far as they told."""
    tokens_in: int = 0
    tokens_out: int = 0
    turns: int = 0
    context_used: int | None = None
    """How many tokens the context of its agent holds, as that told last; None if it never did."""
    context_window: int | None = None
    """How many it can hold."""
