"""What stands before every route: Host, Origin, sizes, headers; and what goes wrong is a problem without internals."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator

import pytest

from ostinato.api.bodies import LARGEST_BODY
from ostinato.errors import StoreError, StoreUnavailable
from ostinato.models.ids import NodeId
from ostinato.models.node import NodeBeat
from tests.doors.web import Web

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


SERVED, REFUSED = 401, 421


def _status(web: Web, host: str) -> int:
    """Somebody unknown asks by this name: whether they get as far as to be asked who they are."""
    return web.anybody().get("/api/me", headers={"Host": host}).status_code


@pytest.mark.parametrize("host", ["localhost", "localhost:9", "127.0.0.1:8321", "[::1]:8321", "[::1]", "LOCALHOST."])
def test_on_loopback_the_names_of_this_machine_are_served(web: Web, host: str) -> None:
    assert _status(web, host) == SERVED


STRANGERS = [
    "evil.example",
    "evil.example:8321",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "192.168.1.5:8321",
    "localhost:x",
    "localhost:80:90",
    "[::1",
    "[evil.example]:80",
    "user@localhost",
    "",
    socket.gethostname() + ".evil.example",
]


@pytest.mark.parametrize("path", ["/api/me", "/"])
def test_a_name_that_was_made_to_point_here_is_refused(web: Web, path: str) -> None:
    admin = web.script("admin")
    for host in STRANGERS:
        answer = admin.get(path, headers={"Host": host})
        assert (host, answer.status_code, answer.json()["type"]) == (host, REFUSED, "/problems/wrong-host")
        assert answer.headers["content-security-policy"] == POLICY


def test_two_hosts_are_none(web: Web) -> None:
    headers = [(b"host", b"localhost"), (b"host", b"evil.example")]
    assert web.anybody().get("/api/me", headers=headers).status_code == REFUSED


def test_bound_to_the_network_addresses_and_the_name_of_the_machine_are_served(web: Web) -> None:
    web.set(host="0.0.0.0")
    for host in ("192.168.1.5:8321", "[fe80::1]:8321", "localhost", socket.gethostname()):
        assert _status(web, host) == SERVED
    for host in ("evil.example", "192.168.1.5.evil.example"):
        assert _status(web, host) == REFUSED


def test_bound_to_a_name_that_name_is_served(web: Web) -> None:
    web.set(host="jobs.internal")
    assert _status(web, "jobs.internal:8321") == SERVED
    assert _status(web, "other.internal:8321") == REFUSED


def test_further_names_come_from_the_settings(web: Web) -> None:
    web.set(hosts=("jobs.example.org", "other.example:8443"))
    assert _status(web, "jobs.example.org") == SERVED
    assert _status(web, "Jobs.Example.org:8080") == SERVED
    assert _status(web, "other.example:8443") == SERVED
    assert _status(web, "other.example") == REFUSED


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:8321", 204),
        ("HTTP://127.0.0.1:8321", 204),
        ("http://127.0.0.1:8322", 403),
        ("http://127.0.0.1", 403),
        ("http://localhost:8321", 403),
        ("https://evil.example", 403),
        ("null", 403),
        ("", 403),
        ("https://jobs.example.org", 204),
        ("https://jobs.example.org:443", 204),
        ("https://jobs.example.org:8443", 403),
        ("http://jobs.example.org:3000", 403),
        ("https://other.example:8443", 204),
        ("https://other.example", 403),
        ("ftp://jobs.example.org", 403),
        ("https://jobs.example.org.evil.example", 403),
    ],
)
def test_a_write_must_come_from_the_page_that_this_server_gave(web: Web, origin: str, status: int) -> None:
    web.set(hosts=("jobs.example.org", "other.example:8443"))
    answer = web.script("admin").post("/api/logout", headers={"Origin": origin})
    assert answer.status_code == status


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("jobs.example.org", "https://jobs.example.org", 204),
        ("jobs.example.org", "http://jobs.example.org", 204),
        ("jobs.example.org:443", "https://jobs.example.org", 204),
        ("jobs.example.org:8443", "https://jobs.example.org:8443", 204),
        ("Jobs.example.org.", "https://jobs.example.org:443", 204),
        ("jobs.example.org", "http://jobs.example.org:3000", 403),
        ("jobs.example.org:8443", "https://jobs.example.org:3000", 403),
        ("jobs.example.org:80", "https://jobs.example.org:8443", 403),
    ],
)
def test_the_host_that_was_asked_is_the_one_that_may_ask(web: Web, host: str, origin: str, status: int) -> None:
    web.set(hosts=("jobs.example.org",))
    answer = web.script("admin").post("/api/logout", headers={"Host": host, "Origin": origin})
    assert answer.status_code == status


def test_a_login_from_another_page_is_refused(web: Web) -> None:
    code = web.run(web.container.services.access.make_code(who="ada"))
    evil = {"Origin": "https://evil.example"}
    assert web.anybody().post("/api/login", {"code": code}, headers=evil).status_code == 403
    assert web.anybody().post("/api/login", {"code": code}).status_code == 200


def test_reading_needs_no_origin(web: Web) -> None:
    answer = web.script("viewer").get("/api/me", headers={"Origin": "https://evil.example"})
    assert answer.status_code == 200
    # The browser keeps it from that page: nobody is allowed to read it across origins.
    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    ("host", "origin", "opens"),
    [
        (b"127.0.0.1:8321", b"http://127.0.0.1:8321", True),
        (b"127.0.0.1:8321", None, True),
        (b"127.0.0.1:8321", b"https://evil.example", False),
        (b"evil.example", b"http://evil.example", False),
    ],
)
def test_a_socket_is_looked_at_like_a_write(web: Web, host: bytes, origin: bytes | None, opens: bool) -> None:
    headers = [(b"host", host)] + ([] if origin is None else [(b"origin", origin)])
    sent: list[dict[str, object]] = []
    reached: list[str] = []

    async def inner(scope: object, receive: object, send: object) -> None:
        reached.append("inner")

    async def open_socket() -> None:
        from ostinato.api.security import SecurityMiddleware

        async def receive() -> dict[str, object]:
            return {"type": "websocket.connect"}

        async def send(message: object) -> None:
            sent.append(dict(message))  # type: ignore[call-overload]

        scope = {"type": "websocket", "path": "/api/live", "headers": headers}
        await SecurityMiddleware(inner, web.container)(scope, receive, send)

    web.run(open_socket())
    assert reached == (["inner"] if opens else [])
    assert [message["type"] for message in sent] == ([] if opens else ["websocket.close"])


@pytest.mark.parametrize("path", ["/api/me", "/api/nothing", "/", "/schedules/x", "/assets/nothing.js"])
def test_every_answer_has_the_headers_of_security(web: Web, path: str) -> None:
    headers = web.anybody().get(path).headers
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert "server" not in headers
    if path.startswith("/api"):
        assert headers["cache-control"] == "no-store"


def test_a_body_has_one_megabyte_at_most(web: Web) -> None:
    admin = web.script("admin")
    fits = b'{"name": "' + b"x" * (LARGEST_BODY - 100) + b'", "role": "viewer"}'
    assert admin.post("/api/tokens", content=fits, headers={"Content-Type": "application/json"}).status_code == 422
    answer = admin.post("/api/tokens", content=b"x" * (LARGEST_BODY + 1))
    assert (answer.status_code, answer.json()["type"]) == (413, "/problems/body-too-large")
    for length in ("-1", "x", "1e3"):
        assert admin.post("/api/tokens", headers={"Content-Length": length}).status_code == 413


@pytest.mark.parametrize("key", [None, "again"])
def test_a_body_that_does_not_say_its_length_is_stopped_too(web: Web, key: str | None) -> None:
    sent = 0

    async def parts() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += 100_000
            yield b"x" * 100_000

    headers = {} if key is None else {"Idempotency-Key": key}
    answer = web.script("admin").post("/api/tokens", content=parts(), headers=headers)
    assert answer.status_code == 413
    assert sent < 2 * LARGEST_BODY


@pytest.mark.parametrize(
    ("content", "message", "position"),
    [
        (b'{"name": }', "the body is not valid JSON: Expecting value", 9),
        (b"\xff\xfe\xfd", "", None),
        (b"[1, 2]", "the body is not a JSON object", None),
        (b"", "the body is not a JSON object", None),
    ],
)
def test_a_body_that_is_not_json_is_told_so(web: Web, content: bytes, message: str, position: int | None) -> None:
    headers = {"Content-Type": "application/json"}
    answer = web.script("admin").post("/api/tokens", content=content, headers=headers)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert message in answer.json()["detail"]
    if message:
        assert [error["position"] for error in answer.json()["errors"]] == [position]


def test_what_nobody_expected_is_a_500_that_shows_nothing(
    web: Web, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken() -> None:
        raise RuntimeError("the password is swordfish")

    admin = web.script("admin")
    monkeypatch.setattr(web.container.services.access, "tokens", broken)
    answer = admin.get("/api/tokens")
    assert answer.status_code == 500
    assert answer.json()["type"] == "/problems/internal-error"
    assert "swordfish" not in answer.text
    assert answer.headers["content-security-policy"] == POLICY
    assert "swordfish" in caplog.text


@pytest.mark.parametrize(
    ("error", "status"),
    [(StoreUnavailable("/var/secret.db is locked"), 503), (StoreError("/var/secret.db said no"), 500)],
)
def test_a_database_that_does_not_answer_is_told_so(
    web: Web, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: StoreError, status: int
) -> None:
    async def broken(_: str) -> None:
        raise error

    nobody = web.anybody(Authorization="Bearer ost_guess")
    monkeypatch.setattr(web.container.services.access, "who_by_token", broken)
    answer = nobody.get("/api/tokens")
    assert answer.status_code == status
    assert (answer.headers.get("retry-after") == "1") == (status == 503)
    assert "secret.db" in caplog.text
    assert "secret.db" not in answer.text


def test_why_a_service_of_a_node_failed_is_told_to_operators(web: Web) -> None:
    services = {"lease": {"up": False, "restarts": 2, "error": "StoreUnavailable: 10.0.0.7 is away"}}
    services |= {"ticker": {"up": True, "restarts": 0, "error": None}}
    services |= {"telegram": {"up": True, "restarts": 0, "error": None, "status": "10.0.0.8 is away", "well": False}}
    now = web.clock.now()
    text = json.dumps(services)
    beat = NodeBeat(NodeId("node-1"), "here", 1, 4, 0, False, (), now, now, now + 1_000_000, text)
    web.run(web.container.store.nodes.renew(beat))
    told = {role: web.script(role).get("/api/nodes").json()["items"][0]["services"] for role in ("viewer", "operator")}
    assert told["operator"] == services
    assert (told["viewer"]["lease"]["up"], told["viewer"]["ticker"]) == (False, services["ticker"])
    assert told["viewer"]["lease"]["error"] == told["viewer"]["telegram"]["status"] == "see the log of the node"


def test_a_wrong_method_and_a_wrong_address_are_problems(web: Web) -> None:
    admin = web.script("admin")
    answer = admin.send("PUT", "/api/me")
    assert (answer.status_code, answer.json()["type"]) == (405, "/problems/method-not-allowed")
    assert answer.headers["allow"] == "GET"
    answer = admin.get("/api/nothing")
    assert (answer.status_code, answer.json()["type"]) == (404, "/problems/not-found")
    assert admin.send("DELETE", "/schedules").status_code == 405
    assert admin.send("PUT", "/api/schedules/nightly").headers["allow"] == "DELETE, GET, PATCH"
    assert admin.send("DELETE", "/api/lanes/mail").headers["allow"] == "GET, PUT"


def test_long_answers_are_compressed_and_short_ones_are_not(web: Web) -> None:
    admin = web.script("admin")
    assert admin.get("/api/openapi.json").headers["content-encoding"] == "gzip"
    assert "content-encoding" not in admin.get("/api/me").headers
    assert "content-encoding" not in admin.get("/api/openapi.json", headers={"Accept-Encoding": "identity"}).headers
    # A range counts the bytes of the text itself.
    assert "content-encoding" not in admin.get("/api/openapi.json", headers={"Range": "bytes=0-9"}).headers
