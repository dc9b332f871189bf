"""What is sent, pure: the request that a work asks for, and the one that follows a redirect.

exchange.py sends them. What the work gave, headers and body, stays with the origin that it was given for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urljoin, urlsplit

import msgspec

from ostinato.execution.executors.http.addresses import ascii_host
from ostinato.models.work import Http
from ostinato.trace_context import trace_headers

__all__ = ["REDIRECTS", "Refusal", "Request", "Target", "Trouble", "first_request", "next_request"]

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PORTS = {"http": 80, "https": 443}
_LONGEST_SHOWN = 200
_OURS = frozenset({"connection", "content-length", "transfer-encoding", "host"})
"""Headers that say how the request is sent: that is not the work's to say, but for the host."""
_FOR_ANY_ORIGIN = frozenset({"accept", "accept-encoding", "accept-language", "user-agent"})
"""Of the headers that a work gave, what another origin gets too: nobody can know which of the others is a secret."""
_OF_BODY = frozenset({"content-type", "content-encoding", "content-language", "content-location"})


class Refusal(Exception):
    """The request is not sent, or its answer not taken, and trying again would not help."""


class Trouble(Exception):
    """Something on the way went wrong that may be well another time."""


@dataclass(frozen=True, slots=True)
class Target:
    """A URL, taken apart. Its user and password are not part of it."""

    scheme: str
    host: str
    """In ASCII, without brackets."""
    port: int
    path: str
    query: str

    @classmethod
    def of(cls, url: str) -> Target:
        """ValueError if the URL cannot be called."""
        parts = urlsplit(url)
        if parts.scheme not in _PORTS:
            raise ValueError(f"only http and https are called, not {parts.scheme or 'nothing'}")
        host = ascii_host(parts.hostname or "")
        if not host or not re.fullmatch(r"[\x21-\x7e]+", host):
            raise ValueError("it has no host")
        port = _PORTS[parts.scheme] if parts.port is None else parts.port
        return cls(parts.scheme, host, port, _quoted(parts.path) or "/", _quoted(parts.query))

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port

    @property
    def resource(self) -> str:
        """What stands in the first line of the request."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.resource}"

    @property
    def shown(self) -> str:
        """For reasons: a query may hold what is nobody's business."""
        path = self.path if len(self.path) <= _LONGEST_SHOWN else self.path[:_LONGEST_SHOWN] + "…"
        return f"{self.scheme}://{self.authority}{path if path != '/' else ''}"


@dataclass(frozen=True, slots=True)
class Request:
    """One request."""

    method: str
    target: Target
    headers: Mapping[str, str]
    body: bytes | None = None
    private: frozenset[str] = frozenset()
    """The headers, in small letters, that no other origin gets to see."""

    @property
    def fields(self) -> list[tuple[bytes, bytes]]:
        """The headers as they are sent."""
        fields = [(name.encode("ascii"), _header_bytes(value.strip(" \t"))) for name, value in self.headers.items()]
        if not any(name.lower() == "host" for name in self.headers):
            fields.insert(0, (b"Host", self.target.authority.encode("ascii")))
        if self.body is not None or self.method in ("POST", "PUT", "PATCH"):
            fields.append((b"Content-Length", b"%d" % len(self.body or b"")))
        return [*fields, (b"Connection", b"close")]


def first_request(work: Http, resolved: Mapping[str, str], key: str, version: str, trace: str | None = None) -> Request:
    """The request that a work asks for, its headers being resolved; Refusal if it cannot be sent."""
    try:
        target = Target.of(work.url)
    except ValueError as error:
        raise Refusal(f"its url cannot be called: {error}") from None
    headers = {name: value for name, value in resolved.items() if name.lower() not in _OURS - {"host"}}
    for name, value in headers.items():
        if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", value):
            raise Refusal(f"its header {name} has a line break or another control character in it: fix its value")
    body: bytes | None = None
    defaults = {
        "User-Agent": f"Ostinato/{version}",
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "Idempotency-Key": key if re.fullmatch(r"[\x20-\x7e]+", key) else _quoted(key),
        **trace_headers(trace),
    }
    if work.json is not None:
        body = msgspec.json.encode(work.json)
        defaults["Content-Type"] = "application/json"
    elif work.body is not None:
        body = work.body.encode("utf-8", "surrogatepass")
        defaults["Content-Type"] = "text/plain; charset=utf-8"
    given = {name.lower() for name in headers}
    headers |= {name: value for name, value in defaults.items() if name.lower() not in given}
    secret = {name.lower() for name, value in resolved.items() if work.headers.get(name) != value}
    return Request(work.method, target, headers, body, frozenset((given - _FOR_ANY_ORIGIN) | secret))


def next_request(request: Request, status: int, location: str) -> Request:
    """The request that follows a redirect; Refusal if it is not followed."""
    before = request.target
    try:
        target = Target.of(urljoin(before.url, _quoted(location, "latin-1")))
    except ValueError as error:
        raise Refusal(f"{before.shown} redirects to an address that cannot be called: {error}") from None
    if before.scheme == "https" and target.scheme == "http":
        raise Refusal(f"{before.shown} redirects to {target.shown}, which is not encrypted: not followed")
    following = replace(request, target=target)
    becomes_get = (status in (301, 302) and request.method == "POST") or (status == 303 and request.method != "HEAD")
    if becomes_get and request.method != "GET":
        following = replace(following, method="GET", body=None, headers=_without(following.headers, _OF_BODY))
    if target.origin != before.origin:
        if following.body:
            raise Refusal(
                f"{before.shown} redirects to {target.shown}, another origin, which the body is not for: "
                "call that one, if it is meant"
            )
        following = replace(following, headers=_without(following.headers, request.private))
    return following


def _without(headers: Mapping[str, str], names: frozenset[str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in names}


def _quoted(text: str, encoding: str = "utf-8") -> str:
    """The text with whatever may not stand in a request's first line escaped, and all else as it is."""
    return re.sub(
        r"[^\x21-\x7e]",
        lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode(encoding, "surrogatepass")),
        text,
    )


def _header_bytes(value: str) -> bytes:
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogateescape")
