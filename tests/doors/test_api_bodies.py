"""What is sent is bounded while it is read, and what is wrong with it is told in a small answer, however much it is."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ostinato.api.bodies import LARGEST_BODY, LARGEST_OF_STRANGERS, LARGEST_OF_VIEWERS
from ostinato.api.problems import MOST_ERRORS
from tests.doors.web import Client, Web

SMALL = 20_000
MANY = 50_000
TASK = {"kind": "function", "task": "hello"}
GOOD: dict[str, Any] = {"name": "x", "timing": "every 5m", "work": TASK}


def _hex_keys(count: int) -> dict[str, int]:
    return {f"{number:x}": 1 for number in range(count)}


def test_strangers_may_send_enough_to_log_in(web: Web) -> None:
    stranger = web.anybody()
    fits = b" " * (LARGEST_OF_STRANGERS - 20) + b'{"code": "wrong"}'
    as_json = {"Content-Type": "application/json"}
    assert stranger.post("/api/login", content=fits, headers=as_json).status_code == 401
    answer = stranger.post("/api/login", _hex_keys(MANY))
    assert (answer.status_code, answer.json()["type"]) == (413, "/problems/body-too-large")
    assert answer.headers["connection"] == "close"
    assert len(answer.content) < SMALL


def test_a_stranger_who_does_not_say_the_length_is_stopped_too(web: Web) -> None:
    sent = 0

    async def parts() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(1_000):
            sent += 1_000
            yield b"x" * 1_000

    answer = web.anybody().post("/api/login", content=parts())
    assert answer.status_code == 413
    assert answer.headers["connection"] == "close"
    assert sent < 4 * LARGEST_OF_STRANGERS


def test_of_who_is_refused_nothing_is_read(web: Web) -> None:
    sent = 0

    async def parts() -> AsyncIterator[bytes]:
        nonlocal sent
        sent += 1
        yield b"x"

    assert web.anybody().post("/api/schedules", content=parts()).status_code == 401
    assert sent == 0


def test_a_viewer_may_send_less_than_who_writes(web: Web, operator: Client) -> None:
    body = {"text": "every 5m", "x": "y" * LARGEST_OF_VIEWERS}
    assert web.script("viewer").post("/api/timings/preview", body).status_code == 413
    assert operator.post("/api/timings/preview", body).status_code == 422
    assert operator.post("/api/timings/preview", {**body, "x": "y" * LARGEST_BODY}).status_code == 413


def test_many_unknown_fields_are_counted(admin: Client) -> None:
    answer = admin.post("/api/schedules", GOOD | _hex_keys(60))
    assert answer.status_code == 422
    assert "it has 63 fields" in answer.json()["detail"]
    assert "Content-Type" not in answer.text


def test_few_unknown_fields_are_each_told(admin: Client) -> None:
    found = admin.post("/api/schedules", {**GOOD, "one": 1, "two": 2}).json()
    assert {error["field"] for error in found["errors"]} == {"one", "two"}


@pytest.mark.parametrize(
    "body",
    [
        _hex_keys(MANY),
        {**GOOD, "policy": _hex_keys(MANY)},
        {**GOOD, "work": {**TASK, **_hex_keys(MANY // 2)}},
        {**GOOD, "work": {"kind": "shell", "command": "true", "env": _hex_keys(MANY // 2)}},
        {**GOOD, "policy": {"checks": [1] * MANY}},
        {**GOOD, "policy": {"gate": {"command": [1] * MANY}}},
        {**GOOD, "y" * 900_000: 1},
        {**GOOD, "timing": "y" * 900_000},
        {**GOOD, "work": {"kind": "y" * 900_000}},
        [1] * MANY,
        {"action": "enable", "names": [1] * MANY},
    ],
    ids=lambda body: json.dumps(body)[:30],
)
def test_however_much_is_wrong_the_answer_is_small(admin: Client, body: Any) -> None:
    for method, path in (("POST", "/api/schedules"), ("POST", "/api/schedules/bulk"), ("POST", "/api/runs")):
        answer = admin.send(method, path, json=body)
        assert answer.status_code == 422, path
        assert len(answer.content) < SMALL, (path, answer.text[:500])
        assert len(answer.json()["errors"]) <= MOST_ERRORS


def test_what_is_not_told_is_counted(admin: Client) -> None:
    answer = admin.post("/api/schedules", {**GOOD, "policy": {"checks": [1] * 100}})
    found = answer.json()
    assert len(found["errors"]) == MOST_ERRORS
    assert found["detail"].endswith("and 80 more")


def test_a_query_of_many_parameters_is_told_in_part(admin: Client) -> None:
    answer = admin.get("/api/schedules?" + "&".join(f"x{number}=1" for number in range(2_000)))
    assert answer.status_code == 422
    assert len(answer.content) < SMALL
    assert answer.json()["detail"].endswith("and 1980 more")


def test_what_is_not_checked_part_by_part_may_be_long(admin: Client) -> None:
    """Arguments and payloads are the work's own."""
    many = list(range(20_000))
    work = {**TASK, "args": [many], "kwargs": _hex_keys(5_000)}
    assert admin.post("/api/schedules", {**GOOD, "work": work}).status_code == 201
    assert admin.post("/api/sessions/chat/messages", {"task": "hello", "payload": many}).status_code == 201
