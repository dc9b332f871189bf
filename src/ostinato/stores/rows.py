"""Rows to models, the same for every store: the SELECT lists below are what each store fills.

A row that cannot be loaded becomes a model that says so; nothing here deletes. What no model can say is left out of a
list (`load_all`) and not in its way. quarantine.py sets such rows aside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from ostinato.clock import Micros, from_micros
from ostinato.errors import NotLoadable
from ostinato.logs import get_logger
from ostinato.models.budget import MICRO
from ostinato.models.declared import FieldChange, declared_fields, field_changes, load_declared, load_overrides
from ostinato.models.event import Event, EventKind
from ostinato.models.ids import NodeId, RunId, ScheduleId
from ostinato.models.lane import Lane, Rate
from ostinato.models.nesting import MOST_SHOWN_DEPTH, is_deeper
from ostinato.models.node import Node
from ostinato.models.output import OutputPart
from ostinato.models.policy import DEFAULT as DEFAULT_POLICY
from ostinato.models.policy import Policy, load_policy
from ostinato.models.project import Project, ProjectContext
from ostinato.models.run import Attempt, ClaimedRun, Ending, Progress, Run
from ostinato.models.schedule import DueSchedule, Schedule
from ostinato.models.session import Session
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.models.work import Unreadable, load_work
from ostinato.plurals import whole
from ostinato.stores.rules import UNREADABLE
from ostinato.stores.sentences import sentence_of, why_not_due
from ostinato.timing import parse_timing
from ostinato.timing.calendar_days import calendars_in, folded
from ostinato.timing.zones import local_text
from ostinato.trace_context import trace_id_of

__all__ = [
    "ATTEMPT_COLUMNS",
    "CLAIM_COLUMNS",
    "DUE_COLUMNS",
    "EVENT_COLUMNS",
    "NODE_COLUMNS",
    "PROJECT_COLUMNS",
    "RUN_COLUMNS",
    "SCHEDULE_COLUMNS",
    "SCHEDULE_OF",
    "TAIL",
    "begun_at",
    "known_cause",
    "known_state",
    "known_words",
    "load_all",
    "load_attempt",
    "load_claimed",
    "load_due",
    "load_ending",
    "load_event",
    "load_lane",
    "load_node",
    "load_part",
    "load_progress",
    "load_project",
    "load_project_context",
    "load_result",
    "load_run",
    "load_schedule",
    "load_session",
    "load_statistics",
    "load_totals",
    "moment",
    "shown_canceller",
]

log = get_logger("ostinato.stores")

Row = Sequence[Any]
T = TypeVar("T")

SCHEDULE_OF = "coalesce(s.name,r.schedule_name)"  # of one that is no more, too; brief.py takes columns apart at spaces
RUN_COLUMNS = (
    f"r.id, {SCHEDULE_OF}, r.task, r.state, r.cause, r.reason, r.trigger, r.due_at, r.last_due_at, r.count, "
    "r.ready_at, r.started_at, r.finished_at, r.attempt, r.totals, r.progress, r.result, r.error, r.lane, r.priority, "
    "r.session, r.key, r.node, r.work, r.project, r.schedule_id, s.zone, r.waiting, r.cancel, r.trace, r.started_by, "
    "r.cancelled_by"
)
ATTEMPT_COLUMNS = "a.run_id, a.started_at, a.finished_at, a.state, a.error, a.node"
SCHEDULE_COLUMNS = (
    "s.id, s.name, s.timing, s.zone, s.work, s.policy, s.project, s.owner, s.enabled, s.broken, s.orphaned, s.note, "
    "s.next_at, s.after_finish, s.remaining, s.failures, s.version, s.created_at, s.updated_at, s.anchor_at, "
    "s.paused_since, s.paused_reason, s.off_note, s.task, s.fresh_at, s.origin, s.declared, s.overrides, s.made_by, "
    "s.follows, s.paused_cause, s.off_by, s.off_at"
)
DUE_COLUMNS = (
    "s.id, s.name, s.timing, s.zone, s.work, s.kind, s.task, s.policy, s.anchor_at, s.next_at, s.remaining, s.version, "
    "s.project, s.paused_since, s.paused_reason, s.paused_cause, s.follows, s.broken"
)
CLAIM_COLUMNS = (
    "r.id, r.token, r.kind, r.task, r.work, r.policy, r.trigger, r.due_at, r.ready_at, r.attempt, r.schedule_id, "
    "s.name, r.session, r.key, r.count, r.node, r.started_at, r.project, s.zone, "
    "r.totals, r.trace"
)
PROJECT_COLUMNS = "p.name, p.folder, p.env, (SELECT count(*) FROM schedules WHERE project = p.name), p.created_at"
EVENT_COLUMNS = "id, at, kind, session, run_id, data"
NODE_COLUMNS = (
    "id, host, pid, slots, running, draining, tasks, started_at, seen_at, lease_until, lost_at, services, drain"
)

TAIL = 2**31 - 1
"""The number of the part of a run's output that is replaced while it runs."""

