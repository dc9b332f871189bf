"""Channels of apprise: over a hundred services, each by its URL. Called by channels.py.

Apprise blocks and connects by itself, so each message has a thread of its own, and every host that it would connect to
is looked up and judged before. It never raises: what went wrong is in its log, which is read for the reason. On that
thread nothing is logged besides: apprise, and what sends for it, log URLs, and those are secrets.
"""

from __future__ import annotations

import gc
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from ostinato.execution.executors.http.addresses import AllowedHosts
from ostinato.execution.threads import on_own_thread
from ostinato.models.channel_url import mask_url, scheme_of
from ostinato.notifications.apprise_addresses import hosts_of, refusal_of
from ostinato.notifications.base import SendError, Unusable
from ostinato.notifications.text import Message

if TYPE_CHECKING:
    from apprise import AppriseAsset

__all__ = ["AppriseChannel"]

CONNECT_SECONDS, READ_SECONDS = 10.0, 20.0
"""What a server has to take a connection, and to answer: together what a message may take before it is late."""
DELIVERY_HEADER = "Ostinato-Delivery"

_TALKATIVE = ("apprise", "urllib3.connectionpool", "urllib3.util.retry")
"""The loggers that URLs are logged by."""
_heard: ContextVar[list[str] | None] = ContextVar("heard", default=None)
"""What was logged while a message was sent, where one is."""


class AppriseChannel:
    """Sends by apprise."""

    def __init__(self, allowed: AllowedHosts) -> None:
        self._allowed = allowed

    async def send(self, url: str, message: Message) -> None:
        failure = await on_own_thread(partial(self._attempt, url, message), "ostinato-notify")
        if failure is not None:
            raise failure

    async def check(self, url: str) -> None:
        failure = await on_own_thread(partial(self._attempt, url, None), "ostinato-notify")
        if failure is not None:
            raise failure

    def _attempt(self, url: str, message: Message | None) -> Exception | None:
        """What went wrong, if anything did. Without a message it only looks where the URL leads."""
        try:
            with _overhearing() as heard:
                plugin = _plugin(url)
                _judge(plugin, self._allowed)
                return None if message is None else _notify(plugin, message, heard)
        except Exception as error:  # a thread of its own must not raise
            return error


@contextmanager
def _overhearing() -> Iterator[list[str]]:
    """What apprise says meanwhile on this thread, and nobody else hears."""
    for name in _TALKATIVE:
        logging.getLogger(name).addFilter(_overhear)  # once: the same one is not added again
    heard: list[str] = []
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)


def _overhear(record: logging.LogRecord) -> bool:
    """Whether a record is for the log of the process: it is, unless a message is sent here."""
    heard = _heard.get()
    if heard is not None and record.levelno >= logging.WARNING:
        heard.append(" ".join(record.getMessage().split()))
    return heard is None


def _plugin(url: str) -> Any:
    """What apprise makes of a URL."""
    apprise = _apprise()
    plugin: Any = apprise.Apprise.instantiate(url, asset=_asset())
    if plugin is None:
        raise (SendError if _needs_more(scheme_of(url)) else Unusable)(
            f"apprise cannot use {mask_url(url)}: check the URL, and that what its service needs is installed"
        )
    if (refusal := refusal_of(plugin, scheme_of(url))) is not None:
        raise Unusable(f"a channel cannot have this URL: {refusal}")
    # Whatever the URL says: nobody judged where a redirect leads, or a server that names another one.
    plugin.redirects = plugin.discovery = False
    plugin.socket_connect_timeout, plugin.socket_read_timeout = CONNECT_SECONDS, READ_SECONDS
    return plugin


def _needs_more(scheme: str) -> bool:
    """Whether apprise knows it, and lacks a library on this machine."""
    from apprise.manager_plugins import NotificationManager

    known: Any = NotificationManager()  # type: ignore[no-untyped-call]
    return scheme in known and not known[scheme].enabled


def _apprise() -> Any:
    """Imported when it is needed: it is an extra, and takes its time."""
    try:
        import apprise
        from apprise.manager_plugins import NotificationManager
    except ModuleNotFoundError as error:
        raise SendError(f"channels need {error.name}: pip install 'ostinato[notify]'") from None
    plugins: Any = NotificationManager()  # type: ignore[no-untyped-call]
    if not plugins:
        plugins.load_modules()
        if gc.get_freeze_count():
            # This process has frozen what it had at its start (`up` and `worker` do): 25,000 objects that stay belong
            # to that, or each full collection looks at them again and makes runs late.
            gc.collect()
            gc.freeze()
    return apprise


def _asset() -> AppriseAsset:
    """Without a limit of its own, for which apprise would use threads that keep the process alive."""
    from apprise import AppriseAsset

    return AppriseAsset(
        app_id="Ostinato", app_desc="Ostinato", async_mode=False, http_redirects=False, service_timeout=0
    )


def _judge(plugin: Any, allowed: AllowedHosts) -> None:
    """Refuse what is not public, and not allowed. Apprise looks the name up again, so every address must do."""
    for host in hosts_of(plugin):
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, ValueError):
            continue  # it cannot be connected to either, and apprise says so
        for *_, address in found:
            if (refusal := allowed.refusal(host, str(address[0]))) is not None:
                raise SendError(f"{host} resolves to {refusal}")


def _notify(plugin: Any, message: Message, heard: list[str]) -> SendError | None:
    from apprise import Apprise, NotifyFormat

    headers = getattr(plugin, "headers", None)
    if isinstance(headers, dict):
        headers[DELIVERY_HEADER] = message.key
    sender = Apprise(asset=plugin.asset)
    sender.add(plugin)
    result = sender.notify(
        body=message.body or " ",
        title=message.title,
        notify_type=message.severity.value,
        body_format=NotifyFormat.TEXT,
    )
    # Each try for itself: a URL may say that its failures do not matter.
    if any(attempt for service in result for attempt in service.attempts):
        return None
    return SendError("; ".join(dict.fromkeys(heard)) or "apprise could not send it, and does not say why")
