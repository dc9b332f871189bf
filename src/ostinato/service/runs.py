"""Runs: enqueue, get, list, cancel, retry, wait, output."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ostinato.clock import Clock, Micros, micros_of, to_micros
from ostinato.durations import Duration, parse_duration
from ostinato.errors import Conflict, Draining, InvalidInput, MessageStale, NotFound, WaitTimeout
from ostinato.models.ids import RunId
from ostinato.models.policy import check_key, policy_text
from ostinato.models.run import NewRun, Run, RunFilter
from ostinato.models.session import MESSAGE_KEYS, STALE, Delivery, Message, Sent
from ostinato.models.states import RunState, Trigger
from ostinato.models.work import Function, Unreadable, work_text
from ostinato.service.drafts import policy_for_enqueue
from ostinato.service.lanes import LaneService
from ostinato.stores.base import Store

__all__ = ["EnqueueSpec", "RunService", "fresh"]

_FIRST_LOOK, _LONGEST_LOOK = 0.005, 0.1


@dataclass(frozen=True, slots=True)
class EnqueueSpec:
    """How calls of a task are enqueued: what `.using(…)` sets."""

    task: str
    options: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    delay: Duration | None = None
    at: datetime | None = None


class RunService:
    """What can be done with runs."""

    def __init__(self, store: Store, clock: Clock, lanes: LaneService, draining: Callable[[], bool]) -> None:
        self._store = store
        self._clock = clock
        self._lanes = lanes
        self._draining = draining

    async def enqueue(
        self, spec: EnqueueSpec, calls: Iterable[tuple[Sequence[Any], Mapping[str, Any]]]
    ) -> Sequence[RunId]:
        """One run for each call, all in one transaction. A key that is active already answers its run."""
        if self._draining():
            raise Draining("this node is shutting down: enqueue on another one, or again when it is back")
        now = self._clock.now()
        policy = await self._lanes.settle(policy_for_enqueue(spec.options))
        text = policy_text(policy)
        ready_at = _ready_at(spec, now)
        expires_at = None if policy.max_age is None else ready_at + micros_of(policy.max_age)
        runs = [
            NewRun(
                kind=Function.kind,
                task=spec.task,
                work=work_text(Function(spec.task, list(args), dict(kwargs))),
                policy=text,
                trigger=Trigger.API,
                due_at=ready_at,
                ready_at=ready_at,
                lane=policy.lane,
                priority=policy.priority,
                expires_at=expires_at,
                session=policy.session,
                key=spec.key,
            )
            for args, kwargs in calls
        ]
        if spec.key is not None:
            _check_key(spec.key)
        if spec.key is not None and len(runs) > 1:
            raise InvalidInput(f"one key {spec.key!r} cannot serve {len(runs)} runs", field="key")
        if policy.session is None:
            return await self._store.runs.insert_runs(runs)
        sent = await self._store.sessions.send([Message(run, sent_at=now) for run in runs], now)
        return [_queued(one, policy.session) for one in sent]

    async def get(self, id: int) -> Run:
        """The run of this number."""
        found = await self._store.runs.get_run(RunId(id))
        if found is None:
            raise NotFound(f"there is no run {id}; 'ostinato run ls' lists the latest")
        return found

    async def list(
        self,
        *,
        schedule: str | None = None,
        task: str | None = None,
        session: str | None = None,
        state: RunState | str | Iterable[RunState | str] | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> Sequence[Run]:
        """Runs, newest first."""
        if limit < 1:
            raise InvalidInput(f"limit cannot be {limit}", field="limit", hint="give 1 or more")
        schedule_id = None
        if schedule is not None:
            found = await self._store.schedules.get_schedule(schedule)
            if found is None:
                raise NotFound(f"there is no schedule {schedule!r}; 'ostinato schedule ls' lists them")
            schedule_id = found.id
        wanted = RunFilter(
            schedule_id=schedule_id,
            task=task,
            session=session,
            states=_states(state),
            before_id=None if before is None else RunId(before),
            limit=limit,
        )
        return await self._store.runs.list_runs(wanted)

    async def output(self, id: int) -> str:
        """What the run logged or printed."""
        await self.get(id)
        return await self._store.runs.read_output(RunId(id))

    async def cancel(self, id: int, *, reason: str = "cancelled by a person") -> Run:
        """End it if it is queued, ask its node to stop it if it runs; a Conflict if it has ended."""
        run = await self.get(id)
        if not run.ended:
            await self._store.runs.cancel_runs([run.id], reason, self._clock.now())
            run = await self.get(id)
        if run.ended and run.state is not RunState.CANCELLED:
            raise Conflict(f"run {id} has ended already: {run.state}")
        return run

    async def retry(self, id: int) -> Run:
        """Run the same work again, now, as a new run; the old row stays as it is."""
        run = await self.get(id)
        if not run.ended:
            raise Conflict(f"run {id} is {run.state}: it can be retried when it has ended")
        if isinstance(run.work, Unreadable):
            raise Conflict(f"run {id} cannot be retried: {run.work.reason}")
        new = await self._store.runs.repeat_run(run.id, self._clock.now())
        if new is None:
            raise NotFound(f"run {id} was removed meanwhile")
        return fresh(await self.get(new))

    async def wait(self, id: int, *, timeout: Duration | None = None) -> Run:
        """Wait until the run has ended; WaitTimeout if that takes too long."""
        deadline = _deadline(timeout)
        pause = _FIRST_LOOK
        while not (run := await self.get(id)).ended:
            if time.monotonic() >= deadline:
                raise WaitTimeout(f"run {id} is still {run.state} after {timeout}")
            await asyncio.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(pause * 2, _LONGEST_LOOK)
        return run

    async def wait_idle(self, *, timeout: Duration | None = None) -> None:
        """Wait until nothing is queued and ready, or running; WaitTimeout if that takes too long."""
        deadline = _deadline(timeout)
        pause = _FIRST_LOOK
        while active := await self._store.runs.count_active(self._clock.now()):
            if time.monotonic() >= deadline:
                raise WaitTimeout(f"{active} runs are still queued or running after {timeout}")
            await asyncio.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(pause * 2, _LONGEST_LOOK)


def fresh(run: Run) -> Run:
    """The run, unless its session was stopped while it was on its way into the queue."""
    if run.reason == STALE:
        raise MessageStale(f"session {run.session!r} was stopped while this was on its way: it is not queued")
    return run


def _check_key(key: Any) -> None:
    check_key(key, "key", "give text, the same for the same work")
    if key.startswith(MESSAGE_KEYS):
        raise InvalidInput(
            f"key cannot be {key!r}", field="key", hint=f"{MESSAGE_KEYS} is used by messages of sessions"
        )


def _queued(sent: Sent, session: str) -> RunId:
    if sent.delivery is Delivery.STALE or sent.id is None:
        raise MessageStale(f"session {session!r} was stopped while this was on its way: it is not queued")
    return sent.id


def _deadline(timeout: Duration | None) -> float:
    return (
        float("inf") if timeout is None else time.monotonic() + parse_duration(timeout, field="timeout").total_seconds()
    )


def _ready_at(spec: EnqueueSpec, now: Micros) -> Micros:
    if spec.at is not None and spec.delay is not None:
        raise InvalidInput("give either at or delay, not both", field="at")
    if spec.delay is not None:
        return now + micros_of(parse_duration(spec.delay, field="delay"))
    if spec.at is None:
        return now
    if spec.at.tzinfo is None:
        raise InvalidInput(f"at={spec.at} has no zone", field="at", hint="pass an aware datetime")
    return to_micros(spec.at)


def _states(state: RunState | str | Iterable[RunState | str] | None) -> tuple[RunState, ...]:
    if state is None:
        return ()
    names = [state] if isinstance(state, str) else list(state)
    for name in names:
        if name not in list(RunState):
            known = ", ".join(RunState)
            raise InvalidInput(f"there is no state {name!r}", field="state", hint=f"the states are {known}")
    return tuple(RunState(name) for name in names)
