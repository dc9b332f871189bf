"""Where a URL of apprise leads: the hosts that it would connect to, and what nobody could judge and is refused.

Called by apprise_channel.py. `tests/engine/test_apprise_plugins.py` goes through all that apprise ships.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

__all__ = ["FETCHED", "LOCAL", "hosts_of", "refusal_of"]

_HERE = "is this machine itself"
LOCAL: Mapping[str, str] = {
    **dict.fromkeys(("NotifyBlink1", "NotifyDBus", "NotifyGLib", "NotifyGnome"), _HERE),
    **dict.fromkeys(("NotifyMacOSX", "NotifySyslog", "NotifyWindows"), _HERE),
    "NotifyBlueSky": "sends to whatever server the directory of its accounts names",
    "NotifyVapid": "has its addresses in a file",
}
"""What no channel can be, by the name of its class, and why: it runs a program here, writes a log, lights a lamp, or
connects to what nobody here could judge."""
_TEMPLATE = ("template",)
_KEYS = ("pgppub", "pgpprv", "wkd")
FETCHED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("NotifyDiscord", "NotifyGuilded", "NotifySlack", "NotifyTelegram", "NotifyWorkflows"), _TEMPLATE),
    **dict.fromkeys(("NotifyDeltaChat", "NotifyEmail"), _KEYS),
    "NotifyFCM": ("keyfile",),
}
"""Parameters by which apprise reads a file, or fetches something from an address."""

_OWN = ("cloud", "t2bot")
"""Modes in which a service has one host of its own, and what stands in the place of a host is a topic or a token."""


def refusal_of(plugin: Any, scheme: str) -> str | None:
    """Why nothing is sent there, whatever is allowed; None if nothing speaks against it."""
    kind = type(plugin)
    if not kind.__module__.startswith("apprise.plugins."):
        return f"{scheme}:// is not of apprise itself"
    if (why := LOCAL.get(kind.__name__)) is not None:
        return f"{scheme}:// {why}"
    given = dict(parse_qsl(urlsplit(plugin.url()).query))
    for name in FETCHED.get(kind.__name__, ()):
        if name in given and (why := _fetches(name, unquote(unquote(given[name])))) is not None:
            return f"{name}= {why}"
    return None


def _fetches(name: str, value: str) -> str | None:
    match name:
        case "template":
            return "sends a file of this machine, or what an address answers"
        case "wkd":
            return "looks up keys at the domains of those who are written to"
        case _:  # a key that is in a file stays here
            return "is an address: give the path of a file" if "://" in value.removeprefix("file://") else None


def hosts_of(plugin: Any) -> Iterable[str]:
    """What a person named for apprise to connect to; a service of its own has a host that apprise knows."""
    match type(plugin).__name__:
        case "NotifyDeltaChat" | "NotifyEmail":  # the host of an address is not connected to
            return [plugin.smtp_host or plugin.host]
        case "NotifyXMPP":
            return [plugin.xmpp_host or plugin.host]
        case "NotifyNostr":
            named = [host for url in (*plugin.relays, plugin.blossom or "") if (host := urlsplit(url).hostname)]
            return [*named, *(target.partition("@")[2] for target in plugin.targets if "@" in target)]
        case "NotifyZulip":
            return [urlsplit(f"https://{plugin.organization}.{plugin.hostname}").hostname or ""]
    is_service = "host" not in plugin.template_tokens or getattr(plugin, "mode", None) in _OWN
    return [] if is_service or not plugin.host else [plugin.host]
