"""The hub of the live stream by itself: what a listener is put when it drops, comes back, comes late, and when more
happened than can be told. Over sockets: test_api_live.py."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from ostinato.clock import Micros, SystemClock
from ostinato.config import Settings
from ostinato.errors import StoreUnavailable
from ostinato.execution.registry import Registry
from ostinato.models.live import Changes, LiveEvent, Mark
from ostinato.models.output import OutputPart
from ostinato.models.run import Report
from ostinato.service import live as live_service
from ostinato.service import live_events
from ostinato.service.live import LiveHub
from ostinato.service.live_cursor import Cursor
from ostinato.service.live_events import FLOOD, Known, Told
from ostinato.service.live_listener import Ended, Happened, Lines, Listener, Message, Pong, Skipped, Subscribed
from ostinato.service.runs import EnqueueSpec
from ostinato.tuning import Tuning
from ostinato.wiring import House, open_house
from tests.doors.live_socket import eventually
from tests.stores.builders import claim, finish, said
from tests.stores.places import raw

Found = Callable[[Message], bool]


def run(tmp_path: Path, main: Callable[[House], Coroutine[Any, Any, None]], **numbers: Any) -> None:
    async def whole() -> None:
        async with house_on(tmp_path, Tuning(**numbers)) as house, asyncio.timeout(60):
            await main(house)

    asyncio.run(whole())


@asynccontextmanager
async def house_on(tmp_path: Path, tuning: Tuning) -> AsyncIterator[House]:
    settings = Settings(db=f"sqlite:///{tmp_path / 'jobs.db'}", tuning=tuning)
    house = await open_house(settings, SystemClock(), Registry())
    try:
        yield house
    finally:
        await house.close()


async def enqueue(house: House, count: int, **options: Any) -> list[int]:
    return list(await house.services.runs.enqueue(EnqueueSpec("work", {}, **options), [((), {})] * count))


async def joined(hub: LiveHub, topic: str = "overview", cursor: str | None = None) -> tuple[Listener, Subscribed]:
    listener = Listener()
    await hub.subscribe(listener, topic, cursor)
    first = await listener.take()
    assert isinstance(first, Subscribed)
    return listener, first


async def begun(hub: LiveHub) -> Subscribed:
    """Where the hub began; its task has looked for the first time, and rests as long as `live_look_seconds` says."""
    _, start = await joined(hub)
    first = hub._known
    await eventually(lambda: hub._known is not first)
    return start


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


def elsewhere(cursor: str) -> str:
    """The same place, as another hub says it."""
    return str(replace(Cursor.read(cursor), hub="other"))


# --- coming back ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", ["this hub", "another hub"])
def test_who_drops_at_subscribed_comes_back_to_the_same_place(tmp_path: Path, of: str) -> None:
    async def main(house: House) -> None:
        hub = house.services.live
        keeper, start = await joined(hub)
        ids = await enqueue(house, 3)
        await until(keeper, lambda message: run_of(message) == ids[-1])
        cursor = start.cursor if of == "this hub" else elsewhere(start.cursor)
        for _ in range(3):
            dropped, subscribed = await joined(hub, cursor=cursor)
            assert dropped.waiting == 3
            hub.leave(dropped)
            cursor = subscribed.cursor
        back, _ = await joined(hub, cursor=cursor)
        assert [run_of(message) for message in await until(back, lambda message: run_of(message) == ids[-1])] == ids
        _, up_to_date = await joined(hub, "run:77", cursor)
        assert Cursor.read(up_to_date.cursor).run == ids[-1]

    run(tmp_path, main)


def test_who_drops_before_it_hears_of_a_flood_hears_of_it_when_it_comes_back(tmp_path: Path) -> None:
    async def main(house: House) -> None:
        hub = house.services.live
        keeper, _ = await joined(hub)
        dropping, _ = await joined(hub)
        await enqueue(house, 2 * FLOOD + 500, delay="1h")
        await until(keeper, lambda message: isinstance(message, Skipped))
        await enqueue(house, 2 * FLOOD + 500, delay="1h")
        await eventually(lambda: hub._before_skipped is not None)
        (one,) = await enqueue(house, 1)
        heard = await until(dropping, lambda message: run_of(message) == one)
        assert sum(isinstance(message, Skipped) for message in heard) == 1, "the second one was told already"
        last = heard[-1]
        assert isinstance(last, Happened)
        hub.leave(dropping)
        await until(keeper, lambda message: isinstance(message, Skipped))
        back, subscribed = await joined(hub, cursor=last.cursor)
        assert subscribed.cursor == last.cursor
        assert any(isinstance(message, Skipped) for message in await until(back, lambda m: isinstance(m, Skipped)))

    run(tmp_path, main)


def test_a_replay_says_when_it_cannot_hold_all_events_of_a_session(tmp_path: Path) -> None:
    async def main(house: House) -> None:
        hub = house.services.live
        _, start = await joined(hub)
        await raw(
            house.store,
            f"WITH RECURSIVE g (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < {FLOOD + 300}) "
            "INSERT INTO events (at, kind, session, data) SELECT 1, 'enqueued', 'chat', '{}' FROM g",
        )
        await eventually(lambda: hub._known is not None and hub._known.events.mark >= FLOOD + 300)
        back, subscribed = await joined(hub, "session:chat", elsewhere(start.cursor))
        assert Cursor.read(subscribed.cursor).hub == "other"
        *events, skipped = await until(back, lambda message: isinstance(message, Skipped))
        assert len(events) == FLOOD
        cursors = {message.cursor for message in events if isinstance(message, Happened)}
        assert cursors == {subscribed.cursor}, "only what says that some are left out leads on"
        assert isinstance(skipped, Skipped)
        assert skipped.cursor != subscribed.cursor

    run(tmp_path, main, live_pause_seconds=0.01, live_look_seconds=0.01)


def test_an_old_cursor_is_not_read_and_several_topics_share_an_answer(tmp_path: Path) -> None:
    async def main(house: House) -> None:
        hub = house.services.live
        start = await begun(hub)
        limits: list[int] = []
        look = house.store.runs.look

        async def counted(mark: Mark, limit: int) -> Changes:
            limits.append(limit)
            return await look(mark, limit)

        house.store.runs.look = counted  # type: ignore[method-assign]
        await enqueue(house, 5)
        for topic in ("overview", "run:1", "run:2", "schedule:backup"):
            await joined(hub, topic, elsewhere(start.cursor))
        assert limits.count(FLOOD) == 1, "a replay for each topic"
        await enqueue(house, FLOOD + 1, delay="1h")
        async with hub._turn:
            await hub._look(await hub._begun())
        limits.clear()
        back, _ = await joined(hub, cursor=elsewhere(start.cursor))
        assert FLOOD not in limits
        (skipped,) = await until(back, lambda message: isinstance(message, Skipped))
        assert isinstance(skipped, Skipped)
        assert skipped.runs == FLOOD + 6

    run(tmp_path, main, live_look_seconds=60.0)


@pytest.mark.parametrize("of", ["this hub", "another hub"])
def test_what_was_missed_is_put_in_small_parts_and_nothing_new_comes_in_between(tmp_path: Path, of: str) -> None:
    async def main(house: House) -> None:
        hub = house.services.live
        _, start = await joined(hub, "run:0")
        ids = await enqueue(house, 1_500, delay="1h")
        await eventually(lambda: hub._known is not None and hub._known.run == ids[-1])
        cursor = start.cursor if of == "this hub" else elsewhere(start.cursor)
        back, parts = Listener(), [0]
        coming = asyncio.create_task(hub.subscribe(back, "overview", cursor))
        adding: asyncio.Task[list[int]] | None = None
        while not coming.done():
            await asyncio.sleep(0)
            parts.append(back.waiting)
            if back.waiting and adding is None:
                adding = asyncio.create_task(enqueue(house, 3))
        assert max(second - first for first, second in pairwise(parts)) <= 5 + 1
        assert adding is not None
        later = await adding
        heard = await until(back, lambda message: run_of(message) == later[-1])
        assert [run_of(message) for message in heard[1:]] == [*ids, *later]

    run(tmp_path, main, live_batch=5, live_look_seconds=0.01)


def test_a_replay_is_made_in_a_thread_and_written_once_for_all_who_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[LiveEvent] = []
    threads: list[int] = []
    encoded, between = live_service._encoded, live_events.events_between

    def counted(event: LiveEvent, zone: str) -> msgspec.Raw:
        written.append(event)
        return encoded(event, zone)

    def noted(known: Known, mark: Mark, changes: Changes, now: Micros, limit: int) -> Told:
        if limit == FLOOD:
            threads.append(threading.get_ident())
        return between(known, mark, changes, now, limit)

    monkeypatch.setattr(live_service, "_encoded", counted)
    monkeypatch.setattr(live_service, "events_between", noted)

    async def main(house: House) -> None:
        hub = house.services.live
        start = await begun(hub)
        await enqueue(house, 300)
        for number in range(3):
            back, _ = await joined(hub, cursor=elsewhere(start.cursor))
            assert back.waiting == 300
            await joined(hub, f"run:{number}", elsewhere(start.cursor))
        told_as_it_comes = 250  # by the look before the replay, to who listens already
        assert len(written) == 300 + told_as_it_comes
        assert len(threads) == 1
        assert threads[0] != threading.get_ident()

    run(tmp_path, main, live_look_seconds=60.0)


def test_who_takes_many_messages_lets_others_go_on(tmp_path: Path) -> None:
    async def main(house: House) -> None:
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

    run(tmp_path, main)


# --- beginning, and going on ----------------------------------------------------------------------------------------


def test_more_runs_than_a_look_holds_are_under_way_when_the_first_listener_comes(tmp_path: Path) -> None:
    async def main(house: House) -> None:
        await house.services.lanes.set("main", limit=1_000)
        ids = await enqueue(house, 600)
        now = SystemClock().now()
        running = (await house.store.runs.claim_runs(claim(room=600, now=now, tasks=("work",)))).runs
        assert len(running) == 600
        listener, _ = await joined(house.services.live)
        now = SystemClock().now()
        await house.store.runs.finish_runs([finish(one, started_at=now, finished_at=now) for one in running])
        ended: set[int | None] = set()
        while ended != set(ids):
            ended |= {run_of(message) for message in await until(listener, lambda message: True)}

    run(tmp_path, main)


def test_who_comes_while_the_hub_comes_to_its_end_is_told(tmp_path: Path) -> None:
    async def main(house: House) -> None:
        hub = house.services.live
        for turn in range(20):
            gone, _ = await joined(hub)
            hub.leave(gone)
            await asyncio.sleep(turn * 0.002)  # now before the hub ends, now just when, now after
            listener, _ = await joined(hub, cursor="other.0.0.0.0.0" if turn % 2 else None)
            assert hub.is_looking
            (id,) = await enqueue(house, 1)
            await until(listener, lambda message, id=id: run_of(message) == id)  # type: ignore[misc]
            hub.leave(listener)
        await eventually(lambda: not hub.is_looking)

    run(tmp_path, main, live_linger_seconds=0.0, live_pause_seconds=0.01, live_look_seconds=0.01)


def test_what_is_committed_after_the_hub_began_is_told_though_its_number_is_older(postgres_url: str) -> None:
    event = "INSERT INTO events (at, session, kind, data) VALUES (1, 'chat', 'stopped', '{}')"
    entry = "INSERT INTO audit (at, who, door, verb, object, detail) VALUES (1, 'ada', 'cli', %s, 'backup', '{}')"

    async def main() -> None:
        house = await open_house(Settings(db=postgres_url), SystemClock(), Registry())
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
                chat, _ = await joined(house.services.live, "session:chat")
                schedule, _ = await joined(house.services.live, "schedule:backup")
                await late.commit()
                (told,) = await until(chat, lambda message: isinstance(message, Happened))
                (removed,) = await until(schedule, lambda message: isinstance(message, Happened))
                assert isinstance(told, Happened)
                assert isinstance(removed, Happened)
                assert msgspec.json.decode(told.event)["data"]["id"] == 1
                assert msgspec.json.decode(removed.event)["kind"] == "schedule_removed"
        finally:
            await house.close()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_watch_that_fails_does_not_end_the_looking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = iter([StoreUnavailable("away"), RuntimeError("broken"), *[StoreUnavailable("away")] * 1_000])

    async def fail(watch: object, seconds: float) -> None:
        raise next(failures)

    monkeypatch.setattr(live_service, "_changed", fail)

    async def main(house: House) -> None:
        listener, _ = await joined(house.services.live)
        for _ in range(3):
            (id,) = await enqueue(house, 1)
            await until(listener, lambda message, id=id: run_of(message) == id)  # type: ignore[misc]

    run(tmp_path, main, live_pause_seconds=0.01)


# --- output ---------------------------------------------------------------------------------------------------------


def test_a_long_output_is_read_once_and_told_to_its_end(tmp_path: Path) -> None:
    async def main(house: House) -> None:
        (id,) = await enqueue(house, 1)
        now = SystemClock().now()
        (one,) = (await house.store.runs.claim_runs(claim(room=1, now=now, tasks=("work",)))).runs
        await house.store.runs.report_runs([Report(one.id, one.token, output=said(*[" x\n" * 5_000] * 4))])
        reads = 0
        read_output = house.store.runs.read_output

        async def counted(id: Any) -> list[OutputPart]:
            nonlocal reads
            reads += 1
            return await read_output(id)

        house.store.runs.read_output = counted  # type: ignore[method-assign]
        listener, other = Listener(), Listener()
        await house.services.live.subscribe(listener, f"output:{id}")
        await house.services.live.subscribe(other, f"output:{id}", "19990")
        assert numbers(await until(other, lambda message: 20_000 in numbers([message]))) == list(range(19_991, 20_001))
        heard = await until(listener, lambda message: 20_000 in numbers([message]))
        assert numbers(heard) == list(range(1, 20_001))
        await house.store.runs.finish_runs([finish(one, output=said(" last\n"))])
        for each in (listener, other):
            assert numbers(await until(each, lambda message: isinstance(message, Ended))) == [20_001]
        assert reads <= 4, "it was read again for each message"

    run(tmp_path, main)


def numbers(messages: list[Message]) -> list[int]:
    lines = [line for message in messages if isinstance(message, Lines) for line in message.lines]
    return [line.number for line in lines if line.number is not None]
