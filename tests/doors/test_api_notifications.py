"""/api/channels, /api/rules, /api/deliveries and /api/incidents."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ostinato import Run, Shell
from ostinato.models.ids import NodeId
from ostinato.stores.base import Settled
from ostinato.wiring import Container
from tests.doors.web import Client, Web

URL = "json://user:secret@example.org/token"
PHONE = {"name": "phone", "url": URL}


async def _executed(container: Container, command: str) -> Run:
    return await container.execute(await container.services.runs.draft(Shell(command)))


async def _settled(container: Container, error: str) -> None:
    """What is owed cannot be sent."""
    node, now, store = NodeId("n"), container.clock.now(), container.store.notifications
    (parcel,) = await store.claim_deliveries(node, now, [], 10)
    ids = [delivery.id for delivery in parcel.deliveries]
    await store.settle_delivery(node, Settled(parcel.name, parcel.key, ids, now, error, now + 60_000_000))


def fail(web: Web, times: int = 1) -> None:
    """What is told of it is left to a node, which never sends it."""
    web.beat()
    for _ in range(times):
        assert web.run(_executed(web.container, "exit 7")).state == "failed"


def test_a_channel_is_added_changed_and_removed(web: Web, admin: Client) -> None:
    added = admin.post("/api/channels", {**PHONE, "quiet": "22:00-07:00", "zone": "Europe/Berlin"})
    assert (added.status_code, added.headers["Location"]) == (201, "/api/channels/phone")
    assert added.json()["url"] == "json://***@example.org/***"
    changed = admin.post("/api/channels", {"name": "phone", "quiet": "none", "cool_down": "1h"})
    assert changed.status_code == 200
    assert (changed.json()["quiet"], changed.json()["cool_down"]) == (None, "1h")
    assert web.sql("SELECT url FROM channels") == [(URL,)]
    assert admin.get("/api/channels/phone").json() == changed.json()
    assert admin.get("/api/channels").json() == {"items": [changed.json()], "zone": "UTC"}
    assert admin.send("DELETE", "/api/channels/phone").status_code == 204
    assert admin.get("/api/channels/phone").status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "my phone", "url": URL}, "name"),
        ({"name": "phone"}, "url"),
        ({"name": "phone", "url": "secret"}, "url"),
        ({**PHONE, "url": "json://***"}, "url"),
        ({**PHONE, "quiet": "at night"}, "quiet"),
        ({**PHONE, "digest": "at eight"}, "digest"),
        ({**PHONE, "zone": "Mars/Olympus"}, "zone"),
        ({**PHONE, "cool_down": "soon"}, "cool_down"),
        ({**PHONE, "color": "red"}, "color"),
    ],
)
def test_a_wrong_channel_is_refused_at_its_field_without_its_url(admin: Client, body: Any, field: str) -> None:
    answer = admin.post("/api/channels", body)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert "secret" not in answer.text


def test_no_answer_and_no_entry_of_the_log_has_the_url(web: Web, admin: Client) -> None:
    admin.post("/api/channels", PHONE)
    admin.post("/api/channels", {"name": "chat", "url": "tgram://123:secret/42"})
    shown = [client.get("/api/channels").text for client in (admin, web.script("viewer"))]
    log = admin.get("/api/audit", params={"verb": "channel.add"}).text
    assert all("secret" not in text and "token" not in text for text in (*shown, log))
    assert "tgram://***" in log
    assert "json://example.org/***" in log


def test_who_may_only_look_is_not_shown_where_a_channel_leads(web: Web, admin: Client) -> None:
    admin.post("/api/channels", PHONE)
    viewer = web.script("viewer")
    assert viewer.get("/api/channels/phone").json()["url"] == "***"
    (channel,) = viewer.get("/api/channels").json()["items"]
    assert channel["url"] == "***"
    assert web.script("operator").get("/api/channels/phone").json()["url"] == "json://***@example.org/***"


def test_nor_is_it_in_why_a_message_could_not_be_sent(web: Web, admin: Client) -> None:
    admin.post("/api/channels", PHONE)
    admin.post("/api/rules", {"channel": "phone"})
    fail(web)
    web.run(_settled(web.container, "example.org: no route to 10.1.2.3"))
    paths = ("/api/channels", "/api/channels/phone", "/api/deliveries", "/api/incidents/1")
    viewer, operator = web.script("viewer"), web.script("operator")
    for path in paths:
        assert not {"example.org", "10.1.2.3"} & set(re.findall(r"[\w.]+", viewer.get(path).text)), path
        assert "operators see why" in viewer.get(path).text, path
        assert "no route to 10.1.2.3" in operator.get(path).text, path


def test_why_a_message_was_dropped_is_for_everybody(web: Web, admin: Client) -> None:
    admin.post("/api/channels", PHONE)
    admin.post("/api/rules", {"channel": "phone"})
    fail(web)
    admin.send("DELETE", "/api/channels/phone")
    (dropped,) = web.script("viewer").get("/api/deliveries").json()["items"]
    assert (dropped["state"], dropped["error"]) == ("dropped", "its channel was removed")


def test_a_channel_that_schedules_name_is_removed_only_by_force(admin: Client) -> None:
    admin.post("/api/channels", PHONE)
    schedule = {"name": "a", "timing": "every 5m", "work": {"kind": "function", "task": "hello"}}
    assert admin.post("/api/schedules", {**schedule, "policy": {"notify": ["phone"]}}).status_code == 201
    refused = admin.send("DELETE", "/api/channels/phone")
    assert (refused.status_code, "schedules notify channel 'phone': a" in refused.text) == (409, True)
    assert admin.send("DELETE", "/api/channels/phone?force=true").status_code == 204


@pytest.mark.parametrize("path", ["/api/schedules", "/api/runs"])
def test_an_unknown_channel_is_refused_where_it_is_named(admin: Client, path: str) -> None:
    body: dict[str, Any] = {"work": {"kind": "function", "task": "hello"}, "policy": {"notify": ["phone"]}}
    if path == "/api/schedules":
        body |= {"name": "a", "timing": "every 5m"}
    answer = admin.post(path, body)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == ["policy.notify"]
    assert "there is no channel 'phone'" in answer.text


def test_rules_are_added_replaced_and_removed(admin: Client) -> None:
    admin.post("/api/channels", PHONE)
    added = admin.post("/api/rules", {"channel": "phone", "on": ["failed", "missed"]})
    assert (added.status_code, added.json()["on"], added.json()["project"]) == (201, ["failed", "missed"], None)
    replaced = admin.post("/api/rules", {"channel": "phone", "digest": "daily 08:00"})
    assert (replaced.status_code, replaced.json()["on"]) == (200, [])
    assert admin.get("/api/rules").json()["items"] == [replaced.json()]
    assert admin.send("DELETE", f"/api/rules/{replaced.json()['id']}").status_code == 204
    assert admin.send("DELETE", f"/api/rules/{replaced.json()['id']}").status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"channel": "nobody"}, "channel"),
        ({"channel": "phone", "on": []}, "on"),
        ({"channel": "phone", "on": ["never"]}, "on.0"),
        ({"channel": "phone", "digest": "at eight"}, "digest"),
    ],
)
def test_a_wrong_rule_is_refused_at_its_field(admin: Client, body: Any, field: str) -> None:
    admin.post("/api/channels", PHONE)
    answer = admin.post("/api/rules", body)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_incidents_are_listed_open_first_with_how_many_are_open(web: Web, admin: Client, tmp_path: Path) -> None:
    command = f"test -e {tmp_path}/well"
    for _ in range(2):
        web.run(_executed(web.container, command))
    admin.post("/api/channels", PHONE)
    listed = admin.get("/api/incidents").json()
    (incident,) = listed["items"]
    assert (listed["open"], listed["next"]) == (1, None)
    assert (incident["subject"][:6], incident["cause"], incident["count"]) == ("shell ", "exit_status", 2)
    web.run(_executed(web.container, "true"))
    assert admin.get("/api/incidents?state=open").json()["open"] == 1, "another command says nothing of this one"
    (tmp_path / "well").touch()
    web.run(_executed(web.container, command))
    assert admin.get("/api/incidents", params={"state": "open"}).json() == {
        "items": [],
        "next": None,
        "open": 0,
        "zone": "UTC",
    }
    assert admin.get("/api/incidents?state=closed").json()["items"][0]["closed_reason"] == "it succeeded"


def test_pages_of_incidents_follow_each_other(web: Web, admin: Client) -> None:
    for number in range(5):
        closed = "NULL" if number % 2 else str(number + 1)
        web.sql(
            "INSERT INTO incidents (subject, cause, kind, opened_at, last_at, count, closed_at) "
            f"VALUES ('s{number}', 'raised', 'failed', 1, 1, 1, {closed})"
        )
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = admin.get("/api/incidents", params={"limit": 2, **cursor}).json()
        seen += [one["subject"] for one in page["items"]]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    assert seen == ["s3", "s1", "s4", "s2", "s0"]
    assert admin.get("/api/incidents", params={"state": "open", **cursor}).status_code == 422


def test_an_incident_says_what_was_told_to_whom(web: Web, admin: Client) -> None:
    admin.post("/api/channels", PHONE)
    admin.post("/api/rules", {"channel": "phone"})
    fail(web, 3)
    detail = admin.get("/api/incidents/1").json()
    assert [(one["channel"], one["kind"], one["state"]) for one in detail["deliveries"]] == [
        ("phone", "failed", "pending")
    ]
    assert detail["runs"] == [3, 2, 1]
    listed = admin.get("/api/deliveries", params={"channel": "phone"}).json()
    assert listed == {"items": detail["deliveries"], "next": None, "zone": "UTC"}
    assert admin.get("/api/deliveries?state=sent").json()["items"] == []


def test_an_incident_is_acked_by_whoever_is_logged_in(web: Web, operator: Client, tmp_path: Path) -> None:
    command = f"test -e {tmp_path}/well"
    web.run(_executed(web.container, command))
    acked = operator.post("/api/incidents/1/ack", {"note": "I am on it"})
    assert (acked.json()["acked_by"], acked.json()["note"]) == ("operator", "I am on it")
    assert ("operator", "api", "incident.ack", "1") in web.audit()
    (tmp_path / "well").touch()
    web.run(_executed(web.container, command))
    assert operator.post("/api/incidents/1/ack").status_code == 409


def test_all_failed_runs_of_an_incident_are_run_again_once_for_each_key(web: Web, operator: Client) -> None:
    fail(web, 2)
    keyed = {"Idempotency-Key": "once"}
    first = operator.post("/api/incidents/1/rerun", headers=keyed)
    assert first.status_code == 201
    assert len(first.json()["runs"]) == 2
    assert operator.post("/api/incidents/1/rerun", headers=keyed).json() == first.json()
    assert len(operator.get("/api/runs?state=queued").json()["items"]) == 2
    assert json.loads(first.text)["left"] == 0
