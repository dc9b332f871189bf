"""What mailers are told to send, and what they noted: the plan of a session, answers, executions, intervals."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ostinato import Event, Function, Ostinato, Run, RunState
from ostinato.models.ids import RunId
from tests.faults.mailer import SENDERS

__all__ = [
    "SENDERS",
    "Answer",
    "Execution",
    "Plan",
    "answers_of",
    "events_of",
    "in_file",
    "in_ledger",
    "is_busy",
    "is_in_a_run",
    "ledger",
    "message_of",
    "most_at_once",
    "plan_text",
    "read_answers",
    "read_executions",
    "read_notes",
    "wait_until",
    "wait_until_ended",
]

LOST = "was lost"
"""What the ledger says of an attempt whose node was killed."""
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Plan:
    """What all senders together send to one session."""

    key: str
    count: int
    pause: float
    seconds: float
    """How long each message works."""
    options: Mapping[str, Any] = field(default_factory=dict)
    task: str = "work"
    dawdle: float = 0.0
    """How long each message is on its way, at least."""

    @property
    def at_once(self) -> int:
        limit: int = self.options.get("max_concurrent", 1)
        return limit


@dataclass(frozen=True, slots=True)
class Answer:
    """What a sender was told."""

    session: str
    sender: int
    number: int
    answer: str
    run: RunId | None

    @property
    def key(self) -> str:
        """The name of the message."""
        return f"{self.session}/{self.sender}-{self.number}"


@dataclass(frozen=True, slots=True)
class Execution:
    """One call of a task. It ends by itself, or with its process; `end` is None while it goes on."""

    session: str
    run: RunId
    attempt: int
    start: float
    end: float | None
    messages: tuple[tuple[int, int], ...]
    """The sender and the number of each payload."""


def plan_text(plans: Iterable[Plan]) -> str:
    """The plan as a mailer takes it."""
    return json.dumps([asdict(plan) for plan in plans])


def read_notes(log: Path) -> list[dict[str, Any]]:
    """Every note so far, in the order written."""
    # What follows the last end of a line is being written.
    return [json.loads(line) for line in log.read_text().split("\n")[:-1]] if log.exists() else []


def is_in_a_run(log: Path, process: int) -> bool:
    """Whether this process has begun an execution that has not ended."""
    open_runs: set[int] = set()
    for note in read_notes(log):
        if note["what"] in ("start", "end") and note["pid"] == process:
            (open_runs.add if note["what"] == "start" else open_runs.discard)(note["run"])
    return bool(open_runs)


def read_answers(log: Path) -> list[Answer]:
    """Every answer so far."""
    return [
        Answer(note["session"], note["sender"], note["number"], note["answer"], note["run"])
        for note in read_notes(log)
        if note["what"] == "sent"
    ]


def read_executions(log: Path, deaths: Mapping[int, float]) -> list[Execution]:
    """Every execution in the order of the starts. One that noted no end went on until its process was gone."""
    notes = read_notes(log)
    ends = {(note["run"], note["attempt"], note["pid"]): note["at"] for note in notes if note["what"] == "end"}
    return [
        Execution(
            note["payloads"][0]["session"],
            note["run"],
            note["attempt"],
            note["at"],
            ends.get((note["run"], note["attempt"], note["pid"]), deaths.get(note["pid"])),
            tuple((payload["sender"], payload["number"]) for payload in note["payloads"]),
        )
        for note in notes
        if note["what"] == "start"
    ]


def message_of(run: Run) -> str:
    """The name of the message that made this row; a run that carries others too has its own in front."""
    assert isinstance(run.work, Function)
    own = run.work.kwargs["payloads"][0]
    return f"{own['session']}/{own['sender']}-{own['number']}"


def in_ledger(runs: Iterable[Run], executions: Iterable[Execution]) -> list[Interval]:
    """When attempts were under way, as the ledger says.

    Of an attempt that was lost the ledger knows when it was claimed, and of what followed only its node did: it is
    taken from where its execution was noted, and left out if it came to none.
    """
    noted = {(execution.run, execution.attempt): execution.start for execution in executions}
    intervals = []
    for run in runs:
        for number, attempt in enumerate(run.attempts, start=1):
            assert attempt.finished_at is not None, f"run {run.id} is still under way"
            start: float | None = attempt.started_at.timestamp()
            if LOST in (attempt.error or ""):
                start = noted.get((run.id, number))
            if start is not None:
                intervals.append((start, attempt.finished_at.timestamp()))
    return intervals


def in_file(runs: Iterable[Run], executions: Iterable[Execution]) -> list[Interval]:
    """When functions were really executed. A node that hung so long that it was given up for lost is told to stop
    when it is back: what it still executed counts until it was given up."""
    given_up = {
        (run.id, number): attempt.finished_at.timestamp()
        for run in runs
        for number, attempt in enumerate(run.attempts, start=1)
        if LOST in (attempt.error or "") and attempt.finished_at is not None
    }
    intervals = []
    for execution in executions:
        ends = [at for at in (execution.end, given_up.get((execution.run, execution.attempt))) if at is not None]
        assert ends, f"run {execution.run} is still executed"
        intervals.append((execution.start, min(ends)))
    return intervals


def most_at_once(intervals: Iterable[Interval]) -> int:
    """How many of the intervals had an instant in common, at most; one may begin where another ends."""
    changes = sorted(change for start, end in intervals for change in ((start, 1), (max(start, end), -1)))
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def answers_of(log: Path) -> list[Answer]:
    """The answer to each message, the last one of those that were sent again after a kill."""
    return list({answer.key: answer for answer in read_answers(log)}.values())


def ledger(app: Ostinato) -> list[Run]:
    """Every row, oldest first."""
    return list(reversed(app.runs.list(limit=10_000)))


def events_of(app: Ostinato, session: str | None = None) -> list[Event]:
    """Every event of a session, or of all."""
    events: list[Event] = []
    while page := app.sessions.events(session, after=events[-1].id if events else 0):
        events += page
    return events


def wait_until_ended(app: Ostinato, seconds: float = 60) -> None:
    """Also what is queued for a later attempt, which wait_idle leaves to the future."""
    wait_until(lambda: not is_busy(app), "all have ended", seconds)


def is_busy(app: Ostinato) -> bool:
    return bool(app.runs.list(state=[RunState.QUEUED, RunState.RUNNING], limit=1))


def wait_until(is_so: Callable[[], bool], what: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, f"waited {seconds:g} s in vain: {what}"
        time.sleep(0.05)
