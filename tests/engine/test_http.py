"""HTTP work through the whole engine, against a server that answers well, badly or not at all."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ostinato import Http, Ostinato, Retry, RunState
from ostinato.clock import to_micros
from ostinato.testing import FakeClock, drain
from tests.engine.conftest import MakeApp, eventually
from tests.engine.http_server import CERTIFICATE, Caller, Server, Visit, answer, serving, truncated

pytest_plugins = ("tests.engine.http_fixtures",)

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)


# What is sent, and what a good answer becomes.


def test_a_request_arrives_with_its_body_its_key_and_its_sender(server: Server, call: Caller) -> None:
    run = call(server.on("/hook", answer("204 No Content")) + "?a=b", "POST", json={"n": 1}, headers={"X-One": "1"})
    assert run.state is RunState.SUCCEEDED
    [request] = server.received
    assert (request.method, request.path, request.body) == ("POST", "/hook?a=b", b'{"n":1}')
    assert request.headers["user-agent"].startswith("Ostinato/")
    assert request.headers["idempotency-key"] == f"run-{run.id}-{to_micros(run.due_at)}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["host"] == f"127.0.0.1:{server.port}"
    assert request.headers["x-one"] == "1"


def test_the_result_tells_what_came_and_the_output_holds_it(db: str, make_app: MakeApp, server: Server) -> None:
    app = make_app(db, http_allow=("127.0.0.1",))
    url = server.on("/x", answer(body=b'{"ok": true}', Content_Type="application/json; charset=utf-8"))
    app.schedules.add("h", "every 1h", Http("GET", url))
    run_id = app.schedules.trigger("h").id
    drain(app)
    run = app.runs.get(run_id)
    assert (run.state, run.reason) == (RunState.SUCCEEDED, None)
    assert run.result == {
        "status": 200,
        "url": url,
        "content_type": "application/json",
        "bytes": 12,
        "json": {"ok": True},
    }
    assert app.runs.output(run_id) == '{"ok": true}'


def test_the_body_can_be_read_while_it_comes(server: Server, web: Ostinato) -> None:
    go_on = threading.Event()

    def slow(visit: Visit) -> None:
        visit.begin(Content_Type="text/plain", Transfer_Encoding="chunked")
        visit.send(b"6\r\nfirst\n\r\n")
        go_on.wait(10)
        visit.send(b"7\r\nsecond\n\r\n0\r\n\r\n")

    web.start()
    run = web.enqueue(Http("GET", server.on("/slow", slow)))
    eventually(lambda: "first" in web.runs.output(run.id))
    assert run.get().state is RunState.RUNNING
    go_on.set()
    assert run.wait(10).state is RunState.SUCCEEDED
    assert web.runs.output(run.id) == "first\nsecond\n"


def test_a_big_body_is_capped(server: Server, make_app: MakeApp, call: Caller) -> None:
    app = make_app("sqlite://:memory:", http_allow=("127.0.0.1",), output_cap=10_000)
    lines = b"".join(b"line %06d\n" % number for number in range(1_000_000))
    run = call(server.on("/big", answer(body=lines, Content_Type="text/plain")), app=app)
    assert run.state is RunState.SUCCEEDED
    output = app.runs.output(run.id)
    assert len(output) < 11_000
    assert output.startswith("line 000000\n")
    assert output.endswith("line 999999\n")
    assert run.result["bytes"] == len(lines)
    assert run.result["json"] is None


def test_packed_text_is_shown_unpacked_and_pictures_are_not_shown(server: Server, call: Caller, web: Ostinato) -> None:
    packed = answer(
        body=gzip.compress("grün".encode("latin-1")),
        Content_Type="text/plain; charset=latin-1",
        Content_Encoding="gzip",
    )
    run = call(server.on("/packed", packed))
    assert (web.runs.output(run.id), run.result["bytes"]) == ("grün", 4)
    run = call(server.on("/picture", answer(body=b"\x89PNG\0", Content_Type="image/png")))
    assert (web.runs.output(run.id), run.result["bytes"]) == ("ostinato: 5 bytes of image/png, not shown\n", 5)


@pytest.mark.parametrize("expect", [[404], ["4xx"], [200, "404"]])
def test_an_expected_status_is_a_success(server: Server, call: Caller, expect: list[int | str]) -> None:
    assert call(server.url("/nothing"), expect=expect).state is RunState.SUCCEEDED


def test_the_head_of_something_has_no_body(server: Server, call: Caller) -> None:
    url = server.on("/x", lambda visit: visit.begin(Content_Length="1000", Content_Type="text/plain"))
    run = call(url, "HEAD")
    assert (run.state, run.result["bytes"]) == (RunState.SUCCEEDED, 0)


def test_a_long_head_is_taken(server: Server, call: Caller) -> None:
    run = call(server.on("/x", answer(body=b"hello", X_Long="x" * 60_000, Content_Type="text/plain")))
    assert (run.state, run.result["bytes"]) == (RunState.SUCCEEDED, 5)


def test_hints_before_the_answer_are_passed_over(server: Server, call: Caller) -> None:
    def hinting(visit: Visit) -> None:
        visit.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        visit.answer(body=b"hello")

    run = call(server.on("/x", hinting))
    assert (run.state, run.result["status"], run.result["bytes"]) == (RunState.SUCCEEDED, 200, 5)


# Bad answers.


@pytest.mark.parametrize("status", [401, 404])
def test_an_answer_that_will_not_change_fails_without_another_try(server: Server, call: Caller, status: int) -> None:
    url = server.on(
        "/x", answer(f"{status} Some Words", b'{"detail": "no such hook"}', Content_Type="application/json")
    )
    run = call(url + "?token=secret", retry=3)
    assert run.state is RunState.FAILED
    assert run.cause == "http_status"
    assert run.reason == f"HTTP {status} Some Words from {url} (expected 2xx): no such hook"
    assert len(server.received) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_an_answer_that_may_change_is_tried_again(
    server: Server, web: Ostinato, fake_clock: FakeClock, status: int
) -> None:
    url = server.on("/x", answer(f"{status} "))
    run = web.enqueue(Http("GET", url), retry=Retry(1, base="10s", longest="10s", spread=0))
    drain(web)
    waiting = run.get()
    assert (waiting.state, waiting.ready_at) == (RunState.QUEUED, MIDNIGHT + timedelta(seconds=10))
    assert f"attempt 1 of 2 failed, next in 10s: HTTP {status} " in (waiting.reason or "")
    server.on("/x", answer())
    fake_clock.advance("10s")
    drain(web)
    assert (run.get().state, run.get().attempt) == (RunState.SUCCEEDED, 2)
    assert {request.headers["idempotency-key"] for request in server.received} == {
        f"run-{run.id}-{to_micros(run.get().due_at)}"
    }


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry_After": "120"}, 120),
        ({"Retry_After": "Fri, 01 Jan 2027 00:05:00 GMT", "Date": "Fri, 01 Jan 2027 00:00:00 GMT"}, 300),
        ({"Retry_After": "1"}, 10),
    ],
)
def test_the_next_try_comes_when_the_other_side_asks_for_it(
    server: Server, web: Ostinato, headers: dict[str, str], seconds: int
) -> None:
    url = server.on("/x", answer("503 Service Unavailable", b"", **headers))
    run = web.enqueue(Http("GET", url), retry=Retry(1, base="10s", longest="10s", spread=0))
    drain(web)
    assert run.get().ready_at == MIDNIGHT + timedelta(seconds=seconds)


def garbage(visit: Visit) -> None:
    visit.send(b"SSH-2.0-OpenSSH_9.6\r\n")
    visit.wait_until_gone()


def truncated_head(visit: Visit) -> None:
    visit.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n")


def truncated_chunks(visit: Visit) -> None:
    visit.begin(Transfer_Encoding="chunked", Content_Type="text/plain")
    visit.send(b"5\r\nhello\r\n")


def reset_in_the_middle(visit: Visit) -> None:
    truncated(visit)
    visit.reset()


def endless_header(visit: Visit) -> None:
    visit.send(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while True:
        visit.send(b"x" * 65_536)


def endless_headers(visit: Visit) -> None:
    visit.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        visit.send(b"X-More: x\r\n" * 1000)


def endless_hints(visit: Visit) -> None:
    while True:
        visit.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)


def endless_chunk_size(visit: Visit) -> None:
    visit.begin(Transfer_Encoding="chunked")
    while True:
        visit.send(b"1" * 65_536)


def endless_trailer(visit: Visit) -> None:
    visit.begin(Transfer_Encoding="chunked")
    visit.send(b"0\r\n")
    while True:
        visit.send(b"X-More: x\r\n" * 1000)


@pytest.mark.parametrize(
    ("handler", "why"),
    [
        (garbage, "did not answer: what came is not HTTP: it begins with b'SSH-2.0"),
        (lambda visit: None, "did not answer: Remote end closed connection without response"),
        (lambda visit: visit.reset(), "did not answer: Connection reset by peer"),
        (truncated, "broke off: 991 bytes are missing"),
        (truncated_head, "did not answer: its headers broke off"),
        (truncated_chunks, "broke off"),
        (reset_in_the_middle, "broke off"),
        (endless_header, "did not answer: it sends too much data before the response body"),
        (endless_headers, "did not answer: it sends too much data before the response body"),
        (endless_hints, "did not answer: it sends too much data before the response body"),
        (endless_chunk_size, "broke off: "),
        (endless_trailer, "broke off: "),
    ],
)
def test_whatever_is_no_answer_is_a_failure_that_is_tried_again(
    server: Server, call: Caller, handler: Callable[[Visit], None], why: str
) -> None:
    url = server.on("/x", handler)
    run = call(url + "?token=secret", retry=1)
    assert run.state is RunState.QUEUED
    assert why in (run.reason or "")
    assert url in (run.reason or "")
    assert "secret" not in (run.reason or "")


def test_what_came_before_a_break_is_kept(server: Server, call: Caller, web: Ostinato) -> None:
    run = call(server.on("/x", truncated))
    assert (run.state, run.cause, web.runs.output(run.id)) == (RunState.FAILED, "no_answer", "only this")


def test_a_port_where_nobody_listens_is_a_failure_that_is_tried_again(call: Caller) -> None:
    with serving() as server:
        url = server.url("/x")
    run = call(url, retry=1)
    assert run.state is RunState.QUEUED
    assert f"{url} cannot be reached: Connection refused" in (run.reason or "")


def test_a_name_that_nobody_knows_is_a_failure_that_is_tried_again(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    run = call("http://nowhere.test/x", retry=1)
    assert run.state is RunState.QUEUED
    assert "nowhere.test has no address (Name or service not known)" in (run.reason or "")


@pytest.mark.parametrize("tls", [False, True])
def test_who_answers_before_it_has_read_everything_is_heard(
    make_app: MakeApp, call: Caller, monkeypatch: pytest.MonkeyPatch, tls: bool
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    app = make_app("sqlite://:memory:", http_allow=("private",))

    def hasty(visit: Visit) -> None:
        visit.answer("413 Content Too Large", Connection="close")
        visit.reset()  # as closing does what was not read

    with serving(tls=tls, reads_body=False) as server:
        run = call(server.on("/x", hasty), "POST", body="x" * 30_000_000, app=app)
    assert (run.state, run.result and run.result["status"]) == (RunState.FAILED, 413), run.reason


def test_what_nobody_thought_of_is_a_failure_too(
    server: Server, call: Caller, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ostinato.execution.executors.http.exchange.exchange", lambda *_: 1 / 0)
    run = call(server.url("/x"))
    assert (run.state, run.reason) == (RunState.FAILED, "ZeroDivisionError: division by zero")
    assert "Traceback" in (run.error or "")
    assert "Traceback" not in capfd.readouterr().err


# Redirects.


def test_a_redirect_is_followed_and_the_result_tells_where_to(server: Server, call: Caller) -> None:
    end = server.on("/end", answer(body=b"here"))
    url = server.on("/x", answer("302 Found", Location="/end?a=b"))
    run = call(url, "POST", body="hello")
    assert (run.state, run.result["url"]) == (RunState.SUCCEEDED, end + "?a=b")
    assert [(request.method, request.body) for request in server.received] == [("POST", b"hello"), ("GET", b"")]
    server.on("/x", answer("307 Temporary Redirect", Location=end))
    server.received.clear()
    assert call(url, "POST", body="hello").state is RunState.SUCCEEDED
    assert [(request.method, request.body) for request in server.received] == [("POST", b"hello")] * 2


def test_a_redirect_that_is_expected_is_not_followed(server: Server, call: Caller) -> None:
    run = call(server.on("/x", answer("302 Found", Location="/end")), expect=[302])
    assert (run.state, run.result["status"], len(server.received)) == (RunState.SUCCEEDED, 302, 1)


def test_redirects_that_go_round_end(server: Server, call: Caller) -> None:
    url = server.on("/x", answer("302 Found", Location="/x"))
    run = call(url, retry=3)
    assert run.state is RunState.FAILED
    assert run.reason == f"{url} redirects more than 10 times, the last time to {url}"
    assert len(server.received) == 11


def test_a_redirect_into_what_may_not_be_called_is_refused(make_app: MakeApp, server: Server, call: Caller) -> None:
    app = make_app("sqlite://:memory:", http_allow=("localhost",))
    with serving() as private:
        private.on("/x", answer(body=b"the crown jewels"))
        server.on("/x", answer("302 Found", Location=private.url("/x")))
        run = call(server.url("/x", "localhost"), app=app, retry=3)
        assert (run.state, run.cause) == (RunState.FAILED, "request_refused")
        assert run.reason == (
            f"{server.url('/x', 'localhost')} redirects, but {private.url('/x')} resolves to 127.0.0.1, which is a "
            'loopback address; allow it with http_allow = ["127.0.0.0/8"] in ostinato.toml, '
            "or OSTINATO_HTTP_ALLOW=127.0.0.0/8"
        )
        assert private.connections == []


def test_secrets_are_hidden_and_go_to_no_other_origin(
    server: Server, call: Caller, web: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_TOKEN", "correct-horse")
    headers = {"X-Token": "env:HOOK_TOKEN", "Authorization": "Bearer env:HOOK_TOKEN", "Cookie": "a=b", "X-Plain": "1"}

    def echo(visit: Visit) -> None:
        visit.answer("403 Forbidden", visit.request.headers["x-token"].encode(), Content_Type="text/plain")

    run = call(server.on("/echo", echo), headers=headers)
    assert server.received[0].headers["authorization"] == "Bearer correct-horse"
    assert run.reason == f"HTTP 403 Forbidden from {server.url('/echo')} (expected 2xx): ***"
    assert web.runs.output(run.id) == "***"
    with serving() as other:
        end = other.on("/end", answer())
        assert call(server.on("/x", answer("307 Elsewhere", Location=end)), headers=headers).state is RunState.SUCCEEDED
        assert not {"x-token", "authorization", "cookie", "x-plain"} & set(other.received[0].headers)


@pytest.mark.parametrize(
    ("header", "secret"),
    [
        ("Authorization: Bearer correct-horse", "correct-horse"),
        ("X-Api-Key: correct-horse", "correct-horse"),
        ("Cookie: session=correct-horse; theme=dark", "correct-horse"),
        ("X-Vault-Token: correct-horse", "correct-horse"),
    ],
)
def test_a_secret_that_stands_in_a_header_as_it_is_is_hidden_too(
    server: Server, call: Caller, web: Ostinato, header: str, secret: str
) -> None:
    name, value = header.split(": ", 1)

    def echo(visit: Visit) -> None:
        sent = visit.request.headers[name.lower()]
        visit.answer("403 Forbidden", f"{sent} or {secret}, {visit.request.headers['x-tenant']}".encode())

    run = call(server.on("/echo", echo), headers={name: value, "X-Tenant": "acme-corp"})
    assert server.received[0].headers[name.lower()] == value
    assert secret not in f"{run.reason} {run.result} {web.runs.output(run.id)}"
    assert "acme-corp" in (run.reason or ""), "what is no secret stays"


def test_a_file_can_hold_the_secret_of_a_header(server: Server, call: Caller, web: Ostinato, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("battery-staple\n")
    run = call(server.on("/x", answer()), headers={"Authorization": f"Bearer file:{tmp_path / 'token'}"})
    assert run.state is RunState.SUCCEEDED
    assert server.received[0].headers["authorization"] == "Bearer battery-staple"
