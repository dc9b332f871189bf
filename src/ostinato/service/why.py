"""Why: the answer to "why didn't it run?", read from the ledger and the schedule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from ostinato.clock import SECOND, Clock, Micros, from_micros, to_micros
from ostinato.durations import duration_text
from ostinato.errors import NotFound
from ostinato.models.blocking import BlockedBy, BlockedCause
from ostinato.models.declared import ENABLED
from ostinato.models.node import Node
from ostinato.models.run import Run, RunFilter
from ostinato.models.schedule import Schedule, ScheduleState
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.models.work_kinds import unserved
from ostinato.plurals import counted, errors_text
from ostinato.service.blocking import Blocking
from ostinato.service.schedules.backfill import BACKFILL_KEYS
from ostinato.service.schedules.upstreams import relations_of, waits_for
from ostinato.stores.base import Store
from ostinato.timing.zones import check_aware, local_text

__all__ = ["Why", "WhyService"]

_LOOK_BACK = 20
"""How many runs of each trigger are looked at: a backfill puts old due times behind newer ones."""
_OF_A_RUN = (
    BlockedCause.RETRY,
    BlockedCause.DELAYED,
    BlockedCause.BUDGET,
    BlockedCause.GIVEN_UP,
    BlockedCause.NODE_LOST,
)
"""Causes whose sentence begins with the run that waits."""
_TRIGGERS = (Trigger.SCHEDULE, Trigger.CATCH_UP, Trigger.AFTER, Trigger.MANUAL, Trigger.CHECK_IN)


@dataclass(frozen=True, slots=True)
class Why:
    """An answer in words, with times in the zone of the settings, and the rows that it rests on."""

    schedule: str
    at: datetime | None
    answer: str
    due_at: datetime | None
    run: Run | None
    facts: tuple[str, ...]
    blocked_by: BlockedBy | None = None
    """What keeps the schedule from running now, followed to its root; null if nothing does."""


class WhyService:
    """Explains what became of a due time."""

    def __init__(self, store: Store, clock: Clock, zone: str, blocking: Blocking) -> None:
        self._store = store
        self._clock = clock
        self._zone = zone
        self._blocking = blocking

    async def why(self, name: str, at: datetime | None = None) -> Why:
        """What became of the due time at or just before `at`; without it, of the latest one. And what keeps it from
        running now."""
        if at is not None:
            check_aware(at, "at")
        schedule = await self._store.schedules.get_schedule(name)
        if schedule is None:
            raise NotFound(f"there is no schedule {name!r}; 'ostinato schedule ls' lists them")
        blocked = await self._blocking.of_schedule(schedule)
        found = await self._what_became(schedule, at)
        answer = found.answer if at is not None else f"{found.answer}{_still(found.run, blocked)}"
        return replace(found, answer=answer, blocked_by=blocked)

    async def _what_became(self, schedule: Schedule, at: datetime | None) -> Why:
        name = schedule.name
        schedule = await self._following(schedule)
        now = self._clock.now()
        nodes = [node for node in await self._store.nodes.list_nodes(now) if node.state != "lost"]
        given_up = [one.sentence for one in await self._store.runs.list_given_up() if one.schedule == name]
        moment = at if at is not None else from_micros(now)
        facts = (*_facts(schedule, from_micros(now), nodes, self._zone), *_left_out(schedule, moment), *given_up)
        # A time that somebody gives is meant to the second; "now" is meant as it is.
        until = to_micros(moment) + (SECOND - 1 if at is not None else 0)
        run = await self._run_at(schedule, until, is_asked=at is not None)
        due = _due_before(schedule, until)
        if run is not None and (due is None or _covers(run, due)):
            waits_for = await self._what_for(run)
            (told,) = await self._blocking.explained([run])
            run = told if run.ended else run
            answer = _of_run(run, waits_for, self._zone)
            return Why(name, at, answer, max(due or run.due_at, run.due_at), told, facts)
        if due is None or due < schedule.created_at:
            answer = _not_due(schedule, moment, from_micros(now), nodes, self._zone)
            return Why(name, at, answer, None, run, facts)
        answer = _no_row(schedule, due, from_micros(now), nodes, self._zone)
        return Why(name, at, answer, due, None, facts)

    async def _following(self, schedule: Schedule) -> Schedule:
        """The same; of one that runs after others, with what it waits for."""
        if not schedule.follows or schedule.state is not ScheduleState.ON or schedule.next_run_at is not None:
            return schedule
        related = await relations_of(self._store, schedule)
        until = ""
        if schedule.waits_until is not None and to_micros(schedule.waits_until) > self._clock.now():
            until = f"; what has ended counts until {local_text(self._zone, schedule.waits_until)}"
        return replace(schedule, next_run_reason=f"{waits_for(related.upstreams)}{until}")

    async def _run_at(self, schedule: Schedule, until: Micros, *, is_asked: bool) -> Run | None:
        """The latest run up to the instant. Unless somebody asks of this instant, one by hand only if there is no run
        of a due time."""
        found: list[Run] = []
        for trigger in _TRIGGERS:
            wanted = RunFilter(schedule_id=schedule.id, trigger=trigger, due_until=until, limit=_LOOK_BACK)
            found += await self._store.runs.list_runs(wanted)
        of_due_times = [run for run in found if not _is_by_hand(run)]
        considered = found if is_asked else of_due_times or found
        # A time is meant to the second: what was due in it goes before what somebody started in it.
        return max(
            considered,
            key=lambda run: (_last_due(run, until) // SECOND, not _is_by_hand(run), run.id),
            default=None,
        )

    async def _what_for(self, run: Run) -> str | None:
        """What a queued run waits for; one that is put off says that itself. Of a running one, that its node was
        lost."""
        if run.state is RunState.RUNNING:
            blocked = await self._blocking.of_run(run)
            return None if blocked is None else blocked.sentence
        if run.state is not RunState.QUEUED or (run.reason and to_micros(run.ready_at) > self._clock.now()):
            return None
        (told,) = await self._blocking.explained([replace(run, reason=None)])
        return told.reason


def _still(run: Run | None, blocked: BlockedBy | None) -> str:
    """Of a due time that was left out because of an earlier run: what that one waits for, if it still does."""
    if run is None or run.state is not RunState.SKIPPED or run.cause is not Cause.OVERLAP or blocked is None:
        return ""
    before = next((link.name for link in blocked.chain if link.kind == "run"), None)
    if before is None:
        return ""
    if blocked.cause is BlockedCause.RUN_ACTIVE and len(blocked.chain) == 1:
        return f" It still is: {blocked.sentence}."
    if blocked.cause in _OF_A_RUN and len([link for link in blocked.chain if link.kind == "run"]) == 1:
        return f" {blocked.sentence[0].upper()}{blocked.sentence[1:]}."
    return f" Run {before} still waits: {blocked.sentence}."


def _is_by_hand(run: Run) -> bool:
    """Whether somebody started it at this moment, instead of a due time; a backfill runs due times."""
    return run.trigger is Trigger.MANUAL and not run.key.startswith(BACKFILL_KEYS)


def _last_due(run: Run, until: Micros) -> Micros:
    """The last due time up to the instant that the run stands for."""
    return min(until, to_micros(run.last_due_at or run.due_at))


def _due_before(schedule: Schedule, until: Micros) -> datetime | None:
    """The last due time that the timing gives up to the instant."""
    if schedule.broken and not schedule.sentence:
        return None
    timing = schedule.anchored_timing
    if timing.after_finish is not None:
        return None
    return timing.previous(from_micros(until))


def _left_out(schedule: Schedule, moment: datetime) -> list[str]:
    """Whether the day is one that its timing leaves out: a holiday, a day of a calendar, one of its dates."""
    if schedule.broken and not schedule.sentence:
        return []
    reason = schedule.anchored_timing.left_out(moment)
    return [] if reason is None else [reason]


def _covers(run: Run, due: datetime) -> bool:
    return run.due_at <= due <= (run.last_due_at or run.due_at) or run.due_at >= due


def _of_run(run: Run, waits_for: str | None, zone: str) -> str:
    when = f"run {run.id}, {'by hand at' if _is_by_hand(run) else 'due'} {local_text(zone, run.due_at)}"
    if run.count > 1 and run.last_due_at is not None:
        when += f" and {run.count - 1} more until {local_text(zone, run.last_due_at)}"
    match run.state:
        case RunState.SUCCEEDED:
            errors = f" {errors_text(run.reason, run.totals)}" if run.cause is Cause.ERRORS else ""
            return f"It ran: {when}, succeeded{errors} in {_took(run)}."
        case RunState.RUNNING if waits_for is not None:
            return f"It was started: {when}, attempt {run.attempt}; {waits_for}."
        case RunState.RUNNING:
            return f"It is running: {when}, attempt {run.attempt} on node {run.node}."
        case RunState.QUEUED:
            return f"It is queued: {'; '.join(part for part in (when, run.reason, waits_for) if part)}."
        case RunState.FAILED:
            return f"It ran and failed: {when}; {run.reason}."
        case _:
            begun = run.state in (RunState.CANCELLED, RunState.SUPERSEDED) and run.started_at is not None
            return f"{'It was started' if begun else 'It did not run'}: {when} was {run.state}; {run.reason}."


def _took(run: Run) -> str:
    if run.started_at is None or run.finished_at is None:
        return "no time"
    return f"{(run.finished_at - run.started_at).total_seconds():.3f} s"


def _not_due(schedule: Schedule, moment: datetime, now: datetime, nodes: list[Node], zone: str) -> str:
    due_next = f"is not due: {_why_not_due(schedule, zone)}"
    if schedule.next_run_at is not None:
        due_next = _due_next(schedule.next_run_at, now, nodes, zone)
    was_not_due = f"It was not due at {local_text(zone, moment)}"
    if moment < schedule.created_at:
        return f"{was_not_due}: the schedule was created at {local_text(zone, schedule.created_at)}. It {due_next}."
    if schedule.next_run_at is None:
        return f"It {due_next}."
    return f"{was_not_due}: {schedule.sentence} It {due_next}."


def _why_not_due(schedule: Schedule, zone: str) -> str:
    """Its reason; of one that is off, also who switched it, if code declares it."""
    who = next((change.sentence(zone) for change in schedule.changes if change.field == ENABLED), None)
    return f"{schedule.next_run_reason}" if who is None or schedule.enabled else f"{schedule.next_run_reason}; {who}"


def _due_next(due: datetime, now: datetime, nodes: list[Node], zone: str) -> str:
    """The next due time; one that has passed while nobody was there is told as what it is."""
    if due <= now and not nodes:
        return f"has been due since {local_text(zone, due)}: no engine is running to start it"
    return f"is due next at {local_text(zone, due)}"


def _no_row(schedule: Schedule, due: datetime, now: datetime, nodes: list[Node], zone: str) -> str:
    when = local_text(zone, due)
    missing = "It did not run" if due <= now else "It will not run"
    if schedule.next_run_at is None or _is_held_at(schedule, due):
        return f"{missing} at {when}: {_why_not_due(schedule, zone)}."
    if now < due and schedule.next_run_at <= due:
        return f"It is due at {when}, which is yet to come."
    if schedule.next_run_at <= due and not nodes:
        return f"It was due at {when}, but no engine is running."
    if schedule.next_run_at <= due:
        return f"It was due at {when} and is about to be recorded."
    return (
        f"There is no row for {when}: the schedule was off or had another timing then, or the row was "
        f"removed by its keep policy. It {_due_next(schedule.next_run_at, now, nodes, zone)}."
    )


def _is_held_at(schedule: Schedule, due: datetime) -> bool:
    """Whether it is one of the due times that the schedule leaves out while it is paused."""
    if schedule.paused_since is None or schedule.next_run_at is None:
        return False
    return schedule.paused_since <= due < schedule.next_run_at


def _facts(schedule: Schedule, now: datetime, nodes: list[Node], zone: str) -> tuple[str, ...]:
    facts = [schedule.sentence or f"timing {schedule.timing!r}"]
    fresh = _freshness(schedule, now, zone)
    if fresh is not None and fresh.startswith("late"):
        facts.insert(0, fresh)
    if schedule.next_run_reason is not None:
        facts.append(schedule.next_run_reason)
    if schedule.next_run_at is not None:
        due_next = _due_next(schedule.next_run_at, now, nodes, zone)
        facts.append(due_next.removeprefix("is ").removeprefix("has been "))
    if not nodes:
        facts.append("no engine is running on this database")
    elif (needs := schedule.work.needs) is not None and not any(needs in node.tasks for node in nodes):
        facts.append(unserved(needs))
    if fresh is not None and fresh not in facts:
        facts.append(fresh)
    facts += [change.sentence(zone) for change in schedule.changes]
    if schedule.failures:
        many, limit = counted(schedule.failures, "scheduled run"), schedule.policy.break_after
        facts.append(f"{many} failed in a row" + ("" if limit is None else f" (break_after {limit})"))
    return tuple(facts)


def _freshness(schedule: Schedule, now: datetime, zone: str) -> str | None:
    """Whether it has succeeded in time, if its policy asks for that."""
    if schedule.policy.fresh is None:
        return None
    asked = f"(fresh is {duration_text(schedule.policy.fresh)})"
    if schedule.late or (schedule.fresh_until is not None and schedule.fresh_until <= now):
        return f"late: it has not succeeded in time {asked}"
    return f"fresh until {local_text(zone, schedule.fresh_until or now)} {asked}"
