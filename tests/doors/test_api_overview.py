"""/api/overview and /api/timeline: what runs, what comes, what went, and how much of it there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import tuned
from tests.doors.web import Client, Web

TASK = {"kind": "function", "task": "hello"}
SPAN = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}
MINUTE = 60_000_000


def add(client: Client, name: str, timing: str, **fields: Any) -> None:
    answer = client.post("/api/schedules", {"name": name, "timing": timing, "work": TASK, **fields})
    assert answer.status_code == 201, answer.text


def test_an_empty_database_has_an_overview(admin: Client) -> None:
    overview = admin.get("/api/overview").json()
    assert overview["now"] == "2026-01-01T00:00:00Z"
    assert overview["engine"] == {"alive": False, "nodes": 0, "lost": 0, "here": False}
    assert set(overview["counts"].values()) == {0}
    assert len(overview["next24"]) == 24
    assert (overview["due"], overview["activity"], overview["bucket_seconds"]) == ([], [], 900)


def test_what_the_overview_counts_is_what_its_tiles_lead_to(web: Web, admin: Client) -> None:
    for name in ("on", "paused", "finished", "off", "orphaned", "orphaned and off", "broken"):
        add(admin, name, "every 5m", enabled="off" not in name)
    for change in (
        "paused_since = next_at, paused_reason = 'over budget' WHERE name = 'paused'",
        "next_at = NULL WHERE name = 'finished'",
        "orphaned = 1 WHERE name LIKE 'orphaned%'",
        "broken = 'boom', enabled = 0 WHERE name = 'broken'",
    ):
        web.sql(f"UPDATE schedules SET {change}")
    counts = admin.get("/api/overview").json()["counts"]
    assert counts["schedules"] == 7
    assert counts["schedules"] == sum(counts[state] for state in ("on", "off", "broken", "finished", "orphaned"))
    assert (counts["finished"], counts["orphaned"]) == (1, 2)
    for state, names in (("on", {"on", "paused"}), ("off", {"off"}), ("broken", {"broken"})):
        page = admin.get(f"/api/schedules?state={state}").json()
        assert {schedule["name"] for schedule in page["items"]} == names
        assert counts[state] == page["total"] == len(names)


def test_a_schedule_of_a_task_that_nobody_knows_counts_as_broken_while_nodes_run(web: Web, admin: Client) -> None:
    add(admin, "a", "every 5m")
    add(admin, "b", "every 5m", work={"kind": "function", "task": "unheard-of"})
    assert admin.get("/api/overview").json()["counts"]["broken"] == 0
    web.beat("one", ("hello",), MINUTE)
    overview = admin.get("/api/overview").json()
    assert (overview["counts"]["on"], overview["counts"]["broken"]) == (1, 1)
    assert [schedule["name"] for schedule in overview["broken"]] == ["b"]
    for state, names in (("broken", ["b"]), ("on", ["a"]), ("off", [])):
        page = admin.get(f"/api/schedules?state={state}").json()
        assert [schedule["name"] for schedule in page["items"]] == names
        assert page["total"] == len(names)


def test_what_waits_too_long_is_late(web: Web, admin: Client) -> None:
    admin.post("/api/runs", {"work": TASK})
    counts = admin.get("/api/overview").json()["counts"]
    assert (counts["queued"], counts["late"]) == (1, 0)
    web.clock.advance("11s")
    overview = admin.get("/api/overview").json()
    assert (overview["counts"]["late"], [run["id"] for run in overview["late"]]) == (1, [1])


def test_the_first_due_time_of_each_schedule_within_the_hour_is_told(admin: Client) -> None:
    add(admin, "often", "every 20m")
    add(admin, "once", "at 2026-01-01T00:30:00Z")
    add(admin, "tomorrow", "at 2026-01-02T00:00:00Z")
    due = [(one["at"][11:16], one["schedule"]) for one in admin.get("/api/overview").json()["due"]]
    assert due == [("00:20", "often"), ("00:30", "once")]


def test_of_many_schedules_the_first_fifty_are_told(admin: Client) -> None:
    for number in range(1, 53):
        add(admin, f"{number}", f"every {number}m")
    overview = admin.get("/api/overview").json()
    assert [one["schedule"] for one in overview["due"]] == [f"{number}" for number in range(1, 51)]
    assert overview["counts"]["due"] == 52


def test_what_is_overdue_stands_first_among_what_is_due(web: Web, admin: Client) -> None:
    add(admin, "often", "every 20m")
    add(admin, "after", "every 10m after finish")
    web.clock.advance("15m")
    overview = admin.get("/api/overview").json()
    due = [(one["at"][11:16], one["schedule"]) for one in overview["due"]]
    assert due == [("00:10", "after"), ("00:20", "often")]
    assert overview["counts"]["due"] == 2


def test_the_next_hours_are_counted(web: Web, admin: Client) -> None:
    web.clock.advance("30m")
    add(admin, "fast", "every 5s")
    add(admin, "daily", "daily 03:00")
    add(admin, "thrice", "every 1h", policy={"remaining": 3})
    add(admin, "off", "every 1s", enabled=False)
    overview = admin.get("/api/overview").json()
    counts = {one["at"][:13]: one["count"] for one in overview["next24"]}
    assert overview["estimated"] is False
    assert counts["2026-01-01T00"] == 359
    assert counts["2026-01-01T01"] == 720 + 1
    assert counts["2026-01-01T03"] == 720 + 1 + 1
    assert counts["2026-01-01T04"] == 720
    assert sum(counts.values()) == 359 + 23 * 720 + 1 + 3
    assert admin.get("/api/overview").json()["next24"] == overview["next24"]


def test_an_hour_that_was_counted_before_stays_true_when_time_goes_on(web: Web, admin: Client) -> None:
    add(admin, "fast", "every 5m")
    before = admin.get("/api/overview").json()["next24"]
    web.clock.advance("2h")
    web.run(web.container.services.schedules.edit("fast", note="looked at"))
    after = admin.get("/api/overview").json()["next24"]
    assert after[:22][1:] == before[2:][1:]
    assert after[-1] == {"at": "2026-01-02T01:00:00Z", "count": 12}


def test_what_ended_lately_is_told_by_its_quarter_of_an_hour(web: Web, admin: Client) -> None:
    def cancel_one() -> None:
        id = admin.post("/api/runs", {"work": TASK}).json()["id"]
        admin.post(f"/api/runs/{id}/cancel")

    def activity() -> list[tuple[str, Any]]:
        return [(one["at"], one["states"]) for one in admin.get("/api/overview").json()["activity"]]

    cancel_one()
    assert activity() == [("2026-01-01T00:00:00Z", {"cancelled": 1})]
    cancel_one()
    web.clock.advance("20m")
    cancel_one()
    assert activity() == [("2026-01-01T00:00:00Z", {"cancelled": 2}), ("2026-01-01T00:15:00Z", {"cancelled": 1})]
    web.clock.advance("5h")
    assert len(activity()) == 2
    web.clock.advance("18h50m")
    assert activity() == [("2026-01-01T00:15:00Z", {"cancelled": 1})]
    web.clock.advance("1h")
    assert activity() == []


def test_nodes_that_are_alive_and_lost_are_counted(web: Web, admin: Client) -> None:
    web.beat("one", ("hello",), MINUTE)
    web.beat("two", ("hello",), 5 * MINUTE)
    web.clock.advance("2m")
    engine = admin.get("/api/overview").json()["engine"]
    assert engine == {"alive": True, "nodes": 1, "lost": 1, "here": False}


def test_a_timeline_has_past_runs_and_future_due_times(web: Web, admin: Client) -> None:
    add(admin, "a", "every 6h")
    add(admin, "b", "daily 12:00", zone="Europe/Berlin")
    web.clock.advance("1h")
    run = admin.post("/api/schedules/a/trigger").json()["id"]
    timeline = admin.get("/api/timeline", params=SPAN).json()
    assert (timeline["now"], timeline["zone"], timeline["truncated"]) == ("2026-01-01T01:00:00Z", "UTC", False)
    assert [(bar["id"], bar["schedule"], bar["state"]) for bar in timeline["runs"]] == [(run, "a", "queued")]
    due = [(one["schedule"], one["at"][5:16]) for one in timeline["due"]]
    assert due == [
        ("a", "01-01T06:00"),
        ("b", "01-01T11:00"),
        ("a", "01-01T12:00"),
        ("a", "01-01T18:00"),
        ("a", "01-02T00:00"),
    ]
    alone = admin.get("/api/timeline", params={**SPAN, "schedule": "b"}).json()
    assert (alone["zone"], alone["runs"], len(alone["due"])) == ("Europe/Berlin", [], 1)


def test_a_timeline_is_cut_at_its_limit_and_says_so(web: Web, admin: Client) -> None:
    add(admin, "a", "every 1m", policy={"overlap": "allow"})
    for _ in range(4):
        admin.post("/api/schedules/a/trigger")
    timeline = admin.get("/api/timeline", params={**SPAN, "limit": "3"}).json()
    assert (len(timeline["runs"]), len(timeline["due"]), timeline["truncated"]) == (3, 3, True)
    assert [bar["id"] for bar in timeline["runs"]] == [2, 3, 4]
    assert [one["at"][11:16] for one in timeline["due"]] == ["00:01", "00:02", "00:03"]


def test_a_run_that_is_under_way_for_long_is_in_a_timeline_however_many_ended_since(web: Web, admin: Client) -> None:
    for _ in range(7):
        admin.post("/api/runs", {"work": TASK})
    for change in (
        "state = 'running', attempt = 1, started_at = ready_at WHERE id = 1",
        "state = 'succeeded', started_at = ready_at, finished_at = ready_at + id WHERE id > 1",
    ):
        web.sql(f"UPDATE runs SET {change}")
    web.clock.advance("10m")
    timeline = admin.get("/api/timeline", params={**SPAN, "limit": "3"}).json()
    assert [(bar["id"], bar["state"]) for bar in timeline["runs"]] == [
        (1, "running"),
        (6, "succeeded"),
        (7, "succeeded"),
    ]
    assert timeline["truncated"]
    assert not admin.get("/api/timeline", params={**SPAN, "limit": "7"}).json()["truncated"]


def test_what_a_timeline_does_not_list_is_counted_with_every_failure(web: Web, admin: Client) -> None:
    add(admin, "a", "every 1m", policy={"overlap": "allow"})
    for _ in range(40):
        admin.post("/api/schedules/a/trigger")
    minutes = "started_at = ready_at + id * 60000000, finished_at = ready_at + id * 60000000 + 1000000, attempt = 1"
    web.sql(f"UPDATE runs SET state = iif(id = 9, 'failed', 'succeeded'), {minutes}")
    timeline = admin.get("/api/timeline", params={**SPAN, "limit": "5"}).json()
    assert [bar["id"] for bar in timeline["runs"]] == [36, 37, 38, 39, 40]
    counted = timeline["stretches"]
    assert sum(stretch["runs"] for stretch in counted) == 35
    assert len(counted) <= 5
    (failed,) = (stretch for stretch in counted if stretch["state"] == "failed")
    assert (failed["run"], failed["from"][11:19], failed["to"][11:19]) == (9, "00:09:00", "00:09:01")
    assert (timeline["known_from"], timeline["incomplete"]) == (None, False)


def test_due_times_that_a_timeline_does_not_list_are_counted_to_its_end(web: Web, admin: Client) -> None:
    add(admin, "a", "every 1m")
    add(admin, "b", "daily 12:00")
    add(admin, "c", "every 1m", policy={"remaining": 30})
    timeline = admin.get("/api/timeline", params={**SPAN, "limit": "10"}).json()
    counted = {name: [one for one in timeline["due_stretches"] if one["schedule"] == name] for name in "abc"}
    assert sum(one["count"] for one in counted["a"]) == 1440 - 5
    assert [(one["from"][11:16], one["to"][11:16], one["count"]) for one in counted["b"]] == [("12:00", "12:00", 1)]
    assert sum(one["count"] for one in counted["c"]) == 30 - 5
    assert not timeline["incomplete"]


@tuned(timeline_runs=3)
def test_a_timeline_says_from_when_on_it_knows_of_what_ran(web: Web, admin: Client) -> None:
    for _ in range(9):
        admin.post("/api/runs", {"work": TASK})
    minutes = "started_at = ready_at + id * 60000000, finished_at = ready_at + id * 60000000, attempt = 1"
    web.sql(f"UPDATE runs SET state = 'succeeded', {minutes}")
    timeline = admin.get("/api/timeline", params={**SPAN, "limit": "2"}).json()
    assert timeline["known_from"] == "2026-01-01T00:06:00Z"
    assert [stretch["run"] for stretch in timeline["stretches"]] == [7]


def test_a_timeline_of_the_past_has_no_due_times(web: Web, admin: Client) -> None:
    add(admin, "a", "every 1m")
    span = {"from": "2025-12-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}
    timeline = admin.get("/api/timeline", params=span).json()
    assert (timeline["runs"], timeline["due"], timeline["truncated"]) == ([], [], False)


def test_a_timeline_of_the_future_begins_where_it_says(admin: Client) -> None:
    add(admin, "a", "every 6h")
    span = {"from": "2026-01-03T00:00:00Z", "to": "2026-01-03T12:00:00Z"}
    due = admin.get("/api/timeline", params=span).json()["due"]
    assert [one["at"][5:16] for one in due] == ["01-03T00:00", "01-03T06:00", "01-03T12:00"]


def test_a_timeline_counts_what_remains_from_now_on(admin: Client) -> None:
    add(admin, "a", "every 1h", policy={"remaining": 2})
    span = {"from": "2026-01-01T10:00:00Z", "to": "2026-01-02T00:00:00Z"}
    for chosen in ({}, {"schedule": "a"}):
        assert admin.get("/api/timeline", params={**span, **chosen}).json()["due"] == []


@tuned(timeline_schedules=2)
def test_a_timeline_of_a_large_project_is_cut_and_says_so(admin: Client, tmp_path: Path) -> None:
    assert admin.post("/api/projects", {"name": "shop", "folder": str(tmp_path)}).status_code == 201
    for hour in (3, 1, 2):
        add(admin, f"at{hour}", f"daily 0{hour}:00", project="shop")
    timeline = admin.get("/api/timeline", params={**SPAN, "project": "shop"}).json()
    assert ([one["schedule"] for one in timeline["due"]], timeline["truncated"]) == (["at1", "at2"], True)
    assert timeline["incomplete"]


def test_a_timeline_of_no_project_is_that_of_the_schedules_that_are_in_none(admin: Client, tmp_path: Path) -> None:
    assert admin.post("/api/projects", {"name": "shop", "folder": str(tmp_path)}).status_code == 201
    add(admin, "inside", "daily 01:00", project="shop")
    add(admin, "outside", "daily 02:00")
    timeline = admin.get("/api/timeline", params={**SPAN, "project": "none"}).json()
    assert [one["schedule"] for one in timeline["due"]] == ["outside"]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"to": "2025-01-01T00:00:00Z"}, 422),
        ({"to": "2026-03-01T00:00:00Z"}, 422),
        ({"limit": "2001"}, 422),
        ({"from": "soon"}, 422),
        ({"schedule": "none"}, 404),
        ({"project": "nowhere"}, 404),
        ({"project": "none"}, 200),
        ({"from": "9999-12-30T00:00:00Z", "to": "9999-12-31T00:00:00Z"}, 200),
        ({"from": "0001-01-01T00:00:00Z", "to": "0001-01-02T00:00:00Z"}, 200),
    ],
)
def test_a_span_is_checked(admin: Client, change: dict[str, str], status: int) -> None:
    add(admin, "a", "every 6h")
    assert admin.get("/api/timeline", params={**SPAN, **change}).status_code == status
