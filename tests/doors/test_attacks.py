"""Attacks: every route without credentials, every role on everybody's schedules, hostile text in every field."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute

from ostinato import Function, Shell
from ostinato.models.access import Role
from tests.doors.good_requests import GOOD, Good, furnish
from tests.doors.test_api_roles import NEEDED
from tests.doors.web import Client, Web, web_on

# --- without credentials ---------------------------------------------------------------------------------------------

PUBLIC = {
    ("POST", "/api/login"),
    ("GET", "/api/openapi.json"),
    ("HEAD", "/api/openapi.json"),
    ("GET", "/healthz"),
    ("GET", "/livez"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    # Their keys are secrets, and one that is none leads nowhere.
    ("GET", "/badge/{key}.svg"),
    *((method, path) for method in ("GET", "HEAD", "POST") for path in ("/ping/{key}", "/ping/{key}/{said:path}")),
}
"""What anybody may ask for, from this machine. The page's own files are the rest."""
HERE = {"ref": "ghost", "id": "1", "name": "ghost", "key": "ghost"}


def _entries(routes: Sequence[BaseRoute]) -> Iterator[tuple[str, str]]:
    """Method and path of all that the app serves; a kind of route that is not known here is a failure."""
    for route in routes:
        included = getattr(route, "original_router", None)
        if included is not None:  # as FastAPI keeps what it was told to include
            yield from _entries(included.routes)
            continue
        match route:
            case APIRoute() | Route():
                yield from ((method, route.path) for method in route.methods or ())
            case WebSocketRoute():
                yield "WebSocket", route.path
            case Mount():
                yield from ((method, f"{route.path}/x") for method in ("GET", "POST"))
            case _:
                raise AssertionError(f"nobody has said how {route!r} is entered")


@pytest.mark.parametrize("address", ["127.0.0.1", "192.0.2.1"])
def test_nothing_is_entered_without_credentials_but_what_is_public_by_name(web: Web, address: str) -> None:
    found = set(_entries(web.app.router.routes))
    assert found >= PUBLIC
    assert ("WebSocket", "/api/live") in found
    # So that nobody is taken for local, and all come through a proxy: what comes past it is refused before that.
    web.set(host="0.0.0.0", trusted_proxies=("0.0.0.0/0",))
    public = PUBLIC - {("GET", "/metrics")}
    client = web.anybody(address)
    wrong = []
    for method, path in sorted(found - public):
        filled = path.format(**HERE)
        status = _knock(web, filled) if method == "WebSocket" else client.send(method, filled).status_code
        if status != 401:
            wrong.append((method, path, status))
    assert wrong == []


def _knock(web: Web, path: str) -> int:
    """Open a socket and ask for all that happens; 401 if it is closed for that, and nothing was told."""
    asked = [{"type": "websocket.connect"}, {"type": "websocket.receive", "text": '{"type":"subscribe","topic":"a"}'}]
    sent: list[Any] = []

    async def receive() -> Any:
        return asked.pop(0) if asked else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "websocket",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8321")],
        "client": ("192.0.2.1", 5),
        "subprotocols": [],
        "state": {},
    }
    web.run(asyncio.wait_for(web.app(scope, receive, send), 60))
    told = [json.loads(message["text"]) for message in sent if message["type"] == "websocket.send"]
    assert [one["type"] for one in told] == ["error"]
    return 401 if sent[-1]["type"] == "websocket.close" and sent[-1]["code"] == 4401 else 200


# --- role × route × owner --------------------------------------------------------------------------------------------

BODIES: dict[str, Any] = {
    "PATCH /api/schedules/{ref}": {"policy": {"checks": []}},
    "POST /api/schedules/{ref}/backfill": {"from": "2025-12-31T00:00:00Z", "until": "2025-12-31T01:00:00Z"},
    "POST /api/schedules/{ref}/trigger": {"force": True},
}
REPLACE = ("POST", "/api/schedules")
OWNERS = ("admin", "operator", "code")


async def _schedules(web: Web) -> None:
    """One of each owner; the code's runs a command too."""
    add = web.container.services.schedules.add
    await add("of-admin", "every 5m", Shell("true"), replace=True)
    await add("of-operator", "every 5m", Function("hello"), replace=True)
    await add("of-code", "every 5m", Shell("true"), owner="code", replace=True)


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("role", list(Role))
def test_each_role_gets_as_far_on_everybodys_schedules_as_its_table_says(web: Web, role: Role, owner: str) -> None:
    client = web.script(role)
    wrong = []
    for (method, path), needed in [(one, role) for one, role in NEEDED.items() if "{ref}" in one[1] or one == REPLACE]:
        web.run(_schedules(web))
        body = BODIES.get(f"{method} {path}", {}) if method != "GET" else None
        if (method, path) == REPLACE:
            work = {"kind": "function", "task": "hello"}
            body = {"name": f"of-{owner}", "timing": "every 1h", "work": work, "replace": True}
        status = client.send(method, path.replace("{ref}", f"of-{owner}"), json=body).status_code
        has_power = owner != "operator" and (method == "PATCH" or (method, path) == REPLACE)
        allowed = role.covers(Role.ADMIN if has_power else needed)
        # A ping address has only a check-in, and a word to go back to only what an app declares.
        is_done = status < 300 or (path.endswith(("/ping-key", "/revert")) and status == 409)
        if is_done != allowed or (not allowed and status != 403):
            wrong.append((method, path, status))
    assert wrong == []


