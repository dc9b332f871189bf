"""Rows that break the rules: kept out by checks, set aside where they come past them, never in the way of others."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from ostinato.clock import from_micros
from ostinato.errors import StoreError
from ostinato.models.access import NewLogin, NewToken, Role
from ostinato.models.event import EventKind
from ostinato.models.ids import NodeId, RunId
from ostinato.models.live import Position
from ostinato.models.quarantine import BadRow
from ostinato.models.run import RunFilter
from ostinato.models.schedule import ScheduleFilter
from ostinato.models.states import RunState, Trigger
from ostinato.stores.base import Store
from ostinato.stores.postgres.store import PostgresStore
from ostinato.stores.rules import KEYS, RULES, UNREADABLE
from ostinato.stores.sqlite.quarantine import DIALECT as SQLITE
from ostinato.stores.sqlite.store import SqliteStore
from ostinato.testing.store_suite.builders import HOUR, NOW, beat, claim, claim_one, draft, new_run, put
from tests.stores.places import StorePlace, opened, raw, switch_checks_off
from tests.stores.test_migrations import bring_to

HUGE = 2**63 - 1

BAD_RUNS = [
    ("state = 'running', attempt = 0, started_at = 5", "it is running and has never started"),
    ("state = 'running', attempt = 1, started_at = NULL", "it is running and has never started"),
    (f"token = {HUGE}", "one of its numbers is out of range"),
    (f"attempt = {HUGE}", "one of its numbers is out of range"),
    (f"priority = {HUGE}", "one of its numbers is out of range"),
    ("count = 0", "one of its numbers is out of range"),
    ("state = 'dreaming'", "its state is unknown"),
    ("state = 'failed', finished_at = NULL", "it has ended but has no end time"),
    ("trigger = 'whim'", "its trigger is unknown"),
    ("mode = 'sideways'", "its mode is unknown"),
    (f"ready_at = {HUGE}", "one of its times is out of range"),
    (f"due_at = {-HUGE}", "one of its times is out of range"),
    (f"expires_at = {HUGE}", "one of its times is out of range"),
]


UNCHECKED = {"priority", "count", "trigger", "mode", "ready_at", "due_at", "expires_at"}
"""What only the sweep finds on PostgreSQL."""


async def set_aside(store: Store, now: int = NOW) -> list[Any]:
    return await store.quarantine.set_aside(await store.quarantine.find_bad(100), now)


@pytest.mark.parametrize(("change", "why"), BAD_RUNS)
async def test_a_check_keeps_a_bad_run_out(store: Store, change: str, why: str) -> None:
    (id,) = await store.runs.insert_runs([new_run()])
    if isinstance(store, PostgresStore) and change.split(" = ")[0] in UNCHECKED:
        await raw(store, f"UPDATE runs SET {change}")
        assert [bad.reason for bad in await set_aside(store)] == [why]
        return
    with pytest.raises(StoreError, match=r"(?i)constraint"):
        await raw(store, f"UPDATE runs SET {change}")
    assert [run.id for run in await store.runs.list_runs(RunFilter())] == [id]


@pytest.mark.parametrize(("change", "why"), BAD_RUNS)
async def test_a_bad_run_is_ended_as_failed_with_its_reason_and_the_others_stay(
    store: Store, change: str, why: str
) -> None:
    bad, fine = await store.runs.insert_runs([new_run(), new_run()])
    await switch_checks_off(store)
    await raw(store, f"UPDATE runs SET {change} WHERE id = {bad}")
    assert await store.quarantine.find_bad(100) == [BadRow("runs", str(bad), why)]
    (kept,) = await set_aside(store, NOW + 1)
    assert (kept.table, kept.row, kept.reason, kept.at) == ("runs", str(bad), why, from_micros(NOW + 1))
    assert json.loads(kept.content)["task"] == "report"
    shown = await store.runs.get_run(RunId(bad))
    assert shown is not None
    assert shown.state is RunState.FAILED
    assert shown.finished_at == from_micros(NOW + 1)
    if "failed" not in change:
        assert shown.reason == UNREADABLE + why
    assert await store.quarantine.find_bad(100) == []
    assert await set_aside(store) == []
    assert [run.id for run in (await store.runs.claim_runs(claim())).runs] == [fine]
    assert await store.quarantine.list_quarantined(10) == [kept]
    assert await store.quarantine.count_quarantined() == 1
    assert await store.quarantine.clear_quarantine() == 1
    assert await store.quarantine.list_quarantined(10) == []


async def test_what_was_mended_since_it_was_found_is_left_alone(store: Store) -> None:
    (id,) = await store.runs.insert_runs([new_run()])
    assert await store.quarantine.set_aside([BadRow("runs", str(id), "it was bad")], NOW) == []
    assert (await claim_one(store)).id == id


async def test_the_end_of_a_bad_run_gives_the_next_of_its_session_the_turn_and_counts_from_its_finish(
    store: Store,
) -> None:
    schedule = await put(store, after_finish=HOUR, next_at=None)
    runs = [new_run(session="talk", mode="queue", waiting=True) for _ in range(2)]
    first, second = await store.runs.queue_runs(runs, NOW)
    await switch_checks_off(store)
    await raw(store, f"UPDATE runs SET token = {HUGE}, schedule_id = {schedule} WHERE id = {first}")
    await set_aside(store)
    assert [run.id for run in (await store.runs.claim_runs(claim())).runs] == [second]
    shown = await store.schedules.get_schedule("report")
    assert shown is not None
    assert shown.next_run_at == from_micros(NOW + HOUR)
    events = await store.sessions.list_events("talk", 0, 10)
    assert (EventKind.FINISHED, first) in [(event.kind, event.run) for event in events]


@pytest.mark.parametrize("change", ["rate_count = 0, rate_per = 0", "rate_count = 5", "max_running = -1"])
async def test_a_bad_lane_is_paused_and_says_why_and_the_others_go_on(store: Store, change: str) -> None:
    await store.runs.insert_runs([new_run(), new_run(lane="cron")])
    with pytest.raises(StoreError, match=r"(?i)constraint"):
        await raw(store, f"UPDATE lanes SET {change} WHERE name = 'main'")
    await switch_checks_off(store)
    await raw(store, f"UPDATE lanes SET {change} WHERE name = 'main'")
    assert "main" in [lane.name for lane in await store.lanes.list_lanes()]
    await set_aside(store)
    lanes = {lane.name: lane for lane in await store.lanes.list_lanes()}
    assert lanes["main"].paused
    assert (lanes["main"].note or "").startswith(UNREADABLE)
    assert [run.lane for run in await store.runs.list_runs(RunFilter(states=(RunState.QUEUED,)))] == ["cron", "main"]
    assert len((await store.runs.claim_runs(claim())).runs) == 1


@pytest.mark.parametrize(
    "change", [f"version = {HUGE}", f"next_at = {HUGE}", "remaining = -3", f"failures = {HUGE}", f"anchor_at = {-HUGE}"]
)
async def test_a_bad_schedule_is_broken_and_off_with_its_reason(store: Store, change: str) -> None:
    await put(store, "fine")
    await put(store)
    await switch_checks_off(store)
    await raw(store, f"UPDATE schedules SET {change} WHERE name = 'report'")
    assert len(await store.schedules.list_schedules(ScheduleFilter())) == 2
    (kept,) = await set_aside(store)
    assert kept.table == "schedules"
    listed = {schedule.name: schedule for schedule in await store.schedules.list_schedules(ScheduleFilter())}
    assert (listed["report"].broken or "").startswith(UNREADABLE)
    assert not listed["report"].enabled
    assert listed["fine"].broken is None


@pytest.mark.parametrize("column", ["tasks", "services", "statistics"])
@pytest.mark.parametrize("text", ["not JSON", "7", '[{"a"', '"text"'])
async def test_a_node_with_a_broken_document_is_listed_and_its_next_beat_mends_it(
    store: Store, column: str, text: str
) -> None:
    await store.nodes.renew(beat("bad"))
    await store.nodes.renew(beat("fine"))
    with pytest.raises(StoreError, match=r"(?i)constraint"):
        await raw(store, f"UPDATE nodes SET {column} = '{text}' WHERE id = 'bad'")
    await switch_checks_off(store)
    await raw(store, f"UPDATE nodes SET {column} = '{text}' WHERE id = 'bad'")
    assert {node.id for node in await store.nodes.list_nodes(NOW)} == {"bad", "fine"}
    assert set(await store.nodes.read_statistics()) == {"bad", "fine"}
    await set_aside(store)
    assert await store.runs.unclaimable_runs(NOW) == []
    await store.nodes.renew(beat("bad", tasks=("report",)))
    assert {node.id: node.tasks for node in await store.nodes.list_nodes(NOW)}[NodeId("bad")] == ("report",)
    assert await store.quarantine.find_bad(10) == []


async def test_an_event_that_nobody_understands_is_left_out_and_then_removed(store: Store) -> None:
    await store.runs.queue_runs([new_run(session="talk", mode="queue", waiting=True)], NOW)
    await switch_checks_off(store)
    await raw(store, "INSERT INTO events (at, kind, session) VALUES (1, 'sneezed', 'talk')")
    assert [event.kind for event in await store.sessions.list_events("talk", 0, 10)] == [EventKind.ENQUEUED]
    assert [event.kind for event in (await store.runs.changes_since(Position(0, 0, 0, NOW, NOW), 10)).events] == [
        EventKind.ENQUEUED
    ]
    (kept,) = await set_aside(store)
    assert (kept.table, json.loads(kept.content)["kind"]) == ("events", "sneezed")
    assert await store.quarantine.find_bad(10) == []


async def test_a_token_or_login_of_an_unknown_role_opens_nothing_and_is_in_nobodys_way(store: Store) -> None:
    for name in ("bad", "fine"):
        await store.access.put_token(NewToken(name, Role.ADMIN, "user", f"hash-{name}", None), NOW)
        await store.access.put_login(NewLogin(f"login-{name}", name, Role.ADMIN, NOW + HOUR, None), NOW)
    await switch_checks_off(store)
    await raw(store, "UPDATE tokens SET role = 'emperor' WHERE name = 'bad'")
    await raw(store, "UPDATE logins SET role = 'emperor' WHERE who = 'bad'")
    assert [token.name for token in await store.access.list_tokens()] == ["fine"]
    assert [login.who for login in await store.access.list_logins(NOW, 0)] == ["fine"]
    assert await store.access.find_token("hash-bad", NOW) is None
    assert await store.access.find_login("login-bad", "", NOW, 0) is None
    kept = await set_aside(store)
    assert {row.table for row in kept} == {"tokens", "logins"}
    assert not any("hash" in row.content for row in kept)
    assert await store.quarantine.find_bad(10) == []


async def test_runs_with_words_that_nobody_knows_are_listed_and_say_so(store: Store) -> None:
    schedule = await put(store)
    given = [new_run(schedule_id=schedule, trigger=Trigger.MANUAL) for _ in range(3)]
    state, trigger, fine = await store.runs.insert_runs(given)
    await switch_checks_off(store)
    await raw(store, f"UPDATE runs SET state = 'dreaming', finished_at = {NOW} WHERE id = {state}")
    await raw(store, f"UPDATE runs SET trigger = 'whim' WHERE id = {trigger}")
    for brief in (False, True):
        shown = {run.id: run for run in await store.runs.list_runs(RunFilter(brief=brief))}
        assert set(shown) == {state, trigger, fine}
        assert (shown[state].state, shown[state].reason) == (RunState.FAILED, f"{UNREADABLE}its state is unknown")
        assert shown[trigger].reason == f"{UNREADABLE}its trigger is unknown"
        assert shown[fine].reason is None
    assert {run.id for run in (await store.runs.changes_since(Position(0, 0, 0, NOW, NOW), 10)).new} == {
        state,
        trigger,
        fine,
    }
    assert len((await store.schedules.recent_runs([schedule], 5))[schedule]) == 3
    assert sum(tally.count for tally in await store.runs.tally_ended(NOW - HOUR, NOW + HOUR, HOUR)) == 1


def test_every_table_with_a_rule_has_a_name_for_its_rows_and_every_rule_another_name() -> None:
    assert {rule.table for rule in RULES} == set(KEYS)
    assert len({rule.name for rule in RULES}) == len(RULES)


async def test_the_checks_of_the_schema_are_the_rules(store: Store) -> None:
    if isinstance(store, SqliteStore):
        rows = await raw(store, "SELECT sql FROM sqlite_schema WHERE type = 'table'")
        schema = " ".join(" ".join(str(sql) for (sql,) in rows).split())
        for rule in RULES:
            assert f"CONSTRAINT {rule.name} CHECK ({SQLITE.write(rule.holds)})" in schema
        assert len(re.findall(r"CONSTRAINT \w+ CHECK", schema)) == len(RULES)
        return
    query = "SELECT conname FROM pg_constraint c WHERE contype = 'c' AND connamespace = "
    found = await raw(store, f"{query} current_schema()::regnamespace")
    others = {rule.name for rule in RULES if rule.table != "runs" and not rule.sqlite_only}
    assert {name for (name,) in found} == others | {"runs_life"}


OLD = """
INSERT INTO schedules (name, timing, zone, kind, task, work, policy, owner, enabled, anchor_at, created_at, updated_at,
                       next_at, failures)
