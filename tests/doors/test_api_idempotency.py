"""Idempotency-Key: what is sent again is answered again, and not done again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from ostinato.errors import OutcomeUnknown, StoreUnavailable
from ostinato.models.run import Run
from ostinato.models.write_tracking import may_have_written
from ostinato.tuning import Tuning
from tests.doors.web import BASE, Client, Web, web_on
from tests.lost_answers import lose_answer
from tests.stores.places import raw


@pytest.fixture
def web() -> Iterator[Web]:
    with web_on() as web:
        web.run(web.container.services.lanes.get_or_create("mail", 3))
        yield web


def _enqueue(client: Client, key: str, task: str = "hello", path: str = "/api/runs") -> httpx.Response:
    return client.post(path, {"work": {"kind": "function", "task": task}}, headers={"Idempotency-Key": key})


def _runs(web: Web) -> int:
    return len(web.run(web.container.services.runs.list()))


def test_a_request_that_is_sent_again_gets_the_first_answer_and_does_nothing(web: Web) -> None:
    operator = web.script("operator")
    first, again = _enqueue(operator, "k1"), _enqueue(operator, "k1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert again.headers["location"] == first.headers["location"]
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert _runs(web) == 1
    assert [verb for _, _, verb, _ in web.audit()] == ["run.enqueue"]
    assert _enqueue(operator, "k2").json()["id"] != first.json()["id"]


def test_a_key_is_for_one_request(web: Web) -> None:
    operator = web.script("operator")
    assert _enqueue(operator, "k1").status_code == 201
    for other in (
        _enqueue(operator, "k1", task="bye"),
        operator.post("/api/lanes/mail/pause", {}, headers={"Idempotency-Key": "k1"}),
    ):
        assert (other.status_code, other.json()["type"]) == (422, "/problems/key-reused")
    assert _runs(web) == 1
    assert not web.run(web.container.services.lanes.get("mail")).paused


def test_keys_of_two_people_do_not_meet(web: Web) -> None:
    first, second = web.script("operator", "one"), web.script("operator", "two")
    assert _enqueue(first, "k1").json()["id"] != _enqueue(second, "k1").json()["id"]


def test_a_key_is_kept_for_a_day(web: Web) -> None:
    operator = web.script("operator")
    first = _enqueue(operator, "k1")
    web.clock.advance("23h")
    assert _enqueue(operator, "k1").json() == first.json()
    web.clock.advance("2h")
    assert _enqueue(operator, "k1").json()["id"] != first.json()["id"]


def test_what_was_refused_keeps_no_key(web: Web) -> None:
    operator = web.script("operator")
    assert _enqueue(operator, "k1", path="/api/schedules/ghost/trigger").status_code == 422
    assert operator.post("/api/runs/99/cancel", {}, headers={"Idempotency-Key": "k1"}).status_code == 404
    shell = {"work": {"kind": "shell", "command": "true"}}
    assert operator.post("/api/runs", shell, headers={"Idempotency-Key": "k1"}).status_code == 403
    assert _kept(web) == []
    assert _enqueue(operator, "k1").status_code == 201


def _kept(web: Web) -> list[tuple[Any, ...]]:
    """Who, key and how many bytes of every request that is kept."""
    query = "SELECT who, key, coalesce(length(body), 0) FROM requests ORDER BY begun_at, key"
    return web.run(raw(web.container.store, query))


def test_a_viewer_keeps_nothing_however_large_and_often(url: str) -> None:
    """Eight of these filled 100 MB."""
    body = {f"{number:032x}": 0 for number in range(20_000)}
    with web_on(url=url) as web:
        viewer, operator = web.script("viewer"), web.script("operator")
        for number, client in enumerate((viewer, operator) * 4):
            headers = {"Idempotency-Key": f"k{number}"}
            # A viewer's bodies have a smaller bound.
            too_much = 413 if client is viewer else 422
            assert client.post("/api/timings/preview", body, headers=headers).status_code == too_much
            preview = client.post("/api/timings/preview", {"text": "every 5m"}, headers=headers)
            assert (preview.status_code, "idempotency-replayed" in preview.headers) == (200, False)
            assert client.post("/api/runs", body, headers=headers).status_code == too_much
            assert client.post("/api/nothing", body, headers=headers).status_code in (404, 405, 413)
        assert _kept(web) == []


def test_an_answer_that_is_too_large_is_told_to_be_done_and_nothing_is_done_again(url: str) -> None:
    work = {"kind": "function", "task": "hello", "args": ["x" * 999_000]}
    with web_on(url=url) as web:
        operator = web.script("operator")
        sent = {"json": {"work": work}, "headers": {"Idempotency-Key": "k1"}}
        first, again = operator.send("POST", "/api/runs", **sent), operator.send("POST", "/api/runs", **sent)
        assert (first.status_code, len(first.content) > 999_000) == (201, True)
        assert (again.status_code, again.json()["type"]) == (409, "/problems/answer-not-kept")
        assert (again.headers["location"], again.headers["idempotency-replayed"]) == (first.headers["location"], "true")
        assert _runs(web) == 1
        assert sum(size for _, _, size in _kept(web)) < 1_000


def test_each_actor_keeps_the_newest_answers_alone(url: str) -> None:
    with web_on(url=url, tuning=Tuning(kept_answers=3)) as web:
        ci, other = web.script("operator", "ci"), web.script("operator", "other")
        first = [_enqueue(other, "k0").json()["id"]]
        for number in range(5):
            web.clock.advance("1s")
            first.append(_enqueue(ci, f"k{number}").json()["id"])
        assert [(who, key) for who, key, _ in _kept(web)] == [("other", "k0"), ("ci", "k2"), ("ci", "k3"), ("ci", "k4")]
        assert _enqueue(ci, "k4").json()["id"] == first[-1]
        assert _enqueue(other, "k0").json()["id"] == first[0]
        assert _enqueue(ci, "k0").json()["id"] not in first


def test_the_key_of_a_server_that_died_is_free_for_the_same_request_after_minutes(web: Web) -> None:
    operator = web.script("operator", "ci")
    first = _enqueue(operator, "k1")
    web.run(_forget_the_answer(web))
    assert _enqueue(operator, "k1").status_code == 409
    web.clock.advance("5m")
    assert _enqueue(operator, "k1", task="bye").status_code == 422
    again = _enqueue(operator, "k1")
    assert (again.status_code, again.json()["id"] != first.json()["id"]) == (201, True)
    assert _enqueue(operator, "k1").json() == again.json()


async def _forget_the_answer(web: Web) -> None:
    """As if the process had been killed before it could keep it."""
    database = web.container.store.access._database  # type: ignore[attr-defined]
    query = "UPDATE requests SET status = NULL, headers = NULL, body = NULL"
    await database.submit(lambda connection: list(connection.execute(query)))


def test_another_role_of_the_same_name_does_not_get_the_answer(web: Web) -> None:
    admin, operator = web.browser("admin", "ada"), web.browser("operator", "ada")
    headers = {"Idempotency-Key": "k1"}
    body = {"work": {"kind": "function", "task": "hello"}}
    assert admin.post("/api/runs", body, headers=headers).status_code == 201
    assert operator.post("/api/runs", body, headers=headers).json()["type"] == "/problems/key-reused"


CONDITIONS = [("If-Match", '"1.1"', '"1.9"'), ("If-None-Match", "*", None)]


@pytest.mark.parametrize(("condition", "given", "then"), CONDITIONS)
def test_another_condition_makes_another_request(web: Web, condition: str, given: str, then: str | None) -> None:
    operator = web.script("operator")
    body = {"name": "a", "timing": "every 5m", "work": {"kind": "function", "task": "hello"}}
    assert operator.post("/api/schedules", body).status_code == 201
    path, sent = ("/api/schedules/a/disable", {}) if condition == "If-Match" else ("/api/schedules", body)
    headers = {"Idempotency-Key": "k1", condition: given}
    first, again = (operator.post(path, sent, headers=headers) for _ in range(2))
    assert (again.status_code, again.headers["idempotency-replayed"]) == (first.status_code, "true")
    other = {name: value for name, value in {**headers, condition: then}.items() if value is not None}
    assert operator.post(path, sent, headers=other).json()["type"] == "/problems/key-reused"


RETRIED = "/api/runs/1/retry"
MADE = [
    ("/api/runs", {"work": {"kind": "function", "task": "hello"}}),
    ("/api/sessions/chat/messages", {"task": "answer", "payload": {}}),
    ("/api/schedules/s/trigger", {}),
    (RETRIED, None),
]


@pytest.mark.parametrize(("path", "body"), MADE)
@pytest.mark.parametrize("error", [StoreUnavailable("the server is away"), RuntimeError("a bug")])
def test_what_was_done_is_not_done_again_though_its_answer_failed(
    web: Web, monkeypatch: pytest.MonkeyPatch, path: str, body: Any, error: Exception
) -> None:
    operator = web.script("operator")
    work = {"kind": "function", "task": "hello"}
    schedule = {"name": "s", "timing": "every 5m", "work": work, "policy": {"overlap": "allow"}}
    assert operator.post("/api/schedules", schedule).status_code == 201
    assert operator.post("/api/runs", {"work": work}).json()["id"] == 1
    assert operator.post("/api/runs/1/cancel").status_code == 200
    _fail_after_a_write(web, monkeypatch, error)
    headers = {"Idempotency-Key": "k1"}
    first, again = operator.post(path, body, headers=headers), operator.post(path, body, headers=headers)
    assert (first.status_code, "retry-after" in first.headers) == (500, False)
    assert (again.status_code, again.json()["type"]) == (500, "/problems/outcome-unknown")
    assert again.headers["idempotency-replayed"] == "true"
    assert _runs(web) == 2


def _fail_after_a_write(web: Web, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let the first look at a run fail that comes after something was written."""
    plain = web.container.store.runs.get_run

    async def get_run(id: Any) -> Run | None:
        if may_have_written():
            raise error
        return await plain(id)

    monkeypatch.setattr(web.container.store.runs, "get_run", get_run)


