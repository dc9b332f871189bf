"""Runs: enqueue, get, list, cancel, retry, wait, output."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple, Unpack

from ostinato.clock import Clock, Micros, micros_of, to_micros
from ostinato.durations import Duration, duration_text, parse_duration
from ostinato.errors import (
    Conflict,
    Draining,
    InvalidInput,
    MessageStale,
    NotFound,
    NotRunning,
    WaitTimeout,
)
from ostinato.listeners import Listeners
from ostinato.models.blocking import BlockedBy
from ostinato.models.given_up import GivenUp
from ostinato.models.ids import RunId, RunIds, RunLike, run_id
from ostinato.models.output import OutputLine, OutputPart, lines_to_tell, output_lines, output_text
from ostinato.models.policy import Policy, PolicyOptions, check_key, make_policy, policy_text
from ostinato.models.run import Ending, NewRun, Run, StoredWork, queued_run
from ostinato.models.session import MESSAGE_KEYS, Delivery, Message, Mode, Sent, with_turn
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.models.upstream import RunRelations
from ostinato.models.work import Unreadable, Work, why_not_by_hand, work_text
from ostinato.models.work_kinds import counted_as
from ostinato.models.work_values import GivenCall
from ostinato.plurals import counted
from ostinato.service.audit import asked_by, audited, changed_by
from ostinato.service.blocking import Blocking
from ostinato.service.busy_keys import when_key_is_free
from ostinato.service.cancelled import tell_cancelled
from ostinato.service.known_tasks import KnownTasks
from ostinato.service.lanes import LaneService
from ostinato.service.lent_slots import LentSlot
from ostinato.service.live.lines import Output
from ostinato.service.notifications import NotificationService
from ostinato.service.pages import Page, check_limit
from ostinato.service.projects import ProjectService
from ostinato.service.results import check_succeeded
from ostinato.service.run_lists import RunsWanted, listed_runs, page_of_runs, run_filter
from ostinato.service.schedules.backfill import BACKFILL_KEYS
from ostinato.service.schedules.drafts import Code, WorkLike, policy_for_enqueue, resolve_work, stored_work
from ostinato.stores.base import Store
from ostinato.timing.zones import check_aware, local_text
from ostinato.trace_context import current_trace
from ostinato.tracing import sending

__all__ = [
    "EnqueueSpec",
    "Enqueued",
    "LinesPage",
    "RunService",
    "check_run_key",
    "check_scope",
    "check_succeeded",
    "fresh",
    "make_runs",
]

_FIRST_LOOK, _LONGEST_LOOK = 0.005, 0.1
_LARGEST_ID = 2**63 - 1
"""That a database can be asked for."""
_LONGEST_FOLLOW = 0.25
"""Between two looks at output: a node writes what is new twice a second."""
_UNSERVED = (
    "nobody executes it: no engine is started in this process, which alone can see a database in memory; "
    "call app.start() first, or in tests move the clock and drain(app)"
)
_TAKEN_KEYS = {MESSAGE_KEYS: "messages of sessions", BACKFILL_KEYS: "backfills"}
"""How the keys begin that nobody may give, and whose they are."""


@dataclass(frozen=True, slots=True)
class EnqueueSpec:
    """How calls of a task are enqueued: what `.using(…)` sets."""

    task: str
    options: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    scope: str | None = None
    """Where the key is unique, if that is not this task alone."""
    delay: Duration | None = None
    at: datetime | None = None


class Enqueued(NamedTuple):
    """A run that was asked for."""

    id: RunId
    is_new: bool
    """False if the key was active already: it is the run that has it."""


@dataclass(frozen=True, slots=True)
class LinesPage:
    """Some lines of a run. If there are no more and it has ended, these were the last."""

    lines: Sequence[OutputLine]
    more: bool
    ended: bool


class RunService:
    """What can be done with runs."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        lanes: LaneService,
        projects: ProjectService,
        notifications: NotificationService,
        code: Code,
        known: KnownTasks,
        draining: Callable[[], bool],
        unserved: Callable[[], bool],
        listeners: Listeners,
        key_free_seconds: float,
        blocking: Blocking,
    ) -> None:
        self._listeners = listeners
        self._key_free_seconds = key_free_seconds
        self._store = store
        self._clock = clock
        self._lanes = lanes
        self._projects = projects
        self._notifications = notifications
        self._code = code
        self._known = known
        self._draining = draining
        self._unserved = unserved
        self._blocking = blocking
        self._lent: set[tuple[str | None, str]] = set()

    @audited("run.enqueue", about=lambda given, _: given["spec"].task, answers="runs")
    async def enqueue(self, spec: EnqueueSpec, calls: Iterable[GivenCall]) -> RunIds:
        """One run for each call, all in one transaction. For a key that is already active, its run is returned."""
        works = await self._code.stored_calls(spec.task, calls)
        with sending("enqueue", spec.task, len(works)):
            return await self._enqueue(spec, works, await self._policy_of(spec))

    async def draft_calls(self, spec: EnqueueSpec, calls: Iterable[GivenCall]) -> Sequence[NewRun]:
        """The runs that `enqueue` would queue, for whoever inserts them in a transaction of their own."""
        works = await self._code.stored_calls(spec.task, calls)
        return self._new_runs(spec, works, await self._policy_of(spec))

    async def _policy_of(self, spec: EnqueueSpec) -> Policy:
        policy = await self._lanes.settle(policy_for_enqueue(spec.options))
        if policy.notify:
            await self._check_notify(policy, self._code.options_of(spec.task))
        return policy

    @audited("run.enqueue", about=lambda _, run: run.id)
    async def enqueue_work(
        self,
        /,
        work: WorkLike,
        *,
        project: str | None = None,
        key: str | None = None,
        scope: str | None = None,
        delay: Duration | None = None,
        at: datetime | None = None,
        **policy: Unpack[PolicyOptions],
    ) -> Enqueued:
        """Run this work soon, on any node that can: a task, or work of any kind."""
        _check_budget(policy)
        found, options = resolve_work(await stored_work(work, self._code), self._code)
        spec = EnqueueSpec(found.needs or "", policy, key, scope, delay, at)
        settled = await self._policy(found, options, policy, project)
        if settled.session is not None:
            await self._known.check(found.needs)
        with sending("enqueue", counted_as(found.needs, None, found.kind)):
            ids = await self._enqueue(spec, [found], settled, project)
        return Enqueued(ids[0], ids[0] not in ids.known)

    @audited("run.exec", about=lambda _, run: counted_as(run.task, None, run.kind))
    async def draft(self, /, work: WorkLike, *, project: str | None = None, **policy: Unpack[PolicyOptions]) -> NewRun:
        """The run that `enqueue_work` would queue, for whoever executes it here, once, when its turn has come."""
        _check_budget(policy)
        found, options = resolve_work(await stored_work(work, self._code), self._code)
        settled = await self._policy(found, options, {**policy, "retry": 0}, project)
        (run,) = _new_runs(EnqueueSpec(found.needs or ""), [found], settled, project, self._clock.now())
        run = replace(run, trigger=Trigger.MANUAL)
        return run if run.session is None else replace(run, waiting=True, mode=Mode.QUEUE)

    async def _policy(
        self, work: Work, declared: Mapping[str, Any], given: Mapping[str, Any], project: str | None
    ) -> Policy:
        """What was given, on top of what is declared with its task."""
        if project is not None:
            await self._projects.get(project)
        policy = await self._lanes.settle(policy_for_enqueue({**declared, **given}, work))
        if policy.notify:
            await self._check_notify(policy, declared)
        return with_turn(policy, work, project)

    async def _check_notify(self, policy: Policy, declared: Mapping[str, Any]) -> None:
        """Whoever names a channel that does not exist is told; what a task declares in code is only warned of."""
        if policy.notify == make_policy(declared).notify:
            await self._notifications.warn(policy.notify)
        else:
            await self._notifications.check(policy.notify)

    async def _enqueue(
        self, spec: EnqueueSpec, works: Sequence[Work], policy: Policy, project: str | None = None
    ) -> RunIds:
        runs = self._new_runs(spec, works, policy, project)
        if policy.session is None:
            return await when_key_is_free(lambda: self._store.runs.insert_runs(runs), self._key_free_seconds)
        now = self._clock.now()
        messages = [Message(run, sent_at=now) for run in runs]
        sent = await when_key_is_free(lambda: self._store.sessions.send(messages, now), self._key_free_seconds)
        ids = [_queued(one, policy.session) for one in sent]
        return RunIds(ids, [id for id, one in zip(ids, sent, strict=True) if not one.is_new])

    def _new_runs(
        self, spec: EnqueueSpec, works: Sequence[Work], policy: Policy, project: str | None = None
    ) -> list[NewRun]:
        if self._draining():
            raise Draining("this node is shutting down: enqueue on another one, or again when it is back")
        _check_key(spec, len(works))
        return _new_runs(spec, works, policy, project, self._clock.now())

    async def get(self, id: RunLike) -> Run:
        """The run of this number, or of this handle."""
        number = run_id(id)
        found = await self._store.runs.get_run(number) if 0 < number <= _LARGEST_ID else None
        if found is None:
            raise NotFound(f"there is no run {number}; 'ostinato run ls' lists the latest")
        return found

    async def look(self, id: int) -> Run:
        """The same; if it is queued and has no reason of its own, with what it waits for just now. If its code goes on
        though it was given up, it says so."""
        (run,) = await self._blocking.explained([await self.get(id)])
        return run

    async def relations(self, id: RunLike) -> RunRelations:
        """Which runs it came after or waits for, and which come after it."""
        return await self._store.runs.related_runs((await self.get(id)).id)

    async def blocked_by(self, id: RunLike) -> BlockedBy | None:
        """What keeps it from starting or, where its node was lost, from going on, followed to its root, as of now; None
        if nothing does."""
        return await self._blocking.of_run(await self.get(id))

    async def given_up(self) -> Sequence[GivenUp]:
        """Code that was told to stop, did not, and goes on although its run has ended; the oldest first."""
        return await self._store.runs.list_given_up()

    async def list(self, *, before: int | None = None, limit: int = 50, **wanted: Unpack[RunsWanted]) -> Sequence[Run]:
        """Runs, newest first; `since` and `until` limit their due times."""
        before_id = None if before is None else RunId(before)
        of = replace(
            await run_filter(self._store, self._projects, wanted), before_id=before_id, limit=check_limit(limit)
        )
        found, _ = await listed_runs(self._store, of)
        return found

    async def page(self, *, cursor: str | None = None, limit: int = 50, **wanted: Unpack[RunsWanted]) -> Page[Run]:
        """The same list, page by page; what is long in a run is cut. A search ends a page early when it has looked
        through many runs: `next` goes on from there."""
        of = await run_filter(self._store, self._projects, wanted)
        return await page_of_runs(self._store, of, cursor, limit)

    async def output(self, id: RunLike, *, stamps: bool = False) -> str:
        """What the run has logged or printed so far; with stamps, each line shows when it arrived."""
        # In a thread: a megabyte of short lines takes seconds, and the engine's loop must turn meanwhile.
        return await asyncio.to_thread(output_text, await self._parts(id), stamps=stamps)

    async def lines(self, id: RunLike, *, after: int = 0) -> Sequence[OutputLine]:
        """The same as lines, after line number `after`: ask again with the last number to follow it."""
        parts = await self._parts(id)
        return await asyncio.to_thread(lambda: list(output_lines(parts, after)))

    async def page_of_lines(self, id: int, *, after: int = 0, limit: int) -> LinesPage:
        """What a follower is told behind the line `after`: `limit` lines, or a few more where some were cut. While the
        run goes on, no line that may go on."""
        # The state first: what is printed before an end is in the output that is read after it.
        run = await self.get(id)
        output = Output(await self._store.runs.read_output(run.id), is_over=run.ended)
        lines, more = await asyncio.to_thread(output.lines, after, limit)
        return LinesPage(lines, more, run.ended)

    async def follow(self, id: int, *, only_running: bool = False) -> AsyncIterator[OutputLine]:
        """Its lines as they come, no line twice, until it has ended; or, if `only_running`, is queued again."""
        seen, pause, mark = 0, _FIRST_LOOK, None
        while True:
            # The state first: what is printed before an end is in the output that is read after it.
            run = await self.get(id)
            is_over = run.ended or (only_running and run.state is RunState.QUEUED)
            before, mark = mark, await self._store.runs.output_mark(run.id)
            pause = min(pause * 2, _LONGEST_FOLLOW)
            if is_over or mark != before:
                parts = await self._store.runs.read_output(run.id)
                for line in lines_to_tell(output_lines(parts, seen), ended=is_over):
                    seen, pause = line.number or seen, _FIRST_LOOK
                    yield line
            if is_over:
                return
            await asyncio.sleep(pause)

    async def _parts(self, id: RunLike) -> Sequence[OutputPart]:
        return await self._store.runs.read_output((await self.get(id)).id)

    @audited("run.cancel")
    async def cancel(self, id: RunLike, *, reason: str | None = None) -> Run:
        """End it if it is queued, ask its node to stop it if it is running; a Conflict if it has ended."""
        run = await self.get(id)
        if not run.ended:
            ending = Ending(Cause.CANCELLED, reason or f"cancelled by {changed_by()}")
            cancelled = await self._store.runs.cancel_runs([run.id], ending, self._clock.now(), asked_by())
            run = await self.get(run.id)
            if cancelled.ended:
                tell_cancelled(run, self._listeners, self._clock.now())
        if run.ended and run.state is not RunState.CANCELLED:
            raise Conflict(f"run {run.id} has ended already: {run.state}")
        return run

    @audited("run.retry", answers="run")
    async def retry(self, id: RunLike) -> Run:
        """Run the same work again, now, as a new run; the old row stays as it is."""
        run = await self.get(id)
        if not run.ended:
            raise Conflict(f"run {run.id} is {run.state}: it can be retried when it has ended")
        if (why_not := why_not_by_hand(run.work)) is not None:
            raise Conflict(f"run {run.id} cannot be retried: {why_not}")
        assert not isinstance(run.work, Unreadable)
        with sending("retry", counted_as(run.task, run.schedule, run.work.kind)):
            turn, trace = run.work.turn(run.project), current_trace()
            new = await self._store.runs.repeat_run(run.id, self._clock.now(), turn, trace, asked_by())
        if new is None:
            raise NotFound(f"run {run.id} was removed in the meantime")
        return fresh(await self.get(new))

    async def wait(self, id: RunLike, *, timeout: Duration | None = None) -> Run:
        """Wait until the run has ended; WaitTimeout if that takes too long. Without a timeout, NotRunning if nobody can
        ever execute it."""
        run: Run

        async def look() -> Run | None:
            nonlocal run
            run = await self.get(id)
            return None if run.ended else run

        await self.wait_while(look, timeout)
        return run

    async def wait_while(self, look: Callable[[], Awaitable[Run | None]], timeout: Duration | None) -> None:
        """Wait until this names no run any more whose end is waited for. It raises as `wait` does."""
        with self._code.waiting() as outer:
            if outer is None:
                return await self._wait_while(look, timeout)
            async with LentSlot(self._store.runs, outer, self._lent) as slot:
                return await self._wait_while(look, timeout, slot)

    async def _wait_while(
        self, look: Callable[[], Awaitable[Run | None]], timeout: Duration | None, slot: LentSlot | None = None
    ) -> None:
        deadline = _deadline(timeout)
        pause = _FIRST_LOOK
        while True:
            is_in_vain = timeout is None and self._unserved()  # before the look, which sees what the last engine did
            run = await look()
            if run is None:
                return
            if slot is not None and run.state is RunState.QUEUED:
                await slot.lend(run)
            if is_in_vain:
                later = f" and not ready before {local_text('UTC', run.ready_at)}" if self._is_later(run) else ""
                raise NotRunning(f"run {run.id} is {run.state}{later}, and {_UNSERVED}")
            if time.monotonic() >= deadline:
                if (run := await look()) is None:
                    return
                why = await self._blocking.waits_for(run)
                raise WaitTimeout(f"run {run.id} is still {run.state} after {_told(timeout)}{why}")
            await asyncio.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(pause * 2, _LONGEST_LOOK)

    def _is_later(self, run: Run) -> bool:
        return to_micros(run.ready_at) > self._clock.now()

    async def wait_idle(self, *, timeout: Duration | None = None) -> None:
        """Wait until no run is running, or queued and ready. It raises as `wait` does."""
        deadline = _deadline(timeout)
        pause = _FIRST_LOOK
        while True:
            is_in_vain = timeout is None and self._unserved()
            active = await self._store.runs.count_active(self._clock.now())
            if not active:
                return
            told = f"{counted(active, 'run is', 'runs are')} still queued or running"
            if is_in_vain:
                raise NotRunning(f"{told}, and {_UNSERVED}")
            if time.monotonic() >= deadline:
                raise WaitTimeout(f"{told} after {_told(timeout)}")
            await asyncio.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(pause * 2, _LONGEST_LOOK)


