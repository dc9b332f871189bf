"""/api/schedules/{ref}/…: switched, triggered, filled in, explained; and one verb for many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ostinato.errors import Draining, OstinatoError, StoreError, StoreUnavailable
from ostinato.execution.registry import Registry
from ostinato.models.schedule import Schedule
from tests.doors.web import Client, Web, web_on

TASK = {"kind": "function", "task": "hello"}


@pytest.fixture
def web() -> Iterator[Web]:
    registry = Registry()
    registry.checks["disk"] = lambda: "the disk is full"
    with web_on(registry) as web:
        yield web


def add(client: Client, name: str, timing: str = "every 5m", **fields: Any) -> None:
    answer = client.post("/api/schedules", {"name": name, "timing": timing, "work": TASK, **fields})
    assert answer.status_code == 201, answer.text


def test_off_and_on_again_with_a_note(operator: Client) -> None:
    add(operator, "a")
    off = operator.post("/api/schedules/a/disable", {"note": "holiday"})
    assert (off.status_code, off.json()["enabled"], off.json()["off_note"]) == (200, False, "holiday")
    assert operator.post("/api/schedules/a/disable").json()["off_note"] == "holiday"
    on = operator.post("/api/schedules/a/enable")
    assert (on.status_code, on.json()["enabled"], on.headers["etag"]) == (200, True, f'"{on.json()["id"]}.3"')


def test_failed_checks_are_told_one_by_one(operator: Client) -> None:
    add(operator, "a", enabled=False, policy={"checks": ["disk", "unheard"]})
    answer = operator.post("/api/schedules/a/enable")
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/checks-failed")
    assert answer.json()["checks"]["disk"] == "the disk is full"
    assert set(answer.json()["checks"]) == {"disk", "unheard"}


def broken(web: Web, client: Client) -> None:
    """A schedule that the breaker has switched off, with a check that fails now."""
    add(client, "a", enabled=False, policy={"checks": ["disk"]})
    web.sql("UPDATE schedules SET broken = 'it failed' WHERE name = 'a'")


def test_a_changed_timing_of_a_broken_schedule_is_refused_while_a_check_fails(web: Web, operator: Client) -> None:
    broken(web, operator)
    before = operator.get("/api/schedules/a").json()
    for body in ({"timing": "every 7m"}, {"timing": "every 7m", "enabled": True}, {"enabled": True}):
        answer = operator.send("PATCH", "/api/schedules/a", json=body)
        assert (answer.status_code, answer.json()["type"]) == (409, "/problems/checks-failed")
    again = {"name": "a", "timing": "every 7m", "work": TASK, "policy": {"checks": ["disk"]}}
    assert operator.post("/api/schedules", again).status_code == 409
    assert operator.get("/api/schedules/a").json() == before


def test_a_changed_timing_of_what_is_to_be_off_asks_no_check_and_clears_what_broke_it(
    web: Web, operator: Client
) -> None:
    broken(web, operator)
    answer = operator.send("PATCH", "/api/schedules/a", json={"timing": "every 7m", "enabled": False})
    assert answer.status_code == 200
    told = answer.json()
    assert (told["timing"], told["enabled"], told["broken"], told["state"]) == ("every 7m", False, None, "off")


def test_a_trigger_answers_the_run_and_is_refused_while_one_is_active(operator: Client) -> None:
    add(operator, "a")
    answer = operator.post("/api/schedules/a/trigger")
    assert (answer.status_code, answer.headers["location"]) == (201, "/api/runs/1")
    assert (answer.json()["trigger"], answer.json()["state"], answer.json()["zone"]) == ("manual", "queued", "UTC")
    again = operator.post("/api/schedules/a/trigger")
    assert (again.status_code, again.json()["type"]) == (409, "/problems/already-active")
    assert operator.post("/api/schedules/a/trigger", {"force": True}).status_code == 201


def test_what_is_not_there_is_404_for_every_verb(operator: Client) -> None:
    span = {"from": "2026-01-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"}
    verbs: list[tuple[str, Any]] = [("enable", None), ("disable", None), ("trigger", None), ("backfill", span)]
    for verb, body in verbs:
        assert operator.post(f"/api/schedules/none/{verb}", body).status_code == 404
    for view in ("runs", "why", "next", "history"):
        assert operator.get(f"/api/schedules/none/{view}").status_code == 404


def test_a_backfill_queues_due_times_that_nobody_ran(web: Web, operator: Client) -> None:
    add(operator, "a", "every 1h", zone="Asia/Tokyo")
    web.clock.advance("5h30m")
    span = {"from": "2026-01-01T02:00:00Z", "until": "2026-01-01T04:59:59Z"}
    due = ["2026-01-01T02:00:00Z", "2026-01-01T03:00:00Z", "2026-01-01T04:00:00Z"]
    dry = operator.post("/api/schedules/a/backfill", {**span, "dry_run": True})
    assert (dry.status_code, dry.json()) == (200, {"due": due, "runs": [], "left_out": 0, "zone": "Asia/Tokyo"})
    done = operator.post("/api/schedules/a/backfill", span)
    assert (done.status_code, done.json()) == (
        201,
        {"due": due, "runs": [1, 2, 3], "left_out": 0, "zone": "Asia/Tokyo"},
    )
    again = operator.post("/api/schedules/a/backfill", span).json()
    assert again == {"due": [], "runs": [], "left_out": 3, "zone": "Asia/Tokyo"}
    runs = operator.get("/api/schedules/a/runs").json()["items"]
    assert [(run["due_at"], run["trigger"]) for run in runs] == [(at, "manual") for at in reversed(due)]
    assert ("operator", "api", "schedule.backfill", "a") in web.audit()


def test_a_backfill_is_refused_where_it_makes_no_sense(web: Web, operator: Client) -> None:
    add(operator, "every", "every 1s")
    add(operator, "after", "every 1h after finish")
    web.clock.advance("2d")
    for start, until, field in (("2020-01-01", "2026-01-01", "from"), ("2026-01-02", "2026-01-09", "until")):
        span = {"from": f"{start}T00:00:00Z", "until": f"{until}T00:00:00Z"}
        refused = operator.post("/api/schedules/every/backfill", span)
        assert (refused.status_code, [error["field"] for error in refused.json()["errors"]]) == (422, [field])
    span = {"from": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z"}
    assert operator.post("/api/schedules/after/backfill", span).status_code == 409
    assert operator.post("/api/schedules/every/backfill", {"from": "yesterday"}).status_code == 422


def test_next_times_say_why_there_are_none(operator: Client) -> None:
    add(operator, "a", "daily 03:00", zone="Europe/Berlin")
    times = operator.get("/api/schedules/a/next?n=2").json()
    assert times == {
        "zone": "Europe/Berlin",
        "next": ["2026-01-01T02:00:00Z", "2026-01-02T02:00:00Z"],
        "reason": None,
    }
    operator.post("/api/schedules/a/disable", {"note": "holiday"})
    assert operator.get("/api/schedules/a/next").json()["next"] == []
    assert operator.get("/api/schedules/a/next").json()["reason"] == "disabled: holiday"
    assert operator.get("/api/schedules/a/next?n=101").status_code == 422


def test_no_more_next_times_are_told_than_remain(operator: Client) -> None:
    add(operator, "a", "every 1h", policy={"remaining": 2})
    assert operator.get("/api/schedules/a/next?n=5").json()["next"] == ["2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z"]


def test_why_answers_for_a_moment(web: Web, operator: Client) -> None:
    add(operator, "a", "daily 12:00", zone="Asia/Tokyo")
    web.clock.advance("1d")
    why = operator.get("/api/schedules/a/why?at=2026-01-01T03:00:00Z").json()
    assert (why["due_at"], why["zone"]) == ("2026-01-01T03:00:00Z", "Asia/Tokyo")
    assert "no engine is running" in why["answer"]
    assert operator.get("/api/schedules/a/why?at=2026-01-01").status_code == 422


def test_history_counts_the_days_of_the_schedules_own_zone(web: Web, operator: Client) -> None:
    add(operator, "a", "every 1h", zone="America/New_York", policy={"overlap": "allow"})
    web.clock.advance("1d")
    span = {"from": "2026-01-01T03:00:00Z", "until": "2026-01-01T06:00:00Z"}
    operator.post("/api/schedules/a/backfill", span)
    for run in (1, 3):
        operator.post(f"/api/runs/{run}/cancel")
    history = operator.get("/api/schedules/a/history?days=3").json()
    assert history["zone"] == "America/New_York"
    assert [(day["date"], day["states"]) for day in history["days"]] == [
        ("2025-12-31", {"cancelled": 1}),
        ("2026-01-01", {"cancelled": 1}),
    ]
    assert operator.get("/api/schedules/a/history?days=0").status_code == 422


def test_what_succeeded_with_errors_is_told_in_history_bars_and_lists(web: Web, operator: Client) -> None:
    add(operator, "a", "every 1h", policy={"overlap": "allow"})
    web.clock.advance("1h")
    for _ in range(3):
        operator.post("/api/schedules/a/trigger")
    ended = "state = 'succeeded', attempt = 1, started_at = ready_at, finished_at = ready_at + 1"
    web.sql(f"UPDATE runs SET {ended} WHERE id < 3")
    errors = """cause = 'errors', reason = '3 errors', totals = '{"copied":120,"errors":3}'"""
    web.sql(f"UPDATE runs SET {errors} WHERE id = 1")
    web.clock.advance("1s")
    (day,) = operator.get("/api/schedules/a/history?days=3").json()["days"]
    assert (day["states"], day["with_errors"]) == ({"succeeded": 2}, 1)
    (listed,) = operator.get("/api/schedules?recent=5").json()["items"]
    assert [(bar["state"], bar.get("cause")) for bar in listed["recent"]] == [
        ("succeeded", "errors"),
        ("succeeded", None),
        ("queued", None),
    ]
    found = operator.get("/api/runs?cause=errors").json()["items"]
    assert [(run["id"], run["state"], run["totals"]) for run in found] == [
        (1, "succeeded", {"copied": 120, "errors": 3})
    ]
    (bucket,) = operator.get("/api/overview").json()["activity"]
    assert (bucket["states"], bucket["with_errors"]) == ({"succeeded": 2}, 1)
    span = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}
    bars = operator.get("/api/timeline", params=span).json()["runs"]
    assert [bar["cause"] for bar in bars] == ["errors", None, None]


def test_one_verb_for_many_goes_on_after_a_failure(operator: Client) -> None:
    for name in ("a", "b", "c"):
        add(operator, name)
    operator.post("/api/schedules/b/trigger")
    answer = operator.post("/api/schedules/bulk", {"action": "trigger", "names": ["a", "b", "none", "c", "a"]})
    assert answer.status_code == 200
    assert answer.json()["done"] == ["a", "c"]
    failed = {failure["name"]: failure["problem"]["status"] for failure in answer.json()["failed"]}
    assert failed == {"b": 409, "none": 404}
    off = operator.post("/api/schedules/bulk", {"action": "disable", "names": ["a"], "note": "all off"}).json()
    assert (off["done"], operator.get("/api/schedules/a").json()["off_note"]) == (["a"], "all off")
    assert operator.post("/api/schedules/bulk", {"action": "enable", "names": ["a"]}).json()["done"] == ["a"]
    assert operator.post("/api/schedules/bulk", {"action": "remove", "names": ["a", "b"]}).json()["done"] == ["a", "b"]
    assert [item["name"] for item in operator.get("/api/schedules").json()["items"]] == ["c"]


def test_each_of_many_is_in_the_audit_log(web: Web, operator: Client) -> None:
    for name in ("a", "b"):
        add(operator, name)
    operator.post("/api/schedules/bulk", {"action": "disable", "names": ["a", "b"]})
    assert [entry[2:] for entry in web.audit()][-2:] == [("schedule.disable", "a"), ("schedule.disable", "b")]


def fail_with(web: Web, monkeypatch: pytest.MonkeyPatch, error: OstinatoError, name: str) -> list[str]:
    """Let one schedule fail in the store; answers which were asked for."""
    store, asked = web.container.store.schedules, list[str]()
    plain = store.get_schedule

    async def get_schedule(wanted: str) -> Schedule | None:
        asked.append(wanted)
        if wanted == name:
            raise error
        return await plain(wanted)

    monkeypatch.setattr(store, "get_schedule", get_schedule)
    return asked


@pytest.mark.parametrize("error", [StoreUnavailable("the server is away"), Draining("this node is shutting down")])
def test_many_end_with_the_first_when_nothing_can_be_done_at_all(
    web: Web, operator: Client, monkeypatch: pytest.MonkeyPatch, error: OstinatoError
) -> None:
    for name in "abc":
        add(operator, name)
    asked = fail_with(web, monkeypatch, error, "b")
    answer = operator.post("/api/schedules/bulk", {"action": "disable", "names": ["b", "c"]})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert "c" not in asked


@pytest.mark.parametrize("error", [StoreUnavailable("the server is away"), Draining("this node is shutting down")])
def test_many_that_end_after_some_were_done_are_not_to_be_sent_again(
    web: Web, operator: Client, monkeypatch: pytest.MonkeyPatch, error: OstinatoError
) -> None:
    for name in "abc":
        add(operator, name)
    asked = fail_with(web, monkeypatch, error, "b")
    body = {"action": "trigger", "names": ["a", "b", "c"]}
    answers = [operator.post("/api/schedules/bulk", body, headers={"Idempotency-Key": "k1"}) for _ in range(2)]
    assert {(answer.status_code, answer.json()["type"]) for answer in answers} == {(500, "/problems/outcome-unknown")}
    assert "retry-after" not in answers[0].headers
    assert "c" not in asked
    assert [entry[2:] for entry in web.audit()][3:] == [("schedule.trigger", "a")]


def test_an_unexpected_error_of_one_of_many_is_in_the_log(
    web: Web, operator: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "abc":
        add(operator, name)
    fail_with(web, monkeypatch, StoreError("the row is torn"), "b")
    answer = operator.post("/api/schedules/bulk", {"action": "disable", "names": ["a", "b", "c"]}).json()
    assert (answer["done"], [one["name"] for one in answer["failed"]]) == (["a", "c"], ["b"])
    assert "torn" not in answer["failed"][0]["problem"]["detail"]
    assert "the row is torn" in caplog.text


@pytest.mark.parametrize(
    "body",
    [
        {"action": "dance", "names": ["a"]},
        {"action": "enable", "names": []},
        {"action": "enable", "names": ["a"], "note": "only disable takes one"},
        {"action": "enable", "names": ["a"], "force": True},
        {},
    ],
)
def test_a_verb_for_many_that_nobody_understands_is_refused(operator: Client, body: Any) -> None:
    assert operator.post("/api/schedules/bulk", body).status_code == 422


def test_what_is_wrong_with_a_field_is_said_in_our_words(operator: Client) -> None:
    body = {"name": "x", "work": {"kind": "function", "task": ""}, "extra": 1}
    found = {one["field"]: one["message"] for one in operator.post("/api/schedules", body).json()["errors"]}
    assert found == {"timing": "it is missing", "work.task": "it is empty", "extra": "there is no such field"}
    (wrong,) = operator.post("/api/schedules", {**body, "work": {"kind": "rocket"}}).json()["errors"][1:2]
    assert wrong["message"] == "'kind' is one of 'function', 'shell', 'agent', 'http', 'check_in'"
