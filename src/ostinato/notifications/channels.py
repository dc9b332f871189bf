"""Ways to people by the scheme of their URL: `telegram://` is our bot's, all others are apprise's.

A reference is read just before a message is sent, and what a failure says never has a part of the URL in it.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from ostinato.config import Settings
from ostinato.errors import InvalidInput
from ostinato.execution.executors.http.addresses import AllowedHosts
from ostinato.execution.secrets import Mask, resolve_all
from ostinato.execution.threads import on_own_thread
from ostinato.models.channel_url import is_reference, scheme_of, secrets_in
from ostinato.notifications.apprise_channel import AppriseChannel
from ostinato.notifications.base import ChannelSender, SendError
from ostinato.notifications.telegram import TelegramSender
from ostinato.notifications.text import Message

__all__ = ["Channels"]

_MOST_SAID = 300
"""How many characters of a failure are kept."""


class Channels:
    """Sends a message to any URL that a channel may have."""

    def __init__(self, settings: Settings) -> None:
        self._others = AppriseChannel(AllowedHosts(settings.notify_allow, "notify_allow"))
        self._by_scheme: Mapping[str, ChannelSender] = {"telegram": TelegramSender(settings.telegram)}

    async def send(self, url: str, message: Message) -> None:
        """Return when it was sent; SendError if it was not, or if nobody knows."""
        await self._ask(url, lambda sender, found: sender.send(found, message))

    async def check(self, url: str) -> None:
        """SendError if it can be told without sending anything that nothing could be sent."""
        await self._ask(url, lambda sender, found: sender.check(found))

    async def _ask(self, url: str, ask: Callable[[ChannelSender, str], Awaitable[None]]) -> None:
        found = await on_own_thread(lambda: _resolved(url), "ostinato-notify") if is_reference(url) else url
        if isinstance(found, InvalidInput):
            raise SendError(str(found))
        mask = Mask(secrets_in(found))
        try:
            await ask(self._by_scheme.get(scheme_of(found), self._others), found)
        except SendError as error:
            raise type(error)(mask.shortened(str(error), _MOST_SAID), error.retry_after) from None
        except Exception as error:  # of a library: it counts as a failed try, and must not hold up the others
            said = mask.shortened(f"{type(error).__name__}: {error}", _MOST_SAID)
            raise SendError(said) from None


def _resolved(url: str) -> str | InvalidInput:
    """What a reference stands for. It may read a file, which may be far away."""
    try:
        return resolve_all({"the channel's URL": url}, os.environ, Path.cwd())[0]["the channel's URL"]
    except InvalidInput as error:
        return error
    except OSError as error:  # this node has no room to open it
        return InvalidInput(f"{url} cannot be read: {error.strerror}", field="url")