def make_runs(spec: EnqueueSpec, works: Sequence[Work], now: Micros) -> Sequence[NewRun]:
    """The runs of these calls, as far as they can be checked without the database."""
    _check_key(spec, len(works))
    return _new_runs(spec, works, policy_for_enqueue(spec.options), None, now)


def _check_key(spec: EnqueueSpec, runs: int) -> None:
    if spec.key is not None:
        check_run_key(spec.key)
    if spec.scope is not None:
        check_scope(spec.scope)
        if spec.key is None:
            raise InvalidInput(f"the scope {spec.scope!r} is of no key", field="scope", hint="give the key with it")
    if spec.key is not None and runs > 1:
        raise InvalidInput(f"one key {spec.key!r} cannot serve {runs} runs", field="key")


def _new_runs(
    spec: EnqueueSpec, works: Sequence[Work], policy: Policy, project: str | None, now: Micros
) -> list[NewRun]:
    text = policy_text(policy)
    due_at, trace = _ready_at(spec, now), current_trace()
    stored = [StoredWork(work.kind, work.needs, work_text(work), text) for work in works]
    options: Any = {"session": policy.session, "key": spec.key, "scope": spec.scope, "project": project, "trace": trace}
    return [queued_run(one, policy, Trigger.API, due_at, started_by=asked_by(), **options) for one in stored]