# --- hostile text in every field -------------------------------------------------------------------------------------

JSON = {"Content-Type": "application/json"}
HOSTILE = {
    "sql": "'; DROP TABLE runs; --",
    "like": "%_\\",
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "template": "{{7*7}}${7*7}{0.__class__}%s%(now)s",
    "lines": "a\r\nSet-Cookie: ostinato=x\r\n\r\nb",
    "nul": "a\0b",
    "bidi": "a\u202eb\u2066c",
    "escape": "a\x1b]0;title\x07\x9b31mb",
    "surrogate": "a\ud800b",
    "long": "x" * 100_000,
    "path": "../../../../etc/passwd",
    "empty": "",
    "blank": " \n",
    "emoji": "😀",
    "number": "9" * 300,
    "negative": "-1",
    "null": "null",
}


@pytest.fixture
def served(url: str, tmp_path: Path) -> Iterator[Client]:
    """The admin of a furnished server."""
    with web_on(url=url) as web:
        yield web.anybody(Authorization=f"Bearer {furnish(web, tmp_path)}")


def _leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where texts are in a body."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _leaves(inner, (*place, index))
    elif isinstance(value, str):
        yield place


def _put(value: Any, place: tuple[Any, ...], text: str) -> Any:
    if not place:
        return text
    copy = value.copy()
    copy[place[0]] = _put(value[place[0]], place[1:], text)
    return copy


def _attacks(good: Good, text: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The body and the query of the request, with the text in one field of each."""
    for place in _leaves(good.json):
        yield _put(good.json, place, text), dict(good.query)
    for name in good.query:
        # No longer than a server takes in its first line.
        yield good.json, {**good.query, name: text[:10_000].encode("utf-8", "surrogatepass")}


SKIPPED = {"POST /api/login", "POST /api/logout", "DELETE /api/tokens/{id}", "DELETE /api/logins/{id}"}


def test_hostile_text_in_any_field_is_stored_as_it_is_or_refused(served: Client) -> None:
    wrong = []
    for kind, text in HOSTILE.items():
        for operation, good in GOOD.items():
            if operation in SKIPPED:
                continue
            for body, query in _attacks(good, text):
                content = None if body is None else json.dumps(body).encode()
                headers = {**good.headers, **JSON}
                answer = served.send(operation.split()[0], good.path, content=content, params=query, headers=headers)
                if answer.status_code >= 500:
                    wrong.append((kind, operation, body if len(str(body)) < 500 else "…", answer.status_code))
        takes = _given_back(served, kind, text)
        assert takes or kind in ("nul", "surrogate", "empty"), kind
    assert wrong == []
    assert served.send("GET", "/api/runs").status_code == 200
    assert served.send("GET", "/api/audit").status_code == 200


def _given_back(served: Client, kind: str, text: str) -> int:
    """How many schedules were taken with the text in their fields; each is given back as it was."""
    work = {"kind": "shell", "command": ["echo", text], "env": {"A": text}}
    made = {"name": text, "timing": "every 5m", "note": text, "work": work}
    takes = 0
    for body in (made, {**made, "name": f"plain {kind}"}, {**made, "name": f"plain2 {kind}", "note": "n"}):
        answer = served.send("POST", "/api/schedules", content=json.dumps(body).encode(), headers=JSON)
        assert answer.status_code in (200, 201, 422), answer.text[:300]
        if answer.status_code != 422:
            takes += 1
            again = served.send("GET", f"/api/schedules/{quote(str(body['name']), safe='')}").json()
            assert (again["name"], again["note"]) == (body["name"], body["note"] or None)
            assert (again["work"]["command"], again["work"]["env"]) == (work["command"], work["env"])
    return takes


@pytest.mark.parametrize("name", ["Idempotency-Key", "If-Match", "If-None-Match", "X-Origin-Key", "Range", "Cookie"])
@pytest.mark.parametrize("kind", ["sql", "html", "bidi", "long", "escape"])
def test_hostile_text_in_a_header_is_refused_or_of_no_effect(web: Web, name: str, kind: str) -> None:
    value = HOSTILE[kind].encode("utf-8")
    for client in (web.script("admin"), web.anybody()):
        for method, path in (("GET", "/api/runs"), ("POST", "/api/lanes/main/pause")):
            answer = _raw(client, method, path, (name.lower().encode(), value))
            assert answer < 500


def _raw(client: Client, method: str, path: str, header: tuple[bytes, bytes]) -> int:
    return client.send(method, path, headers=[header]).status_code
