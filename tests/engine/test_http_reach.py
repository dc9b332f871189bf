"""Whom HTTP work calls, through the whole engine: which addresses, and TLS with whom."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ostinato import Http, RunState
from tests.engine.conftest import MakeApp
from tests.engine.http_server import CERTIFICATE, Caller, Server, answer, serving

pytest_plugins = ("tests.engine.http_fixtures",)


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


# Which addresses are called.


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.0.0.1.",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
    ],
)
def test_this_machine_is_not_called_however_it_is_spelled(
    server: Server, make_app: MakeApp, call: Caller, host: str
) -> None:
    run = call(server.url("/x", host), app=make_app("sqlite://:memory:"), retry=3)
    assert run.state is RunState.FAILED
    assert "resolves to " in (run.reason or "")
    assert "allow it with http_allow = [" in (run.reason or "")
    assert server.connections == []


@pytest.mark.parametrize("host", ["localhost", "127.1", "LOCALHOST.", "[::ffff:127.0.0.1]"])
def test_what_is_allowed_is_called_however_it_is_spelled(server: Server, call: Caller, host: str) -> None:
    server.on("/x", answer())
    assert call(server.url("/x", host)).state is RunState.SUCCEEDED


def test_a_name_is_looked_up_once_and_what_was_checked_is_called(
    server: Server, make_app: MakeApp, call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: the first answer is public, any later one is this machine."""
    looked_up: list[str] = []
    called: list[Any] = []

    def rebinding(host: str, port: int, *_: Any, **__: Any) -> Any:
        looked_up.append(host)
        address = "93.184.216.34" if len(looked_up) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    def connect(self: socket.socket, address: Any) -> None:
        called.append(address)
        raise ConnectionRefusedError(111, "Connection refused")

    app = make_app("sqlite://:memory:").start()
    with monkeypatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", rebinding)
        patch.setattr(socket.socket, "connect", connect)
        run = app.enqueue(Http("GET", server.url("/x", "rebinding.test")), retry=0)
        ended = run.wait(10)
    assert called == [("93.184.216.34", server.port)]
    assert looked_up == ["rebinding.test"]
    assert "cannot be reached at 93.184.216.34: Connection refused" in (ended.reason or "")


def test_of_several_addresses_only_those_that_may_be_called_are(
    server: Server, make_app: MakeApp, call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.on("/x", answer())

    def look_up(host: str, port: int, *_: Any, **__: Any) -> Any:
        addresses = ["10.0.0.3", "127.0.0.2", "127.0.0.1"]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    # Nobody listens at 127.0.0.2: the next one is tried.
    app = make_app("sqlite://:memory:", http_allow=("127.0.0.0/8",))
    assert call(server.url("/x", "several.test"), app=app).state is RunState.SUCCEEDED


def test_proxies_of_the_environment_are_not_asked(
    server: Server, call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert call(server.on("/x", answer())).state is RunState.SUCCEEDED


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_ipv6_is_called_too(call: Caller) -> None:
    with serving("::1") as server:
        assert call(server.on("/x", answer())).state is RunState.SUCCEEDED
        assert server.received[0].headers["host"] == f"[::1]:{server.port}"


# TLS.


@pytest.fixture
def secure_server() -> Iterator[Server]:
    with serving(tls=True) as server:
        yield server


def test_tls_is_spoken_with_whom_the_authorities_vouch_for(
    secure_server: Server, make_app: MakeApp, call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    secure_server.on("/x", answer(body=b"safe"))
    app = make_app("sqlite://:memory:", http_allow=("private",))
    run = call(secure_server.url("/x", "localhost"), "POST", app=app, body="x" * 300_000)
    assert (run.state, run.reason) == (RunState.SUCCEEDED, None)
    assert secure_server.received[0].body == b"x" * 300_000
    assert app.runs.output(run.id) == "safe"


def test_a_certificate_that_nobody_vouches_for_is_refused(secure_server: Server, call: Caller) -> None:
    run = call(secure_server.on("/x", answer()), retry=3)
    assert run.state is RunState.FAILED
    assert run.reason is not None
    assert run.reason.startswith(f"the certificate of {secure_server.url('/x')} is not trusted: self-signed")
    assert secure_server.received == []


def test_a_certificate_for_another_name_is_refused_although_the_address_is_right(
    secure_server: Server, make_app: MakeApp, call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *args, **named: real("127.0.0.1", *args, **named))
    app = make_app("sqlite://:memory:", http_allow=("private",))
    assert call(secure_server.url("/x", "hooks.test"), app=app, expect=[404]).state is RunState.SUCCEEDED
    run = call(secure_server.url("/x", "evil.test"), app=app)
    assert run.state is RunState.FAILED
    assert "is not trusted: Hostname mismatch" in (run.reason or "")


def test_plain_http_where_tls_was_expected_is_a_failure(server: Server, call: Caller) -> None:
    def plain(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.recv(1024)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=plain, args=(listener,), daemon=True)
        thread.start()
        run = call(f"https://127.0.0.1:{listener.getsockname()[1]}/", retry=1)
        thread.join(10)
    assert run.state is RunState.QUEUED
    assert "TLS failed: wrong version number" in (run.reason or "")
