"""Beyond this machine only by TLS: spoken by the server, or by a proxy that it trusts. Else it does not start."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import signal
import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from ostinato.api.proxies import Proxies
from ostinato.cli.server import check_listening
from ostinato.config import Settings
from ostinato.errors import InvalidInput
from tests.doors.command_line import CommandLine, Process, page_address
from tests.doors.web import Web, web_on

# Of localhost and 127.0.0.1, by itself, for a hundred years; nobody trusts it but these tests.
DATA = Path(__file__).parent / "data"
CERTIFICATE, KEY = DATA / "localhost.crt", DATA / "localhost.key"
TLS = ("--tls-cert", str(CERTIFICATE), "--tls-key", str(KEY))
PROXY = "10.0.0.5"


def _stop(process: Process) -> None:
    process.signal(signal.SIGTERM)
    assert process.wait() == 0


def _trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(CERTIFICATE))


@pytest.fixture
def web() -> Iterator[Web]:
    """Listening to the network, behind a proxy."""
    with web_on() as web:
        web.set(host="0.0.0.0", trusted_proxies=("10.0.0.0/24",), hosts=("jobs.example.org",))
        yield web


@pytest.mark.parametrize("command", ["web", "up"])
def test_the_network_is_refused_without_tls_and_told_both_ways(cli: CommandLine, command: str) -> None:
    cli.ok("token", "add", "ci", "--role", "viewer")
    refused = cli(command, "--host", "0.0.0.0", "--port", "0")
    assert refused.code == 2
    for offered in ("--tls-cert FILE", "--tls-key FILE", "trusted_proxies", "leave out --host"):
        assert offered in refused.err


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"host": "0.0.0.0"}, "cannot listen at 0.0.0.0: without TLS"),
        ({"host": "192.0.2.1", "trusted_proxies": (PROXY,)}, "this machine has no address 192.0.2.1"),
        ({"tls_cert": "nowhere.pem", "tls_key": "nowhere.key"}, "--tls-cert nowhere.pem: it cannot be read"),
    ],
)
async def test_what_would_be_refused_is_told_while_another_process_listens_there(
    wrong: dict[str, Any], told: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        await check_listening(Settings(host="127.0.0.1", port=port))
        with pytest.raises(InvalidInput, match=re.escape(told)):
            await check_listening(replace(Settings(port=port), **wrong))


def test_all_that_the_network_needs_is_told_at_once(cli: CommandLine) -> None:
    refused = cli("web", "--host", "0.0.0.0", "--port", "0")
    assert refused.code == 2
    for offered in ("--tls-cert FILE", "trusted_proxies", "ostinato token add NAME --role admin", "leave out --host"):
        assert offered in refused.err.replace("\n", " ")


@pytest.mark.parametrize("way", ["tls", "proxy"])
def test_the_network_is_let_in_only_when_there_is_a_token(
    cli: CommandLine, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "proxy":
        monkeypatch.setenv("OSTINATO_TRUSTED_PROXIES", PROXY)
    else:  # here they come from the settings
        shutil.copy(CERTIFICATE, cli.folder / "server.crt")
        shutil.copy(KEY, cli.folder / "server.key")
        (cli.folder / "ostinato.toml").write_text('tls_cert = "server.crt"\ntls_key = "server.key"\n')
    flags = ("--host", "0.0.0.0", "--port", "0")
    refused = cli("web", *flags)
    assert refused.code == 2
    assert "ostinato token add NAME --role admin" in refused.err
    secret = cli.ok("token", "add", "ci", "--role", "viewer").out.strip()
    with cli.start("web", *flags) as process:
        address = page_address(process)
        assert address.startswith("https://127.0.0.1:" if way == "tls" else "http://127.0.0.1:")
        assert "every other address of this machine" in process.err
        assert "login?code=" not in process.err
        assert "--https" not in process.err
        with httpx.Client(verify=_trusting(), timeout=60) as client:
            answer = client.get(f"{address}/api/me", headers={"Authorization": f"Bearer {secret}"})
        assert answer.json()["who"] == "ci"
        _stop(process)


@pytest.mark.parametrize("command", ["web", "up"])
def test_over_tls_the_link_logs_in_with_a_secure_cookie(cli: CommandLine, command: str) -> None:
    with cli.start(command, "--port", "0", *TLS) as process:
        address = page_address(process)
        link = re.search(r"log in +(https://\S+)", process.err)
        assert link is not None
        assert link[1].startswith(f"{address}/login?code=")
        named = re.search(r"; '(ostinato login .*)' makes another", process.err)
        assert named is not None
        other = cli.ok(*shlex.split(named[1])[1:]).out.strip()
        assert other.startswith(f"{address}/login?code=")
        with httpx.Client(base_url=address, verify=_trusting(), timeout=60) as browser:
            for one in (link[1], other):
                login = browser.post("/api/login", json={"code": one.partition("code=")[2]})
                assert login.status_code == 200
                assert "; Secure" in login.headers["set-cookie"]
                # Another program of this machine may speak plain HTTP at the same name.
                assert "strict-transport-security" not in login.headers
        with (
            pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)),
            httpx.Client(timeout=60) as plain,
        ):
            plain.get(f"{address.replace('https', 'http')}/healthz")
        _stop(process)


def test_who_never_agrees_upon_tls_is_let_go_and_others_are_answered(cli: CommandLine) -> None:
    with cli.start("web", "--port", "0", *TLS) as process:
        address = page_address(process)
        port = int(address.rpartition(":")[2])
        lines = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(300)]
        with httpx.Client(verify=_trusting(), timeout=60) as client:
            assert client.get(f"{address}/healthz").status_code == 200
        lines[0].settimeout(60)
        with contextlib.suppress(ConnectionResetError):
            assert lines[0].recv(100) == b""  # it gave way, or its time is over
        for line in lines:
            line.close()
        assert len(process.err) < 20_000
        _stop(process)


def test_one_of_the_two_is_not_enough(cli: CommandLine) -> None:
    for flags, missing in ((TLS[:2], "tls_key"), (TLS[2:], "tls_cert")):
        answer = cli("web", "--port", "0", *flags)
        assert answer.code == 2
        assert f"{missing} is not set" in answer.err


PEM = "-----BEGIN {0}-----\nMA==\n-----END {0}-----\n"
CERT, PRIVATE = str(CERTIFICATE), str(KEY)


@pytest.mark.parametrize(
    ("certificate", "key", "told"),
    [
        ("missing", PRIVATE, "--tls-cert missing: it cannot be read: No such file or directory"),
        (CERT, "missing", "--tls-key missing: it cannot be read: No such file or directory"),
        (".", PRIVATE, "--tls-cert .: it cannot be read: Is a directory"),
        ("nonsense", PRIVATE, "--tls-cert nonsense: it has no PEM certificate; from DER: openssl x509"),
        (PRIVATE, CERT, f"--tls-cert {PRIVATE}: it has no PEM certificate"),
        (CERT, CERT, f"--tls-key {CERT}: it has no PEM private key"),
        ("damaged.crt", PRIVATE, "--tls-cert damaged.crt: it is damaged"),
        (CERT, "damaged.key", "--tls-key damaged.key: it is damaged"),
        (CERT, "locked.key", "--tls-key locked.key: the key has a password; remove it: openssl pkey"),
        (CERT, str(DATA / "other.key"), f"other.key: the key does not belong to the certificate in --tls-cert {CERT}"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_with_its_option_and_why(
    cli: CommandLine, certificate: str, key: str, told: str
) -> None:
    (cli.folder / "nonsense").write_bytes(b"\x30\x82\x01\xff")
    (cli.folder / "damaged.crt").write_text(PEM.format("CERTIFICATE"))
    (cli.folder / "damaged.key").write_text(PEM.format("PRIVATE KEY"))
    (cli.folder / "locked.key").write_text(PEM.format("ENCRYPTED PRIVATE KEY"))
    answer = cli("web", "--port", "0", "--json", "--tls-cert", certificate, "--tls-key", key)
    assert answer.code == 2
    assert told in answer.error["error"]
    assert "\n" not in answer.error["error"]


def test_past_the_proxy_nothing_is_told_but_health(web: Web) -> None:
    token = web.token("admin")
    direct = web.anybody("10.9.9.9", Authorization=f"Bearer {token}", Host="127.0.0.1:8321")
    refused = direct.get("/api/me")
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/not-private")
    assert direct.get("/healthz").status_code == 200
    assert web.anybody("127.0.0.1", Authorization=f"Bearer {token}").get("/api/me").status_code == 200
    assert web.anybody(PROXY, Authorization=f"Bearer {token}").get("/api/me").status_code == 200


def test_a_trusted_proxy_says_who_asks_and_how(web: Web) -> None:
    code = web.run(web.container.services.access.make_code(who="ada", role="admin"))
    headers = {
        "Host": "jobs.example.org",
        "Origin": "https://jobs.example.org",
        "X-Forwarded-For": "203.0.113.9, 10.0.0.7",
        "X-Forwarded-Proto": "https",
    }
    answer = web.anybody(PROXY, **headers).post("/api/login", {"code": code})
    assert answer.status_code == 200
    assert "; Secure" in answer.headers["set-cookie"]
    assert answer.headers["strict-transport-security"].startswith("max-age=")
    (entry,) = [one for one in web.run(web.container.services.audit.page(limit=10)).items if one.verb == "login"]
    assert entry.address == "203.0.113.9"


def test_by_https_a_page_of_http_is_not_ours(web: Web) -> None:
    token = web.token("admin")
    for proto, origin, status in (
        ("https", "https://jobs.example.org", 200),
        ("https", "http://jobs.example.org", 403),
        ("http", "http://jobs.example.org", 200),
    ):
        client = web.anybody(PROXY, Authorization=f"Bearer {token}", Host="jobs.example.org", Origin=origin)
        answer = client.send("PUT", "/api/lanes/main", json={"limit": 5}, headers={"X-Forwarded-Proto": proto})
        assert answer.status_code == status, (proto, origin)


def test_what_others_say_about_themselves_is_not_believed(web: Web) -> None:
    """Neither who they are, so that the limit of attempts is theirs, nor that they came by TLS."""
    web.set(host="127.0.0.1")
    answers = [
        web.anybody("10.9.9.9", **{"X-Forwarded-For": f"203.0.113.{number}", "X-Forwarded-Proto": "https"}).post(
            "/api/login", {"code": "wrong"}
        )
        for number in range(11)
    ]
    assert [answer.status_code for answer in answers] == [401] * 10 + [429]
    assert "strict-transport-security" not in answers[-1].headers
    behind = {"X-Forwarded-For": "203.0.113.77"}
    assert web.anybody(PROXY, **behind).post("/api/login", {"code": "wrong"}).status_code == 401


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ([], PROXY),
        (["203.0.113.9"], "203.0.113.9"),
        (["198.51.100.1, 203.0.113.9"], "203.0.113.9"),
        (["198.51.100.1, 203.0.113.9, 10.0.0.8"], "203.0.113.9"),
        (["198.51.100.1", "203.0.113.9"], "203.0.113.9"),
        (["10.0.0.9, 10.0.0.8"], "10.0.0.9"),
        (["203.0.113.9:4711"], "203.0.113.9"),
        (["[2001:db8::1]:4711"], "2001:db8::1"),
        (["::ffff:203.0.113.9"], "203.0.113.9"),
        (["203.0.113.9, evil"], PROXY),
        (["'; DROP TABLE audit"], PROXY),
        (["evil, 10.0.0.8"], "10.0.0.8"),
    ],
)
def test_the_last_address_that_is_no_proxy_asks(forwarded: list[str], client: str) -> None:
    assert Proxies(("10.0.0.0/24",)).client_of(PROXY, forwarded) == client
