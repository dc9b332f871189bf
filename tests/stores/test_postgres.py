"""What only PostgreSQL has: connections that break, schemas, URLs, prepared statements."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import psycopg
import pytest

from ostinato.errors import InvalidInput, StoreError, StoreUnavailable
from ostinato.models.ids import NodeId
from ostinato.models.notification import RULE_KINDS
from ostinato.models.run import Ending, RunFilter
from ostinato.models.schedule import Pause
from ostinato.models.states import Cause, RunState
from ostinato.stores.base import Settled
from ostinato.stores.postgres import claims, connection
from ostinato.stores.postgres.connection import Server
from ostinato.stores.postgres.query import Connection, booleans, numbers, texts
from ostinato.stores.postgres.store import PostgresStore
from ostinato.stores.sql import pauses, schedules
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    beat,
    change,
    claim,
    claim_one,
    draft,
    finish,
    new_run,
    put,
    put_many,
    retry,
)
from ostinato.testing.store_suite.telling import add_channels, end
from tests.conftest import tuned
from tests.stores.places import blocked_by, opened, raw


@pytest.fixture
def store(postgres_store: PostgresStore) -> PostgresStore:
    return postgres_store


def hang_up(admin: psycopg.Connection[Any]) -> int:
    """End every connection to the database but this one, and wait until they are gone."""
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    ended = admin.execute(f"SELECT pg_terminate_backend(pid, 5000) {others} AND backend_type = 'client backend'")
    return len(ended.fetchall())


async def test_a_store_whose_connections_were_ended_goes_on_by_itself(
    store: PostgresStore, admin: psycopg.Connection[Any]
) -> None:
    for number in range(1, 4):
        await store.runs.insert_runs([new_run()])
        assert len(await store.runs.list_runs(RunFilter())) == number
        assert hang_up(admin) >= 2
        # Both kinds of connection are dead now: the next write and the next reads get new ones.
        if number % 2:
            assert len(await store.runs.list_runs(RunFilter())) == number
    await store.runs.insert_runs([new_run()])
    assert len((await store.runs.claim_runs(claim())).runs) == 4


async def test_connections_that_end_under_load_lose_and_double_nothing(
    store: PostgresStore, admin: psycopg.Connection[Any]
) -> None:
    acknowledged: list[str] = []
    go_on = asyncio.Semaphore(0)

    async def enqueue(worker: int) -> None:
        for number in range(30):
            key = f"{worker}/{number}"
            await store.runs.insert_runs([new_run(key=key, lane="nowhere")])
            acknowledged.append(key)
            go_on.release()

    async def interrupt() -> None:
        for _ in range(5):
            for _ in range(20):
                await go_on.acquire()
            await asyncio.to_thread(hang_up, admin)

    await asyncio.gather(*(enqueue(worker) for worker in range(6)), interrupt())
    keys = await raw(store, "SELECT key FROM runs")
    assert sorted(key for (key,) in keys) == sorted(acknowledged)
    assert len(acknowledged) == 180


async def test_a_watch_whose_connection_was_ended_listens_again_and_says_that_something_may_have_changed(
    store: PostgresStore, admin: psycopg.Connection[Any]
) -> None:
    watch = await store.watch()
    try:
        hang_up(admin)
        await asyncio.wait_for(watch.changed(), 10)
        await store.runs.insert_runs([new_run()])
        await asyncio.wait_for(watch.changed(), 10)
        assert (await watch.wake_hints(NodeId("n"))).ready_at == NOW
    finally:
        await watch.close()


async def test_a_server_that_stays_away_is_told_within_a_bound(tmp_path: Any) -> None:
    nowhere = PostgresStore(f"postgresql://postgres:@/postgres?host={tmp_path}")
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await nowhere.open()
    await nowhere.close()


@tuned(postgres_effort_seconds=0.2)
async def test_callers_learn_that_the_server_is_gone_and_the_store_recovers_when_it_is_back(
    store: PostgresStore, admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = Server.connect

    async def refuse(self: Server, *, key: int | None = None) -> Connection:
        raise psycopg.OperationalError("connection refused")

    monkeypatch.setattr(Server, "connect", refuse)
    hang_up(admin)
    for call in (
        store.runs.insert_runs([new_run()]),
        store.runs.claim_runs(claim()),
        store.runs.list_runs(RunFilter()),
    ):
        with pytest.raises(StoreUnavailable, match="connection refused"):
            await call
    monkeypatch.setattr(Server, "connect", connect)
    await store.runs.insert_runs([new_run()])
    assert len(await store.runs.list_runs(RunFilter())) == 1


async def test_an_operation_that_raises_after_it_has_written_leaves_nothing(store: PostgresStore) -> None:
    async def half(connection: Connection) -> None:
        await connection.execute("INSERT INTO lanes (name, max_running) VALUES ('half', 1)")
        raise RuntimeError("changed my mind")

    answers = await asyncio.gather(
        store.runs.insert_runs([new_run()]),
        store._database.write(half),
        store.runs.insert_runs([new_run()]),
        return_exceptions=True,
    )
    assert isinstance(answers[1], RuntimeError)
    assert "half" not in [lane.name for lane in await store.lanes.list_lanes()]
    assert len(await store.runs.list_runs(RunFilter())) == 2


async def test_plain_ends_are_one_statement(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.runs.insert_runs([new_run()] * 3)
    claimed = (await store.runs.claim_runs(claim())).runs
    sent = []

    async def execute(self: Any, query: Any, *args: Any, **options: Any) -> Any:
        sent.append(query)
        return await run(self, query, *args, **options)

    run = psycopg.AsyncConnection.execute
    monkeypatch.setattr(psycopg.AsyncConnection, "execute", execute)
    await store.runs.finish_runs([finish(one, result="1") for one in claimed])
    assert len(sent) == 1


async def test_a_claim_seeks_by_the_index_of_what_is_ready(store: PostgresStore) -> None:
    await store.runs.insert_runs(
        [new_run(task=task, ready_at=NOW - n) for n in range(300) for task in ("report", None)]
    )
    claim_sql = claims._CLAIM
    values = {"node": "n", "now": NOW, "horizon": NOW, "ahead": 0, "room": 5, "tasks": "{report}", "settled": True}

    async def explain(connection: Connection) -> str:
        cursor = await connection.execute("EXPLAIN " + claim_sql, values)
        return "\n".join(line for (line,) in await cursor.fetchall())

    for _ in range(2):
        shown = await store._database.write(explain)
        candidate = shown[shown.index("CTE candidate") : shown.index("CTE share")]
        assert "Index Scan using runs_ready" in candidate, shown
        assert "Sort" not in candidate.split("LockRows")[-1], shown
        await raw(store, "ANALYZE runs")


@pytest.mark.parametrize(
    "end",
    [
        lambda store, id: store.schedules.put_schedules([draft(owner="code", origin="app")], NOW + HOUR),
        lambda store, id: store.schedules.change_schedule(id, 1, change(next_at=NOW + 2 * HOUR), NOW + HOUR),
        lambda store, id: store.schedules.mark_orphans("app", [], NOW + HOUR),
    ],
    ids=["another budget", "the switch", "orphaned"],
)
async def test_a_hold_that_another_node_is_just_ending_is_not_ended_once_more(
    store: PostgresStore, admin: psycopg.Connection[Any], end: Callable[[PostgresStore, int], Coroutine[Any, Any, Any]]
) -> None:
    id = await put(store, owner="code", origin="app", policy='{"budget":{"per_day_runs":2}}')
    due = NOW + 5 * MINUTE
    assert await store.schedules.pause_schedule(id, 1, Pause(due, NOW + 10 * HOUR, Cause.BUDGET, "budget: spent"), NOW)
    with admin.transaction():
        admin.execute("UPDATE ostinato.schedules SET next_at = 7, paused_since = NULL, paused_reason = NULL")
        ending = asyncio.ensure_future(end(store, id))
        await asyncio.wait_for(blocked_by(admin), 10)
    await asyncio.wait_for(ending, 10)
    assert await raw(store, "SELECT count(*) FROM runs") == [(0,)]
    (row,) = await raw(store, "SELECT next_at, paused_since, version FROM schedules")
    assert row in [(7, None, 2), (NOW + 2 * HOUR, None, 2), (None, None, 2)]


@pytest.mark.parametrize("fields", [{"policy": '{"budget":{"per_day_runs":9}}'}, {"timing": "every 7m"}])
async def test_a_hold_that_begins_while_its_budget_or_timing_changes_ends_at_once(
    store: PostgresStore, admin: psycopg.Connection[Any], fields: dict[str, str]
) -> None:
    due, soon = NOW + 5 * MINUTE, NOW + 7 * MINUTE
    await put(store, policy='{"budget":{"per_day_runs":2}}')
    with admin.transaction():
        admin.execute(
            "UPDATE ostinato.schedules SET paused_since = next_at, paused_reason = 'spent', next_at = 2 * next_at"
        )
        given = {"policy": '{"budget":{"per_day_runs":2}}', **fields}
        putting = asyncio.ensure_future(store.schedules.put_schedules([draft(next_at=soon, **given)], NOW))
        await asyncio.wait_for(blocked_by(admin), 10)
    await asyncio.wait_for(putting, 10)
    assert await raw(store, "SELECT next_at, paused_since, paused_reason FROM schedules") == [
        (soon if "timing" in fields else due, None, None)
    ]


async def test_schedules_are_locked_in_the_order_of_their_ids_when_they_are_put(
    store: PostgresStore, admin: psycopg.Connection[Any]
) -> None:
    """As fires and finishes lock them: a put that went by their names would meet these in a deadlock."""
    first, second = await put(store, "z"), await put(store, "a")
    lock = "SELECT id FROM ostinato.schedules WHERE id = %s FOR NO KEY UPDATE"
    with admin.transaction():
        admin.execute(lock, (first,))
        putting = asyncio.ensure_future(put_many(store, [draft("a", note="new"), draft("z", note="new")]))
        await asyncio.wait_for(blocked_by(admin), 10)
        admin.execute(f"{lock} NOWAIT", (second,))
    assert await asyncio.wait_for(putting, 10) == [second, first]
    assert await raw(store, "SELECT DISTINCT note FROM schedules") == [("new",)]


async def test_incidents_are_locked_in_the_order_of_their_subjects_when_a_message_is_settled(
    store: PostgresStore, admin: psycopg.Connection[Any]
) -> None:
    """As failures and recoveries lock them, and before the deliveries: either would meet these in a deadlock."""
    await add_channels(store, rule=RULE_KINDS)
    await store.nodes.renew(beat("n"))
    for name in ("d", "a", "c", "b"):
        await end(store, name=name)
    (parcel,) = await store.notifications.claim_deliveries(NodeId("n"), NOW, [], 10)
    ids = [one.id for one in parcel.deliveries]
    lock = "SELECT id FROM ostinato.incidents WHERE subject = %s FOR NO KEY UPDATE"
    with admin.transaction():
        admin.execute(lock, ("a",))
        sent = Settled("phone", parcel.key, ids, NOW)
        settling = asyncio.ensure_future(store.notifications.settle_delivery(NodeId("n"), sent))
        await asyncio.wait_for(blocked_by(admin), 10)
        for name in ("b", "c", "d"):
            admin.execute(f"{lock} NOWAIT", (name,))
        admin.execute("SELECT id FROM ostinato.deliveries WHERE id = ANY (%s) FOR NO KEY UPDATE NOWAIT", (ids,))
    assert await asyncio.wait_for(settling, 10)


async def test_held_schedules_are_found_by_their_index(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await put_many(store, [draft(f"s{number:05}") for number in range(2_000)])
    await raw(store, "ANALYZE schedules")
    query = pauses._FIND.format(schedules._UNDECLARED)
    values = {"origin": "app", "declared": [f"s{number:05}" for number in range(500)]}

    async def look(connection: Connection) -> str:
        return "\n".join(line for (line,) in await connection.fetch(f"EXPLAIN {query}", values))

    shown = await store._database.write(look)
    assert "using schedules_held" in shown, shown


async def test_the_hot_statements_are_prepared_inside_pipelines(store: PostgresStore) -> None:
    await store.runs.insert_runs([new_run()] * 20)
    claimed = (await store.runs.claim_runs(claim(room=5))).runs
    for _ in range(3):
        claimed = (await store.runs.finish_runs([finish(run) for run in claimed], claim(room=5))).claimed.runs
    prepared = await raw(store, "SELECT statement FROM pg_prepared_statements WHERE generic_plans >= 3")
    assert [sum(start in text for (text,) in prepared) for start in ("WITH RECURSIVE", "UPDATE runs r SET state")] == [
        1,
        1,
    ]


async def test_a_failure_in_between_does_not_spoil_the_prepared_statements(
    store: PostgresStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    for _ in range(3):
        answers = await asyncio.gather(
            store.runs.insert_runs([new_run()]),
            store.runs.insert_runs([new_run(lane=None)]),
            store.runs.claim_runs(claim()),
            return_exceptions=True,
        )
        assert [isinstance(answer, StoreError) for answer in answers] == [False, True, False]
    assert len(await store.runs.list_runs(RunFilter(states=(RunState.RUNNING,)))) == 3


async def test_a_failure_before_anything_is_prepared_does_not_spoil_what_is_prepared_later(
    store: PostgresStore,
) -> None:
    for _ in range(3):
        for _ in range(3):
            with pytest.raises(StoreError, match="null value in column"):
                await store.runs.insert_runs([new_run(lane=None)])
        for _ in range(10):
            await store.runs.insert_runs([new_run()])
            assert len((await store.runs.claim_runs(claim(room=100))).runs) == 1
    assert len(await store.runs.list_runs(RunFilter(states=(RunState.RUNNING,)))) == 30


async def test_what_waited_too_long_for_a_lock_was_not_written_and_that_is_known(
    postgres_url: str, admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_LEAST_TRANSACTION_SECONDS", 0.3)
    async with opened(PostgresStore(postgres_url, lease=0.6)) as store:
        await store.lanes.ensure_lanes({"main": 30}, [])
        with admin.transaction():
            admin.execute("LOCK TABLE ostinato.runs IN EXCLUSIVE MODE")
            both = (store.runs.insert_runs([new_run()]), store.runs.insert_runs([new_run()]))
            answers = await asyncio.gather(*both, return_exceptions=True)
            assert [type(answer) for answer in answers] == [StoreUnavailable] * 2, "no OutcomeUnknown"
            assert "waited too long for a lock" in str(answers[0])
        assert await store.runs.list_runs(RunFilter()) == []
        (id,) = await store.runs.insert_runs([new_run()])
        assert [run.id for run in (await store.runs.claim_runs(claim())).runs] == [id]


async def test_two_schemas_of_one_database_know_nothing_of_each_other(store: PostgresStore, postgres_url: str) -> None:
    other = PostgresStore(postgres_url, schema="Other_1")
    await other.open()
    watch = await other.watch()
    try:
        await put(store)
        await store.runs.insert_runs([new_run()])
        assert await other.schedules.get_schedule("report") is None
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(watch.changed(), 0.2)
        await put(other)
        await asyncio.wait_for(watch.changed(), 5)
        assert (await other.upkeep.status()).schedules == 1
    finally:
        await watch.close()
        await other.close()


async def test_a_user_without_the_right_to_create_schemas_may_use_one_that_exists(
    admin: psycopg.Connection[Any], postgres_url: str
) -> None:
    admin.execute("DROP SCHEMA ostinato CASCADE")
    role = "ostinato_plain_" + admin.info.dbname[-6:]
    admin.execute(f"CREATE ROLE {role} LOGIN".encode())
    try:
        plain = postgres_url.replace("//postgres:", f"//{role}:", 1)
        refused = PostgresStore(plain)
        with pytest.raises(StoreError, match="grant"):
            await refused.open()
        admin.execute(f"CREATE SCHEMA ostinato AUTHORIZATION {role}".encode())
        store = PostgresStore(plain)
        await store.open()
        await put(store)
        await store.close()
    finally:
        admin.execute(f"DROP OWNED BY {role} CASCADE".encode())
        admin.execute(f"DROP ROLE {role}".encode())


@pytest.mark.parametrize("schema", ["", "a b", 'x"; DROP SCHEMA public; --', "pg_mine", "ä", "x" * 64, "1st"])
def test_a_schema_name_that_cannot_be_is_refused(schema: str) -> None:
    with pytest.raises(InvalidInput, match="schema"):
        PostgresStore("postgresql://localhost/x", schema=schema)


async def test_a_database_that_does_not_exist_is_told_with_the_fix(postgres_url: str) -> None:
    store = PostgresStore(postgres_url.replace("/ostinato_test_", "/no_such_", 1))
    with pytest.raises(StoreError, match=r'^database "no_such_.*createdb'):
        await store.open()


async def test_a_login_that_is_refused_is_told_with_the_fix(postgres_url: str) -> None:
    store = PostgresStore(postgres_url.replace("//postgres:", "//nobody_of_that_name:", 1))
    with pytest.raises(StoreError, match=r"nobody_of_that_name.*check user and password"):
        await store.open()


async def test_a_url_that_cannot_be_read_is_told_without_its_password() -> None:
    store = PostgresStore("postgresql://me:secret@host/db?no_such_option=1")
    with pytest.raises(StoreError, match="no_such_option") as caught:
        await store.open()
    assert "secret" not in str(caught.value)


def test_the_url_is_kept_and_people_see_it_without_the_password() -> None:
    url = "postgresql://me:s3cret@db.example:5433/jobs?sslmode=require&application_name=mine"
    store = PostgresStore(url)
    assert store.url == url
    assert Server(url, "ostinato").shown == url.replace("s3cret", "***")
    assert Server("postgresql://postgres:@/x?host=/tmp/y", "o").shown == "postgresql://postgres:@/x?host=/tmp/y"


async def test_what_the_url_says_of_the_connection_holds(postgres_url: str) -> None:
    store = PostgresStore(postgres_url + "&application_name=mine")
    await store.open()
    assert await raw(store, "SELECT current_setting('application_name')") == [("mine",)]
    assert await raw(store, "SELECT current_schema()") == [("ostinato",)]
    await store.close()


async def test_a_retry_with_a_nul_in_its_error_is_written(store: PostgresStore) -> None:
    await store.runs.insert_runs([new_run()])
    run = await claim_one(store)
    assert list((await store.runs.finish_runs([retry(run, error="a\0b", reason="c\0d")])).lost) == []
    cancelled = await store.runs.cancel_runs([run.id], Ending(Cause.CANCELLED, "e\0f"), NOW)
    assert list(cancelled.ended) == [run.id]


def test_columns_become_array_literals() -> None:
    assert texts(["a", None, 'b"c\\d', "NULL", ""]) == '{"a",NULL,"b\\"c\\\\d","NULL",""}'
    assert (texts([None, None]), texts([])) == (None, "{}")
    assert (numbers([1, None, -2]), numbers([None]), numbers([])) == ("{1,NULL,-2}", None, "{}")
    assert booleans([True, False]) == "{t,f}"


async def test_every_text_comes_back_through_an_array_literal(store: PostgresStore) -> None:
    odd = ["", " ", "NULL", "null", '"', "\\", '\\"', "{", "}", "{}", ",", "a,b", "\n\t\r", "'", "%s", "☃🎶", "\ufffd"]
    for values in (odd, [*odd, None]):
        (row,) = await store._database.read(lambda connection, values=values: _echo(connection, texts(values)))  # type: ignore[misc]
        assert row[0] == values
    for given, kept in ((["a\0", '"\0"', "b"], ["a\ufffd", '"\ufffd"', "b"]), (["\0", None], ["\ufffd", None])):
        (row,) = await store._database.read(lambda connection, given=given: _echo(connection, texts(given)))  # type: ignore[misc]
        assert row[0] == kept


async def _echo(connection: Connection, literal: str | None) -> list[tuple[Any, ...]]:
    cursor = await connection.execute("SELECT %s::text[]", (literal,))
    return await cursor.fetchall()
