"""Who really asks, behind a proxy: its headers are believed if its own address is one of `trusted_proxies`, else not.

The first that a request meets. What stands behind it (the security checks, the audit log, the login throttle, the
cookie) sees the address and the scheme of the client.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from starlette.types import ASGIApp, Receive, Scope, Send

from ostinato.api.container import ApiContainer

__all__ = ["PROXY", "Proxies", "ProxyMiddleware"]

PROXY = "ostinato.proxy"
"""In the scope of what came through a trusted one: its address."""
_SCHEMES = {"http": ("http", "ws"), "https": ("https", "wss")}


class Proxies:
    """The addresses and networks of the setting."""

    def __init__(self, trusted: Sequence[str]) -> None:
        self._networks = [ip_network(one, strict=False) for one in trusted]

    def are_trusted(self, address: str) -> bool:
        """Whether this is the address of one of them."""
        if not self._networks:
            return False
        found = _address(address)
        return found is not None and any(found in network for network in self._networks)

    def client_of(self, peer: str, forwarded: Iterable[str]) -> str:
        """Who asks: the last in X-Forwarded-For that is not a proxy of ours. What cannot be read ends the search."""
        asking = peer
        for text in reversed([part.strip() for value in forwarded for part in value.split(",")]):
            found = _address(text)
            if found is None:
                break
            asking = str(found)
            if not self.are_trusted(asking):
                break
        return asking


class ProxyMiddleware:
    """Puts the address and the scheme of the client in place of those of a trusted proxy."""

    def __init__(self, app: ASGIApp, container: ApiContainer) -> None:
        self._app = app
        self._container = container

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        proxies, client = proxies_of(self._container.settings.trusted_proxies), scope.get("client")
        if scope["type"] in ("http", "websocket") and client and proxies.are_trusted(client[0]):
            scope["client"] = (proxies.client_of(client[0], _values(scope, b"x-forwarded-for")), client[1])
            schemes = _SCHEMES.get(",".join(_values(scope, b"x-forwarded-proto")).strip().lower())
            if schemes is not None:
                scope["scheme"] = schemes[scope["type"] == "websocket"]
            scope[PROXY] = client[0]
        await self._app(scope, receive, send)


@lru_cache(maxsize=8)
def proxies_of(trusted: tuple[str, ...]) -> Proxies:
    """Those of a setting, read once."""
    return Proxies(trusted)


def _values(scope: Scope, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """The address in `10.0.0.1`, `10.0.0.1:8080`, `::1` or `[::1]:8080`; an IPv4 one in IPv6 is the IPv4 one."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return (isinstance(found, IPv6Address) and found.ipv4_mapped) or found
