"""`ostinato web` as a real process: where it listens, who is let in, what it refuses."""

from __future__ import annotations

import asyncio
import errno
import json
import re
import shlex
import signal
import socket
from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from ostinato.cli import server
from ostinato.errors import OstinatoError
from tests.doors.command_line import CommandLine, Process, page_address
from tests.doors.web import web_on


def _has_ipv6() -> bool:
    try:
        with closing(socket.socket(socket.AF_INET6, socket.SOCK_STREAM)) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def _stop(web: Process) -> None:
    web.signal(signal.SIGTERM)
    assert web.wait() == 0
    assert web.err.rstrip().endswith("stopped")


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens at."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_the_first_start_prints_a_link_that_logs_in(cli: CommandLine) -> None:
    with cli.start("web", "--port", "0") as web:
        address = page_address(web)
        link = re.search(r"log in +(\S+)", web.err)
        assert link is not None
        assert link[1].startswith(f"{address}/login?code=")
        code = link[1].partition("code=")[2]
        with httpx.Client(base_url=address, timeout=60) as browser:
            assert browser.get("/api/me").status_code == 401
            login = browser.post("/api/login", json={"code": code})
            assert login.json()["role"] == "admin"
            assert "server" not in login.headers
            assert browser.get("/api/me").status_code == 401
            browser.headers["X-Origin-Key"] = login.json()["origin_key"]
            assert browser.put("/api/lanes/main", json={"limit": 5}).json()["limit"] == 5
            assert browser.get("/api/me", headers={"Host": "evil.example"}).status_code == 421
            noted = [(one["door"], one["verb"]) for one in browser.get("/api/audit").json()["items"]]
            assert noted[::-1] == [
                ("cli", "login.link"),
                ("api", "denied"),
                ("page", "login"),
                ("page", "lane.set"),
            ]
        _stop(web)


def test_the_command_that_it_names_makes_another_link_and_with_json_a_script_learns_where_it_listens(
    cli: CommandLine,
) -> None:
    with cli.start("web", "--port", "0", "--db", "sqlite:///other.db", "--json") as web:
        address = page_address(web)
        assert json.loads(web.out) == {"address": address}
        named = re.search(r"; '(ostinato login .*)' makes another", web.err)
        assert named is not None
        assert f"--db sqlite:///{cli.folder}/other.db" in named[1]
        link = cli.ok(*shlex.split(named[1])[1:]).out.strip()
        assert link.startswith(f"{address}/login?code=")
        answer = httpx.post(f"{address}/api/login", json={"code": link.partition("code=")[2]}, timeout=60)
        assert answer.status_code == 200
        _stop(web)


def test_a_port_that_is_taken_is_told_with_what_to_do(cli: CommandLine, taken: int) -> None:
    answer = cli("web", "--port", str(taken))
    assert answer.code == 1
    assert f"port {taken} of 127.0.0.1 is taken" in answer.err
    assert "--port" in answer.err


def test_the_next_start_prints_no_link_and_opens_a_socket_for_its_own_page_alone(cli: CommandLine) -> None:
    secret = cli.ok("token", "add", "ci", "--role", "viewer").out.strip()
    bearer = {"Authorization": f"Bearer {secret}"}
    code = cli.ok("login", "--port", "8321", "--json").json["code"]
    with web_on(url=f"sqlite:///{cli.folder / 'ostinato.db'}") as before:
        before.anybody().log_in(code=code)
    with cli.start("web", "--port", "0") as web:
        address = page_address(web)
        assert "login?code=" not in web.err, "somebody is logged in"
        stream = address.replace("http", "ws", 1) + "/api/live"
        with connect(stream, additional_headers=bearer, origin=Origin(address), open_timeout=60) as live:
            live.send('{"type": "ping"}')
            assert json.loads(live.recv(timeout=60)) == {"type": "pong"}
        port = int(address.rpartition(":")[2])
        for place, origin in ((stream, "https://evil.example"), (f"ws://evil.example:{port}/api/live", None)):
            line = socket.create_connection(("127.0.0.1", port), timeout=60)
            given = None if origin is None else Origin(origin)
            with (
                pytest.raises(InvalidStatus) as refused,
                connect(place, sock=line, additional_headers=bearer, origin=given, open_timeout=60),
            ):
                pass
            assert refused.value.response.status_code == 403
        _stop(web)


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
def test_it_listens_at_an_ipv6page_address(cli: CommandLine) -> None:
    with cli.start("web", "--host", "::1", "--port", "0") as web:
        address = page_address(web)
        assert address.startswith("http://[::1]:")
        assert httpx.get(f"{address}/healthz", timeout=60).status_code == 200
        _stop(web)


FAMILIES = {socket.AF_INET6: ("::1", 0, 0, 0), socket.AF_INET: ("127.0.0.1", 0)}


def _listen(monkeypatch: pytest.MonkeyPatch, absent: dict[int, int]) -> list[socket.socket]:
    """On a machine where localhost has both addresses, and these families fail with this error."""

    async def found(*_: object, **__: object) -> list[tuple[int, int, int, str, tuple[object, ...]]]:
        return [(family, socket.SOCK_STREAM, 6, "", address) for family, address in FAMILIES.items()]

    bound = server._bound

    def refusing(family: int, address: tuple[str | int, ...], *, only_six: bool) -> socket.socket:
        if family in absent:
            raise OSError(absent[family], "not here")
        return bound(family, address, only_six=only_six)

    async def listen() -> list[socket.socket]:
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", found)
        monkeypatch.setattr(server, "_bound", refusing)
        return await server._listen("localhost", 0)

    return asyncio.run(listen())


def test_a_small_answer_is_sent_at_once() -> None:
    """Else it waits some 40 ms, until the other side has acknowledged the head of it."""

    async def accepted() -> int:
        (listener,) = await server._listen("127.0.0.1", 0)
        told: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def look(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            told.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        async with await asyncio.start_server(look, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            writer.close()
            return await told

    assert asyncio.run(accepted()) == 1


@pytest.mark.parametrize("reason", [errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT])
def test_an_address_of_localhost_that_this_machine_has_not_is_left_out(
    monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    (only,) = _listen(monkeypatch, {socket.AF_INET6: reason})
    with closing(only):
        assert only.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("absent", "told"),
    [
        ({socket.AF_INET6: errno.EADDRNOTAVAIL, socket.AF_INET: errno.EADDRNOTAVAIL}, "has no address localhost"),
        ({socket.AF_INET6: errno.EAFNOSUPPORT, socket.AF_INET: errno.EADDRINUSE}, "is taken"),
        ({socket.AF_INET6: errno.EADDRINUSE}, "is taken"),
    ],
)
def test_a_name_none_of_whose_addresses_can_be_had_is_refused(
    monkeypatch: pytest.MonkeyPatch, absent: dict[int, int], told: str
) -> None:
    with pytest.raises(OstinatoError, match=told):
        _listen(monkeypatch, absent)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--host", "192.0.2.77"), "this machine has no address 192.0.2.77"),
        (("--host", "http://localhost"), "host cannot be 'http://localhost'"),
        (("--port", "70000"), "port cannot be 70000"),
    ],
)
def test_where_it_cannot_listen_is_told(cli: CommandLine, flags: tuple[str, ...], told: str) -> None:
    answer = cli("web", *flags)
    assert answer.code == 2
    assert told in answer.err
