"""A row that nobody can work with stops no service: it is set aside with its reason, and everything else goes on."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ostinato import Ostinato, RunState
from ostinato.engine.node import Engine
from ostinato.engine.quarantine import PAUSE, WHOLE
from ostinato.models.live import Position
from ostinato.models.run import RunFilter
from ostinato.stores.quarantine import Seen
from ostinato.stores.rules import KEYS, UNREADABLE
from ostinato.testing import FakeClock, drain
from ostinato.wiring import Container
from tests.stores.places import raw, switch_checks_off

HUGE = 2**63 - 1


def sql(app: Ostinato, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements past every check; answers the rows of the last."""

    async def run(engine: Engine) -> list[tuple[Any, ...]]:
        await switch_checks_off(engine.store)
        rows: list[tuple[Any, ...]] = []
        for statement in statements:
            rows = await raw(engine.store, statement)
        return rows

    return app.with_engine(run)


@pytest.mark.parametrize("bad", ["attempt = 0", "started_at = NULL", "attempt = 0, started_at = NULL"])
def test_a_running_run_that_never_started_does_not_keep_others_from_being_rescued(app: Ostinato, bad: str) -> None:
    job = app.task("job")(lambda: None)
    first, second = job.enqueue(), job.enqueue()
    gone = "state = 'running', attempt = 1, token = 1, started_at = 5, node = 'gone'"
    sql(app, f"UPDATE runs SET {gone}", f"UPDATE runs SET {bad} WHERE id = {first.id}")
    drain(app)
    run = app.runs.get(first.id)
    assert (run.state, run.reason) == (RunState.FAILED, f"{UNREADABLE}it is running and has never started")
    assert app.runs.get(second.id).reason != run.reason
    assert app.runs.get(second.id).attempt >= 1, "it was rescued"


@pytest.mark.parametrize("bad", [f"token = {HUGE}", f"attempt = {HUGE}"])
def test_a_token_that_cannot_grow_does_not_stop_the_dispatcher(app: Ostinato, bad: str) -> None:
    job = app.task("job")(lambda: None)
    first, second = job.enqueue(), job.enqueue()
    sql(app, f"UPDATE runs SET {bad} WHERE id = {first.id}")
    drain(app)
    assert app.runs.get(first.id).reason == f"{UNREADABLE}one of its numbers is out of range"
    assert app.runs.get(second.id).state is RunState.SUCCEEDED


def test_a_lane_with_no_rate_to_speak_of_is_paused_and_the_others_go_on(app: Ostinato) -> None:
    job = app.task("job")(lambda: None)
    slow, other = app.enqueue("job", lane="cron"), job.enqueue()
    sql(app, "UPDATE lanes SET rate_count = 0, rate_per = 0 WHERE name = 'cron'")
    drain(app)
    assert other.get().state is RunState.SUCCEEDED
    assert slow.get().state is RunState.QUEUED
    lane = app.lanes.get("cron")
    assert (lane.paused, lane.note) == (True, f"{UNREADABLE}its rate is not a rate")


def test_a_schedule_that_cannot_be_moved_on_is_broken_and_the_others_fire(app: Ostinato, fake_clock: FakeClock) -> None:
    app.task("job")(lambda: None)
    for name in ("bad", "good"):
        app.schedules.add(name, "every 1h", "job")
    sql(app, f"UPDATE schedules SET remaining = {-HUGE}, version = {HUGE}, failures = {HUGE} WHERE name = 'bad'")
    fake_clock.advance("1h")
    drain(app)

    async def sweep(engine: Engine) -> int:
        return await engine.quarantine.sweep()

    app.with_engine(sweep)
    assert [run.state for run in app.runs.list(schedule="good")] == [RunState.SUCCEEDED]
    assert (app.schedules.get("bad").broken or "").startswith(UNREADABLE)


