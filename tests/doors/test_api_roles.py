"""Every route and every role: who is let through, and who is not. The table is the promise; a route that is not in it
is a failure."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.api.app import api_routes
from ostinato.api.shapes.policy import NewPolicy
from ostinato.api.shapes.schedules import ScheduleChanges
from ostinato.models.access import Role
from tests.doors.web import Client, Web

VIEWER = """
POST /api/logout
GET /api/me
GET /api/schedules
GET /api/schedules/{ref}
GET /api/schedules/{ref}/runs
GET /api/schedules/{ref}/why
GET /api/schedules/{ref}/next
GET /api/schedules/{ref}/history
GET /api/schedules/{ref}/relations
GET /api/timings/preview
POST /api/timings/preview
GET /api/runs
GET /api/runs/{id}
GET /api/runs/{id}/output
HEAD /api/runs/{id}/output
GET /api/runs/{id}/lines
GET /api/lanes
GET /api/lanes/{name}
GET /api/sessions
GET /api/sessions/{key}
GET /api/sessions/{key}/messages
GET /api/sessions/{key}/events
GET /api/nodes
GET /api/calendars
GET /api/calendars/{name}
GET /api/projects
GET /api/projects/{name}
GET /api/tasks
GET /api/kinds
GET /api/overview
GET /api/channels
GET /api/channels/{name}
GET /api/rules
GET /api/deliveries
GET /api/incidents
GET /api/incidents/{id}
GET /api/timeline
"""
OPERATOR = """
POST /api/schedules
POST /api/schedules/bulk
PATCH /api/schedules/{ref}
DELETE /api/schedules/{ref}
POST /api/schedules/{ref}/enable
POST /api/schedules/{ref}/disable
POST /api/schedules/{ref}/revert
POST /api/schedules/{ref}/trigger
POST /api/schedules/{ref}/backfill
POST /api/schedules/{ref}/ping-key
POST /api/schedules/{ref}/badge-key
POST /api/runs
POST /api/runs/{id}/cancel
POST /api/runs/{id}/retry
PUT /api/calendars/{name}
DELETE /api/calendars/{name}
PUT /api/lanes/{name}
POST /api/lanes/{name}/pause
POST /api/lanes/{name}/resume
POST /api/lanes/{name}/clear
POST /api/sessions/{key}/messages
POST /api/sessions/{key}/stop
POST /api/sessions/{key}/stop_all
POST /api/nodes/{id}/drain
POST /api/nodes/{id}/resume
POST /api/channels/{name}/test
POST /api/incidents/{id}/ack
POST /api/incidents/{id}/rerun
"""
ADMIN = """
POST /api/projects
DELETE /api/projects/{name}
GET /api/logins
DELETE /api/logins/{id}
GET /api/tokens
POST /api/tokens
DELETE /api/tokens/{id}
GET /api/audit
POST /api/channels
DELETE /api/channels/{name}
POST /api/rules
DELETE /api/rules/{id}
"""
PINGS = {(method, path) for method in ("GET", "HEAD", "POST") for path in ("/ping/{key}", "/ping/{key}/{said:path}")}
KEYED = {*PINGS, ("GET", "/badge/{key}.svg")}
"""What the key in their path opens."""
HEALTH = {("GET", "/livez"), ("GET", "/healthz"), ("GET", "/readyz")}
EVERYBODY = {("POST", "/api/login"), ("GET", "/metrics"), *HEALTH, *KEYED}
"""The first two check by themselves."""

NEEDED: dict[tuple[str, str], Role] = {
    (line.split()[0], line.split()[1]): role
    for role, lines in ((Role.VIEWER, VIEWER), (Role.OPERATOR, OPERATOR), (Role.ADMIN, ADMIN))
    for line in lines.strip().splitlines()
}


def test_every_route_is_in_the_table() -> None:
    routes = {(method, route.path) for route in api_routes() for method in route.methods or ()}
    assert routes == NEEDED.keys() | EVERYBODY


def test_the_description_names_the_role_of_every_route(web: Web) -> None:
    document = web.app.openapi()
    named = {
        (method.upper(), path): operation.get("x-role")
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }
    assert named == {**NEEDED, ("POST", "/api/login"): None}


def _send(client: Client, method: str, path: str, **parts: Any) -> int:
    """Ask for something that is not there, with a body that says nothing: only who asks decides how far it gets."""
    filled = path.replace("{id}", "999").replace("{ref}", "ghost").replace("{name}", "ghost").replace("{key}", "ghost")
    body: dict[str, Any] | None = {} if method in ("POST", "PUT", "PATCH") else None
    return client.send(method, filled, json=body, **parts).status_code


@pytest.mark.parametrize("role", [None, *Role])
def test_a_role_gets_as_far_as_the_table_says(web: Web, role: Role | None) -> None:
    client = web.anybody() if role is None else web.script(role, "who")
    wrong = []
    for (method, path), needed in NEEDED.items():
        status = _send(client, method, path)
        if role is None:
            expected = status == 401
        elif not role.covers(needed):
            expected = status == 403
        else:
            expected = status not in (401, 403) and status < 500
        if not expected:
            wrong.append((method, path, status))
    assert wrong == []


@pytest.mark.parametrize("role", list(Role))
def test_a_browser_gets_as_far_as_a_token(web: Web, role: Role) -> None:
    wrong = []
    browser = web.browser(role)
    thief = web.anybody(Cookie=f"ostinato-8321={browser.cookies['ostinato-8321']}")
    for (method, path), needed in NEEDED.items():
        if path == "/api/logout":
            continue
        without = _send(thief, method, path)
        status = _send(browser, method, path)
        if (status == 403) == role.covers(needed) or without != 401:
            wrong.append((method, path, status, without))
    assert wrong == []


SHELL = {"kind": "shell", "command": "true"}
AGENT = {"kind": "agent", "prompt": "hello"}
HTTP = {"kind": "http", "method": "GET", "url": "https://example.org"}
SECRET = {**HTTP, "headers": {"Authorization": "Bearer env:TOKEN"}}
TASK = {"kind": "function", "task": "hello"}
GATE = {"gate": {"command": "true"}}


@pytest.mark.parametrize(
    ("work", "policy", "needed"),
    [
        (TASK, {}, Role.OPERATOR),
        (HTTP, {}, Role.OPERATOR),
        (SHELL, {}, Role.ADMIN),
        (AGENT, {}, Role.ADMIN),
        (SECRET, {}, Role.ADMIN),
        (TASK, GATE, Role.ADMIN),
    ],
)
def test_only_an_admin_makes_what_runs_commands(
    web: Web, work: dict[str, Any], policy: dict[str, Any], needed: Role
) -> None:
    for role in (Role.OPERATOR, Role.ADMIN):
        client = web.script(role)
        added = {"name": f"by-{role}", "timing": "every 5m", "work": work, "policy": policy}
        expected = 201 if role.covers(needed) else 403
        assert client.post("/api/schedules", added).status_code == expected
        assert client.post("/api/runs", {"work": work, "policy": policy}).status_code == expected
    web.script(Role.ADMIN, "root").post("/api/schedules", {"name": "plain", "timing": "every 5m", "work": TASK})
    changes: dict[str, Any] = {"work": work, "policy": policy}
    for role in (Role.OPERATOR, Role.ADMIN):
        client = web.script(role, f"patching-{role}")
        status = client.send("PATCH", "/api/schedules/plain", json=changes).status_code
        assert status == (200 if role.covers(needed) else 403)


SAMPLES: dict[str, Any] = {
    "overlap": "allow",
    "catch_up": "none",
    "catch_up_window": "1h",
    "catch_up_cap": 5,
    "retry": 9,
    "timeout": None,
    "silent": None,
    "soft_timeout": None,
    "max_age": "1h",
    "break_after": 100,
    "probe": "1h",
    "fresh": "2d",
    "lane": "main",
    "priority": 3,
    "session": "chat",
    "checks": [],
    "gate": None,
    "budget": None,
    "notify": [],
    "ping_url": "https://hc.example/key",
    "keep": {"count": 1},
    "remaining": 5,
    "run_once": True,
    "delete_after_run": True,
    "on_lost_lease": "continue",
}
"""Another value of each policy; `silent`, `checks`, `gate`, `budget` and `notify` are taken away."""
CHANGES: dict[str, Any] = {
    "timing": "every 1h",
    "zone": "Europe/Berlin",
    "note": "watch this",
    "enabled": False,
    "work": {"kind": "function", "task": "hello"},
    "project": None,
}
OPERATORS = {"timing", "zone", "note", "enabled", "catch_up", "catch_up_window", "catch_up_cap", "max_age", "priority"}
"""All that an operator changes of what an admin made: when it runs. A field that is new is an admin's."""


