"""Messages for the tests of sessions, and what those look at afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from ostinato.clock import Micros
from ostinato.models.event import Event
from ostinato.models.ids import NodeId, RunId
from ostinato.models.run import ClaimedRun, Ending, NewRun, Run
from ostinato.models.session import Message, Sent, Session
from ostinato.models.states import RunState, Trigger
from ostinato.models.work import Agent, Function, payloads_work, prompt_work, read_work
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import NOW, claim, finish

__all__ = [
    "call",
    "carry_on",
    "events",
    "listed",
    "message",
    "outcome",
    "outcomes",
    "payloads",
    "row",
    "run_all",
    "send",
    "send_all",
    "session",
    "told",
]

_OF_THE_RUN = {"lane", "priority", "expires_at", "key", "project", "trace"}


def message(
    payload: Any = "hello",
    *,
    session: str = "s",
    at: Micros = NOW,
    task: str = "report",
    agent: Agent | None = None,
    **fields: Any,
) -> Message:
    """A message as the service makes it; `fields` are those of its run or of the message itself."""
    joinable = payloads_work(task, payload) if agent is None else prompt_work(agent, payload)
    run = NewRun(
        kind="function" if agent is None else "agent",
        task=task if agent is None else None,
        work=joinable.text,
        policy="{}",
        trigger=Trigger.MESSAGE,
        due_at=at,
        ready_at=at,
        session=session,
        **{"lane": "main", **{name: value for name, value in fields.items() if name in _OF_THE_RUN}},
    )
    terms = {name: value for name, value in fields.items() if name not in _OF_THE_RUN}
    return Message(run, **{"sent_at": at, "joinable": joinable, **terms})


def call(payload: Any = "hello", *, at: Micros = NOW, later: Micros = 0, **fields: Any) -> Message:
    """A run that code enqueues in a session, as the service puts it there: no message, but it takes its turn."""
    run = message(payload, at=at, **fields).run
    run.trigger, run.ready_at = Trigger.API, at + later
    return Message(run, sent_at=at)


async def send(
    store: Store, payload: Any = "hello", *, at: Micros = NOW, arrives: Micros | None = None, **fields: Any
) -> Sent:
    """Send one message, which arrives in the moment it is sent unless the test says when."""
    (sent,) = await store.sessions.send([message(payload, at=at, **fields)], at if arrives is None else arrives)
    return replace(sent, dropped=tuple(sent.dropped), cancelled=tuple(sent.cancelled))


async def send_all(store: Store, *payloads: Any, at: Micros = NOW, **fields: Any) -> list[RunId]:
    """Send messages one after the other in one call; answers the runs that carry them."""
    sent = await store.sessions.send([message(payload, at=at, **fields) for payload in payloads], at)
    return [RunId(one.id or 0) for one in sent]


async def row(store: Store, id: RunId | None) -> Run:
    """A run that must be there."""
    assert id is not None
    found = await store.runs.get_run(id)
    assert found is not None
    return found


def ending(run: Run) -> Ending | None:
    """Why a run ended or waits; None if there is nothing to say."""
    assert (run.cause is None) == (run.reason is None)
    return None if run.cause is None or run.reason is None else Ending(run.cause, run.reason)


async def outcome(store: Store, id: RunId | None) -> tuple[RunState, Ending | None]:
    """What the ledger says of a run, in two words and a sentence."""
    run = await row(store, id)
    return run.state, ending(run)


async def outcomes(store: Store, ids: Sequence[RunId]) -> list[RunState]:
    """The states of these runs, in their order."""
    return [(await row(store, id)).state for id in ids]


async def session(store: Store, key: str = "s") -> Session:
    """A session that must be there."""
    found = await store.sessions.get_session(key)
    assert found is not None
    return found


def payloads(run: Run | ClaimedRun) -> Any:
    """What the task is called with; of a prompt, its paragraphs, each read as the JSON that was sent."""
    work = read_work(run.work) if isinstance(run.work, str) else run.work
    if isinstance(work, Agent):
        return [msgspec.json.decode(part) for part in work.prompt.split("\n\n")]
    assert isinstance(work, Function)
    return work.kwargs["payloads"]


async def told(store: Store, node: str = "node-1") -> dict[RunId, Ending]:
    """Which runs of a node were told to stop, and why."""
    watch = await store.watch()
    try:
        return dict((await watch.wake_hints(NodeId(node))).cancel)
    finally:
        await watch.close()


async def carry_on(store: Store, run: ClaimedRun, state: RunState = RunState.SUCCEEDED, **fields: Any) -> list[Any]:
    """End a run and claim in the same call; answers the payloads of what was claimed, in order."""
    done = await store.runs.finish_runs([finish(run, state, **fields)], claim())
    assert list(done.lost) == []
    return [payloads(run) for run in done.claimed.runs]


async def run_all(store: Store, *, now: Micros = NOW) -> list[Any]:
    """Claim and end everything that there is to do; answers the payloads of each run in the order of the starts."""
    started = []
    while runs := (await store.runs.claim_runs(claim(now=now, tasks=("report", "other"), room=100))).runs:
        started += [payloads(run) for run in runs]
        await store.runs.finish_runs([finish(run, finished_at=now) for run in runs])
    return started


async def events(store: Store, key: str | None = "s") -> list[Event]:
    """All that was told of a session, in order."""
    return await store.sessions.list_events(key, 0, 10_000)


async def listed(store: Store, search: str | None = None, busy: bool = False, limit: int = 10) -> list[str]:
    return [one.key for one in await store.sessions.list_sessions(search, busy, limit)]