VALUES ('report', 'every 5m', 'UTC', 'function', 'report', '{{}}', '{{}}', 'user', {yes}, 1, 3, 4, {huge}, -1);
INSERT INTO runs (schedule_id, kind, task, work, policy, state, trigger, due_at, ready_at, lane, token, attempt)
VALUES (NULL, 'function', 'report', '{{}}', '{{}}', 'running', 'api', 1, 1, 'main', 1, 0),
       (NULL, 'function', 'report', '{{}}', '{{}}', 'dreaming', 'api', 1, 1, 'main', 1, 0),
       ((SELECT id FROM schedules), 'function', 'a', '{{}}', '{{}}', 'missed', 'schedule', {huge}, 1, 'main', 1, 0),
       ((SELECT id FROM schedules), 'function', 'a', '{{}}', '{{}}', 'missed', 'schedule', -{huge}, 1, 'main', 1, 0),
       (NULL, 'function', 'report', '{{}}', '{{}}', 'queued', 'api', 1, 1, 'main', 1, 0);
INSERT INTO attempts (run_id, number, started_at, finished_at, state) SELECT min(id), 1, 1, {huge}, '?' FROM runs;
INSERT INTO lanes (name, max_running, rate_count, rate_per) VALUES ('main', 5, NULL, NULL), ('zero', 5, 0, 0);
INSERT INTO sessions (key, max_concurrent, sent_at) VALUES ('talk', 0, 1);
INSERT INTO events (at, kind, session) VALUES (1, 'sneezed', 'talk');
INSERT INTO nodes (id, host, pid, slots, running, draining, tasks, started_at, seen_at, lease_until, services)
VALUES ('n', 'h', 1, 1, 0, {no}, 'x', 1, 1, 1, '[');
INSERT INTO projects (name, folder, env, created_at) VALUES ('blog', '/', '[]', 1);
INSERT INTO tokens (name, role, owner, hash, created_at) VALUES ('t', 'emperor', 'user', 'h', 1);
INSERT INTO login_codes (hash, who, role, created_at, expires_at) VALUES ('h', 'user', 'emperor', 1, 1);
INSERT INTO logins (hash, who, role, created_at, expires_at) VALUES ('h', 'user', 'emperor', 1, 1);
INSERT INTO audit (at, who, door, verb, object, detail) VALUES ({huge}, 'a', 'b', 'c', 'd', '{{}}');
"""


async def test_bad_rows_of_an_older_version_do_not_stop_the_migration_and_are_set_aside_by_it(
    shared_place: StorePlace,
) -> None:
    bring_to(shared_place, 6)
    yes, no = ("1", "0") if shared_place.kind == "sqlite" else ("true", "false")
    shared_place.execute(OLD.format(yes=yes, no=no, huge=HUGE))
    async with opened(shared_place.store()) as store:
        assert await store.quarantine.find_bad(100) == []
        kept = await store.quarantine.list_quarantined(100)
        assert {row.table for row in kept} == set(KEYS)
        assert [row.row for row in kept if row.table == "lanes"] == ["zero"]
        assert len([row for row in kept if row.table == "runs"]) == 4
        assert all(json.loads(row.content) for row in kept)
        assert not any('"hash"' in row.content for row in kept)
        runs = {run.id: run for run in await store.runs.list_runs(RunFilter())}
        states = [runs[id].state for id in sorted(runs)]
        assert states == ["failed", "failed", "missed", "missed", "queued"]
        assert (await store.runs.claim_runs(claim())).runs[0].id == max(runs)
        schedule = await store.schedules.get_schedule("report")
        assert schedule is not None
        assert (schedule.broken or "").startswith(UNREADABLE)
        assert await store.access.list_tokens() == []
        assert await store.projects.list_projects() == []
        await put(store, "another")
        assert draft("another").name in [one.name for one in await store.schedules.list_schedules(ScheduleFilter())]
