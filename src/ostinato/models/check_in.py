"""Check-ins, pure: machines that do their work themselves tell of it, and a due time without a word of them is late.

A due time of such a schedule is a queued run that no node claims. A ping starts it or ends it; `engine/freshness.py`
ends what is late. `stores/sql/check_ins.py` carries it out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from ostinato.clock import SECOND, Micros, from_micros, micros_of
from ostinato.durations import duration_text, parse_duration
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.incident import LATE, Notice
from ostinato.models.notification import NoticeKind
from ostinato.models.output import OutputPart, stamp
from ostinato.models.policy import Policy, load_policy
from ostinato.models.run import Ending, Finish, NewRun
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.models.work import CheckIn, read_work
from ostinato.timing.zones import local_text

__all__ = [
    "LANE",
    "AwaitedRun",
    "CheckInSchedule",
    "KeyPurpose",
    "Ping",
    "PingSignal",
    "awaiting",
    "ended",
    "expected_for",
    "finish_of",
    "unasked_run",
]

LANE = CheckIn.kind
"""What stands for a lane in their rows: none has this name, so they take nobody's place."""
EARLY: Micros = 60 * SECOND
"""A ping so shortly before a due time is for it: clocks differ."""


class KeyPurpose(StrEnum):
    """What a secret key of a schedule is good for."""

    PING = "ping"
    BADGE = "badge"


class PingSignal(StrEnum):
    """What a machine says."""

    START = "start"
    SUCCESS = "success"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Ping:
    """One call of a ping address."""

    signal: PingSignal
    status: int | None = None
    """The exit status, if that was told."""
    output: bytes = b""
    """The end of what was printed."""
    cut: int = 0
    """How many bytes came before that, and how many lines."""
    cut_lines: int = 0


class CheckInSchedule(NamedTuple):
    """The schedule that a ping is for."""

    id: ScheduleId
    name: str
    kind: str
    work: str
    policy: str
    project: str | None
    next_at: Micros | None


class AwaitedRun(NamedTuple):
    """A run that a check-in is awaited for: to start it, or, once it has, to end it."""

    id: RunId
    token: int
    state: RunState
    attempt: int
    due_at: Micros
    started_at: Micros | None
    work: str
    policy: str
    project: str | None
    schedule_id: ScheduleId
    schedule: str
    zone: str

    @property
    def deadline(self) -> Micros:
        """When it is late: `late_after` from its due time; once it has started, its timeout, or as long again."""
        waits = parse_duration(expected_for(self.work), field="late_after")
        if self.started_at is None:
            return self.due_at + micros_of(waits)
        return self.started_at + micros_of(load_policy(self.policy).timeout or waits)

    @property
    def ending(self) -> Ending:
        """What becomes of it then."""
        allowed = expected_for(self.work)
        if self.started_at is None:
            due = local_text(self.zone, from_micros(self.due_at))
            return Ending(Cause.LATE, f"did not check in within {allowed} of its due time, {due}")
        timeout = load_policy(self.policy).timeout
        allowed = allowed if timeout is None else duration_text(timeout)
        began = local_text(self.zone, from_micros(self.started_at))
        return Ending(Cause.TIMED_OUT, f"checked in at its start, {began}, and not again within {allowed}")

    def notice(self, now: Micros) -> Notice:
        """What people are told of one that did not start in time."""
        return Notice(
            NoticeKind.LATE,
            self.schedule,
            now,
            cause=LATE,
            reason=self.ending.reason,
            run=self.id,
            schedule=self.schedule,
            schedule_id=self.schedule_id,
            project=self.project,
            due_at=self.due_at,
            notify=load_policy(self.policy).notify,
        )


def expected_for(work: str) -> str:
    """How long after its due time it may check in."""
    found = read_work(work)
    assert isinstance(found, CheckIn)
    return found.late_after


def awaiting(run: NewRun) -> NewRun:
    """The run of a due time, or of an unasked ping, as it waits: in no lane and no session, so no node takes it."""
    return replace(run, lane=LANE, waiting=True, session=None, mode=None, expires_at=None)


def unasked_run(schedule: CheckInSchedule, now: Micros) -> NewRun:
    """The run of a ping that nothing waits for: that of the next due time, if the machine's clock is ahead of ours."""
    early = min(EARLY, micros_of(parse_duration(expected_for(schedule.work), field="late_after")))
    is_next = schedule.next_at is not None and now <= schedule.next_at <= now + early
    due_at = schedule.next_at if is_next and schedule.next_at is not None else now
    return awaiting(
        NewRun(
            kind=schedule.kind,
            task=None,
            work=schedule.work,
            policy=schedule.policy,
            trigger=Trigger.SCHEDULE if is_next else Trigger.CHECK_IN,
            due_at=due_at,
            ready_at=due_at,
            lane=LANE,
            schedule_id=schedule.id,
            project=schedule.project,
        )
    )


def finish_of(run: AwaitedRun, ping: Ping, now: Micros) -> Finish:
    """The end that a ping tells. No breaker counts it: to switch off the schedule would end the watching, not the
    work."""
    policy = load_policy(run.policy)
    succeeded = ping.signal is PingSignal.SUCCESS
    finish = ended(run, RunState.SUCCEEDED if succeeded else RunState.FAILED, policy, now)
    finish.output = _output(ping, now)
    if succeeded:
        finish.fresh = None if policy.fresh is None else micros_of(policy.fresh)
    else:
        finish.cause = Cause.EXIT_STATUS
        finish.reason = "it said that it failed" if ping.status is None else f"it ended with status {ping.status}"
    return finish


def ended(run: AwaitedRun, state: RunState, policy: Policy, now: Micros) -> Finish:
    """An end of it, which always may concern people: there are few of them."""
    return Finish(
        id=run.id,
        token=run.token,
        state=state,
        started_at=run.started_at,
        finished_at=now,
        schedule_id=run.schedule_id,
        schedule=run.schedule,
        attempt=run.attempt,
        due_at=run.due_at,
        name=run.schedule,
        project=run.project,
        notify=policy.notify,
        tells=True,
    )


def _output(ping: Ping, now: Micros) -> tuple[OutputPart, ...]:
    text = ping.output.decode("utf-8", "backslashreplace").replace("\0", "\\x00").removesuffix("\n")
    if not text:
        return ()
    first, *others = text.split("\n")
    lines = [stamp(now) + first, *(f" {line}" for line in others)]
    return (OutputPart("\n".join(lines) + "\n", ping.cut_lines, ping.cut, number=1),)
