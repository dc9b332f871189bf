"""Sessions: send, wait, stop, stop_all, get, list, events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

from ostinato.clock import Clock, micros_of
from ostinato.durations import Duration
from ostinato.errors import Draining, InvalidInput, LaneCleared, MessageStale, NotFound, QueueDropped, QueueFull
from ostinato.models.event import Event
from ostinato.models.ids import RunId, RunLike
from ostinato.models.policy import MessageOptions, Policy, check_key, check_session, policy_text
from ostinato.models.run import NewRun, Run, StoredWork, queued_run
from ostinato.models.session import (
    Delivery,
    Drop,
    DropName,
    Message,
    Mode,
    ModeName,
    Sent,
    Session,
    Stopped,
    message_key,
)
from ostinato.models.session_options import NO_OPTIONS, SessionDefaults, SessionOptions, read_session_options
from ostinato.models.states import Cause, Trigger
from ostinato.models.work import Agent, Function, JoinableWork, Work, payloads_work, prompt_work
from ostinato.models.work_kinds import counted_as
from ostinato.service.audit import asked_by, audited
from ostinato.service.busy_keys import when_key_is_free
from ostinato.service.known_tasks import KnownTasks
from ostinato.service.lanes import LaneService
from ostinato.service.notifications import NotificationService
from ostinato.service.pages import check_limit
from ostinato.service.projects import ProjectService
from ostinato.service.runs import RunService
from ostinato.service.schedules.drafts import Code, TaskLike, policy_for_enqueue
from ostinato.stores.base import Store
from ostinato.trace_context import current_trace
from ostinato.tracing import sending

__all__ = ["SessionService"]


class _Recipient(NamedTuple):
    """Who gets a message: a task, or an agent."""

    work: Work
    joinable: JoinableWork
    policy: Mapping[str, Any]
    """As it was given with the task."""
    options: SessionOptions


class SessionService:
    """What can be done with sessions. Every verb is one transaction."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        lanes: LaneService,
        projects: ProjectService,
        notifications: NotificationService,
        runs: RunService,
        code: Code,
        known: KnownTasks,
        draining: Callable[[], bool],
        defaults: SessionDefaults,
        key_free_seconds: float,
    ) -> None:
        self._store = store
        self._clock = clock
        self._lanes = lanes
        self._projects = projects
        self._notifications = notifications
        self._runs = runs
        self._code = code
        self._known = known
        self._draining = draining
        self._defaults = defaults
        self._key_free_seconds = key_free_seconds

    @audited("session.send", answers="run")
    async def send(
        self,
        /,
        key: str,
        payload: Any,
        *,
        task: TaskLike | str | None = None,
        agent: Agent | bool | None = None,
        project: str | None = None,
        lane: str | None = None,
        mode: Mode | ModeName | None = None,
        max_concurrent: int | None = None,
        cap: int | None = None,
        drop: Drop | DropName | None = None,
        debounce: Duration | None = None,
        debounce_max: Duration | None = None,
        message_id: str | None = None,
        **policy: Unpack[MessageOptions],
    ) -> RunId:
        """Put a message into a session; returns the run that carries it. It is durable when this returns.

        A task is called with `payloads`, a list in the order sent: several when a burst was debounced into one run. An
        agent (`agent=Agent(…)`, or True for the default one) gets the payloads as one prompt, and goes on with the
        conversation of the session; its answer is the run's result. How the message waits is what this call says, or
        else the settings for its key, its task, or the settings for all.
        Raises QueueFull when the queue is full and `drop` is "new", MessageStale when the session was stopped while
        this was on its way, Draining on a node that is shutting down.
        """
        if self._draining():
            raise Draining("this node is shutting down: send to another one, or again when it is back")
        now = self._clock.now()
        session = check_session(key, "key")
        if "session" in policy:
            raise InvalidInput("the session is the key", field="session", hint="leave session out")
        if project is not None:
            await self._projects.get(project)
        to = await self._recipient(session, payload, task, agent)
        said = {"mode": mode, "max_concurrent": max_concurrent, "cap": cap, "drop": drop}
        asked = read_session_options({**said, "debounce": debounce, "debounce_max": debounce_max})
        options = _settled(self._defaults.of(session, to.options).then(asked))
        given = {**to.policy, **policy, **({} if lane is None else {"lane": lane}), "session": None}
        settled = await self._lanes.settle(policy_for_enqueue(given, to.work))
        if settled.notify and "notify" in policy:
            await self._notifications.check(settled.notify)
        with sending("send", counted_as(to.work.needs, None, to.work.kind)):
            run = _run(session, to, settled, now, message_id, project)
            message = Message(run, sent_at=now, joinable=to.joinable, **options)
            (sent,) = await when_key_is_free(lambda: self._store.sessions.send([message], now), self._key_free_seconds)
            return _accepted(sent, message)

    async def _recipient(self, session: str, payload: Any, task: TaskLike | str | None, agent: Any) -> _Recipient:
        if (task is None) == (agent in (None, False)):
            raise InvalidInput(
                "a message goes to a task or to an agent",
                field="task",
                hint="give one of them, and not both",
            )
        if task is None:
            work = _in_session(agent, session)
            return _Recipient(work, prompt_work(work, payload), {}, NO_OPTIONS)
        name, policy = self._task(task)
        await self._known.check(name)
        options = self._code.session_options_of(name)
        stored = await self._stored_payload(name, payload)
        return _Recipient(Function(name), payloads_work(name, stored), policy, options)

    async def _stored_payload(self, task: str, payload: Any) -> Any:
        """The payload as it is stored; it must fit what the task says of its `payloads`."""
        try:
            (call,) = await self._code.stored_calls(task, [((), {"payloads": [payload]})], from_json=True)
        except InvalidInput as error:
            raise InvalidInput(str(error), field="payload") from error
        return call.kwargs["payloads"][0]

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

    async def wait(self, id: RunLike, *, timeout: Duration | None = None) -> Run:
        """Wait until the run of a message has ended; raises what kept it from starting: QueueDropped, LaneCleared,
        MessageStale."""
        run = await self._runs.wait(id, timeout=timeout)
        if run.cause is Cause.DROPPED:
            raise QueueDropped(
                f"the message of run {run.id} was dropped: the queue of session {run.session!r} was full"
            )
        if run.cause is Cause.LANE_CLEARED:
            raise LaneCleared(f"the message of run {run.id} was dropped: lane {run.lane!r} was cleared")
        if run.cause is Cause.STALE:
            raise MessageStale(f"the message of run {run.id} was sent before session {run.session!r} was stopped")
        return run

    @audited("session.stop")
    async def stop(self, key: str) -> Stopped:
        """Cancel the oldest run of the session that is under way; the next one gets its turn."""
        return await self._stop(key, everything=False)

    @audited("session.stop_all")
    async def stop_all(self, key: str) -> Stopped:
        """Cancel what is running and drop what is queued; no message sent until now will start."""
        return await self._stop(key, everything=True)

    async def _stop(self, key: str, *, everything: bool) -> Stopped:
        checked, now = check_session(key, "key"), self._clock.now()
        return await self._store.sessions.stop(checked, everything=everything, now=now, by=asked_by())

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


