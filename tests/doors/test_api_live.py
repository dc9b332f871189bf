"""The live stream over real sockets: events of every node, going on after a drop, and a client that does not read is
dropped, while everybody else goes on."""

from __future__ import annotations

import json
import socket
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from ostinato import Shell
from ostinato.errors import StoreUnavailable
from ostinato.models.access import Actor
from ostinato.service.audit import acting
from ostinato.service.runs import EnqueueSpec
from tests.databases import SHARED, url_of
from tests.doors.live_socket import Api, Socket, api_on, eventually, listening, started
from tests.faults.nodes import nodes


@pytest.fixture(params=SHARED)
def db(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that several processes can open."""
    return url_of(request, tmp_path)


@pytest.fixture
def file_db(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'jobs.db'}"


@pytest.fixture
def node(file_db: str, tmp_path: Path) -> Iterator[None]:
    """A process that does what is enqueued there."""
    with nodes(file_db, tmp_path / "log", OSTINATO_SLOTS="8") as workers:
        workers.start()
        yield


async def enqueue(api: Api, count: int, task: str = "work", **options: Any) -> set[int]:
    spec = EnqueueSpec(task, options)
    return set(await api.container.services.runs.enqueue(spec, [((), {})] * count))


# --- what happens on other nodes ------------------------------------------------------------------------------------


async def test_events_of_two_nodes_come_once_and_in_order(db: str, tmp_path: Path) -> None:
    with nodes(db, tmp_path / "log", OSTINATO_SLOTS="8") as workers:
        workers.start()
        workers.start()
        async with api_on(db) as api, listening(api) as watcher:
            await watcher.subscribe("overview")
            ids = await enqueue(api, 40)
            await watcher.until_finished(ids)
            kinds: dict[int, list[str]] = defaultdict(list)
            for event in watcher.events():
                kinds[event["run"]["id"]].append(event["kind"])
            assert set(kinds) == ids
            for told in kinds.values():
                assert told == ["run_queued", "run_started", "run_finished"]
            finished = watcher.events("run_finished")
            assert len({event["run"]["node"] for event in finished}) == 2
            assert all(event["run"]["state"] == "succeeded" for event in finished)
            assert not {"work", "result", "attempts"} & set(finished[0]["run"])


@pytest.mark.usefixtures("node")
async def test_who_comes_back_hears_what_comes_from_then_on_wherever_that_is(file_db: str) -> None:
    async def heard(api: Api) -> None:
        async with listening(api) as watcher:
            await watcher.subscribe("overview")
            ids = await enqueue(api, 5)
            await watcher.until_finished(ids)
            assert {event["run"]["id"] for event in watcher.events()} == ids, "something of before was told"
            watcher.connection.transport.abort()  # no goodbye

    async with api_on(file_db) as first:
        for _ in range(2):
            await heard(first)
            await first.container.services.runs.wait_idle(timeout="30s")
        async with api_on(file_db) as second:
            await heard(second)
    async with api_on(file_db) as restarted:
        await heard(restarted)


@pytest.mark.usefixtures("node")
async def test_a_client_that_does_not_read_is_dropped_and_holds_up_nobody(file_db: str) -> None:
    # The seconds are of both: one that reads must never be that late.
    async with (
        api_on(file_db, small_buffers=True, live_send_seconds=3.0) as api,
        listening(api, max_queue=None) as reader,
    ):
        await reader.subscribe("overview")
        narrow = socket.socket()
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        narrow.connect(("127.0.0.1", api.port))
        async with listening(api, sock=narrow, max_queue=1, compression=None) as stuck:
            await stuck.subscribe("overview")
            ids = await enqueue(api, 400, lane="team")
            await reader.until_finished(ids)
            assert len(reader.events("run_finished")) == len(ids)
            hub = api.container.services.live
            await eventually(lambda: len(hub._topics["overview"]) == 1)
            with pytest.raises(ConnectionClosed):
                await stuck.until(lambda _: False)
        after = await enqueue(api, 1)
        await reader.until_finished(after)


@pytest.mark.usefixtures("node")
async def test_a_flood_is_skipped_and_what_comes_after_is_told(file_db: str) -> None:
    async with api_on(file_db) as api, listening(api) as watcher:
        await watcher.subscribe("overview")
        spec = EnqueueSpec("work", {}, delay="1h")
        await api.container.services.runs.enqueue(spec, [((), {})] * 6_000)
        skipped = await watcher.until(lambda message: message["type"] == "skipped")
        assert skipped["topic"] == "overview"
        assert skipped["runs"] + len(watcher.events("run_queued")) >= 6_000
        await watcher.until_finished(await enqueue(api, 3))


# --- topics --------------------------------------------------------------------------------------------------------


async def test_a_topic_tells_its_own_events_alone(file_db: str) -> None:
    async with api_on(file_db) as api, listening(api) as watcher:
        services = api.container.services
        one, two = sorted(await enqueue(api, 2))
        await watcher.subscribe(f"run:{one}")
        await watcher.subscribe("schedule:backup")
        await services.runs.cancel(two)
        await services.runs.cancel(one)
        await services.schedules.add("backup", "every 1h", "https://example.org/x")
        await watcher.until(lambda message: message.get("topic") == "schedule:backup")
        assert {event["run"]["id"] for event in watcher.events("run_finished")} == {one}
        assert watcher.events("run_finished")[0]["run"]["state"] == "cancelled"
        await watcher.send("unsubscribe", topic=f"run:{one}")
        await watcher.send("ping")
        await watcher.until(lambda message: message["type"] == "pong")


async def test_a_schedule_that_breaks_is_told_with_the_reason(db: str) -> None:
    async with api_on(db) as api, listening(api) as watcher:
        await watcher.subscribe("schedule:backup")
        await api.container.services.schedules.add("backup", "every 1s", Shell("exit 3"), retry=0, break_after=1)
        await started(api)
        broken = await watcher.until(lambda message: message.get("event", {}).get("kind") == "schedule_broken")
        assert broken["event"]["data"]["enabled"] is False
        assert "a scheduled run failed" in broken["event"]["data"]["broken"]


async def test_changed_and_removed_schedules_are_told(file_db: str) -> None:
    async with api_on(file_db) as api, listening(api) as watcher:
        services = api.container.services
        await watcher.subscribe("overview")
        await services.schedules.add("backup", "every 1h", "https://example.org/x")
        await watcher.until(lambda message: message.get("event", {}).get("kind") == "schedule_changed")
        await services.schedules.disable("backup")
        disabled = await watcher.until(lambda message: message.get("event", {}).get("kind") == "schedule_changed")
        assert disabled["event"]["data"]["enabled"] is False
        with acting(Actor("ada", "page")):
            await services.schedules.remove("backup")
        removed = await watcher.until(lambda message: message.get("event", {}).get("kind") == "schedule_removed")
        assert removed["event"]["schedule"] == "backup"


async def test_what_happens_in_a_session_is_told_to_who_listens_to_it(file_db: str) -> None:
    async with api_on(file_db) as api, listening(api) as watcher:
        await watcher.subscribe("session:chat")
        spec = EnqueueSpec("work", {"session": "chat"})
        (id,) = await api.container.services.runs.enqueue(spec, [((), {})])
        while len(watcher.events()) < 2:
            assert (await watcher.next())["topic"] == "session:chat"
        assert watcher.events("run_queued")[0]["run"]["id"] == id
        (event,) = watcher.events("session_event")
        assert (event["data"]["kind"], event["data"]["run"]) == ("enqueued", id)


async def test_output_comes_as_it_is_printed_and_from_any_line_on(file_db: str, tmp_path: Path) -> None:
    path = tmp_path / "go"
    script = f"for i in 1 2 3; do echo line $i; done; while [ ! -e {path} ]; do sleep 0.02; done; echo last"
    async with api_on(file_db) as api, listening(api) as watcher, listening(api) as other:
        await started(api)
        id = (await api.container.services.runs.enqueue_work(Shell(script))).id
        for one, after in ((watcher, None), (other, "2")):
            assert (await one.subscribe(f"output:{id}", after))["cursor"] == (after or "0")
        assert await lines_until(watcher, "line 3") == ["line 1", "line 2", "line 3"]
        assert await lines_until(other, "line 3") == ["line 3"]
        assert len(api.container.services.live._outputs._tasks) == 1
        path.touch()
        for one in (watcher, other):
            ended = await one.until(lambda message: message["type"] == "ended")
            assert ended["topic"] == f"output:{id}"
            assert one.messages[-2]["lines"][-1]["line"] == "last"
        await watcher.subscribe(f"output:{id}", "3")
        assert await lines_until(watcher, "last") == ["last"]


async def lines_until(watcher: Socket, last: str) -> list[str]:
    lines: list[str] = []
    while last not in lines:
        message = await watcher.next()
        assert message["type"] == "lines", message
        lines += [line["line"] for line in message["lines"]]
        assert message["cursor"] == str(message["lines"][-1]["number"])
    return lines


# --- who may, and what is refused ----------------------------------------------------------------------------------


async def test_a_token_may_come_as_the_first_message(file_db: str) -> None:
    async with api_on(file_db) as api, listening(api, token=None) as watcher:
        await watcher.send("login", token=api.token)
        await watcher.subscribe("overview")


async def test_a_page_listens_with_its_cookie_and_the_key_of_its_origin(file_db: str) -> None:
    async with api_on(file_db) as api:
        cookie, key = await _logged_in(api)
        async with listening(api, token=None, cookie=cookie) as watcher:
            await watcher.send("login", origin_key=key)
            await watcher.subscribe("overview")
        async with listening(api, token=None) as stranger:
            await stranger.send("login", origin_key=key)
            assert (await stranger.next())["problem"]["status"] == 401
            await closed_with(stranger, 4401)


async def _logged_in(api: Api) -> tuple[str, str]:
    """The cookie of a browser, and the key of its page's origin."""
    code = await api.container.services.access.make_code(who="ada")
    new, _ = await api.container.services.access.login(code=code)
    return new.cookie, new.origin_key


@pytest.mark.parametrize(
    "first",
    [
        {"type": "login", "origin_key": "wrong"},
        {"type": "login", "origin_key": ""},
        {"type": "login"},
        {"type": "subscribe", "topic": "overview"},
        None,
    ],
)
async def test_nobody_listens_with_the_cookie_alone(file_db: str, first: Any) -> None:
    """It comes to every port of the host: another server there could open a socket with it."""
    async with api_on(file_db, live_login_seconds=0.2 if first is None else 5.0) as api:
        cookie, _ = await _logged_in(api)
        async with listening(api, token=None, cookie=cookie) as watcher:
            if first is not None:
                await watcher.connection.send(json.dumps(first))
            assert (await watcher.next())["problem"]["status"] == 401
            await closed_with(watcher, 4401)
            assert [message["type"] for message in watcher.messages] == ["error"]


async def test_a_socket_is_closed_when_its_login_ends(file_db: str) -> None:
    async with api_on(file_db, live_identify_seconds=0.05) as api:
        cookie, key = await _logged_in(api)
        async with listening(api, token=None, cookie=cookie) as watcher:
            await watcher.send("login", origin_key=key)
            await watcher.subscribe("overview")
            await api.container.services.access.end_logins("ada")
            await closed_with(watcher, 4401)


@pytest.mark.parametrize("first", [{"type": "login", "token": "ost_wrong"}, {"type": "ping"}, "no message", None])
async def test_nobody_listens_without_a_login(file_db: str, first: Any) -> None:
    async with api_on(file_db, live_login_seconds=0.2) as api, listening(api, token=None) as watcher:
        if first is not None:
            await watcher.connection.send(json.dumps(first))
        refused = await watcher.next()
        assert refused["type"] == "error"
        assert refused["problem"]["status"] == 401
        await closed_with(watcher, 4401)


@pytest.mark.parametrize("first", [{"type": "login", "token": "ost_any"}, None])
async def test_who_comes_while_the_database_is_away_is_not_told_to_log_in(
    file_db: str, monkeypatch: pytest.MonkeyPatch, first: Any
) -> None:
    async with api_on(file_db) as api:

        async def away(*_: Any) -> None:
            raise StoreUnavailable("the database is away")

        monkeypatch.setattr(api.container.services.access, "who_by_token", away)
        async with listening(api, token=None if first else "") as watcher:
            if first is not None:
                await watcher.connection.send(json.dumps(first))
            assert (await watcher.next())["problem"]["status"] == 503
            await closed_with(watcher, 1013)


async def test_a_socket_is_closed_when_its_token_is_removed(file_db: str) -> None:
    async with api_on(file_db, live_identify_seconds=0.05) as api, listening(api) as watcher:
        await watcher.subscribe("overview")
        (token,) = await api.container.services.access.tokens()
        await api.container.services.access.remove_token(token.id)
        await closed_with(watcher, 4401)


async def closed_with(watcher: Socket, code: int) -> None:
    with pytest.raises(ConnectionClosed):
        await watcher.until(lambda _: False)
    assert watcher.connection.close_code == code


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({"type": "subscribe", "topic": "weather"}, "topic"),
        ({"type": "subscribe", "topic": "overview:all"}, "topic"),
        ({"type": "subscribe", "topic": "run:seven"}, "topic"),
        ({"type": "subscribe", "topic": "overview", "cursor": "a.1.2.3.4.5"}, "cursor"),
        ({"type": "subscribe", "topic": "output:1", "cursor": "9" * 5_000}, "cursor"),
        ({"type": "subscribe", "topic": "output:1", "cursor": "-1"}, "cursor"),
        ({"type": "shout"}, "type"),
        ("not an object", "type"),
    ],
)
async def test_a_wrong_message_gets_an_error_and_the_socket_goes_on(file_db: str, message: Any, field: str) -> None:
    async with api_on(file_db) as api, listening(api) as watcher:
        await watcher.connection.send(json.dumps(message))
        answer = await watcher.next()
        assert answer["type"] == "error"
        assert answer["problem"]["errors"][0]["field"] == field
        await watcher.subscribe("overview")


async def test_the_output_of_a_run_that_is_not_there_is_an_error(file_db: str) -> None:
    async with api_on(file_db) as api, listening(api) as watcher:
        await watcher.send("subscribe", topic="output:77")
        answer = await watcher.next()
        assert (answer["topic"], answer["problem"]["status"]) == ("output:77", 404)


async def test_a_socket_takes_fifty_topics_and_no_message_of_more_than_64_kb(file_db: str) -> None:
    async with api_on(file_db) as api, listening(api) as watcher:
        for number in range(50):
            await watcher.subscribe(f"run:{number}")
        await watcher.send("subscribe", topic="run:50")
        assert (await watcher.next())["problem"]["errors"][0]["field"] == "topic"
        await watcher.subscribe("run:49")
        await watcher.send("subscribe", topic="x" * 70_000)
        await closed_with(watcher, 1009)
