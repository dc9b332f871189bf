"""The URL of a channel is a secret: what may be shown of it, and what must be hidden where it was used.

`env:NAME` and `file:PATH` stand for a URL that is read when a message is sent, and are no secrets.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

__all__ = ["is_reference", "mask_url", "scheme_of", "secrets_in"]

HIDDEN = "***"
_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?:(?P<user>[^/?#]*)@)?(?P<host>[^/?#]*)(?P<rest>.*)", re.DOTALL
)
_REFERENCE = re.compile(r"(env|file):(?!//).+", re.DOTALL)
_HOSTED = (
    *("apprise", "form", "gotify", "hassio", "json", "kodi", "mailto", "matrix", "mmost", "mqtt", "ncloud", "nctalk"),
    *("rocket", "rsyslog", "signal", "synology", "xbmc", "xml"),
)
_OF_HOSTS = frozenset(f"{name}{end}" for name in _HOSTED for end in ("", "s"))
"""The schemes that name a host right behind them. Behind others stands a token, as in slack://TOKEN/…"""
_HOST_FIELDS = ("smtp=", "xmpp=")
"""Where mail and chat are handed in."""
_SHORTEST = 6
"""A shorter part of a path or a query is an ordinary word."""


def scheme_of(url: str) -> str:
    """What it begins with, in small letters; nothing if it is no URL."""
    found = _URL.fullmatch(url)
    return found["scheme"].lower() if found else ""


def is_reference(url: str) -> bool:
    """Whether it says where the URL is."""
    return _REFERENCE.fullmatch(url) is not None


def mask_url(url: str) -> str:
    """As it may be shown: its scheme, and its host where there is one."""
    if is_reference(url):
        return url
    found = _URL.fullmatch(url)
    if found is None:
        return HIDDEN
    scheme = found["scheme"].lower()
    if scheme == "telegram":
        return url
    host = found["host"] if scheme in _OF_HOSTS else ""
    if not host:
        return f"{scheme}://{HIDDEN}"
    user = f"{HIDDEN}@" if found["user"] else ""
    return f"{scheme}://{user}{host}" + (f"/{HIDDEN}" if found["rest"].strip("/") else "")


def secrets_in(url: str) -> list[str]:
    """What must not be shown of a URL, in what others say of it: all but its scheme and its host."""
    found = _URL.fullmatch(url)
    if found is None:
        return [url]
    if found["scheme"].lower() == "telegram":
        return []
    user, _, password = (found["user"] or "").partition(":")
    parts = [user, *(part for part in re.split(r"[/?&#]", found["rest"]) if not part.startswith(_HOST_FIELDS))]
    if found["scheme"].lower() not in _OF_HOSTS:
        parts.append(found["host"])
    parts += [part.partition("=")[2] for part in parts]
    kept = [url, *(part for part in parts if len(part) >= _SHORTEST), password]
    return [secret for written in kept if written for secret in {written, unquote(written)}]
