"""Everything that apprise ships: what is this machine itself is refused, and each parameter that may name an address is
judged, refused, or known to be only told to its service. A new one fails here until somebody has looked at it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import apprise.decorators
import apprise.manager_plugins
import pytest
from apprise import AppriseAsset, NotifyBase, URLBase

from ostinato.execution.executors.http.addresses import AllowedHosts
from ostinato.models.channel_url import _OF_HOSTS, mask_url
from ostinato.notifications.apprise_addresses import FETCHED, LOCAL, hosts_of, refusal_of
from ostinato.notifications.apprise_channel import AppriseChannel, _plugin
from ostinato.notifications.base import SendError

ADDRESS = re.compile(
    r"url|uri|href|host|server|relay|hook|proxy|smtp|xmpp|gateway|endpoint|link|path|file|attach|avatar|icon|image|media"
    r"|blossom|domain|wkd|pgp|template|discovery|origin|callback|click|region|organi[sz]ation|instance|tenant|workspace"
)
"""What a parameter is called that may name an address or a file."""
TOLD = {
    "NotifyAMQP": {"vhost"},
    "NotifyBark": {"click", "icon", "image"},
    "NotifyCliq": {"image", "region"},
    "NotifyDeltaChat": {"pgp"},
    "NotifyDiscord": {"avatar", "avatar_url", "href", "image", "url", "webhook_id", "webhook_token"},
    "NotifyDot": {"icon", "image", "link"},
    "NotifyEmail": {"pgp"},
    "NotifyEnigma2": {"fullpath"},
    "NotifyEvolution": {"instance"},
    "NotifyExotel": {"region"},
    "NotifyFCM": {"image", "image_url"},
    "NotifyFireHydrant": {"click", "image"},
    "NotifyFlock": {"image"},
    "NotifyFlowtriq": {"path"},
    "NotifyFluxer": {"avatar", "avatar_url", "href", "image", "path", "url", "webhook_id", "webhook_token"},
    "NotifyForm": {"attach-as"},
    "NotifyGoAlert": {"path"},
    "NotifyGoogleChat": {"webhook_key", "webhook_token", "workspace"},
    "NotifyGotify": {"path"},
    "NotifyGrowl": {"image"},
    "NotifyGuilded": {"avatar", "avatar_url", "href", "image", "url", "webhook_id", "webhook_token"},
    "NotifyGupshup": {"template"},
    "NotifyIFTTT": {"webhook_id"},
    "NotifyILert": {"click", "image"},
    "NotifyIncidentIO": {"click"},
    "NotifyJira": {"region"},
    "NotifyJoin": {"image"},
    "NotifyKakaoTalk": {"link"},
    "NotifyKaleyra": {"region", "template"},
    "NotifyKumulos": {"serverkey"},
    "NotifyLametric": {"icon", "icon_type"},
    "NotifyLauther": {"click", "icon"},
    "NotifyLine": {"image"},
    "NotifyMSG91": {"short_url", "template"},
    "NotifyMailgun": {"region"},
    "NotifyMatrix": {"image", "path"},
    "NotifyMattermost": {"fullpath", "icon_url", "image"},
    "NotifyNextcloud": {"url_prefix"},
    "NotifyNextcloudTalk": {"url_prefix"},
    "NotifyNotica": {"path"},
    "NotifyNotifiarr": {"image"},
    "NotifyNotifico": {"msghook"},
    "NotifyNotifyre": {"template"},
    "NotifyNtfy": {"attach", "avatar_url", "click", "filename", "image"},
    "NotifyOffice365": {"tenant"},
    "NotifyOneSignal": {"image", "template"},
    "NotifyOpsgenie": {"region"},
    "NotifyPagerDuty": {"click", "image", "region"},
    "NotifyPinglet": {"path"},
    "NotifyPingram": {"region"},
    "NotifyPushover": {"url", "url_title"},
    "NotifyRevolt": {"icon_url", "url"},
    "NotifyRocketChat": {"avatar", "webhook"},
    "NotifyRyver": {"image", "organization"},
    "NotifySES": {"region"},
    "NotifySFR": {"media"},
    "NotifySMSManager": {"gateway"},
    "NotifySNS": {"region"},
    "NotifySendGrid": {"template"},
    "NotifySendPulse": {"template"},
    "NotifySimplePush": {"links"},
    "NotifySinch": {"region"},
    "NotifySlack": {"image", "workflow_path"},
    "NotifySparkPost": {"region"},
    "NotifySquadcast": {"region"},
    "NotifyStreamlabs": {"image_href", "sound_href"},
    "NotifySynology": {"file_url"},
    "NotifyTelegram": {"image"},
    "NotifyTelnyx": {"profile"},
    "NotifyThreema": {"gateway_id"},
    "NotifyTrigv": {"image_url", "url"},
    "NotifyViber": {"avatar"},
    "NotifyWPush": {"url"},
    "NotifyWhatsApp": {"template"},
    "NotifyWorkflows": {"image"},
    "NotifyXBMC": {"image"},
    "NotifyYouLMK": {"image", "url", "url_label"},
    "NotifyZoom": {"webhook_id"},
}
"""What a service is told, and does not connect to: a part of its path, a name out of a list, a link in the message."""
CONNECTED = {
    "NotifyDeltaChat": {"smtp"},
    "NotifyEmail": {"smtp"},
    "NotifyNostr": {"blossom", "relay"},
    "NotifyXMPP": {"xmpp"},
    "NotifyZulip": {"organization"},
}
"""Hosts, which are judged: see below."""
SWITCHED_OFF = {"NotifyMatrix": {"discovery"}}
"""What `_plugin` sets, whatever the URL says."""
MANAGER: Any = apprise.manager_plugins.NotificationManager()  # type: ignore[no-untyped-call]
SHARED = {*URLBase.template_args, *NotifyBase.template_args, "host"}
KINDS = "NotifySyslog", "NotifyDBus", "NotifyGLib", "NotifyGnome", "NotifyWindows", "NotifyMacOSX", "NotifyBlink1"


def plugins() -> dict[str, Any]:
    """All that apprise ships, also what this machine has no libraries for."""
    MANAGER.load_modules()
    return {plugin.__name__: plugin for plugin in MANAGER.plugins(include_disabled=True)}


@pytest.fixture
def channel(monkeypatch: pytest.MonkeyPatch) -> AppriseChannel:
    """One that may call nothing but public addresses; a name leads to itself."""
    monkeypatch.setattr("socket.getaddrinfo", lambda host, *_, **__: [(0, 0, 0, "", (NAMES.get(host, host), 0))])
    return AppriseChannel(AllowedHosts((), "notify_allow"))


NAMES = {"example.org": "93.184.215.14", "inside.example": "10.0.0.7", "10.zulip.example": "10.0.0.7"}


def test_every_parameter_that_may_name_an_address_is_known() -> None:
    found = {
        name: {one for one in (*plugin.template_args, *plugin.template_tokens) if ADDRESS.search(one)} - SHARED
        for name, plugin in plugins().items()
        if name not in LOCAL
    }
    tables: list[Mapping[str, Iterable[str]]] = [TOLD, CONNECTED, FETCHED, SWITCHED_OFF]
    known = {name: {one for table in tables for one in table.get(name, ())} for name in found}
    assert {name: found[name] ^ known[name] for name in found if found[name] != known[name]} == {}
    assert {name for table in tables for name in table} <= set(found)


def test_what_is_this_machine_itself_is_known() -> None:
    """What sends without a request over the network imports something else than those that do."""
    own = re.compile(r"^\s*(?:import|from) (?:subprocess|syslog|dbus|gi|win32\w*|blink1|hid|usb)\b", re.MULTILINE)
    here = {name for name, plugin in plugins().items() if own.search(Path(_file(plugin)).read_text())}
    assert {"NotifyMacOSX", "NotifySyslog"} <= here <= set(LOCAL)
    assert set(KINDS) <= set(LOCAL) <= set(plugins())


def test_which_services_have_a_cloud_of_their_own_is_known() -> None:
    """There the host of the URL is not connected to."""
    modes = {name: plugin.template_args.get("mode", {}) for name, plugin in plugins().items()}
    assert {name for name, mode in modes.items() if "cloud" in mode.get("values", ())} == {
        "NotifyFluxer",
        "NotifyLametric",
        "NotifyNtfy",
    }


def _file(plugin: Any) -> str:
    return str(sys.modules[plugin.__module__].__file__)


@pytest.mark.parametrize(
    "url",
    [
        "json://inside.example/",
        "mailto://ada:secret@example.org?smtp=inside.example",
        "deltachat://ada:secret@example.org?smtp=inside.example&to=b@example.org",
        f"nostr://{'a' * 64}/?relay=wss://inside.example",
        f"nostr://{'a' * 64}/?relay=wss://example.org&blossom=http://inside.example/up",
        f"nostr://{'a' * 64}/ada@inside.example?relay=wss://example.org",
        f"zulip://bot@10.zulip.example/{'a' * 32}/here",
    ],
)
async def test_every_address_of_a_url_is_judged(channel: AppriseChannel, url: str) -> None:
    with pytest.raises(SendError, match=r"resolves to 10\.0\.0\.7, which is a private address"):
        await channel.check(url)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("syslog://", "syslog:// is this machine itself"),
        ("bluesky://ada@app-password", "bluesky:// sends to whatever server the directory of its accounts names"),
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/?template=/etc/passwd", "template= sends a file"),
        ("tgram://123456789:abcdefg_hijklmnop/42?template=/etc/passwd", "template= sends a file"),
        ("discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js?template=http://inside.example/", "template= sends a file"),
        ("mailto://ada:secret@example.org?pgp=encrypt&pgppub=http://inside.example/key", "pgppub= is an address"),
        ("mailto://ada:secret@example.org?pgp=sign&pgpprv=http://inside.example/key", "pgpprv= is an address"),
        ("mailto://ada:secret@example.org?wkd=yes", "wkd= looks up keys"),
    ],
)
async def test_what_cannot_be_judged_is_refused(channel: AppriseChannel, url: str, says: str) -> None:
    with pytest.raises(SendError, match=re.escape(says)):
        await channel.check(url)


def stand_in(name: str, url: str = "", **attributes: Any) -> Any:
    """A plugin whose libraries are not here."""
    members = {"__module__": "apprise.plugins.stand_in", "url": lambda _: url}
    return type(name, (), {**members, **attributes})()


def test_a_key_is_read_from_a_file_and_from_nowhere_else() -> None:
    for path in ("/run/key.json", "file%3A%2F%2F%2Frun%2Fkey.json", "file%253A%252F%252F%252Frun%252Fkey.json"):
        assert refusal_of(stand_in("NotifyFCM", f"fcm://project/device?keyfile={path}"), "fcm") is None
    for address in ("http%3A%2F%2Finside.example%2Fkey", "http%253A%252F%252Finside.example%252Fkey"):
        plugin = stand_in("NotifyFCM", f"fcm://project/device?keyfile={address}")
        assert refusal_of(plugin, "fcm") == "keyfile= is an address: give the path of a file"


def test_what_needs_libraries_that_are_not_here_is_judged_too() -> None:
    assert refusal_of(stand_in("NotifyVapid"), "vapid") == "vapid:// has its addresses in a file"
    assert refusal_of(stand_in("NotifyGnome"), "gnome") == "gnome:// is this machine itself"
    assert hosts_of(stand_in("NotifyXMPP", host="example.org", xmpp_host="inside.example")) == ["inside.example"]
    assert hosts_of(stand_in("NotifyXMPP", host="example.org", xmpp_host=None)) == ["example.org"]


async def test_a_server_of_matrix_does_not_lead_to_another_one() -> None:
    assert not _plugin("matrixs://ada:secret@example.org/%23room?discovery=yes").discovery


async def test_a_token_of_matrix_is_no_host() -> None:
    token = "a1" * 32
    for url in (f"matrix://{token}", f"matrixs://ada@{token}"):
        assert hosts_of(_plugin(url)) == []
        assert token not in mask_url(url)
    assert hosts_of(_plugin("matrixs://ada:secret@example.org/%23room")) == ["example.org"]


def test_no_other_scheme_that_names_a_host_may_have_a_token_there() -> None:
    tokens = {
        scheme
        for plugin in plugins().values()
        for scheme in (*_listed(plugin.protocol), *_listed(plugin.secure_protocol))
        if scheme in _OF_HOSTS and any("{host}" not in template for template in plugin.templates)
    }
    assert tokens == {"matrix", "matrixs"}


def _listed(given: str | Iterable[str] | None) -> Iterable[str]:
    return (given,) if isinstance(given, str) else given or ()


async def test_a_plugin_that_apprise_does_not_ship_is_refused(channel: AppriseChannel) -> None:
    decorators: Any = apprise.decorators
    decorators.notify(on="ours", name="ours")(lambda *_, **__: True)
    try:
        with pytest.raises(SendError, match="ours:// is not of apprise itself"):
            await channel.check("ours://")
    finally:
        MANAGER.remove("ours")


def test_no_code_of_others_is_loaded() -> None:
    assert AppriseAsset().plugin_paths == []
