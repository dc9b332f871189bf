"""The judge: compares what was asked for, what the tasks saw and what the ledger says, and names what does not agree.

Each rule is a function of the evidence that yields what breaks it; none of them calls the code that it judges.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from ostinato.clock import SECOND, Micros, from_micros
from ostinato.testing.chaos.evidence import Evidence, Execution, Expectation, Row
from ostinato.testing.chaos.oracle import Oracle

__all__ = ["RULES", "SCHEDULED", "Violation", "judge"]

SCHEDULED = frozenset({"schedule", "catch_up"})
"""The triggers of what is due by itself."""
_ENDS = frozenset({"succeeded", "failed", "cancelled", "skipped", "missed", "expired", "superseded"})
_UNCOUNTED = frozenset({"snoozed", "cut_off"})
_LOOKAHEAD: Micros = SECOND
"""Fires are recorded so much before they are due."""
_SLACK: Micros = 2 * SECOND
"""What a turn of a busy loop and a commit may take."""


class Violation(NamedTuple):
    """One thing that does not agree."""

    rule: str
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.what}"


@dataclass
class Case:
    """The evidence, sorted for those who look at it."""

    evidence: Evidence

    @cached_property
    def rows(self) -> Mapping[int, Row]:
        return {row.id: row for row in self.evidence.rows}

    @cached_property
    def by_schedule(self) -> Mapping[str, Sequence[Row]]:
        """What was due by itself, in the order of the due times."""
        found: dict[str, list[Row]] = defaultdict(list)
        for row in self.evidence.rows:
            if row.schedule is not None and row.trigger in SCHEDULED:
                found[row.schedule].append(row)
        for rows in found.values():
            rows.sort(key=lambda row: (row.due_at, row.id))
        return found

    @cached_property
    def executions(self) -> Mapping[int, Sequence[Execution]]:
        """Those of each run, in the order of their starts."""
        found: dict[int, list[Execution]] = defaultdict(list)
        for execution in self.evidence.executions:
            found[execution.run].append(execution)
        for executions in found.values():
            executions.sort(key=lambda execution: execution.started_at)
        return found

    @cached_property
    def retries(self) -> Mapping[int, int]:
        """How often each run may be tried again."""
        evidence = self.evidence
        expected = {one.name: one.retries for one in evidence.expectations}
        found: dict[int, int] = {}
        for row in evidence.rows:
            of = evidence.asked_for.get(row.id) if row.schedule is None else expected.get(row.schedule)
            found[row.id] = row.retries if of is None else of
        return found

    def at_work_until(self, execution: Execution) -> Micros:
        """Until when others had to reckon with an execution: until it ended, its process was killed, or was absent for
        so long that others went on without it; or until it was given up, because it did not stop when told to."""
        evidence = self.evidence
        life = evidence.processes[execution.process]
        ends = [evidence.ended_at if execution.ended_at is None else execution.ended_at]
        if life.ended_at is not None:
            ends.append(life.ended_at)
        if execution.told_at is not None:
            ends.append(execution.told_at + evidence.kill)
        for absence in life.absences:
            since, until = absence.since, absence.until or evidence.ended_at
            if absence.overlaps(execution.started_at, max(ends)) and until - since >= evidence.lease // 2:
                ends.append(max(since, execution.started_at))
        return min(ends)


Rule = Callable[[Case], Iterator[str]]


def due_times_have_one_row_each(case: Case) -> Iterator[str]:
    """Every due time until the next one is in exactly one row, and nothing else is."""
    for expected in case.evidence.expectations:
        schedule = case.evidence.schedules.get(expected.name)
        if schedule is None:
            yield f"schedule {expected.name!r} is gone"
            continue
        if schedule.broken is not None:
            yield f"schedule {expected.name!r} is broken: {schedule.broken}"
        if expected.next_after is not None:
            rows = case.by_schedule.get(expected.name, ())
            yield from _wrong_due_times(expected.next_after, expected, rows, schedule.next_at)
        until = case.evidence.ended_at - case.evidence.rest
        if expected.switched_off is None and schedule.next_at is not None and schedule.next_at < until - _SLACK:
            yield f"{expected.name!r} was due {_time(schedule.next_at)}, and nobody recorded it"


def _wrong_due_times(
    next_after: Oracle, expected: Expectation, rows: Sequence[Row], next_at: Micros | None
) -> Iterator[str]:
    due = next_after(expected.since)
    for row in rows:
        if due is None or row.due_at != due:
            what = "an earlier one is missing" if due is not None and row.due_at > due else "it is not due then"
            yield f"run {row.id} of {expected.name!r} is due {_time(row.due_at)}, expected {_time(due)}: {what}"
            due = row.due_at
        last = due
        for _ in range(row.count - 1):
            following = next_after(last)
            if following is None:
                break
            last = following
        if (row.last_due_at or row.due_at) != last:
            yield (
                f"run {row.id} of {expected.name!r} counts {row.count} due times until {_time(row.last_due_at)}, "
                f"expected {_time(last)}"
            )
        due = next_after(row.last_due_at or row.due_at)
    if expected.switched_off is None:
        if due != next_at:
            yield f"{expected.name!r} is due next {_time(next_at)}, expected {_time(due)}"
        return
    asked_at, done_at = expected.switched_off
    if due is not None and due < asked_at - _SLACK:
        yield f"{expected.name!r} was due {_time(due)}, and has no row, though it was on until {_time(asked_at)}"
    if rows and done_at is not None and rows[-1].due_at > done_at + _LOOKAHEAD:
        yield f"run {rows[-1].id} of {expected.name!r} is due {_time(rows[-1].due_at)}, when it was off"


def ends_have_a_reason(case: Case) -> Iterator[str]:
    """At rest nothing is under way, and whatever did not succeed says why."""
    for row in case.evidence.rows:
        if row.state not in _ENDS:
            yield f"run {row.id} was left {row.state}: {row.reason or 'nobody says why'}"
        elif row.state != "succeeded" and not (row.cause and row.reason):
            yield f"run {row.id} is {row.state}, and nobody says why"


def success_was_seen(case: Case) -> Iterator[str]:
    """A run succeeded if and only if its task came to its end, in the attempt that holds the token; and the times in
    its row are those of that attempt."""
    for row in case.evidence.rows:
        if case.evidence.witnessed is not None and row.task not in case.evidence.witnessed:
            continue
        last = next((one for one in case.executions.get(row.id, ()) if one.token == row.token), None)
        if row.state == "succeeded":
            if last is None or not last.returned or last.ended_at is None:
                yield f"run {row.id} succeeded by token {row.token}, but no task came to its end with it"
            elif row.finished_at is None or not last.ended_at <= row.finished_at + case.evidence.fast_by:
                yield f"run {row.id} succeeded {_time(row.finished_at)}, but its task ended {_time(last.ended_at)}"
        elif last is not None and last.returned and last.told_at is None and _could_tell(case, last):
            yield f"run {row.id} is {row.state}, but its task came to its end with token {row.token}"


def _could_tell(case: Case, execution: Execution) -> bool:
    """Whether its process was there for so long that the end of its task must have been written."""
    assert execution.ended_at is not None
    life, until = case.evidence.processes[execution.process], execution.ended_at + case.evidence.lease
    gone = life.ended_at is not None and life.ended_at < until
    return not gone and not any(absence.overlaps(execution.started_at, until) for absence in life.absences)


def starts_are_counted(case: Case) -> Iterator[str]:
    """A run starts no more often than its retry allows; once, where nothing went wrong."""
    for id, executions in case.executions.items():
        row = case.rows.get(id)
        if row is None:
            yield f"run {id} was executed, and is not in the ledger"
            continue
        uncounted = sum(attempt.state in _UNCOUNTED for attempt in row.attempts)
        allowed = 1 + case.retries.get(id, 0) + uncounted
        if len(executions) > allowed:
            yield f"run {id} was started {len(executions)} times, allowed are {allowed}"
        if len(executions) > row.attempt + uncounted:
            yield f"run {id} was started {len(executions)} times, and the ledger has {row.attempt} attempts"
        if row.state in ("skipped", "missed"):
            yield f"run {id} is {row.state}, but it was started"


def tokens_grow(case: Case) -> Iterator[str]:
    """Each start has a token of its own, greater than those before; the ledger has the last."""
    for id, executions in case.executions.items():
        tokens = [execution.token for execution in executions]
        if any(later <= earlier for earlier, later in pairwise(tokens)):
            yield f"run {id} was started with the tokens {tokens}"
        if id in case.rows and max(tokens) > case.rows[id].token:
            yield f"run {id} was started with token {max(tokens)}, but the ledger has {case.rows[id].token}"


def nothing_starts_early_or_expired(case: Case) -> Iterator[str]:
    """No start before the due time, and none after its max age."""
    max_ages = {one.name: one.max_age for one in case.evidence.expectations}
    for id, executions in case.executions.items():
        row, first = case.rows.get(id), executions[0]
        if row is None:
            continue
        if first.started_at < row.due_at - case.evidence.fast_by:
            yield f"run {id} is due {_time(row.due_at)} and was started {_time(first.started_at)}"
        max_age = None if row.schedule is None else max_ages.get(row.schedule)
        # A claim that was lost with its node counts as a start: from then on it waits as long as it takes.
        is_first = first.attempt == 1 and max_age is not None
        is_late = is_first and first.started_at > row.due_at + (max_age or 0) + _SLACK
        if is_late and not _absent(case, first, row.due_at + (max_age or 0)):
            yield f"run {id} was started {_text(first.started_at - row.due_at)} after it was due"


def _absent(case: Case, execution: Execution, since: Micros) -> bool:
    """Whether the process of an execution was absent between its claim, for which that instant was early enough, and
    its start."""
    life = case.evidence.processes[execution.process]
    return any(absence.overlaps(since - _SLACK, execution.started_at + _SLACK) for absence in life.absences)


def nothing_was_made_up(case: Case) -> Iterator[str]:
    """Every run was asked for, and what was acknowledged is there."""
    evidence = case.evidence
    known = {one.name for one in evidence.expectations}
    for row in evidence.rows:
        if row.schedule is None and row.id not in evidence.asked_for and not evidence.perhaps_asked_for:
            yield f"run {row.id} was asked for by nobody"
        elif row.schedule is not None and row.schedule not in known:
            yield f"run {row.id} is of schedule {row.schedule!r}, which nobody added"
    for id in evidence.asked_for:
        if id not in case.rows:
            yield f"run {id} was acknowledged, and is not in the ledger"


def attempts_do_not_overlap(case: Case) -> Iterator[str]:
    """An attempt begins when the one before it has ended, or when nobody could know that it had not."""
    for id, executions in case.executions.items():
        for earlier, later in pairwise(executions):
            if case.at_work_until(earlier) > later.started_at:
                yield f"run {id} was started {_time(later.started_at)} while its attempt {earlier.attempt} went on"
            yield from _too_long(case, earlier, later)


def _too_long(case: Case, earlier: Execution, later: Execution) -> Iterator[str]:
    """After an absence, what others have taken over ends soon."""
    if earlier.ended_at is None or earlier.ended_at <= later.started_at:
        return
    evidence = case.evidence
    absences = [absence.until for absence in evidence.processes[earlier.process].absences if absence.until]
    back = [until for until in absences if earlier.started_at < until <= earlier.ended_at]
    since = max([later.started_at, *back])
    allowed = evidence.lease + evidence.kill + 2 * _SLACK
    if earlier.ended_at - since > allowed + evidence.stubbornness:
        yield f"attempt {earlier.attempt} of run {earlier.run} went on for {_text(earlier.ended_at - since)} too long"


def lanes_hold(case: Case) -> Iterator[str]:
    """No more runs of a lane are under way than it has places, over all nodes."""
    for lane, limit in case.evidence.lanes.items():
        found = [
            execution
            for id, executions in case.executions.items()
            if id in case.rows and case.rows[id].lane == lane
            for execution in executions
        ]
        yield from _crowds(case, f"lane {lane!r}", limit, found)


def schedules_do_not_overlap(case: Case) -> Iterator[str]:
    """Runs of a schedule go one after the other, unless its overlap allows more."""
    alone = {one.name for one in case.evidence.expectations if not one.may_overlap}
    found: dict[str, list[Execution]] = defaultdict(list)
    for execution in case.evidence.executions:
        if execution.schedule in alone:
            found[execution.schedule].append(execution)
    for name, executions in found.items():
        yield from _crowds(case, f"schedule {name!r}", 1, executions)


def ends_are_final(case: Case) -> Iterator[str]:
    """What has ended stays as it ended."""
    yield from case.evidence.rewritten


def sessions_hold(case: Case) -> Iterator[str]:
    """The messages of a session start in order, one after the other, and none is lost."""
    for mailbox in case.evidence.mailboxes:
        found = [execution for id in mailbox.messages for execution in case.executions.get(id, ())]
        yield from _crowds(case, f"session {mailbox.key!r}", mailbox.max_concurrent, found)
        last: Execution | None = None
        for id in mailbox.messages:
            row, executions = case.rows.get(id), case.executions.get(id, ())
            if row is not None and not executions and row.state != "failed":
                yield f"message {id} of {mailbox.key!r} was never started: it is {row.state} ({row.reason})"
            if executions and last is not None and executions[0].started_at < last.started_at:
                yield f"message {id} of {mailbox.key!r} was started before message {last.run}, which came first"
            last = executions[0] if executions else last


def _crowds(case: Case, what: str, limit: int, executions: Sequence[Execution]) -> Iterator[str]:
    moments: list[tuple[Micros, int, int]] = []
    for execution in executions:
        until = case.at_work_until(execution)
        if until > execution.started_at:
            moments += [(execution.started_at, 1, execution.run), (until, -1, execution.run)]
    under_way = Counter[int]()
    for at, change, run in sorted(moments):
        under_way[run] += change
        if not under_way[run]:
            del under_way[run]
        if change > 0 and under_way.total() > limit:
            yield f"{what} has room for {limit}, and at {_time(at)} the runs {sorted(under_way)} were under way"


def catching_up_is_bounded(case: Case) -> Iterator[str]:
    """What was due while nobody could see it is run as `catch_up` says: not at all, or the latest."""
    away = _nobody_there(case)
    for expected in case.evidence.expectations:
        rows = case.by_schedule.get(expected.name, ())
        caught_up = [row for row in rows if row.trigger == "catch_up"]
        if expected.catch_up == "none" and caught_up:
            yield f"run {caught_up[0].id} of {expected.name!r} was caught up, though its catch_up is none"
        elif expected.catch_up == "latest":
            for since, until in away:
                if any(outage.overlaps(since, until) for outage in case.evidence.outages):
                    continue  # what was planned before the database let it be written was planned for then
                within = [row for row in caught_up if since <= row.due_at <= until]
                if len(within) > 1:
                    yield f"{len(within)} runs of {expected.name!r} were caught up after one downtime"


def _nobody_there(case: Case) -> list[tuple[Micros, Micros]]:
    """When no process was there that could have seen a due time."""
    evidence = case.evidence
    moments: list[tuple[Micros, int]] = []
    for life in evidence.processes.values():
        moments.append((life.started_at, 1))
        moments.append((life.ended_at or evidence.ended_at, -1))
        for absence in life.absences:
            moments += [(absence.since, -1), (absence.until or evidence.ended_at, 1)]
    there, since, found = 0, evidence.began_at, []
    for at, change in sorted(moments):
        if there == 0 and change > 0 and at > since:
            found.append((since, at))
        there += change
        if there == 0:
            since = at
    return found


def nothing_is_left_over(case: Case) -> Iterator[str]:
    """No process lives on, the database is sound, and the engine met no error that nothing explains."""
    evidence = case.evidence
    for process in evidence.left_over:
        yield f"{process} is still there"
    if evidence.damage is not None:
        yield f"the database is damaged: {evidence.damage}"
    yield from evidence.complaints


RULES: Sequence[Rule] = (
    due_times_have_one_row_each,
    ends_have_a_reason,
    success_was_seen,
    starts_are_counted,
    tokens_grow,
    nothing_starts_early_or_expired,
    nothing_was_made_up,
    attempts_do_not_overlap,
    lanes_hold,
    schedules_do_not_overlap,
    ends_are_final,
    sessions_hold,
    catching_up_is_bounded,
    nothing_is_left_over,
)


def judge(evidence: Evidence) -> list[Violation]:
    """All that does not agree."""
    case = Case(evidence)
    return [Violation(rule.__name__, what) for rule in RULES for what in rule(case)]


def _time(instant: Micros | None) -> str:
    return "never" if instant is None else f"{from_micros(instant):%Y-%m-%dT%H:%M:%S.%f}Z"


def _text(length: Micros) -> str:
    return f"{length / SECOND:.3f} s"