def test_an_error_of_another_kind_is_raised_and_the_ledger_is_not_gone_through_each_time(
    app: Ostinato, fake_clock: FakeClock
) -> None:
    async def look(engine: Engine) -> None:
        looks = 0
        find_bad = engine.store.quarantine.find_bad

        async def counted(limit: int, seen: Seen | None = None) -> Any:
            nonlocal looks
            looks += 1
            return await find_bad(limit, seen)

        async def fails() -> None:
            raise ValueError("no row is at fault")

        engine.quarantine._store.find_bad = counted  # type: ignore[method-assign]
        for _ in range(3):
            with pytest.raises(ValueError, match="no row is at fault"):
                await engine.quarantine.attempt(fails)
        assert looks == 1
        fake_clock.advance(PAUSE / 1_000_000)
        with pytest.raises(ValueError, match="no row is at fault"):
            await engine.quarantine.attempt(fails)
        assert looks == 2

    app.with_engine(look)


def test_what_is_new_is_looked_at_in_an_hour_and_everything_in_a_day(app: Ostinato, fake_clock: FakeClock) -> None:
    job = app.task("job")(lambda: None)
    old = [job.enqueue() for _ in range(2)]

    async def look(engine: Engine) -> None:
        async def spoil(id: int) -> None:
            await raw(engine.store, f"UPDATE runs SET count = 0 WHERE id = {id}")

        await switch_checks_off(engine.store)
        await spoil(old[0].id)
        assert await engine.quarantine.sweep_new() == 1, "the first looks at everything"
        await spoil(old[1].id)
        new = max(await raw(engine.store, "SELECT max(id) + 1 FROM runs"))[0]
        await raw(engine.store, _filled(GOOD, {"{now}": str(engine.clock.now())}))
        await spoil(new)
        await raw(engine.store, "UPDATE lanes SET rate_count = 0, rate_per = 0 WHERE name = 'cron'")
        assert await engine.quarantine.sweep_new() == 2, "the new run and the lane"
        fake_clock.advance(WHOLE / 1_000_000)
        assert await engine.quarantine.sweep_new() == 1, "the old run"

    app.with_engine(look)


WHOLE_NUMBERS = [HUGE, -HUGE, 0, -1, 7]
TEXT = [
    "",
    "garbage",
    "[" * 2000,
    '{"kind":"dance"}',
    "[1,{}]",
    "Mars/Olympus",
    "every blue moon",
    "\x1b[31m\n",
    "null",
]
LEFT_ALONE = {
    # What the rest hangs on by references, or what decides whose row it is.
    "runs": {"id", "schedule_id", "key"},
    "schedules": {"id", "name"},
    "attempts": {"run_id", "number"},
    "lanes": {"name"},
    "sessions": {"key"},
    "events": {"id"},
    "nodes": {"id"},
    "projects": {"name"},
    "tokens": {"id", "hash", "name"},
    "login_codes": {"hash", "token_id"},
    "logins": {"id", "hash", "token_id"},
    "audit": {"id"},
}


def columns(app: Ostinato, table: str) -> dict[str, str]:
    """The columns of a table, each with its type."""
    if "postgres" not in app.settings.db:
        return {row[1]: row[2].lower() for row in sql(app, f"SELECT * FROM pragma_table_info('{table}')")}
    query = "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = current_schema()"
    return {row[0]: row[1] for row in sql(app, f"{query} AND table_name = '{table}'")}


def hostile(kind: str) -> list[str]:
    if kind in ("integer", "bigint"):
        return [str(value) for value in WHOLE_NUMBERS]
    return ["'" + value + "'" for value in TEXT] if kind == "text" else []


