"""JSON that is nested too deep: 422 at every route that takes a body, nothing written, and lists that still answer."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from ostinato.api.app import api_routes
from ostinato.models.nesting import MOST_DEPTH
from tests.doors.web import Client, Web, web_on

_DEPTHS = [MOST_DEPTH + 1, 500, 930, 960, 5_000, 100_000]


@pytest.fixture
def web(url: str) -> Iterator[Web]:
    with web_on(url=url) as web:
        yield web


@pytest.fixture
def admin(web: Web) -> Client:
    return web.script("admin")


def _deep(depth: int) -> str:
    return "[" * depth + "]" * depth


def _send(client: Client, method: str, path: str, text: str) -> httpx.Response:
    return client.send(method, path, content=text, headers={"Content-Type": "application/json"})


def _work(depth: int, kind: str) -> str:
    if kind == "http":
        return f'{{"kind": "http", "method": "POST", "url": "https://example.com", "json": {_deep(depth)}}}'
    args = f'"args": [{_deep(depth)}]' if kind == "args" else f'"kwargs": {{"a": {_deep(depth)}}}'
    return f'{{"kind": "function", "task": "hello", {args}}}'


@pytest.mark.parametrize("depth", _DEPTHS)
def test_what_is_given_too_deep_is_refused_and_not_written(admin: Client, depth: int) -> None:
    for kind in ("args", "kwargs", "http"):
        work = _work(depth, kind)
        schedule = f'{{"name": "{kind}", "timing": "every 5m", "work": {work}}}'
        for path, body in (("/api/schedules", schedule), ("/api/runs", f'{{"work": {work}}}')):
            answer = _send(admin, "POST", path, body)
            assert answer.status_code == 422, (path, kind, answer.text)
            assert "nested more than 100 deep" in answer.json()["detail"]
    message = f'{{"task": "hello", "payload": {_deep(depth)}}}'
    assert _send(admin, "POST", "/api/sessions/dm/messages", message).status_code == 422
    assert admin.get("/api/runs").json()["items"] == []
    assert admin.get("/api/schedules").json()["items"] == []


@pytest.mark.parametrize("depth", [105, 500, 930, 5_000])
def test_no_route_fails_at_a_body_that_is_too_deep(admin: Client, depth: int) -> None:
    routes = [route for route in api_routes() if route.body_field is not None]
    assert len(routes) > 10
    for route in routes:
        path = route.path.replace("{id}", "1").replace("{ref}", "a").replace("{name}", "a").replace("{key}", "a")
        for text in (_deep(depth), f'{{"policy": {_deep(depth)}, "timing": {_deep(depth)}}}'):
            for method in route.methods or ():
                answer = _send(admin, method, path, text)
                assert 400 <= answer.status_code < 500, (method, path, answer.text)


@pytest.mark.parametrize("depth", [150, 400, 900, 960])
def test_rows_of_an_older_version_that_are_too_deep_break_no_list(web: Web, admin: Client, depth: int) -> None:
    schedule = f'{{"name": "a", "timing": "every 5m", "work": {_work(1, "args")}}}'
    assert _send(admin, "POST", "/api/schedules", schedule).status_code == 201
    run = _send(admin, "POST", "/api/runs", f'{{"work": {_work(1, "args")}}}').json()["id"]
    # As if an older version had written it.
    web.sql(f"UPDATE schedules SET work = '{_work(depth, 'args')}'")
    web.sql(f"UPDATE runs SET work = '{_work(depth, 'args')}', result = '{_deep(depth)}'")
    for path in ("schedules", "schedules/a", "runs", f"runs/{run}", "overview", "schedules/a/why", "tasks"):
        answer = admin.get(f"/api/{path}")
        assert answer.status_code == 200, (path, answer.text)
    assert [one["id"] for one in admin.get("/api/runs").json()["items"]] == [run]
    assert [one["name"] for one in admin.get("/api/schedules").json()["items"]] == ["a"]