@pytest.mark.parametrize("work", [SHELL, AGENT, SECRET, TASK], ids=["shell", "agent", "secret", "gate"])
@pytest.mark.parametrize("role", list(Role))
def test_what_each_role_changes_of_an_admins_work_is_a_closed_list(web: Web, role: Role, work: dict[str, Any]) -> None:
    assert SAMPLES.keys() == NewPolicy.model_fields.keys()
    assert CHANGES.keys() | {"policy"} == ScheduleChanges.model_fields.keys()
    made = {"name": "nightly", "timing": "every 5m", "work": work, "policy": GATE if work is TASK else {}}
    admin, client = web.script(Role.ADMIN, "maker"), web.script(role)
    bodies = {name: {name: value} for name, value in CHANGES.items()}
    bodies |= {name: {"policy": {name: value}} for name, value in SAMPLES.items()}
    allowed = set()
    for name, body in bodies.items():
        assert admin.post("/api/schedules", made).status_code in (200, 201)
        status = client.send("PATCH", "/api/schedules/nightly", json=body).status_code
        assert status in (200, 403), (name, status)
        if status == 200:
            allowed.add(name)
    assert allowed == {Role.VIEWER: set(), Role.OPERATOR: OPERATORS, Role.ADMIN: set(bodies)}[role]


def test_a_message_brings_no_command_with_it(web: Web) -> None:
    body = {"task": "hello", "payload": 1, **GATE}
    assert web.script(Role.OPERATOR).post("/api/sessions/dm/messages", body).status_code in (403, 422)
    assert (
        web.script(Role.OPERATOR, "b").post("/api/sessions/dm/messages", {"task": "hello", "payload": 1}).status_code
        == 201
    )
