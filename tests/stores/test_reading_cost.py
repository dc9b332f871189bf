"""What people read costs what it shows, however long the ledger and the list behind it are: told by SQLite's own steps.

PostgreSQL answers the same queries from the same indexes; it has no count of steps that would be the same each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ostinato.clock import SECOND, Micros
from ostinato.models.access import Actor
from ostinato.models.ids import IncidentId, RunId, ScheduleId
from ostinato.models.incident import IncidentFilter, IncidentState
from ostinato.models.live import Position
from ostinato.models.notification import ChannelDraft, DeliveryFilter, DeliveryState
from ostinato.models.run import RunFilter
from ostinato.models.schedule import ScheduleFilter, ScheduleSort, ScheduleState
from ostinato.models.states import ACTIVE, RunState, Trigger
from ostinato.stores.sql.changes import changes_since
from ostinato.stores.sql.deliveries import counts, list_deliveries, next_deliveries, ready_channels
from ostinato.stores.sql.incidents import incident_runs, interests, list_incidents
from ostinato.stores.sql.overview import count_runs, late_runs, list_runs, tally_ended
from ostinato.stores.sql.schedule_pages import list_rows, recent_runs, scheduled_tasks
from ostinato.stores.sql.tasks import next_of_tasks, running_tasks, task_schedules
from ostinato.stores.sql.timeline import count_runs_between, runs_between
from ostinato.stores.sqlite.query import Connection, drive, fetch
from ostinato.stores.sqlite.store import SqliteStore
from ostinato.testing.store_suite.builders import HOUR, MINUTE, NOW, claim, draft, finish, new_run, put_many
from tests.stores.places import raw

STEPS = 20
LONG_AGO = NOW - 100 * HOUR
Reading = Callable[[Connection], Any]


@pytest.fixture
def store(runner: asyncio.Runner, tmp_path: Path) -> Iterator[SqliteStore]:
    """A file with room for everything."""
    store = SqliteStore(str(tmp_path / "jobs.db"))
    runner.run(store.open())
    runner.run(store.lanes.ensure_lanes({"main": 10_000, "cron": 10_000}, []))
    yield store
    runner.run(store.close())


def of_runs(now: Micros) -> dict[str, Reading]:
    """What the page asks for all the time."""
    tail = Position(run=0, event=0, audit=0, changed_at=now, runs=(), finished_at=now - SECOND)
    behind = Position(
        run=1 << 60, event=0, audit=0, changed_at=now, runs=(RunId(3), RunId(4)), finished_at=now - SECOND
    )
    return {
        "look": drive(lambda db: changes_since(db, tail, 5)),
        "look behind all": drive(lambda db: changes_since(db, behind, 5)),
        "timeline": drive(lambda db: runs_between(db, now - MINUTE, now + MINUTE, None, 5)),
        "timeline of a schedule": drive(lambda db: runs_between(db, now - MINUTE, now + MINUTE, [ScheduleId(1)], 5)),
        "counted timeline": drive(
            lambda db: count_runs_between(
                db, now - MINUTE, now + MINUTE, None, listed=[RunId(1)], bucket=SECOND, now=now, most=5
            )
        ),
        "counts": drive(lambda db: count_runs(db, now, now)),
        "late": drive(lambda db: late_runs(db, now, 5)),
        "activity": drive(lambda db: tally_ended(db, now - MINUTE, now + 1, MINUTE)),
        "running tasks": drive(running_tasks),
        "some": drive(lambda db: list_runs(db, RunFilter(ids=[RunId(3), RunId(4)], states=tuple(ACTIVE), limit=2))),
        "bars": drive(lambda db: recent_runs(db, [ScheduleId(1)], 5)),
    }


def of_schedules() -> dict[str, Reading]:
    wanted = {
        f"{sort} {'down' if descending else 'up'}": ScheduleFilter(sort=sort, descending=descending, limit=5)
        for sort in (ScheduleSort.NAME, ScheduleSort.NEXT, ScheduleSort.CREATED)
        for descending in (False, True)
    }
    wanted |= {
        "next, further on": ScheduleFilter(after=(NOW + 5 * MINUTE, "s00003"), limit=5),
        "name, further on": ScheduleFilter(sort=ScheduleSort.NAME, after=("s00003", "s00003"), limit=5),
        "without a due time": ScheduleFilter(after=(None, "r"), limit=5),
    }
    few = set(ScheduleState) - {ScheduleState.ON, ScheduleState.FINISHED}
    wanted |= {state: ScheduleFilter(state=state, limit=5) for state in (*sorted(few), ScheduleState.ON)}
    pages: dict[str, Reading] = {name: drive(partial(list_rows, wanted=page)) for name, page in wanted.items()}
    return {**pages, "tasks": drive(scheduled_tasks)}


def steps_of(store: SqliteStore, readings: dict[str, Reading]) -> dict[str, int]:
    """How many steps SQLite takes for each, in units of STEPS, on one connection that has read the schema before."""

    def count(connection: Connection, reading: Reading) -> int:
        steps = 0

        def step() -> bool:
            nonlocal steps
            steps += 1
            return False

        connection.set_progress_handler(step, STEPS)
        try:
            reading(connection)
        finally:
            connection.set_progress_handler(None)
        return steps

    with closing(store._database.connect_reader()) as connection:
        fetch(connection, "SELECT count(*) FROM sqlite_schema")
        return {name: count(connection, reading) for name, reading in readings.items()}


def dearer(before: dict[str, int], after: dict[str, int]) -> dict[str, tuple[int, int]]:
    """What takes clearly more steps than before."""
    return {name: (before[name], after[name]) for name in before if after[name] > 2 * before[name] + 5}


async def end_runs(store: SqliteStore, number: int, at: Micros, schedule_id: ScheduleId | None = None) -> None:
    """Runs that ended at this instant."""
    given = new_run(schedule_id=schedule_id, due_at=at - SECOND, trigger=Trigger.MANUAL)
    await store.runs.insert_runs([given] * number)
    while runs := (await store.runs.claim_runs(claim(room=500))).runs:
        await store.runs.finish_runs([finish(run, started_at=at - SECOND, finished_at=at) for run in runs])


async def test_a_long_ledger_makes_nothing_dearer_that_shows_its_end(store: SqliteStore) -> None:
    (id,) = await put_many(store, [draft()])
    await end_runs(store, 20, NOW, id)
    await store.runs.insert_runs([new_run()] * 20)
    await store.runs.claim_runs(claim(room=3))
    before = steps_of(store, of_runs(NOW))
    await store.runs.insert_runs([new_run(lane="cron", trigger=Trigger.MANUAL)])
    await raw(
        store,
        "WITH RECURSIVE g (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < 5000) "
        "INSERT INTO runs (kind, task, work, policy, state, trigger, due_at, ready_at, lane, started_at, finished_at, "
        f"cause) SELECT 'function', 'report', '{{}}', '{{}}', 'succeeded', 'api', {LONG_AGO}, {LONG_AGO}, 'main', "
        f"{LONG_AGO}, {LONG_AGO} + i, CASE WHEN i % 2 = 0 THEN 'errors' END FROM g",
    )
    assert dearer(before, steps_of(store, of_runs(NOW))) == {}


async def test_a_long_queue_and_a_long_audit_log_make_no_look_dearer(store: SqliteStore) -> None:
    await put_many(store, [draft()])
    await store.runs.insert_runs([new_run()] * 20)
    await store.runs.claim_runs(claim(room=3))
    await store.access.note_audit(Actor("ada", "cli"), "schedule.remove", "old", "{}", NOW)
    looks = {name: reading for name, reading in of_runs(NOW).items() if name.startswith("look")}
    before = steps_of(store, looks)
    await store.runs.insert_runs([new_run()] * 5_000)
    await raw(
        store,
        "WITH RECURSIVE g (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < 5000) "
        "INSERT INTO audit (at, who, door, verb, object, detail) "
        f"SELECT {NOW}, 'ada', 'api', 'lane.set', 'x', '{{}}' FROM g",
    )
    assert dearer(before, steps_of(store, looks)) == {}


async def test_many_incidents_open_and_closed_make_no_look_dearer(store: SqliteStore) -> None:
    await store.runs.insert_runs([new_run()] * 20)
    looks = {name: reading for name, reading in of_runs(NOW).items() if name.startswith("look")}
    before = steps_of(store, looks)
    await raw(
        store,
        "WITH RECURSIVE g (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < 5000) "
        "INSERT INTO incidents (subject, cause, kind, opened_at, last_at, changed_at, closed_at, count) "
        f"SELECT 'job-' || i, 'raised', 'failed', {LONG_AGO}, {LONG_AGO}, {LONG_AGO}, "
        f"CASE WHEN i % 2 = 0 THEN {LONG_AGO} END, 1 FROM g",
    )
    assert dearer(before, steps_of(store, looks)) == {}


async def test_a_long_ledger_does_not_make_the_list_of_what_is_queued_dearer(store: SqliteStore) -> None:
    await store.runs.insert_runs([new_run()] * 20)
    await store.runs.claim_runs(claim(room=3))
    queued = RunFilter(states=(RunState.QUEUED,), limit=30, brief=True)
    listed = {"list": drive(lambda db: list_runs(db, queued))}
    before = steps_of(store, listed)
    await end_runs(store, 2_000, LONG_AGO)
    assert dearer(before, steps_of(store, listed)) == {}


async def test_a_long_list_makes_no_page_of_it_dearer(store: SqliteStore) -> None:
    some = await put_many(store, [draft(f"s{number:05d}", enabled=number % 4 != 1) for number in range(40)])
    await raw(store, f"UPDATE schedules SET broken = 'boom' WHERE id IN ({some[1]}, {some[5]})")
    await raw(store, f"UPDATE schedules SET orphaned = 1, next_at = NULL WHERE id IN ({some[2]}, {some[6]})")
    await raw(store, f"UPDATE schedules SET paused_since = {NOW}, paused_reason = 'x' WHERE id = {some[3]}")
    await end_runs(store, 5, NOW, some[0])
    await store.runs.insert_runs([new_run(schedule_id=some[4], trigger=Trigger.MANUAL)])
    before = steps_of(store, of_schedules())
    await put_many(store, [draft(f"t{number:05d}", next_at=NOW + number * MINUTE) for number in range(3000)])
    assert dearer(before, steps_of(store, of_schedules())) == {}


async def test_very_many_schedules_of_a_task_do_not_make_its_health_dearer(store: SqliteStore) -> None:
    asked: dict[str, Reading] = {
        "next": drive(lambda db: next_of_tasks(db, ["report", "mail"])),
        "schedules": drive(lambda db: task_schedules(db, ["report", "mail"], 5)),
    }
    await put_many(store, [draft(f"s{number:05d}", next_at=NOW + number * MINUTE) for number in range(1_100)])
    await put_many(store, [draft("rare", task="mail", next_at=NOW + 9_000 * MINUTE)])
    before = steps_of(store, asked)
    await put_many(store, [draft(f"t{number:05d}", next_at=NOW + number * MINUTE) for number in range(4_000)])
    assert dearer(before, steps_of(store, asked)) == {}


def of_notifications() -> dict[str, Reading]:
    """What each node asks several times a second, and what metrics ask."""
    return {"interests": drive(interests), "counts": drive(counts)}


def of_claims() -> dict[str, Reading]:
    """How a node finds the next message."""

    def next_of(name: str, most: int) -> Reading:
        return drive(lambda db: next_deliveries(db, name, NOW, most, is_open=True))

    return {
        "channels": drive(lambda db: ready_channels(db, NOW, [])),
        "an answer": next_of("chat", 1_000),
        "the first": next_of("phone", 5),
        "channels before anything is ready": drive(lambda db: ready_channels(db, NOW - 1, [])),
    }


async def add_deliveries(
    store: SqliteStore, number: int, state: str, channel: str = "phone", kind: str = "failed"
) -> None:
    await raw(
        store,
        f"WITH RECURSIVE g (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < {number}) "
        "INSERT INTO deliveries (key, at, channel, kind, subject, state, ready_at, message) "
        f"SELECT 'k' || i, {NOW}, '{channel}', '{kind}', 'job', '{state}', {NOW}, 'k' FROM g",
    )


async def test_a_long_log_of_deliveries_makes_no_look_for_new_ones_dearer(store: SqliteStore) -> None:
    await add_deliveries(store, 20, "pending")
    await add_deliveries(store, 2, "sending")
    before = steps_of(store, of_notifications())
    await add_deliveries(store, 5000, "sent")
    assert dearer(before, steps_of(store, of_notifications())) == {}


async def test_a_count_of_ten_times_as_many_deliveries_takes_no_more_than_ten_times_as_long(store: SqliteStore) -> None:
    await add_deliveries(store, 300, "pending")
    before = steps_of(store, of_notifications())
    await add_deliveries(store, 2700, "pending")
    after = steps_of(store, of_notifications())
    assert after["counts"] <= 12 * before["counts"] + 5
    assert dearer({"interests": before["interests"]}, after) == {}


async def test_however_many_are_pending_the_next_message_is_found_at_once(store: SqliteStore) -> None:
    for name in ("phone", "chat"):
        await store.notifications.put_channel(ChannelDraft(name, "json://hooks.example.org"), NOW)
        await add_deliveries(store, 20, "pending", name)
    await add_deliveries(store, 1, "pending", "chat", "answer")
    before = steps_of(store, of_claims())
    await add_deliveries(store, 10_000, "pending")
    await add_deliveries(store, 10_000, "pending", "chat")
    assert dearer(before, steps_of(store, of_claims())) == {}


def of_lists() -> dict[str, Reading]:
    """What people see of incidents and deliveries."""
    incidents = {"all incidents": IncidentFilter(limit=5)} | {
        f"{state} incidents": IncidentFilter(state=state, limit=5) for state in IncidentState
    }
    deliveries = {
        "deliveries": DeliveryFilter(limit=5),
        "of a channel": DeliveryFilter(channel="chat", limit=5),
        "given up": DeliveryFilter(state=DeliveryState.FAILED, limit=5),
    }
    return {
        **{name: drive(partial(list_incidents, wanted=wanted)) for name, wanted in incidents.items()},
        **{name: drive(partial(list_deliveries, wanted=wanted)) for name, wanted in deliveries.items()},
    }


async def add_incidents(store: SqliteStore, number: int, closed: str, prefix: str) -> None:
    await raw(
        store,
        f"WITH RECURSIVE g (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < {number}) "
        "INSERT INTO incidents (subject, cause, kind, opened_at, last_at, closed_at, count) "
        f"SELECT '{prefix}' || i, 'raised', 'failed', {LONG_AGO}, {LONG_AGO}, {closed}, 1 FROM g",
    )


async def test_a_long_history_makes_no_list_of_incidents_or_deliveries_dearer(store: SqliteStore) -> None:
    for closed in ("NULL", str(LONG_AGO)):
        await add_incidents(store, 20, closed, f"{closed}-")
    await add_deliveries(store, 20, "failed", "chat")
    before = steps_of(store, of_lists())
    await add_incidents(store, 5_000, str(LONG_AGO), "closed-")
    await add_incidents(store, 3_000, "NULL", "open-")
    await add_deliveries(store, 5_000, "sent")
    assert dearer(before, steps_of(store, of_lists())) == {}


async def test_what_else_ended_makes_the_runs_of_an_incident_no_dearer(store: SqliteStore) -> None:
    (id,) = await put_many(store, [draft("report")])
    await end_runs(store, 5, NOW, id)
    await raw(
        store,
        "INSERT INTO incidents (subject, cause, kind, opened_at, last_at, count, schedule) "
        f"VALUES ('report', 'raised', 'failed', {LONG_AGO}, {NOW}, 1, 'report')",
    )
    runs = {"runs": drive(lambda db: incident_runs(db, IncidentId(1), 5))}
    before = steps_of(store, runs)
    await end_runs(store, 2_000, NOW)
    assert dearer(before, steps_of(store, runs)) == {}


async def test_the_count_of_steps_sees_a_scan(store: SqliteStore) -> None:
    def scan(connection: Connection) -> Any:
        return fetch(connection, "SELECT count(*) FROM schedules WHERE note = 'x'")

    before = steps_of(store, {"scan": scan})
    await put_many(store, [draft(f"s{number}") for number in range(500)])
    assert dearer(before, steps_of(store, {"scan": scan}))
