"""The first look at every request: is it meant for this server, does it come from its own page, is it private.

A page of somebody else whose name was made to point here (DNS rebinding) stops at Host; one that makes the browser
send a form or open a socket stops at Origin. Who somebody is, is looked at behind this, in `access.py`, and how much
they may send in `bodies.py`.
"""

from __future__ import annotations

import socket
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ostinato.api.container import ApiContainer
from ostinato.api.host_login import host_login_of
from ostinato.api.prefix import is_mounted
from ostinato.api.problems import problem, problem_answer
from ostinato.api.proxies import PROXY
from ostinato.config import Settings

__all__ = ["CHECKED_HOST", "SAFE_METHODS", "SecurityMiddleware", "is_loopback", "split_host"]

CHECKED_HOST = "ostinato.checked_host"
"""In the scope of what came through a mount: a Host that the app around it has checked by rules of its own."""

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_PRIVATE = frozenset({"https", "wss"})
_HSTS = "max-age=15552000"
"""Half a year: a browser that came by https comes by nothing else."""
_HEALTH = frozenset({"/livez", "/healthz", "/readyz"})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class SecurityMiddleware:
    """Checks Host, Origin and the way that it came, and puts the headers of security on every answer."""

    def __init__(self, app: ASGIApp, container: ApiContainer) -> None:
        self._app = app
        self._container = container

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if scope["type"] == "websocket":
            if refusal is None:
                await self._app(scope, receive, send)
            else:
                # Before it is accepted, the server turns this into a 403.
                await send({"type": "websocket.close", "code": 1008, "reason": str(refusal["title"])})
            return
        guarded = _with_headers(send, no_store=scope["path"].startswith("/api"), hsts=_wants_hsts(scope, headers))
        if refusal is None:
            await self._app(scope, receive, guarded)
        else:
            await problem_answer(refusal)(scope, receive, guarded)

    def _refusal(self, scope: Scope, headers: Headers) -> dict[str, object] | None:
        settings = self._container.settings
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not (hosts[0] == scope.get(CHECKED_HOST) or is_our_host(hosts[0], settings)):
            name = ", ".join(hosts)[:200]
            detail = (
                f"{name!r} is not a name of this server; if it should be, add it to the setting hosts (OSTINATO_HOSTS)"
            )
            return problem(421, "wrong-host", detail)
        if _is_in_the_clear(scope, settings):
            detail = "tokens and logins would cross the network unencrypted: use https, through the proxy"
            return problem(403, "not-private", detail)
        origin = headers.get("origin")
        if (
            _needs_our_origin(scope)
            and origin is not None
            and not is_our_origin(origin, hosts[0], settings, _scheme(scope))
        ):
            detail = f"a page from {origin[:200]!r} may not do this; behind a proxy, add its name to the setting hosts"
            return problem(403, "wrong-origin", detail)
        return None


def is_our_host(given: str, settings: Settings) -> bool:
    """Whether a Host header names this server."""
    name, port = split_host(given)
    if name is None:
        return False
    if name in _LOOPBACK or _is_listed(name, port, settings.hosts):
        return True
    if is_loopback(settings.host):
        return name == settings.host.lower()
    # A rebinding attack needs a name: an address is not one.
    return _is_address(name) or name in (settings.host.lower(), socket.gethostname().lower())


def is_our_origin(origin: str, host: str, settings: Settings, called_by: str) -> bool:
    """Whether a page with this origin is ours: it came from the address that it now calls.

    Called by https, only a page of https is. Called by http the scheme is not looked at: a proxy may speak TLS for us
    and not say so. A name of the settings counts for a proxy that does not pass Host on, and without a port only for
    the default one: what else is served there is not ours.
    """
    scheme, separator, place = origin.lower().partition("://")
    default = _DEFAULT_PORTS.get(scheme)
    if not separator or default is None or (called_by in _PRIVATE and scheme != "https"):
        return False
    page = _with_port(place, default)
    return page is not None and page in {_with_port(ours, default) for ours in (host, *settings.hosts)}


def _needs_our_origin(scope: Scope) -> bool:
    """Whether only our own page may ask for it. The cookie of a host that lets other pages read answers (CORS) comes
    with theirs too: nothing is read by it from elsewhere either."""
    if scope["type"] == "websocket" or scope["method"] not in SAFE_METHODS:
        return True
    return host_login_of(scope) is not None and scope["path"].startswith("/api")


def _is_in_the_clear(scope: Scope, settings: Settings) -> bool:
    """Whether it came over a network as plain HTTP, past the proxy that speaks TLS. Health checks tell no secret.

    Where an app listens that this is mounted in, our settings do not say. With a login of its own it is its to decide.
    """
    if host_login_of(scope) is not None or (is_loopback(settings.host) and not is_mounted(scope)):
        return False
    if _scheme(scope) in _PRIVATE or PROXY in scope or scope["path"] in _HEALTH:
        return False
    return scope.get("client") is None or not is_loopback(scope["client"][0])


def _scheme(scope: Scope) -> str:
    return str(scope.get("scheme", "http"))


def _wants_hsts(scope: Scope, headers: Headers) -> bool:
    """Not for this machine: what else listens at its names may speak plain HTTP."""
    name, _ = split_host(headers.get("host", ""))
    return _scheme(scope) in _PRIVATE and name is not None and not is_loopback(name)


def _with_port(place: str, default: str) -> tuple[str, str] | None:
    name, port = split_host(place)
    return None if name is None else (name, port or default)


def split_host(text: str) -> tuple[str | None, str]:
    """`name:port` as its two parts, IPv6 without brackets; None if it is neither a name nor an address."""
    text = text.strip().lower()
    if text.startswith("["):
        name, bracket, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
        if not bracket or not _is_address(name) or (rest and not (rest.startswith(":") and port.isdecimal())):
            return None, ""
        return name, port
    name, colon, port = text.partition(":")
    if not name or (colon and not port.isdecimal()):
        return None, ""
    return name.removesuffix("."), port


def is_loopback(host: str) -> bool:
    """Whether nobody from outside can reach this address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_listed(name: str, port: str, hosts: tuple[str, ...]) -> bool:
    for listed in hosts:
        listed_name, listed_port = split_host(listed)
        if name == listed_name and listed_port in ("", port):
            return True
    return False


def _with_headers(send: Send, *, no_store: bool, hsts: bool) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            if hsts:
                headers["Strict-Transport-Security"] = _HSTS
            if no_store and "cache-control" not in headers:
                headers["Cache-Control"] = "no-store"
        await send(message)

    return guarded