def _in_session(agent: Any, session: str) -> Agent:
    """The agent, which goes on with the conversation of the session unless it is to begin a new one each time."""
    if agent is True:
        agent = Agent()
    if not isinstance(agent, Agent):
        raise InvalidInput(f"agent cannot be {agent!r}", field="agent", hint="give Agent(model='opus'), or True")
    own = f"session:{session}"
    if agent.context not in (None, "isolated", own):
        raise InvalidInput(
            f"context cannot be {agent.context!r}: a message continues the conversation of its session",
            field="context",
            hint="leave it out, or use isolated for a new conversation each time",
        )
    return replace(agent, context=agent.context or own)


def _run(session: str, to: _Recipient, policy: Policy, now: int, message_id: str | None, project: str | None) -> NewRun:
    """The run of a message, with its own payload alone."""
    if message_id is not None:
        check_key(message_id, "message_id", "give the sender's own id of it, as text")
    stored = StoredWork(to.work.kind, to.work.needs, to.joinable.text, policy_text(policy))
    key = None if message_id is None else message_key(session, message_id)
    trace = current_trace()
    options: Any = {"session": session, "key": key, "scope": "message", "project": project, "trace": trace}
    return queued_run(stored, policy, Trigger.MESSAGE, now, started_by=asked_by(), **options)


def _settled(options: SessionOptions) -> dict[str, Any]:
    """How a message waits, as the store takes it."""
    assert options.debounce is not None
    assert options.debounce_max is not None
    if options.debounce_max < options.debounce:
        reason = "debounce_max is shorter than debounce"
        raise InvalidInput(reason, field="debounce_max", hint="give a longer one, or both")
    return {
        "mode": options.mode,
        "max_concurrent": options.max_concurrent,
        "cap": options.cap,
        "drop": options.drop,
        "debounce": micros_of(options.debounce),
        "ceiling": micros_of(options.debounce_max),
    }


def _accepted(sent: Sent, message: Message) -> RunId:
    if sent.delivery is Delivery.STALE:
        raise MessageStale(f"session {message.key!r} was stopped while this message was on its way: nothing was queued")
    if sent.id is None:
        raise QueueFull(f"the queue of session {message.key!r} is full (cap is {message.cap}), and drop is 'new'")
    return sent.id