_decode_env = msgspec.json.Decoder(dict[str, str]).decode
_decode_totals = msgspec.json.Decoder(dict[str, float]).decode
_decode_tasks = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_services = msgspec.json.Decoder(dict[str, dict[str, Any]]).decode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode
_decode_progress = msgspec.json.Decoder(Progress).decode
_decode_json = msgspec.json.Decoder().decode

_STATES = {state.value: state for state in RunState}
_TRIGGERS = {trigger.value: trigger for trigger in Trigger}
_CAUSES: dict[str | None, Cause | None] = {None: None, **{cause.value: cause for cause in Cause}}
"""Twice as fast as the enums' own way, and lists have thousands."""
_TOLD = 1_000
_told: set[tuple[str, str]] = set()
"""What was logged: each row once, and no more than so many."""


def moment(instant: Micros | None) -> Any:
    """A time that may not be there."""
    return None if instant is None else from_micros(instant)


def _decoded(decode: Callable[[str], T], text: str | None, otherwise: T) -> T:
    """A document of a row; one that cannot be read must not hide the row, nor the others in a list."""
    if text is None:
        return otherwise
    try:
        return decode(text)
    except (msgspec.DecodeError, RecursionError):
        return otherwise


def _decode_result(text: str) -> Any:
    if is_deeper(text.encode(), MOST_SHOWN_DEPTH):
        return "(nested too deep to be shown)"
    return _decode_json(text)


def load_all(load: Callable[[Row], T], rows: Iterable[Row], what: str | None = None) -> list[T]:
    """Every row that can be loaded. Only if one cannot are they tried one by one; it is called `what` in the log."""
    given = list(rows)
    try:
        return [load(row) for row in given]
    except Exception:  # whatever is wrong with one row, the others are shown
        called = what or load.__name__.removeprefix("load_")
        return [loaded for row in given for loaded in _load_one(load, row, called)]


def _load_one(load: Callable[[Row], T], row: Row, what: str) -> list[T]:
    try:
        return [load(row)]
    except Exception as error:
        told = (what, str(row[0]))
        if told not in _told and len(_told) < _TOLD:
            _told.add(told)
            log.error("%s %r cannot be read and is left out: %s: %s", what, row[0], type(error).__name__, error)
        return []


def load_result(text: str | None) -> Any:
    """What a run returned."""
    return _decoded(_decode_result, text, None)


def known_state(state: str) -> RunState:
    """A state; what nobody knows did not succeed."""
    return _STATES.get(state, RunState.FAILED)


def known_words(state: str, trigger: str, reason: str | None) -> tuple[RunState, Trigger, str | None]:
    """State, trigger and reason of a run. One whose words nobody knows is shown as what quarantine makes of it."""
    try:
        return _STATES[state], _TRIGGERS[trigger], reason
    except KeyError:
        word = "trigger" if state in _STATES else "state"
        return known_state(state), _TRIGGERS.get(trigger, Trigger.MANUAL), f"{UNREADABLE}its {word} is unknown"


def known_cause(cause: str | None) -> Cause | None:
    """A cause; one that nobody knows comes from another program."""
    return _CAUSES.get(cause, Cause.NOT_LOADABLE)


def load_attempt(row: Row) -> Attempt:
    """An earlier attempt, from ATTEMPT_COLUMNS."""
    _, started_at, finished_at, state, error, node = row
    return Attempt(from_micros(started_at), from_micros(finished_at), state, error, node)


def load_totals(text: str | None) -> dict[str, float]:
    """What a run has counted."""
    if text is None:
        return {}
    counted: dict[str, float] = _decoded(_decode_totals, text, {})
    return {name: whole(value) for name, value in counted.items()}


def load_progress(text: str | None) -> Progress | None:
    """How far a run says it is."""
    found: Progress | None = _decoded(_decode_progress, text, None)
    if found is None:
        return None
    return Progress(whole(found.done), None if found.total is None else whole(found.total), found.text)


