"""Opening: migrations from every older version, once however many open, and never backwards."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from ostinato.errors import SchemaTooNew, StoreError
from ostinato.models.budget import UNKNOWN, Budget, Grant, Reservation, Spending
from ostinato.models.declared import Said, load_declared
from ostinato.models.live import Position
from ostinato.models.output import OutputPart
from ostinato.models.policy import Retry, load_policy, policy_text
from ostinato.models.run import Report, RunFilter
from ostinato.models.schedule import ScheduleFilter
from ostinato.models.states import RunState
from ostinato.stores.access import AccessCounts
from ostinato.stores.base import StateCount
from ostinato.stores.migrate import Migration, load_migrations, pending
from ostinato.stores.postgres.database import MIGRATIONS as POSTGRES_MIGRATIONS
from ostinato.stores.sqlite import database as sqlite_database
from ostinato.stores.sqlite.database import MIGRATIONS as SQLITE_MIGRATIONS
from ostinato.stores.sqlite.store import SqliteStore
from ostinato.testing.store_suite.builders import NOW, claim, claim_one, finish, new_run, part, put
from tests.stores.places import SqlitePlace, StorePlace, opened, raw

OLDER = [(kind, version) for kind, known in (("sqlite", SQLITE_MIGRATIONS), ("postgres", POSTGRES_MIGRATIONS))
         for version in range(len(known) + 1)]  # fmt: skip


def migrations(place: StorePlace) -> tuple[Migration, ...]:
    return SQLITE_MIGRATIONS if place.kind == "sqlite" else POSTGRES_MIGRATIONS


def bring_to(place: StorePlace, version: int) -> None:
    """Make the database one that an older program left: the migrations up to `version`, and nothing after."""
    if isinstance(place, SqlitePlace):
        Path(place.path).unlink(missing_ok=True)
    else:
        place.execute("DROP SCHEMA ostinato CASCADE")
    if version == 0:
        return
    number = "INTEGER" if place.kind == "sqlite" else "bigint"
    create = (
        f"CREATE TABLE migrations (version {number} PRIMARY KEY, name TEXT NOT NULL, applied_at {number} NOT NULL);"
    )
    for migration in migrations(place)[:version]:
        create += migration.sql + f";INSERT INTO migrations VALUES ({migration.version}, '{migration.name}', 0);"
    place.execute(create)


@pytest.mark.parametrize(("kind", "version"), OLDER)
async def test_every_older_version_is_brought_up_to_date_and_the_newest_left_as_it_is(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, version: int
) -> None:
    place: StorePlace = SqlitePlace(str(tmp_path / "jobs.db"))
    if kind == "postgres":
        place = request.getfixturevalue("postgres_place")
    bring_to(place, version)
    if version:
        rows = (
            OLD_SCHEDULE + OLD_RUN % ("running", 1, "'gone'", 1, 1, 1) + OLD_RUN % ("queued", 2, "NULL", 0, 0, "NULL")
        )
        place.execute(rows.replace("{yes}", "1" if kind == "sqlite" else "true"))
    async with opened(place.store()) as store:
        status = await store.upkeep.status()
        assert status.version == status.latest == len(migrations(place))
        applied = await raw(store, "SELECT version, name FROM migrations ORDER BY version")
        assert applied == [(migration.version, migration.name) for migration in migrations(place)]
        await store.lanes.ensure_lanes({"main": 5}, [])
        await put(store, "new")
        await store.runs.insert_runs([new_run()])
        left = ["report"] if version else []
        stale = (await store.runs.stale_runs([], NOW)).runs
        assert [(run.schedule, run.attempt) for run in stale] == [(name, 1) for name in left]
        claimed = (await store.runs.claim_runs(claim())).runs
        assert [run.schedule for run in claimed] == [*left, None]
        assert list((await store.runs.finish_runs([finish(run) for run in (*claimed, *stale)])).lost) == []
        known = await store.schedules.list_schedules(ScheduleFilter())
        assert {(one.name, one.enabled, one.broken) for one in known} == {(name, True, None) for name in ["new", *left]}
        assert await store.upkeep.check() == []


OLD_SCHEDULE = (
    "INSERT INTO schedules (name, timing, zone, kind, task, work, policy, project, owner, enabled, anchor_at, next_at, "
    "created_at, updated_at) VALUES ('report', 'every 5m', 'UTC', 'function', 'report', "
    "'{\"kind\":\"function\",\"task\":\"report\"}', '{}', 'blog', 'user', {yes}, 1, 2, 3, 4);"
)
OLD_RUN = (
    "INSERT INTO runs (schedule_id, kind, task, work, policy, state, trigger, due_at, ready_at, lane, node, token, "
    "attempt, started_at) VALUES ((SELECT id FROM schedules), 'function', 'report', "
    "'{\"kind\":\"function\",\"task\":\"report\"}', '{}', '%s', 'schedule', %d, 1, 'main', %s, %d, %d, %s);"
)


async def test_what_an_older_version_left_goes_on_where_it_was(shared_place: StorePlace) -> None:
    bring_to(shared_place, 2)
    yes = "1" if shared_place.kind == "sqlite" else "true"
    shared_place.execute(
        OLD_SCHEDULE.replace("{yes}", yes)
        + OLD_RUN % ("running", 1, "'node-1'", 1, 1, 1)
        + OLD_RUN % ("queued", 2, "NULL", 0, 0, "NULL")
        + "INSERT INTO output (run_id, part, text) SELECT min(id), 1, 'one ' FROM runs;"
        + "INSERT INTO output (run_id, part, text) SELECT min(id), 2, 'two' FROM runs;"
        + "INSERT INTO lanes (name, max_running) VALUES ('main', 5);"
    )
    async with opened(shared_place.store()) as store:
        queued, running = await store.runs.list_runs(RunFilter())
        assert [run.project for run in (queued, running)] == [None, None]
        assert list(await store.runs.read_output(running.id)) == [OutputPart("one "), OutputPart("two")]
        old = (await store.runs.stale_runs([], NOW)).runs[0]
        tail = OutputPart("fo", is_tail=True)
        await store.runs.report_runs([Report(old.id, 1, output=[part("three\n"), tail])])
        assert [each.text for each in await store.runs.read_output(old.id)] == ["one ", "two", "three\n", "fo"]
        assert list((await store.runs.finish_runs([finish(old, abandoned=True, cost=UNKNOWN)])).lost) == []
        new = await claim_one(store)
        assert (new.id, new.schedule, new.project) == (queued.id, "report", None)
        schedule = await store.schedules.get_schedule("report")
        assert schedule is not None
        assert (schedule.project, schedule.next_run_reason) == ("blog", None)
        assert await store.schedules.list_schedules(ScheduleFilter(project="blog")) == [schedule]
        budget = Budget(per_day_runs=1)
        assert await store.projects.reserve(Reservation(new.id, new.token, schedule.id, budget, NOW)) == Grant(None)
        assert await store.projects.read_spending(schedule.id, NOW) == Spending(runs=1)
        assert await store.projects.list_projects() == []


AGENT_RETRY = '"retry":{"max":3,"base":"2s","longest":"30s","spread":0.25,"covers":"start"}'


async def test_agents_that_asked_for_no_retry_get_the_new_default_and_no_other_does(shared_place: StorePlace) -> None:
    own = '{"retry":{"max":5,"base":"2s","longest":"30s","spread":0.25},"timeout":"30m"}'
    gate = '"gate":{"command":"./any","timeout":"30s"}'
    policies = {  # by the name of its schedule: its kind of work, its policy before and after
        "plain": ("agent", '{"timeout":"30m"}', f'{{{AGENT_RETRY},"timeout":"30m"}}'),
        "late": ("agent", f'{{"overlap":"allow","timeout":"1h",{gate}}}',
                 f'{{"overlap":"allow",{AGENT_RETRY},"timeout":"1h",{gate}}}'),
        "endless": ("agent", f"{{{gate}}}", f"{{{AGENT_RETRY},{gate}}}"),
        "empty": ("agent", "{}", f"{{{AGENT_RETRY}}}"),
        "asked": ("agent", own, own),
        "shell": ("shell", '{"timeout":"5m"}', '{"timeout":"5m"}'),
    }  # fmt: skip
    added = next(migration for migration in migrations(shared_place) if migration.name == "agent_retry")
    bring_to(shared_place, added.version - 1)
    shared_place.execute(
        "".join(
            "INSERT INTO schedules (name, timing, zone, kind, work, policy, owner, enabled, anchor_at, created_at, "
            f"updated_at) VALUES ('{name}', 'every 5m', 'UTC', '{kind}', '{{}}', '{policy}', 'user', "
            f"{'1' if shared_place.kind == 'sqlite' else 'true'}, 1, 3, 4);"
            for name, (kind, policy, _) in policies.items()
        )
    )
    async with opened(shared_place.store()) as store:
        rows = dict(await raw(store, "SELECT name, policy FROM schedules"))
        for name, policy in rows.items():  # as that migration left them: a later one writes the breaker
            rows[name] = policy.replace('"break_after":3,', "").replace(',"break_after":3', "")
        assert rows == {name: after for name, (_, _, after) in policies.items()}
        assert await store.upkeep.check() == []
    assert load_policy(policies["late"][2]).retry == Retry(covers="start")
    assert policy_text(load_policy(policies["late"][2])) == policies["late"][2], "as a new schedule has it"


NO_RETRY = '"retry":{"max":0,"base":"2s","longest":"30s","spread":0.25}'


async def test_what_had_a_breaker_without_asking_keeps_it_but_functions_and_once_is_once(
    shared_place: StorePlace,
) -> None:
    gate = '"gate":{"command":"./any \\"x\\"","timeout":"30s"}'
    policies = {  # by the name of its schedule: its kind of work, its policy before and after
        "function": ("function", "{}", "{}"),
        "asked": ("function", '{"break_after":5}', '{"break_after":5}'),
        "check-in": ("check_in", "{}", "{}"),
        "shell": ("shell", '{"timeout":"5m","lane":"main"}', '{"timeout":"5m","break_after":3,"lane":"main"}'),
        "http": ("http", f'{{"overlap":"allow",{gate},"delete_after_run":true}}',
                 f'{{"overlap":"allow","break_after":3,{gate},"delete_after_run":true}}'),
        "empty": ("agent", "{}", '{"break_after":3}'),
        "often": ("shell", '{"break_after":9}', '{"break_after":9}'),
        "once": ("function", '{"overlap":"allow","remaining":1}', f'{{"overlap":"allow",{NO_RETRY},"remaining":1}}'),
        "retried": ("function", '{"retry":{"max":5},"remaining":1}', '{"retry":{"max":5},"remaining":1}'),
        "thrice": ("function", '{"remaining":3}', '{"remaining":3}'),
    }  # fmt: skip
    added = next(migration for migration in migrations(shared_place) if migration.name == "breaker")
    bring_to(shared_place, added.version - 1)
    yes = "1" if shared_place.kind == "sqlite" else "true"
    said = '{"timing":{"value":["every 5m","UTC"],"at":7},"work":{"value":"{}","at":9}}'
    shared_place.execute(
        "".join(
            "INSERT INTO schedules (name, timing, zone, kind, work, policy, owner, enabled, anchor_at, created_at, "
            f"updated_at, declared) VALUES ('{name}', 'every 5m', 'UTC', '{kind}', '{{}}', '{policy}', 'code', "
            f"{yes}, 1, 3, 4, '{said}');"
            for name, (kind, policy, _) in policies.items()
        )
        + OLD_RUN.replace("'function'", "'shell'").replace("FROM schedules", "FROM schedules WHERE name = 'shell'")
        % ("queued", 2, "NULL", 0, 0, "NULL")
    )
    async with opened(shared_place.store()) as store:
        rows = await raw(store, "SELECT name, policy FROM schedules")
        assert dict(rows) == {name: after for name, (_, _, after) in policies.items()}
        assert await raw(store, "SELECT policy FROM runs") == [('{"break_after":3}',)]
        declared = dict(await raw(store, "SELECT name, declared FROM schedules"))
        assert (load_declared(declared["shell"]) or {})["break_after"] == Said(3, 7)
        assert "break_after" not in (load_declared(declared["function"]) or {})
    for name, (_, _, after) in policies.items():
        assert name == "retried" or policy_text(load_policy(after)) == after, "as a new schedule has it"


OLD_NODE = (
    "INSERT INTO nodes (id, host, pid, slots, running, draining, tasks, started_at, seen_at, lease_until, services) "
    "VALUES ('node-1', 'here', 1, 10, 1, {no}, '[\"report\"]', 1, 2, 3, '{}');"
)


async def test_what_a_version_without_doors_left_is_found_in_the_new_lists(shared_place: StorePlace) -> None:
    bring_to(shared_place, 3)
    yes, no = ("1", "0") if shared_place.kind == "sqlite" else ("true", "false")
    shared_place.execute(
        OLD_SCHEDULE.replace("{yes}", yes)
        + OLD_RUN % ("running", 1, "'node-1'", 1, 1, 1)
        + OLD_RUN % ("succeeded", 2, "'node-1'", 1, 1, NOW)
        + f"UPDATE runs SET finished_at = {NOW + 2_000_000} WHERE state = 'succeeded';"
        + OLD_NODE.replace("{no}", no)
    )
    async with opened(shared_place.store()) as store:
        ((row,), total) = await store.schedules.page_schedules(ScheduleFilter(limit=5))
        assert (row.schedule.name, row.key, row.active, total) == ("report", (2, "report"), 1, 1)
        changes = await store.runs.changes_since(Position(2, 0, 0, changed_at=4, finished_at=NOW), 10)
        assert [schedule.name for schedule in changes.schedules] == ["report"]
        assert [run.state for run in changes.ended] == ["succeeded"]
        tally = StateCount(NOW // 60_000_000 * 60_000_000, RunState.SUCCEEDED, 1, 2.0)
        assert await store.runs.tally_ended(NOW, NOW + 60_000_000, 60_000_000) == [tally]
        (node,) = await store.nodes.list_nodes(2)
        assert (await store.nodes.read_statistics(), node.drain) == ({node.id: {}}, False)
        assert await store.nodes.ask_drain(node.id, True)
        assert await store.access.count_access(NOW, 0) == AccessCounts(0, 0)


async def test_a_login_of_a_version_that_had_one_secret_is_asked_to_log_in_again(shared_place: StorePlace) -> None:
    bring_to(shared_place, 4)
    shared_place.execute(
        "INSERT INTO logins (hash, who, role, created_at, expires_at) "
        f"VALUES ('cookie', 'ada', 'admin', {NOW}, {NOW + 3_600_000_000});"
    )
    async with opened(shared_place.store()) as store:
        assert await store.access.find_login("cookie", "", NOW, 0) is None
        assert await store.access.list_logins(NOW, 0) == []


async def test_why_an_old_schedule_is_off_is_still_told(shared_place: StorePlace) -> None:
    bring_to(shared_place, 3)
    no = "0" if shared_place.kind == "sqlite" else "false"
    shared_place.execute(OLD_SCHEDULE.replace("{yes}", no) + "UPDATE schedules SET note = 'disk full';")
    async with opened(shared_place.store()) as store:
        schedule = await store.schedules.get_schedule("report")
        assert schedule is not None
        assert (schedule.note, schedule.off_note) == ("disk full", "disk full")
        assert schedule.next_run_reason == "disabled: disk full"


async def test_of_the_checks_of_a_run_one_is_left_where_older_versions_made_more(postgres_place: StorePlace) -> None:
    bring_to(postgres_place, 8)
    async with opened(postgres_place.store()) as store:
        query = "SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid = 'runs'::regclass"
        assert await raw(store, query) == [("runs_life",)]


async def test_opening_again_keeps_what_is_there(shared_place: StorePlace) -> None:
    for turn in range(3):
        store = shared_place.store()
        await store.open()
        await put(store, f"s{turn}")
        assert (await store.upkeep.status()).schedules == turn + 1
        await store.close()


async def test_many_that_open_at_once_migrate_once(shared_place: StorePlace) -> None:
    bring_to(shared_place, 0)
    stores = [shared_place.store() for _ in range(6)]
    await asyncio.gather(*(store.open() for store in stores))
    try:
        assert await raw(stores[0], "SELECT count(*) FROM migrations") == [(len(migrations(shared_place)),)]
        await asyncio.gather(*(put(store, f"s{number}") for number, store in enumerate(stores)))
        assert (await stores[0].upkeep.status()).schedules == 6
    finally:
        await asyncio.gather(*(store.close() for store in stores))


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[apsw.Connection, threading.Event]]:
    """A new file that somebody else writes to, and an event for the first who waits for its end."""
    waits, sleep = threading.Event(), time.sleep

    def told(seconds: float) -> None:
        waits.set()
        sleep(seconds)

    monkeypatch.setattr("ostinato.stores.sqlite.waiting.time.sleep", told)
    with closing(apsw.Connection(str(tmp_path / "new.db"))) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other, waits


async def test_an_opening_waits_for_another_that_makes_the_file_just_now(
    held: tuple[apsw.Connection, threading.Event], tmp_path: Path
) -> None:
    other, waits = held
    store = SqliteStore(str(tmp_path / "new.db"))
    opening = asyncio.ensure_future(store.open())
    assert await asyncio.to_thread(waits.wait, 20), "it does not wait"
    other.execute("COMMIT")
    await opening
    await store.close()


async def test_an_opening_that_is_given_up_can_be_closed(
    held: tuple[apsw.Connection, threading.Event], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other, waits = held
    store = SqliteStore(str(tmp_path / "new.db"))
    opening = asyncio.ensure_future(store.open())
    assert await asyncio.to_thread(waits.wait, 20), "it does not wait"
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    other.execute("COMMIT")
    await store.close()
    assert caplog.records == []


async def test_a_newer_database_is_refused_with_the_fix(shared_place: StorePlace) -> None:
    store = shared_place.store()
    await store.open()
    await raw(store, "INSERT INTO migrations VALUES (999, 'from_the_future', 0)")
    await store.close()
    newer = shared_place.store()
    with pytest.raises(SchemaTooNew, match=r"999.*pip install --upgrade ostinato"):
        await newer.open()
    await newer.close()


async def test_databases_in_memory_are_alike_and_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"
    monkeypatch.setattr(sqlite_database, "_migrated_memory", [])
    async with opened(SqliteStore(":memory:")) as migrated, opened(SqliteStore(":memory:")) as copied:
        assert await raw(copied, shape) == await raw(migrated, shape)
        assert await raw(copied, "SELECT max(version) FROM migrations") == [(len(SQLITE_MIGRATIONS),)]
        await put(migrated)
        assert await raw(copied, "SELECT count(*) FROM runs") == [(0,)]
    async with opened(SqliteStore(":memory:")) as later:
        assert await raw(later, "SELECT count(*) FROM runs") == [(0,)]


async def test_a_closed_store_says_so(shared_place: StorePlace) -> None:
    store = shared_place.store()
    await store.open()
    await store.close()
    await store.close()
    with pytest.raises(StoreError, match="closed"):
        await store.runs.insert_runs([new_run()])


async def test_only_its_owner_can_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    previous = os.umask(0)
    try:
        store = SqliteStore(str(path))
        await store.open()
        await put(store)
    finally:
        os.umask(previous)
    modes = {name: stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in os.listdir(tmp_path)}
    assert modes.pop("jobs.db") == 0o600
    assert set(modes.values()) <= {0o600}
    await store.close()


async def test_a_file_that_cannot_be_made_names_the_fix(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "missing" / "jobs.db"))
    with pytest.raises(StoreError, match="make the folder"):
        await store.open()


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("this is not a database, it is a long letter to somebody\n" * 100)
    store = SqliteStore(str(path))
    with pytest.raises(StoreError, match="not an SQLite database"):
        await store.open()
    assert path.read_text().startswith("this is not a database")


def test_both_stores_have_the_same_migrations() -> None:
    assert [(m.version, m.name) for m in SQLITE_MIGRATIONS] == [(m.version, m.name) for m in POSTGRES_MIGRATIONS]
    assert load_migrations("ostinato.stores.sqlite") == SQLITE_MIGRATIONS


def test_pending_is_what_comes_after_the_current_version() -> None:
    known = tuple(Migration(number, f"m{number}", "") for number in (1, 2, 3))
    assert pending(known, 0, "x") == known
    assert pending(known, 2, "x") == known[2:]
    assert pending(known, 3, "x") == ()


OLD_TURN = (
    "INSERT INTO runs (kind, work, policy, state, trigger, due_at, ready_at, lane, session, waiting, mode) VALUES "
    "('agent', '{\"kind\":\"agent\",\"prompt\":\"Hi\"}', '{}', 'queued', 'api', 1, 1, 'main', '%s', %s, 'queue');"
)


async def test_what_waits_for_a_named_conversation_moves_to_the_session_of_that_name(shared_place: StorePlace) -> None:
    (before,) = [
        migration.version - 1 for migration in migrations(shared_place) if migration.name == "conversation_turns"
    ]
    bring_to(shared_place, before)
    yes, no = ("1", "0") if shared_place.kind == "sqlite" else ("true", "false")
    shared_place.execute(
        "INSERT INTO lanes (name, max_running) VALUES ('main', 5);"
        "INSERT INTO sessions (key, max_concurrent, sent_at) VALUES ('agent:claude/session:q', 1, 7);"
        "INSERT INTO sessions (key, max_concurrent, sent_at) VALUES ('agent:claude/group/blog', 1, 8);"
        + OLD_TURN % ("agent:claude/session:q", no)
        + OLD_TURN % ("agent:claude/session:q", yes)
        + OLD_TURN % ("agent:claude/group/blog", yes)
    )
    async with opened(shared_place.store()) as store:
        runs = (await store.runs.list_runs(RunFilter()))[::-1]
        assert [run.session for run in runs] == ["q", "q", "agent:claude/group/blog"]
        sessions = await store.sessions.list_sessions(None, False, 9)
        assert [one.key for one in sessions] == ["agent:claude/group/blog", "agent:claude/session:q", "q"]
        first = await claim_one(store)
        assert first.id == runs[0].id
        done = await store.runs.finish_runs([finish(first)], claim())
        assert [run.id for run in done.claimed.runs] == [runs[1].id]