def fresh(run: Run) -> Run:
    """The run, unless its session was stopped while it was on its way into the queue."""
    if run.cause is Cause.STALE:
        raise MessageStale(f"session {run.session!r} was stopped while this was on its way: it is not queued")
    return run


def _check_budget(policy: Mapping[str, Any]) -> None:
    """A day's budget is one of a schedule: of a run without one, nothing would hold it."""
    budget = make_policy({"budget": policy.get("budget")}).budget
    if budget is not None and (budget.per_day_usd is not None or budget.per_day_runs is not None):
        raise InvalidInput(
            "a run without a schedule has no daily budget",
            field="budget",
            hint="give per_run_usd, or add a schedule",
        )


def check_run_key(key: Any) -> str:
    """A run's key as its user gives it; InvalidInput if it cannot be one."""
    checked = check_key(key, "key", "give text that is the same for the same work")
    for prefix, users in _TAKEN_KEYS.items():
        if key.startswith(prefix):
            raise InvalidInput(f"key cannot be {key!r}", field="key", hint=f"{prefix} is used by {users}")
    return checked


def check_scope(scope: Any) -> str:
    """The scope of a run's key as its user gives it; InvalidInput if it cannot be one."""
    return check_key(scope, "scope", "give one name to all tasks that share the keys")


def _queued(sent: Sent, session: str) -> RunId:
    if sent.delivery is Delivery.STALE or sent.id is None:
        raise MessageStale(f"session {session!r} was stopped while this was on its way: it is not queued")
    return sent.id


def _deadline(timeout: Duration | None) -> float:
    return (
        float("inf") if timeout is None else time.monotonic() + parse_duration(timeout, field="timeout").total_seconds()
    )


def _told(timeout: Duration | None) -> str:
    """As people write it, with its unit."""
    return "" if timeout is None else duration_text(parse_duration(timeout, field="timeout"))


def _ready_at(spec: EnqueueSpec, now: Micros) -> Micros:
    if spec.at is not None and spec.delay is not None:
        raise InvalidInput("give either at or delay, not both", field="at")
    if spec.delay is not None:
        return now + micros_of(parse_duration(spec.delay, field="delay"))
    return now if spec.at is None else to_micros(check_aware(spec.at, "at"))