async def look_at_everything(engine: Engine) -> None:
    """Every list that people have, and every step of the engine."""
    store, now = engine.store, engine.clock.now()
    registry = engine.registry
    services = Container(store, engine.clock, engine.settings, registry).services
    await services.runs.list(limit=100)
    await store.runs.list_runs(RunFilter(brief=True))
    await store.runs.changes_since(Position(0, 0, 0, changed_at=0, finished_at=0), 100)
    for schedule in await services.schedules.list():
        await services.why.why(schedule.name)
    await services.lanes.list()
    await services.sessions.list()
    await store.sessions.list_events(None, 0, 100)
    await services.nodes.list()
    await services.nodes.statistics()
    await services.projects.list()
    await services.overview.look()
    await store.access.list_tokens()
    await store.access.list_logins(now, 0)
    await services.audit.page()
    await services.tasks.list()
    await services.upkeep.status()
    await services.upkeep.find_bad()
    watch = await store.watch()
    try:
        await watch.wake_hints(engine.id)
    finally:
        await watch.close()
    await engine.rescuer.rescue()
    engine.rescuer._explained_at = None
    await engine.rescuer.explain_unknown()
    # As the pruner does, which would wait for the clock in between.
    await engine.quarantine.attempt(services.upkeep.prune)


RUN = (
    "INSERT INTO runs (kind, task, work, policy, state, trigger, due_at, ready_at, lane, {more} session, mode) "
    "VALUES ('function', 'job', '{{\"kind\":\"function\",\"task\":\"job\"}}', '{{}}', {values}, 'talk', 'queue')"
)
GOOD = (
    "INSERT INTO runs (kind, task, work, policy, state, trigger, due_at, ready_at, lane, key) "
    "VALUES ('function', 'job', '{\"kind\":\"function\",\"task\":\"job\"}', '{}', 'queued', 'api', {now}, {now}, "
    "'subagent', 'good')"
)
VICTIMS: dict[str, list[str]] = {
    "runs": [
        RUN.format(more="", values="'queued', 'api', 1, 1, 'main'"),
        RUN.format(more="attempt, started_at, token, node,", values="'running', 'api', 1, 1, 'main', 1, 5, 1, 'gone'"),
    ],
    "schedules": [
        "INSERT INTO schedules (name, timing, zone, kind, task, work, policy, owner, enabled, anchor_at, created_at, "
        "updated_at, next_at) VALUES ('victim', 'every 1h', 'UTC', 'function', 'job', "
        '\'{"kind":"function","task":"job"}\', \'{}\', \'user\', {yes}, 1, 1, 1, 5)'
    ],
    "attempts": [
        RUN.format(more="finished_at, attempt,", values="'failed', 'api', 1, 1, 'main', 1, 1"),
        "INSERT INTO attempts (run_id, number, started_at, finished_at, state) SELECT max(id), 1, 1, 1, 'failed' "
        "FROM runs",
    ],
    "lanes": [
        "INSERT INTO lanes (name, max_running) VALUES ('victim', 5)",
        RUN.format(more="", values="'queued', 'api', 1, 1, 'victim'"),
    ],
    "sessions": ["INSERT INTO sessions (key, max_concurrent, sent_at) VALUES ('victim', 1, 1)"],
    "events": ["INSERT INTO events (at, kind, session, data) VALUES (1, 'stopped', 'victim', '{}')"],
    "nodes": [
        "INSERT INTO nodes (id, host, pid, slots, running, draining, tasks, started_at, seen_at, lease_until, "
        "services) VALUES ('victim', 'h', 1, 1, 0, {no}, '[]', 1, 1, 1, '{}')"
    ],
    "projects": ["INSERT INTO projects (name, folder, env, created_at) VALUES ('victim', '/', '{}', 1)"],
    "tokens": [
        "INSERT INTO tokens (name, role, owner, hash, created_at) VALUES ('victim', 'viewer', 'user', 'victim', 1)"
    ],
    "login_codes": [
        "INSERT INTO login_codes (hash, who, role, created_at, expires_at) VALUES ('victim', 'user', 'viewer', 1, 1)"
    ],
    "logins": [
        "INSERT INTO logins (hash, who, role, created_at, expires_at) VALUES ('victim', 'u', 'viewer', 1, {far})"
    ],
    "audit": [
        "INSERT INTO audit (at, who, door, verb, object, detail) VALUES (1, 'a', 'b', 'schedule.remove', 'd', '{}')"
    ],
}
VICTIM = {
    "runs": "session = 'talk'",
    "schedules": "name = 'victim'",
    "attempts": "number = 1",
    "lanes": "name = 'victim'",
    "sessions": "key = 'victim'",
    "events": "session = 'victim'",
    "nodes": "id = 'victim'",
    "projects": "name = 'victim'",
    "tokens": "name = 'victim'",
    "login_codes": "hash = 'victim'",
    "logins": "hash = 'victim'",
    "audit": "object = 'd'",
}
"""Which rows are spoilt."""


