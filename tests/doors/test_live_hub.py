"""The hub of the live stream by itself: how it begins and ends, what a listener is put, and when more happened than can
be published. Over sockets: test_api_live.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from ostinato.clock import SystemClock
from ostinato.config import Settings
from ostinato.errors import StoreUnavailable
from ostinato.execution.registry import Registry
from ostinato.models.live import LiveEvent
from ostinato.models.output import OutputPart
from ostinato.models.run import Report
from ostinato.models.states import RunState
from ostinato.service.live import hub as live_hub
from ostinato.service.live.changes import OVERLAP
from ostinato.service.live.hub import LiveHub
from ostinato.service.live.listener import Ended, Happened, Lines, Listener, Message, Pong, Subscribed
from ostinato.service.runs import EnqueueSpec
from ostinato.testing.store_suite.builders import HOUR, claim, finish, retry, said
from ostinato.tuning import Tuning
from ostinato.wiring import Container, open_container
from tests.doors.live_socket import eventually

Found = Callable[[Message], bool]


@asynccontextmanager
async def container_on(tmp_path: Path, **numbers: Any) -> AsyncIterator[Container]:
    settings = Settings(db=f"sqlite:///{tmp_path / 'jobs.db'}", tuning=Tuning(**numbers))
    container = await open_container(settings, SystemClock(), Registry())
    try:
        yield container
    finally:
        await container.close()


async def enqueue(container: Container, count: int, **options: Any) -> list[int]:
    return list(await container.services.runs.enqueue(EnqueueSpec("work", {}, **options), [((), {})] * count))


async def joined(hub: LiveHub, topic: str = "overview") -> Listener:
    listener = Listener()
    await hub.subscribe(listener, topic)
    assert await listener.take() == Subscribed(topic)
    return listener


async def until(listener: Listener, found: Found) -> list[Message]:
    """What came, up to what was looked for."""
    messages: list[Message] = []
    while not messages or not found(messages[-1]):
        message = await listener.take()
        assert message is not None
        messages.append(message)
    return messages


def run_of(message: Message) -> int | None:
    return msgspec.json.decode(message.event)["run"]["id"] if isinstance(message, Happened) else None


def kind_of(message: Message) -> str | None:
    return msgspec.json.decode(message.event)["kind"] if isinstance(message, Happened) else None


async def test_who_takes_many_messages_lets_others_go_on() -> None:
    listener = Listener()
    for _ in range(1_000):
        listener.put(Pong())
    taken = 0

    async def take() -> None:
        nonlocal taken
        while listener.waiting:
            await listener.take()
            taken += 1

    taking, parts = asyncio.create_task(take()), [0]
    while not taking.done():
        await asyncio.sleep(0)
        parts.append(taken)
    assert taken == 1_000
    assert max(second - first for first, second in pairwise(parts)) <= 50


async def test_an_incident_is_published_when_it_opens_counts_on_is_seen_to_and_closes(tmp_path: Path) -> None:
    async with container_on(tmp_path) as container:
        listener = await joined(container.services.live)

        async def end(state: RunState) -> None:
            await enqueue(container, 1)
            now = SystemClock().now()
            (run,) = (await container.store.runs.claim_runs(claim(now=now, tasks=("work",)))).runs
            done = finish(run, state, name="work", task="work", started_at=now, finished_at=now, tells=True)
            await container.store.runs.finish_runs([done])

        async def told() -> dict[str, Any]:
            """The next event of an incident."""
            message = (await until(listener, lambda one: str(kind_of(one)).startswith("incident")))[-1]
            assert isinstance(message, Happened)
            event: dict[str, Any] = msgspec.json.decode(message.event)
            return event

        await end(RunState.FAILED)
        opened = await told()
        incident = await container.services.incidents.get(opened["data"]["id"])
        assert (opened["kind"], opened["run"], opened["schedule"]) == ("incident_opened", None, None)
        assert opened["data"] == msgspec.json.decode(msgspec.json.encode(incident)), "as REST shows it"
        await end(RunState.FAILED)
        again = await told()
        assert (again["kind"], again["data"]["count"]) == ("incident_changed", 2)
        await container.services.incidents.ack(incident.id, who="ada", note="the disk is ordered")
        acked = await told()
        assert (acked["kind"], acked["data"]["acked_by"]) == ("incident_changed", "ada")
        await end(RunState.SUCCEEDED)
        closed = await told()
        assert (closed["kind"], closed["data"]["state"]) == ("incident_closed", "closed")
        await end(RunState.FAILED)
        reopened = await told()
        assert (reopened["kind"], reopened["data"]["reopened"]) == ("incident_opened", 1)


# --- beginning, and going on ----------------------------------------------------------------------------------------


async def test_more_runs_than_a_look_holds_are_under_way_when_the_first_listener_comes(tmp_path: Path) -> None:
    async with container_on(tmp_path) as container:
        await container.services.lanes.set("main", limit=1_000)
        ids = await enqueue(container, 600)
        now = SystemClock().now()
        running = (await container.store.runs.claim_runs(claim(room=600, now=now, tasks=("work",)))).runs
        assert len(running) == 600
        listener = await joined(container.services.live)
        now = SystemClock().now()
        await container.store.runs.finish_runs([finish(one, started_at=now, finished_at=now) for one in running])
        ended: set[int | None] = set()
        while not ended >= set(ids):
            ended |= {run_of(message) for message in await until(listener, lambda message: True)}


async def test_many_listeners_share_one_look_and_what_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[LiveEvent] = []
    encoded = live_hub._encoded

    def counted(event: LiveEvent, zone: str) -> msgspec.Raw:
        written.append(event)
        return encoded(event, zone)

    monkeypatch.setattr(live_hub, "_encoded", counted)

    async with container_on(tmp_path) as container:
        hub = container.services.live
        listeners = [await joined(hub) for _ in range(50)]
        others = [await joined(hub, "schedule:none") for _ in range(50)]
        ids = await enqueue(container, 20)
        for listener in listeners:
            assert [run_of(one) for one in await until(listener, lambda message: run_of(message) == ids[-1])] == ids
        assert not any(listener.waiting for listener in others)
        assert len(written) == len(ids)


async def test_a_run_that_waits_for_its_next_attempt_when_the_first_listener_comes_is_known(tmp_path: Path) -> None:
    async with container_on(tmp_path) as container:
        (id,) = await enqueue(container, 1)
        await enqueue(container, OVERLAP + 10, delay="1h")
        listener = await joined(container.services.live)
        now = SystemClock().now()
        (one,) = (await container.store.runs.claim_runs(claim(room=1, now=now, tasks=("work",)))).runs
        await container.store.runs.finish_runs([retry(one, started_at=now, finished_at=now, ready_at=now + HOUR)])
        heard = await until(listener, lambda message: kind_of(message) == "run_queued")
        assert {run_of(message) for message in heard} == {id}


async def test_who_comes_while_the_hub_comes_to_its_end_is_told(tmp_path: Path) -> None:
    async with container_on(tmp_path, live_pause_seconds=0.01, live_look_seconds=0.01) as container:
        hub = container.services.live
        for turn in range(20):
            gone = await joined(hub)
            hub.leave(gone)
            await asyncio.sleep(turn * 0.002)  # now before the hub ends, now just when, now after
            listener = await joined(hub)
            assert hub._task is not None
            (id,) = await enqueue(container, 1)
            await until(listener, lambda message, id=id: run_of(message) == id)  # type: ignore[misc]
            hub.leave(listener)
        await eventually(lambda: hub._task is None)


async def test_what_is_committed_after_the_hub_began_is_told_though_its_number_is_older(postgres_url: str) -> None:
    event = "INSERT INTO events (at, session, kind, data) VALUES (1, 'chat', 'stopped', '{}')"
    entry = "INSERT INTO audit (at, who, door, verb, object, detail) VALUES (1, 'ada', 'cli', %s, 'backup', '{}')"
    container = await open_container(Settings(db=postgres_url), SystemClock(), Registry())
    options = "-c search_path=ostinato"
    try:
        async with (
            await psycopg.AsyncConnection.connect(postgres_url, options=options) as late,
            await psycopg.AsyncConnection.connect(postgres_url, options=options, autocommit=True) as other,
        ):
            await late.execute(event)
            await late.execute(entry, ["schedule.remove"])
            await other.execute(event)
            await other.execute(entry, ["lane.set"])
            chat = await joined(container.services.live, "session:chat")
            schedule = await joined(container.services.live, "schedule:backup")
            await late.commit()
            (told,) = await until(chat, lambda message: isinstance(message, Happened))
            (removed,) = await until(schedule, lambda message: isinstance(message, Happened))
            assert isinstance(told, Happened)
            assert isinstance(removed, Happened)
            assert msgspec.json.decode(told.event)["data"]["id"] == 1
            assert msgspec.json.decode(removed.event)["kind"] == "schedule_removed"
    finally:
        await container.close()


async def test_who_listens_goes_on_when_the_server_has_cut_all_connections(postgres_url: str) -> None:
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> %s"
    container = await open_container(Settings(db=postgres_url), SystemClock(), Registry())
    try:
        listener = await joined(container.services.live)
        for _ in range(2):
            async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as other:
                await other.execute(cut, [other.info.backend_pid])
            (id,) = await enqueue(container, 1)
            await until(listener, lambda message, id=id: run_of(message) == id)  # type: ignore[misc]
    finally:
        await container.close()


async def test_a_watch_that_fails_does_not_end_the_looking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = iter([StoreUnavailable("away"), RuntimeError("broken"), *[StoreUnavailable("away")] * 1_000])

    async def fail(watch: object, seconds: float) -> None:
        raise next(failures)

    monkeypatch.setattr(live_hub, "_changed", fail)

    async with container_on(tmp_path, live_pause_seconds=0.01) as container:
        listener = await joined(container.services.live)
        for _ in range(3):
            (id,) = await enqueue(container, 1)
            await until(listener, lambda message, id=id: run_of(message) == id)  # type: ignore[misc]


# --- output ---------------------------------------------------------------------------------------------------------


async def test_a_long_output_is_read_once_and_told_to_its_end(tmp_path: Path) -> None:
    async with container_on(tmp_path) as container:
        (id,) = await enqueue(container, 1)
        now = SystemClock().now()
        (one,) = (await container.store.runs.claim_runs(claim(room=1, now=now, tasks=("work",)))).runs
        await container.store.runs.report_runs([Report(one.id, one.token, output=said(*[" x\n" * 5_000] * 4))])
        reads = 0
        read_output = container.store.runs.read_output

        async def counted(id: Any) -> list[OutputPart]:
            nonlocal reads
            reads += 1
            return await read_output(id)

        container.store.runs.read_output = counted  # type: ignore[method-assign]
        listener, other = Listener(), Listener()
        await container.services.live.subscribe(listener, f"output:{id}")
        await container.services.live.subscribe(other, f"output:{id}", "19990")
        assert numbers(await until(other, lambda message: 20_000 in numbers([message]))) == list(range(19_991, 20_001))
        heard = await until(listener, lambda message: 20_000 in numbers([message]))
        assert numbers(heard) == list(range(1, 20_001))
        await container.store.runs.finish_runs([finish(one, output=said(" last\n"))])
        for each in (listener, other):
            assert numbers(await until(each, lambda message: isinstance(message, Ended))) == [20_001]
        assert reads <= 4, "it was read again for each message"


def numbers(messages: list[Message]) -> list[int]:
    lines = [line for message in messages if isinstance(message, Lines) for line in message.lines]
    return [line.number for line in lines if line.number is not None]
