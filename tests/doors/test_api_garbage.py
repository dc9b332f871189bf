"""What nobody should send: it is refused, or stored as it is, and never a server error, on either database."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tests.doors.web import Client, Web, web_on

TASK = {"kind": "function", "task": "hello"}
ODD = ["\x00", "a\x00b", "", " ", "\n", "😀", "'; DROP TABLE runs; --", "%", "_", "*", "\\", "9" * 300, "-1", "null"]


@pytest.fixture
def web(url: str) -> Iterator[Web]:
    with web_on(url=url) as web:
        yield web


@pytest.fixture
def admin(web: Web) -> Client:
    client = web.script("admin")
    body = {"name": "a", "timing": "every 5m", "work": TASK}
    assert client.post("/api/schedules", body).status_code == 201
    return client


def test_odd_text_in_a_path_names_nothing(admin: Client) -> None:
    for text in ODD[:1] + ODD[3:]:
        segment = quote(text, safe="")
        for path in ("schedules", "lanes", "sessions", "projects"):
            assert admin.get(f"/api/{path}/{segment}").status_code in (404, 200), (path, text)
        assert admin.post(f"/api/nodes/{segment}/drain").status_code == 404
        assert admin.get(f"/api/runs/{segment}").status_code == 422


def test_odd_text_in_a_query_finds_nothing_or_is_refused(admin: Client) -> None:
    for text in ODD:
        for path, name in (
            *(("schedules", name) for name in ("q", "owner", "project", "cursor", "state", "sort", "limit", "recent")),
            *(("runs", name) for name in ("schedule", "task", "session", "project", "lane", "cursor", "from", "state")),
            *(("sessions", name) for name in ("q", "busy", "limit")),
            *(("timings/preview", name) for name in ("text", "zone", "n", "after")),
            *(("timeline", name) for name in ("from", "to", "schedule", "project")),
        ):
            answer = admin.get(f"/api/{path}", params={name: text})
            assert answer.status_code in (200, 404, 422), (path, name, text)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"1e999",
        b'"\\ud800"',
        b'{"work": {"kind": "function", "task": "\\ud800"}}',
        b'{"work": {"kind": "function", "task": "t", "args": ["\\ud800"]}}',
        b'{"work": {"kind": "function", "task": "t", "args": [NaN, Infinity]}}',
        b'{"work": {"kind": "function", "task": "t", "kwargs": {"\\udfff": 1}}}',
        b'{"work": {"kind": "function", "task": "t"}, "policy": {"priority": 1e400}}',
        b'{"work": {"kind": "shell", "command": "x", "memory": 999999999999999999999999}}',
        b'{"work": {"kind": "shell", "command": "x", "memory": "999999999999TB"}}',
        b'{"work": {"kind": "shell", "command": "x", "cpu": 1e300}}',
        b'{"work": {"kind": "http", "method": "GET", "url": "http://[::1"}}',
        b'{"work": {"kind": "http", "method": "GET", "url": "http://x", "expect": [[]]}}',
        b"\xff\xfe",
        b'{"work": {"kind": "function", "task": "t", "args": [' + b"9" * 5_000 + b"]}}",
        b'{"work": {"kind": "function", "task": "t", "args": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    ],
)
def test_a_body_that_cannot_be_meant_is_refused(admin: Client, body: bytes) -> None:
    answer = admin.send("POST", "/api/runs", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_huge_numbers_are_refused_or_kept_exactly(admin: Client) -> None:
    big = {"kind": "function", "task": "t", "args": [2**70, -(2**63), 1.5e300]}
    run = admin.post("/api/runs", {"work": big})
    assert (run.status_code, run.json()["work"]["args"]) == (201, big["args"])
    for policy in (
        {"priority": 2**63},
        {"retry": {"max": 2**70}},
        {"keep": {"count": 2**40}},
        {"timeout": "999999999999d"},
        {"max_age": "100000000d"},
        {"budget": {"per_day_usd": 1e300}},
    ):
        answer = admin.post("/api/runs", {"work": TASK, "policy": policy})
        assert answer.status_code == 422, (policy, answer.text)


@pytest.mark.parametrize(
    "timing", ["every 99999999d", "every 3652500d", "at 9999-12-31T23:59:59", "every 1ms jitter 900000d"]
)
def test_timings_at_the_end_of_time_are_refused_or_shown(admin: Client, timing: str) -> None:
    answer = admin.post("/api/schedules", {"name": "x", "timing": timing, "work": TASK})
    assert answer.status_code in (201, 422), answer.text
    for path in ("overview", "schedules", "schedules/x/next", "schedules/x/why", "schedules/x/history?days=3660"):
        assert admin.get(f"/api/{path}").status_code in (200, 404)
