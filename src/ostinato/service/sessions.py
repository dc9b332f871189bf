"""Sessions: send, wait, stop, stop_all, get, list, events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, Unpack

from ostinato.clock import Clock, Micros, micros_of
from ostinato.durations import Duration, parse_duration
from ostinato.errors import Draining, InvalidInput, LaneCleared, MessageStale, NotFound, QueueDropped, QueueFull
from ostinato.models.event import Event
from ostinato.models.ids import RunId
from ostinato.models.policy import (
    MessageOptions,
    Policy,
    check_choice,
    check_key,
    check_session,
    check_whole,
    policy_text,
)
from ostinato.models.run import NewRun, Run, StoredWork, queued_run
from ostinato.models.session import Delivery, Drop, Message, Mode, Sent, Session, Stopped, message_key
from ostinato.models.states import Cause, Trigger
from ostinato.models.work import Function, payload_text, payload_work
from ostinato.service.audit import audited
from ostinato.service.lanes import LaneService
from ostinato.service.pages import check_limit
from ostinato.service.runs import RunService
from ostinato.service.schedules.drafts import Code, TaskLike, policy_for_enqueue
from ostinato.stores.base import Store

__all__ = ["SessionService"]

DEBOUNCE = "800ms"
_LONGEST_DEBOUNCE: Micros = 24 * 3_600 * 1_000_000
_CEILING = 10
"""A burst is drawn out to at most so many times its debounce, unless the caller says otherwise."""


class SessionService:
    """What can be done with sessions. Every verb is one transaction."""

    def __init__(
        self, store: Store, clock: Clock, lanes: LaneService, runs: RunService, code: Code, draining: Callable[[], bool]
    ) -> None:
        self._store = store
        self._clock = clock
        self._lanes = lanes
        self._runs = runs
        self._code = code
        self._draining = draining

    @audited("session.send", answers="run")
    async def send(
        self,
        /,
        key: str,
        payload: Any,
        *,
        task: TaskLike | str,
        lane: str | None = None,
        mode: Mode | str = Mode.QUEUE,
        max_concurrent: int | None = None,
        cap: int = 10,
        drop: Drop | str = Drop.OLD,
        debounce: Duration = DEBOUNCE,
        debounce_max: Duration | None = None,
        message_id: str | None = None,
        **policy: Unpack[MessageOptions],
    ) -> RunId:
        """Put a message into a session; returns the run that carries it. It is durable when this returns.

        The task is called with `payloads`, a list in the order sent: several when a burst was debounced into one run.
        Raises QueueFull when the queue is full and `drop` is "new", MessageStale when the session was stopped while
        this was on its way, Draining on a node that is shutting down.
        """
        if self._draining():
            raise Draining("this node is shutting down: send to another one, or again when it is back")
        now = self._clock.now()
        session = check_session(key, "key")
        if "session" in policy:
            raise InvalidInput("the session is the key", field="session", hint="leave session out")
        name, options = self._task(task)
        given = {**options, **policy, **({} if lane is None else {"lane": lane})}
        settled = await self._lanes.settle(policy_for_enqueue({**given, "session": None}))
        text = payload_text(payload)
        message = Message(
            _run(session, name, text, settled, now, message_id),
            sent_at=now,
            mode=check_choice(Mode, "mode", mode),
            max_concurrent=None if max_concurrent is None else check_whole("max_concurrent", max_concurrent, 1),
            cap=check_whole("cap", cap, 1),
            drop=check_choice(Drop, "drop", drop),
            **_timers(debounce, debounce_max),
            payload=text,
        )
        (sent,) = await self._store.sessions.send([message], now)
        return _accepted(sent, message)

    def _task(self, task: TaskLike | str) -> tuple[str, Mapping[str, Any]]:
        """The name of the task and its policy; it must take `payloads`, as far as this process knows it."""
        if isinstance(task, str) and task:
            name, options = task, self._code.options_of(task)
        elif not isinstance(task, str) and isinstance(task, TaskLike):
            name, options = task.name, task.options
        else:
            raise InvalidInput(f"task cannot be {task!r}", field="task", hint="give a task or the name of one")
        if self._code.takes_payloads(name) is False:
            raise InvalidInput(
                f"task {name!r} takes no payloads", field="task", hint=f"write def {name}(payloads: list) -> ..."
            )
        return name, options

    async def wait(self, id: int, *, timeout: Duration | None = None) -> Run:
        """Wait until the run of a message has ended; raises what kept it from starting: QueueDropped, LaneCleared,
        MessageStale."""
        run = await self._runs.wait(id, timeout=timeout)
        if run.cause is Cause.DROPPED:
            raise QueueDropped(f"the message of run {id} was dropped: the queue of session {run.session!r} was full")
        if run.cause is Cause.LANE_CLEARED:
            raise LaneCleared(f"the message of run {id} was dropped: lane {run.lane!r} was cleared")
        if run.cause is Cause.STALE:
            raise MessageStale(f"the message of run {id} was sent before session {run.session!r} was stopped")
        return run

    @audited("session.stop")
    async def stop(self, key: str) -> Stopped:
        """Cancel the oldest run of the session that is under way; the next one gets its turn."""
        return await self._store.sessions.stop(check_session(key, "key"), everything=False, now=self._clock.now())

    @audited("session.stop_all")
    async def stop_all(self, key: str) -> Stopped:
        """Cancel what is running and drop what is queued; no message sent until now will start."""
        return await self._store.sessions.stop(check_session(key, "key"), everything=True, now=self._clock.now())

    async def get(self, key: str) -> Session:
        """The session of this key."""
        found = await self._store.sessions.get_session(key)
        if found is None:
            raise NotFound(f"there is no session {key!r}; 'ostinato session ls' lists them")
        return found

    async def list(self, *, search: str | None = None, busy: bool = False, limit: int = 100) -> Sequence[Session]:
        """Sessions, the latest message first; with `busy` only those with something queued or running."""
        return await self._store.sessions.list_sessions(search, busy, check_limit(limit))

    async def events(
        self, key: str | None = None, *, after: int = 0, limit: int = 1000, newest: bool = False
    ) -> Sequence[Event]:
        """What happened in a session, or in all, after the event of this number: the first `limit`, or with `newest`
        the last; oldest first."""
        return await self._store.sessions.list_events(key, after, check_limit(limit), newest=newest)


def _run(session: str, task: str, payload: str, policy: Policy, now: Micros, message_id: str | None) -> NewRun:
    """The run of a message, with its own payload alone."""
    if message_id is not None:
        check_key(message_id, "message_id", "give the sender's own id of it, as text")
    stored = StoredWork(Function.kind, task, payload_work(task, payload), policy_text(policy))
    key = None if message_id is None else message_key(session, message_id)
    return queued_run(stored, policy, Trigger.MESSAGE, now, session=session, key=key)


class _Timers(TypedDict):
    debounce: Micros
    ceiling: Micros


def _timers(debounce: Duration, debounce_max: Duration | None) -> _Timers:
    """How long a burst waits for more, and how long it may be drawn out."""
    quiet = micros_of(parse_duration(debounce, field="debounce"))
    if quiet > _LONGEST_DEBOUNCE:
        raise InvalidInput(f"debounce cannot be {debounce!r}", field="debounce", hint="1d is the most")
    if debounce_max is None:
        return {"debounce": quiet, "ceiling": _CEILING * quiet}
    longest = micros_of(parse_duration(debounce_max, field="debounce_max"))
    if longest < quiet:
        reason = f"debounce_max {debounce_max!r} is shorter than debounce"
        raise InvalidInput(reason, field="debounce_max", hint="give a longer one")
    return {"debounce": quiet, "ceiling": longest}


def _accepted(sent: Sent, message: Message) -> RunId:
    if sent.delivery is Delivery.STALE:
        raise MessageStale(f"session {message.key!r} was stopped while this message was on its way: nothing was queued")
    if sent.id is None:
        raise QueueFull(f"the queue of session {message.key!r} is full (cap is {message.cap}), and drop is 'new'")
    return sent.id