def test_a_failure_after_a_write_is_told_so_to_whoever_has_no_key_too(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail_after_a_write(web, monkeypatch, StoreUnavailable("the server is away"))
    answer = web.script("operator").post("/api/runs", {"work": {"kind": "function", "task": "hello"}})
    assert (answer.status_code, answer.json()["type"]) == (500, "/problems/outcome-unknown")
    assert "retry-after" not in answer.headers


def test_what_failed_before_anything_was_written_can_be_sent_again(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    operator = web.script("operator")

    async def full(_: Any) -> None:
        raise StoreUnavailable("the disk is full: make room; nothing was written")

    with monkeypatch.context() as patched:
        patched.setattr(web.container.store.runs, "insert_runs", full)
        refused = _enqueue(operator, "k1")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert _enqueue(operator, "k1").status_code == 201


def test_a_key_that_nobody_knows_to_be_taken_was_taken_for_nothing(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    operator = web.script("operator")

    async def lost(*_: Any) -> None:
        raise OutcomeUnknown("the line went dead")

    with monkeypatch.context() as patched:
        patched.setattr(web.container.store.access, "begin_request", lost)
        refused = _enqueue(operator, "k1")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert _runs(web) == 0
    assert _enqueue(operator, "k1").status_code == 201


@pytest.mark.parametrize(("is_late", "status", "runs"), [(False, 201, 1), (True, 500, 1)])
def test_a_request_that_its_server_cancels_keeps_its_key_if_anything_was_written(
    web: Web, monkeypatch: pytest.MonkeyPatch, is_late: bool, status: int, runs: int
) -> None:
    operator = web.script("operator", "ci")
    token = web.token("operator", "other")
    begun = asyncio.Event()
    insert = web.container.store.runs.insert_runs

    async def stuck(new: Any) -> Any:
        if is_late:
            await insert(new)
        begun.set()
        await asyncio.Event().wait()

    async def cancelled() -> None:
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "k1"}
        transport = httpx.ASGITransport(web.app)
        async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers, timeout=30) as client:
            body = {"work": {"kind": "function", "task": "hello"}}
            with monkeypatch.context() as patched:
                patched.setattr(web.container.store.runs, "insert_runs", stuck)
                first = asyncio.create_task(client.post("/api/runs", json=body))
                await asyncio.wait_for(begun.wait(), 30)
                first.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await first
            assert (await client.post("/api/runs", json=body)).status_code == status

    web.run(cancelled())
    assert _runs(web) == runs
    assert _enqueue(operator, "k1").status_code == 201


def test_a_commit_whose_outcome_is_unknown_is_not_made_again(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with web_on(url=postgres_url) as web:
        operator = web.script("operator")
        work = {"kind": "function", "task": "hello"}
        schedule = {"name": "s", "timing": "every 5m", "work": work, "policy": {"overlap": "allow"}}
        assert operator.post("/api/schedules", schedule).status_code == 201
        _lose_the_commit(web, monkeypatch)
        headers = {"Idempotency-Key": "k1"}
        first, again = (operator.post("/api/schedules/s/trigger", headers=headers) for _ in range(2))
        assert (first.status_code, first.json()["type"]) == (500, "/problems/outcome-unknown")
        assert (again.json(), again.headers["idempotency-replayed"]) == (first.json(), "true")
        assert _runs(web) == 1


def _lose_the_commit(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the transaction of the next trigger commit, its answer be lost, and the server stay away for a moment."""
    trigger, next_is_lost = web.container.store.runs.trigger_run, False
    patched = pytest.MonkeyPatch()

    async def trigger_run(*given: Any) -> Any:
        nonlocal next_is_lost
        next_is_lost = True
        try:
            return await trigger(*given)
        finally:
            patched.undo()

    monkeypatch.setattr(web.container.store.runs, "trigger_run", trigger_run)
    lose_answer(patched, when=lambda: next_is_lost, stays_away=True)


def test_an_answer_that_failed_is_not_kept(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    operator = web.script("operator")

    async def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("no")

    with monkeypatch.context() as patched:
        patched.setattr(web.container.services.runs, "enqueue_work", broken)
        assert _enqueue(operator, "k1").status_code == 500
    assert _enqueue(operator, "k1").status_code == 201


def test_a_repetition_while_the_first_is_under_way_is_told_to_wait(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    token = web.token("operator")
    begun, free = asyncio.Event(), asyncio.Event()
    pause = web.container.services.lanes.pause

    async def slow(name: str, *, note: str | None = None) -> Any:
        begun.set()
        await free.wait()
        return await pause(name, note=note)

    monkeypatch.setattr(web.container.services.lanes, "pause", slow)

    async def both() -> tuple[httpx.Response, httpx.Response, httpx.Response]:
        transport = httpx.ASGITransport(web.app)
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "k1"}
        async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers, timeout=30) as client:
            first = asyncio.create_task(client.post("/api/lanes/mail/pause", json={}))
            await asyncio.wait_for(begun.wait(), 30)
            second = await client.post("/api/lanes/mail/pause", json={})
            free.set()
            return await first, second, await client.post("/api/lanes/mail/pause", json={})

    first, second, third = web.run(both())
    assert (first.status_code, second.status_code, third.status_code) == (200, 409, 200)
    assert second.json()["type"] == "/problems/request-under-way"
    assert third.headers["idempotency-replayed"] == "true"


@pytest.mark.parametrize("key", ["", "x" * 201, "a\tb", "\xe4"])
def test_a_key_that_cannot_be_is_told_so(web: Web, key: str) -> None:
    headers = [(b"idempotency-key", key.encode("latin-1"))]
    answer = web.script("operator").post("/api/lanes/mail/pause", {}, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "idempotency-key"


def test_answers_with_secrets_are_not_kept(web: Web) -> None:
    admin = web.script("admin")
    headers = {"Idempotency-Key": "k1"}
    assert admin.post("/api/tokens", {"name": "a", "role": "viewer"}, headers=headers).status_code == 201
    assert admin.post("/api/tokens", {"name": "b", "role": "viewer"}, headers=headers).status_code == 201
    assert web.anybody().post("/api/login", {"code": "x"}, headers=headers).status_code == 401


def test_without_a_key_every_request_is_its_own(web: Web) -> None:
    operator = web.script("operator")
    body = {"work": {"kind": "function", "task": "hello"}}
    assert operator.post("/api/runs", body).json()["id"] != operator.post("/api/runs", body).json()["id"]


def test_an_answer_that_cannot_be_kept_is_told_all_the_same(
    web: Web, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any) -> None:
        raise StoreUnavailable("the disk is full")

    operator = web.script("operator")
    monkeypatch.setattr(web.container.store.access, "end_request", broken)
    assert _enqueue(operator, "k1").status_code == 201
    assert "could not be stored: the disk is full" in caplog.text
    assert _enqueue(operator, "k1").status_code == 409
    assert _runs(web) == 1
