"""The URL of a channel is a secret: what can be one, what may be shown of it, and what is hidden where it was used.

`env:NAME` and `file:PATH` stand for a URL that is read when a message is sent, and are no secrets.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

from ostinato.errors import InvalidInput

__all__ = ["HIDDEN", "check_url", "is_reference", "mask_url", "scheme_of", "secrets_in"]

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
_TOKEN_ALONE = frozenset({"matrix", "matrixs"})
"""Schemes of these behind which a token stands, too, where neither a password nor a room is named."""
_HOST_FIELDS = ("smtp=", "xmpp=")
"""Where mail and chat are handed in."""
_SHORTEST = 6
"""A shorter part of a path or a query is an ordinary word."""
_LONGEST = 4_096
_GIVEN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\x00-\x1f]+")
_CHAT = re.compile(r"telegram://-?\d{1,20}/?")


def check_url(url: Any) -> str:
    """The URL of a channel; InvalidInput, which does not repeat it, if it cannot be one."""
    hint = "give one such as json://example.org/path or tgram://TOKEN/CHAT, or a reference: env:NAME, file:PATH"
    given = url.strip() if isinstance(url, str) else ""
    if not given:
        raise InvalidInput("a channel needs a URL", field="url", hint=hint)
    if HIDDEN in given:
        raise InvalidInput(
            f"the URL has {HIDDEN}, which stands for what was not shown",
            field="url",
            hint="give the whole URL again, or leave it out to keep it as it is",
        )
    if given.startswith("telegram:") and not _CHAT.fullmatch(given):
        raise InvalidInput(
            "a chat is a number", field="url", hint="write telegram://42, or telegram://-1001234 for a group"
        )
    if len(given) > _LONGEST or not (is_reference(given) or _GIVEN.fullmatch(given)):
        raise InvalidInput("the URL cannot be read", field="url", hint=hint)
    return given


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
    host = found["host"]
    if not (host and _names_host(found)):
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
    if not _names_host(found):
        parts.append(found["host"])
    parts += [part.partition("=")[2] for part in parts]
    kept = [url, *(part for part in parts if len(part) >= _SHORTEST), password]
    return [secret for written in kept if written for secret in {written, unquote(written)}]


def _names_host(found: re.Match[str]) -> bool:
    """Whether what stands in the place of a host is one."""
    scheme = found["scheme"].lower()
    if scheme not in _TOKEN_ALONE:
        return scheme in _OF_HOSTS
    path, _, query = found["rest"].partition("?")
    with_token = re.search(r"(?:^|&)mode=t2bot(?:&|$)", query, re.IGNORECASE)
    return bool(found["user"] and (":" in found["user"] or path.strip("/"))) and not with_token