def load_run(row: Row, earlier: Sequence[Attempt] = ()) -> Run:
    """A run from RUN_COLUMNS; the attempt under way or last ended is in the row itself."""
    # fmt: off
    (id, schedule, task, state, cause, reason, trigger, due_at, last_due_at, count, ready_at, started_at, finished_at,
     attempt, totals, progress, result, error, lane, priority, session, key, node, work, project,
     schedule_id, zone, waiting, cancel, trace, started_by, cancelled_by) = row
    # fmt: on
    state, trigger, reason = known_words(state, trigger, reason)
    started_at = begun_at(state, started_at, ready_at, node)
    attempts = tuple(earlier)
    if started_at is not None and state is not RunState.QUEUED:
        why = error or (reason if state is RunState.FAILED else None)
        attempts += (Attempt(from_micros(started_at), moment(finished_at), state, why, node),)
    return Run(
        id=RunId(id),
        schedule=schedule,
        task=task,
        state=state,
        cause=known_cause(cause),
        reason=reason,
        trigger=trigger,
        due_at=from_micros(due_at),
        last_due_at=moment(last_due_at),
        count=count,
        ready_at=from_micros(ready_at),
        started_at=moment(started_at),
        finished_at=moment(finished_at),
        attempt=attempt,
        attempts=attempts,
        totals=load_totals(totals),
        progress=load_progress(progress),
        result=load_result(result),
        error=error,
        lane=lane,
        priority=priority,
        session=session,
        key=key or f"run-{id}",
        node=node,
        work=load_work(work, task),
        project=project,
        schedule_id=None if schedule_id is None else ScheduleId(schedule_id),
        zone=zone,
        waiting=bool(waiting),
        cancelling=cancel if state is RunState.RUNNING else None,
        trace_id=trace_id_of(trace),
        started_by=started_by,
        cancelled_by=shown_canceller(state, cancelled_by),
    )


def begun_at(state: str, started_at: Micros | None, ready_at: Micros, node: str | None) -> Micros | None:
    """When a run began, or will. One that a node claims ahead of its time has the time of the claim until it ends."""
    if started_at is None or state != RunState.RUNNING or node is None:
        return started_at
    return max(started_at, ready_at)


def shown_canceller(state: str, cancelled_by: str | None) -> str | None:
    """Who asked for the end of a run, unless it came to another one before."""
    return cancelled_by if state in (RunState.RUNNING, RunState.CANCELLED) else None


def load_ending(cause: str | None, reason: str) -> Ending:
    """Why a run that is under way is to stop: its columns cause and cancel."""
    return Ending(known_cause(cause) or Cause.CANCELLED, reason)


def load_claimed(row: Row) -> ClaimedRun:
    """A claimed run, from CLAIM_COLUMNS."""
    return ClaimedRun(*row)


def load_project(row: Row) -> Project:
    """A project, from PROJECT_COLUMNS."""
    name, folder, env, schedules, created_at = row
    return Project(name, folder, _decoded(_decode_env, env, {}), schedules, from_micros(created_at))


def load_project_context(row: Row) -> ProjectContext:
    """Where work runs, and the conversation that it continues: folder, env, id of the conversation."""
    folder, env, conversation = row
    try:
        return ProjectContext(folder, {} if env is None else _decode_env(env), conversation)
    except msgspec.DecodeError as error:
        raise NotLoadable(f"the variables of its project are not readable: {error}") from error


def load_part(row: Row) -> OutputPart:
    """A part of a run's output: its number, text, what was cut before it."""
    part, text, cut_lines, cut = row
    return OutputPart(text, cut_lines, cut, part == TAIL)


def load_lane(row: Row) -> Lane:
    """A lane and how full it is: name, limit, paused, note, by whom and when, rate, its bucket, running, queued, oldest
    ready."""
    name, limit, paused, note, by, at, rate_count, rate_per, rate_from, used, queued, oldest_at = row
    rate = None
    if rate_count is not None:
        if rate_count > 0 and rate_per is not None and rate_per > 0:
            rate = Rate(rate_count, rate_per).text
        else:
            # What quarantine makes of it.
            paused, note = True, f"{UNREADABLE}its rate is not a rate"
    return Lane(name, limit, bool(paused), note, rate, used, queued, moment(oldest_at), rate_from, by, moment(at))


def load_session(row: Row) -> Session:
    """A session and what is in it: key, settings, cutoff, last message, usage, running, queued, oldest queued."""
    key, max_concurrent, throttled, cutoff_at, sent_at, cost, *usage, running, queued, oldest_at = row
    tokens_in, tokens_out, turns, context_used, context_window = usage
    return Session(
        key=key,
        running=running,
        queued=queued,
        oldest_at=moment(oldest_at),
        max_concurrent=max_concurrent,
        throttled=bool(throttled),
        stopped_at=moment(cutoff_at),
        sent_at=from_micros(sent_at),
        cost_usd=cost / MICRO,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        turns=turns,
        context_used=context_used,
        context_window=context_window,
    )


def load_event(row: Row) -> Event:
    """An event, from EVENT_COLUMNS."""
    id, at, kind, session, run_id, data = row
    known: dict[str, Any] = _decoded(_decode_object, data, {})
    said = {name: value for name, value in known.items() if value is not None}
    return Event(id, from_micros(at), EventKind(kind), session, None if run_id is None else RunId(run_id), said)


