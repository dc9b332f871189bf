"""Values of variables and headers: an admin sees them, everybody else sees that they are there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ostinato import Agent, Http, Shell
from ostinato.models.access import Role
from tests.doors.web import Client, Web, web_on

SECRET = "swordfish"
VALUES = {"PASSWORD": SECRET, "TOKEN": "env:TOKEN", "KEY": "file:~/key"}
SHOWN = {**VALUES, "PASSWORD": "***"}
HEADERS = {"X-Key": SECRET, "Authorization": "Bearer env:TOKEN", "Cookie": f"{SECRET}; env:X"}


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    with web_on() as web:
        web.run(_furnish(web, tmp_path))
        yield web


async def _furnish(web: Web, folder: Path) -> None:
    services = web.container.services
    await services.projects.add("blog", folder, env=VALUES)
    works: dict[str, Shell | Agent | Http] = {
        "shell": Shell("make", env=VALUES),
        "agent": Agent("hello", env=VALUES),
        "http": Http("GET", "https://example.org", headers=HEADERS),
    }
    for name, work in works.items():
        await services.schedules.add(name, "every 1h", work)
        await services.schedules.trigger(name)
    # Ready for a while, and never started: they are late.
    web.clock.advance("1h")
    now = web.clock.now_utc()
    await services.schedules.backfill("shell", now - timedelta(minutes=1), now)


READ = [
    "/api/overview",
    "/api/schedules?recent=5",
    "/api/schedules/shell",
    "/api/schedules/agent",
    "/api/schedules/http",
    "/api/schedules/shell/runs",
    "/api/schedules/shell/why",
    "/api/runs",
    "/api/runs/1",
    "/api/projects",
    "/api/projects/blog",
    "/api/timeline?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z",
]
TELLING = {path for path in READ if "timeline" not in path}


@pytest.mark.parametrize("role", list(Role))
def test_only_an_admin_reads_values_that_may_be_secrets(web: Web, role: Role) -> None:
    client = web.script(role)
    answers = {path: client.get(path) for path in READ}
    assert {answer.status_code for answer in answers.values()} == {200}
    telling = {path for path, answer in answers.items() if SECRET in answer.text}
    assert telling == (TELLING if role is Role.ADMIN else set())


def test_names_and_references_are_shown_to_everybody(web: Web) -> None:
    viewer = web.script(Role.VIEWER)
    for name in ("shell", "agent"):
        assert viewer.get(f"/api/schedules/{name}").json()["work"]["env"] == SHOWN
    headers = viewer.get("/api/schedules/http").json()["work"]["headers"]
    assert headers == {"X-Key": "***", "Authorization": "Bearer env:TOKEN", "Cookie": "***"}
    assert viewer.get("/api/projects/blog").json()["env"] == SHOWN
    assert viewer.get("/api/overview").json()["late"][0]["work"].get("env", SHOWN) == SHOWN


def test_work_that_cannot_be_read_is_not_read_to_everybody(web: Web) -> None:
    stored = json.dumps({"kind": "teleport", "env": VALUES})  # as if a newer version had written it
    web.sql(f"UPDATE schedules SET work = '{stored}' WHERE name = 'shell'")
    text = {role: _texts(web.script(role).get("/api/schedules/shell")) for role in Role}
    assert SECRET in text[Role.ADMIN]
    assert text[Role.VIEWER] == text[Role.OPERATOR] == "***"


def _texts(answer: Any) -> str:
    work = answer.json()["work"]
    assert work["kind"] == "unreadable"
    return str(work["text"])


@pytest.mark.parametrize(
    "path", ["/api/schedules/shell/trigger", "/api/schedules/shell/disable", "/api/runs/1/cancel", "/api/runs/1/retry"]
)
def test_what_an_operator_does_is_not_answered_with_them_either(web: Web, path: str) -> None:
    body = {"force": True} if path.endswith("trigger") else {}
    if path.endswith("retry"):
        web.run(web.container.services.runs.cancel(1, reason="too late"))
    answer = web.script(Role.OPERATOR).post(path, body)
    assert answer.status_code in (200, 201)
    assert '"PASSWORD":"***"' in answer.text
    assert SECRET not in answer.text


SENT = "kingfisher"


@pytest.fixture
def calling(web: Web) -> Web:
    """A call with a secret in its query and body, one with JSON, and what one of them has answered."""
    url = f"https://example.org/hook?token={SENT}&{SENT}#{SENT}"
    result = json.dumps({"status": 200, "url": url, "json": None})
    add = web.container.services.schedules.add
    web.run(add("post", "every 1h", Http("POST", url, body=f"key={SENT}")))
    web.run(add("json", "every 1h", Http("POST", url, json={"key": SENT})))
    for name in ("post", "json"):
        web.run(web.container.services.schedules.trigger(name))
    web.sql(f"UPDATE runs SET result = '{result}', state = 'succeeded', finished_at = due_at WHERE kind = 'http'")
    return web


CALLS = [
    "/api/overview",
    "/api/schedules?recent=5",
    "/api/schedules/post",
    "/api/schedules/json",
    "/api/schedules/post/runs",
    "/api/schedules/json/why",
    "/api/runs",
    "/api/runs?state=succeeded",
    "/api/timeline?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z",
]
TOLD = {path for path in CALLS if not path.startswith(("/api/overview", "/api/timeline"))}


@pytest.mark.parametrize("role", list(Role))
def test_what_a_call_sends_is_shown_to_those_who_may_make_one(calling: Web, role: Role) -> None:
    client = calling.script(role)
    telling = {path for path in CALLS if SENT in client.get(path).text}
    assert telling == (set() if role is Role.VIEWER else TOLD)
    run = client.get("/api/runs?state=succeeded&limit=1").json()["items"][0]
    work = client.get("/api/schedules/post").json()["work"]
    if role is Role.VIEWER:
        assert work["url"] == run["result"]["url"] == "https://example.org/hook?token=***&***"
        assert (work["body"], work["json"]) == ("***", None)
        assert client.get("/api/schedules/json").json()["work"]["json"] == "***"
    else:
        assert (SENT in work["url"], work["body"]) == (True, f"key={SENT}")


def test_the_audit_log_says_that_something_is_sent_and_not_what(calling: Web) -> None:
    admin = calling.script(Role.ADMIN)
    url = f"https://example.org/hook?token={SENT}"
    for name, sent in (("one", {"body": SENT}), ("two", {"json": {"key": SENT}})):
        work = {"kind": "http", "method": "POST", "url": url, **sent}
        assert admin.post("/api/schedules", {"name": name, "timing": "every 1h", "work": work}).status_code == 201
    items = admin.get("/api/audit?verb=schedule.add").json()["items"]
    assert [item["detail"]["work"].get("body") for item in items] == [None, "… (10 characters)"]
    assert [item["detail"]["work"].get("json") for item in items] == ["… (20 characters)", None]
    assert SENT not in admin.get("/api/audit").text


def _patch(client: Client, name: str, **changes: Any) -> Any:
    return client.send("PATCH", f"/api/schedules/{name}", json=changes)


def test_a_change_of_something_else_leaves_them_as_they_are(web: Web) -> None:
    answer = _patch(web.script(Role.OPERATOR), "http", timing="every 2h")
    assert answer.json()["work"]["headers"]["X-Key"] == "***"
    assert web.script(Role.ADMIN).get("/api/schedules/http").json()["work"]["headers"] == HEADERS


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMIN])
def test_what_was_not_shown_cannot_be_given_back(web: Web, role: Role) -> None:
    work = {"kind": "http", "method": "GET", "url": "https://example.org", "headers": {"X-Key": "***"}}
    web.run(web.container.services.schedules.add("plain", "every 1h", Http("GET", "https://example.org")))
    client = web.script(role)
    for answer in (
        _patch(client, "plain", work=work),
        client.post("/api/schedules", {"name": "new", "timing": "every 1h", "work": work}),
        client.post("/api/runs", {"work": work}),
    ):
        assert answer.status_code == 422
        assert [error["field"] for error in answer.json()["errors"]] == ["work.headers.X-Key"]


def test_the_ping_url_of_a_policy_is_shown_to_nobody(web: Web) -> None:
    policies = {"literal": f"https://hc.example/{SECRET}", "reference": "env:HC_URL"}
    admin = web.script(Role.ADMIN, "maker")
    for name, url in policies.items():
        body = {
            "name": name,
            "timing": "every 1h",
            "work": {"kind": "function", "task": "x"},
            "policy": {"ping_url": url},
        }
        assert admin.post("/api/schedules", body).status_code == 201
    for role in Role:
        client = web.script(role)
        shown = {name: client.get(f"/api/schedules/{name}").json()["policy"]["ping_url"] for name in policies}
        assert shown == {**policies, "literal": "***"}
        assert "hc.example" not in client.get("/api/schedules").text
    assert "hc.example" not in admin.get("/api/audit").text


def test_a_ping_url_that_comes_back_as_it_is_shown_stays_as_it_is(web: Web) -> None:
    services, url = web.container.services, f"https://hc.example/{SECRET}"
    web.run(services.schedules.add("pinged", "every 1h", "x", ping_url=url))
    answer = _patch(web.script(Role.ADMIN), "pinged", policy={"ping_url": "***", "priority": 3})
    assert (answer.status_code, answer.json()["policy"]["priority"]) == (200, 3)
    assert web.run(services.schedules.get("pinged")).policy.ping_url == url
    work = {"kind": "function", "task": "x"}
    body = {"name": "new", "timing": "every 1h", "work": work, "policy": {"ping_url": "***"}}
    refused = web.script(Role.ADMIN, "other").post("/api/schedules", body)
    assert refused.status_code == 422
    assert "stands for what was not shown" in refused.text


def test_an_operator_reads_no_secret_of_the_machine_by_a_ping_url(web: Web) -> None:
    work = {"kind": "function", "task": "x"}
    for url, status in (("env:HC_URL", 403), ("https://hc.example/key", 201)):
        body = {"name": "new", "timing": "every 1h", "work": work, "policy": {"ping_url": url}}
        assert web.script(Role.OPERATOR, f"for-{status}").post("/api/schedules", body).status_code == status
