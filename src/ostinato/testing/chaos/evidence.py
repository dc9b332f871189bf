"""What a judge looks at: what was asked for, what the tasks saw, what the ledger says, and what was broken meanwhile.

`simulation.py` and the cluster of real processes collect it, `judge.py` compares. Times are microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ostinato.clock import Micros

__all__ = [
    "Attempt",
    "Evidence",
    "Execution",
    "Expectation",
    "Mailbox",
    "ProcessLife",
    "Row",
    "ScheduleRow",
    "Span",
]


class Span(NamedTuple):
    """From one instant to another; the end is None while it goes on."""

    since: Micros
    until: Micros | None

    def overlaps(self, since: Micros, until: Micros) -> bool:
        """Whether they have a moment in common."""
        return self.since < until and (self.until is None or self.until > since)


@dataclass(slots=True)
class Execution:
    """One start of a task, as the task itself wrote it down."""

    run: int
    attempt: int
    token: int
    process: str
    due_at: Micros
    started_at: Micros
    schedule: str | None = None
    told_at: Micros | None = None
    """When it was told to stop."""
    ended_at: Micros | None = None
    """None if it was never heard of again."""
    returned: bool = False
    """Whether it came to its end, and raised nothing."""


@dataclass(slots=True)
class ProcessLife:
    """What happened to a process of the cluster."""

    name: str
    started_at: Micros
    ended_at: Micros | None = None
    absences: list[Span] = field(default_factory=list)
    """While it was stopped, or could not reach the database."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A schedule as it was asked for, and when it is due by whoever does not plan it."""

    name: str
    next_after: Callable[[Micros], Micros | None] | None
    """None if its due times depend on runs: then they are not checked."""
    since: Micros
    """It is due for the first time after this instant."""
    retries: int = 0
    catch_up: str = "latest"
    max_age: Micros | None = None
    may_overlap: bool = False
    switched_off: Span | None = None
    """When that was asked for, and when it was done; None if it is on."""


@dataclass(frozen=True, slots=True)
class Mailbox:
    """A session, and the runs of its messages in the order in which they were acknowledged."""

    key: str
    messages: Sequence[int]
    max_concurrent: int = 1


class Attempt(NamedTuple):
    """An attempt that was followed by another one, as the ledger has it."""

    started_at: Micros | None
    finished_at: Micros | None
    state: str
    node: str | None


@dataclass(frozen=True, slots=True)
class Row:
    """A run as the ledger has it."""

    id: int
    schedule: str | None
    task: str | None
    retries: int
    """How often it may be tried again, by its policy."""
    state: str
    cause: str | None
    reason: str | None
    trigger: str
    due_at: Micros
    last_due_at: Micros | None
    count: int
    ready_at: Micros
    started_at: Micros | None
    finished_at: Micros | None
    attempt: int
    token: int
    lane: str
    session: str | None
    node: str | None
    attempts: Sequence[Attempt] = ()


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A schedule as the ledger has it."""

    name: str
    enabled: bool
    broken: str | None
    next_at: Micros | None


@dataclass(slots=True)
class Evidence:
    """All of it, of one ordeal that is over: every process was ended in good order, and nothing is left to do."""

    began_at: Micros
    ended_at: Micros
    lease: Micros
    kill: Micros
    """How long work may go on after it was told to stop."""
    expectations: Sequence[Expectation]
    executions: Sequence[Execution]
    rows: Sequence[Row]
    schedules: Mapping[str, ScheduleRow]
    processes: Mapping[str, ProcessLife]
    asked_for: Mapping[int, int | None] = field(default_factory=dict)
    """Runs that were enqueued and acknowledged, and how often each may be tried again; None for as often as its row
    says."""
    perhaps_asked_for: bool = False
    """Whether something was enqueued whose acknowledgement got lost."""
    mailboxes: Sequence[Mailbox] = ()
    lanes: Mapping[str, int] = field(default_factory=dict)
    outages: Sequence[Span] = ()
    """While nobody could reach the database."""
    rest: Micros = 0
    """How long nothing new was planned at the end."""
    stubbornness: Micros = 0
    """How much longer tasks go on that do not stop when they are told to."""
    witnessed: Collection[str] | None = None
    """The tasks that write down what they do; None for all."""
    faults: Mapping[str, int] = field(default_factory=dict)
    """What was broken, and how often."""
    fast_by: Micros = 0
    """How far a clock was ahead of the others at most."""
    rewritten: Sequence[str] = ()
    """Runs that had ended and were changed after that."""
    left_over: Sequence[str] = ()
    """Processes that should be gone."""
    damage: str | None = None
    """What the integrity check of the database found."""
    complaints: Sequence[str] = ()
    """Errors inside of the engine that nothing explains."""