def load_due(
    row: Row, active: tuple[RunId, ...], waiting: tuple[RunId, ...], given_up: tuple[RunId, ...] = ()
) -> DueSchedule:
    """A due schedule from DUE_COLUMNS, and what is active of it."""
    values: Any = (*row[:-1], active, waiting, given_up, row[-1])
    return DueSchedule(*values)


def load_schedule(row: Row, last_run: Run | None, active: bool) -> Schedule:
    """A schedule from SCHEDULE_COLUMNS; what cannot be read is told in `broken`."""
    # fmt: off
    (id, name, timing, zone, work_text, policy_text, project, owner, enabled, broken, orphaned, note, next_at,
     after_finish, remaining, failures, version, created_at, updated_at, anchor_at, paused_since, paused_reason,
     off_note, task, fresh_at, origin, declared_text, overrides_text, made_by, follows, paused_cause, off_by,
     off_at) = row
    # fmt: on
    work = load_work(work_text, task)
    sentence, unreadable, wants_name, gathers = sentence_of(timing, zone)
    if wants_name:
        sentence = parse_timing(timing, tz=zone, name=name, stored=True).explain()
    policy, policy_error = _policy(policy_text)
    broken = broken or unreadable or policy_error
    if isinstance(work, Unreadable) and work.needs is None:  # else another node may read it
        broken = broken or work.reason
    runs_next = next_at if enabled and not broken and not orphaned else None
    waits_until = moment(runs_next) if follows and gathers else None
    # For what follows others it is when the engine looks at it: nobody knows when those end.
    runs_next = None if follows else runs_next
    probe_at = moment(next_at) if broken and not enabled and not orphaned else None
    reason = None
    if runs_next is None:
        is_counting = after_finish is not None and active
        waits_for = sentence[:1].lower() + sentence[1:].removesuffix(".") if follows else ""
        waits_for += "" if waits_until is None else f"; what has ended counts until {local_text(zone, waits_until)}"
        reason = why_not_due(enabled, broken, orphaned, off_note, is_counting, remaining, waits_for)
        if probe_at is not None:
            reason += f"; probes at {local_text(zone, probe_at)}"
    elif paused_since is not None:
        reason = f"paused: {paused_reason}"
    declared = load_declared(declared_text) if owner == "code" else None
    overrides = load_overrides(overrides_text)
    changes: tuple[FieldChange, ...] = ()
    if declared is not None and not orphaned:  # of those its code says nothing any more
        now = declared_fields(timing, zone, work_text, policy_text, project, enabled=bool(enabled))
        changes = field_changes(declared, overrides, now)
    return Schedule(
        id=ScheduleId(id),
        name=name,
        timing=folded(timing),
        zone=zone,
        sentence=sentence,
        work=work,
        policy=policy,
        project=project,
        owner=owner,
        made_by=made_by,
        enabled=bool(enabled),
        broken=broken,
        orphaned=bool(orphaned),
        note=note,
        off_note=off_note,
        off_by=off_by,
        off_at=moment(off_at),
        paused_cause=None if paused_since is None else known_cause(paused_cause),
        next_run_at=moment(runs_next),
        next_run_reason=reason,
        paused_since=moment(paused_since),
        remaining=remaining,
        failures=failures,
        last_run=last_run,
        version=version,
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        anchor_at=from_micros(anchor_at),
        active=active,
        probe_at=probe_at,
        fresh_until=moment(fresh_at) if policy.fresh is not None else None,
        origin=origin,
        declared=declared,
        overrides=overrides,
        changes=changes,
        follows=bool(follows),
        resolved_timing=timing if calendars_in(timing) else None,
        waits_until=waits_until,
    )


def _policy(text: str) -> tuple[Policy, str | None]:
    try:
        return load_policy(text), None
    except NotLoadable as error:
        return DEFAULT_POLICY, str(error)


def load_node(row: Row, now: Micros) -> Node:
    """A node from NODE_COLUMNS."""
    (id, host, pid, slots, running, draining, tasks, started_at, seen_at, lease_until, lost_at, services, drain) = row
    state = "draining" if draining else "alive"
    if lost_at is not None or lease_until < now:
        state = "lost"
    return Node(
        id=NodeId(id),
        host=host,
        pid=pid,
        state=state,
        slots=slots,
        running=running,
        tasks=_decoded(_decode_tasks, tasks, ()),
        started_at=from_micros(started_at),
        seen_at=from_micros(seen_at),
        services=_decoded(_decode_services, services, {}),
        drain=bool(drain),
    )


def load_statistics(text: str) -> dict[str, Any]:
    """What a node has counted."""
    return _decoded(_decode_object, text, {})