@pytest.mark.parametrize("db", ["sqlite"], indirect=True)
@pytest.mark.parametrize("table", list(KEYS))
def test_no_text_that_is_not_utf_8_stops_a_service_or_a_list(app: Ostinato, table: str) -> None:
    """PostgreSQL takes none."""
    app.task("job")(lambda: None)
    # Also in the middle of JSON that is valid otherwise.
    texts = ("CAST(x'7bff7d' AS TEXT)", "CAST(x'7b2261223a22ff227d' AS TEXT)")
    names = [name for name, kind in sorted(columns(app, table).items()) if kind == "text"]
    given = [(name, texts[number % 2]) for number, name in enumerate(names) if name not in LEFT_ALONE[table]]
    spoil_each(app, table, given)


@pytest.mark.parametrize("table", list(KEYS))
def test_no_value_of_any_column_stops_a_service_or_a_list(app: Ostinato, table: str) -> None:
    """Columns are set to hostile values in turn; all lists are read, and what is enqueued meanwhile succeeds."""
    app.task("job")(lambda: None)
    spoilt = [
        (column, value)
        for column, kind in sorted(columns(app, table).items())
        if column not in LEFT_ALONE[table]
        for value in hostile(kind)
    ]
    # A part of them, the same each time: in memory that is quick.
    chosen = random.Random(7).sample(spoilt, min(len(spoilt), 24 if ":memory:" in app.settings.db else 5))
    spoil_each(app, table, chosen)


def spoil_each(app: Ostinato, table: str, chosen: list[tuple[str, str]]) -> None:
    is_sqlite = "postgres" not in app.settings.db
    fills = {"{yes}": "1" if is_sqlite else "true", "{no}": "0" if is_sqlite else "false", "{far}": str(4 * 10**18)}
    victims = [_filled(statement, fills) for statement in VICTIMS[table]]

    async def spoil(engine: Engine) -> None:
        await switch_checks_off(engine.store)
        for column, value in chosen:
            told = f"{column} = {value[:40]}"
            for statement in (*victims, f"UPDATE {table} SET {column} = {value} WHERE {VICTIM[table]}"):
                await raw(engine.store, statement)
            await look_at_everything(engine)
            good = await raw(engine.store, "SELECT coalesce(max(id), 0) FROM runs")
            await raw(engine.store, _filled(GOOD, {"{now}": str(engine.clock.now())}))
            await engine.run_due()
            query = (
                f"SELECT state FROM runs WHERE id > {good[0][0]} AND session IS NULL AND task = 'job' AND key = 'good'"
            )
            assert await raw(engine.store, query) == [("succeeded",)], told
            await engine.quarantine.sweep()
            assert await engine.store.quarantine.find_bad(10) == [], told
            await look_at_everything(engine)
            of_node = table in ("lanes", "nodes")
            await raw(engine.store, f"DELETE FROM {table}" + (f" WHERE {VICTIM[table]}" if of_node else ""))
            await raw(engine.store, "DELETE FROM runs")

    app.with_engine(spoil)


def _filled(statement: str, fills: dict[str, str]) -> str:
    for name, text in fills.items():
        statement = statement.replace(name, text)
    return statement
