"""What a way to people must do: send a message to a URL, or say why it could not."""

from __future__ import annotations

from typing import Protocol

from ostinato.errors import OstinatoError
from ostinato.notifications.text import Message

__all__ = ["ChannelSender", "SendError", "Suppressed", "Unusable"]


class SendError(OstinatoError):
    """A message was not sent, or nobody knows whether it was; it is tried again."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """After how many seconds its server wants to be asked again, if it says so."""


class Unusable(SendError):
    """No machine could send anything to such a URL."""


class Suppressed(SendError):
    """It must not be sent there, now or later: it is dropped."""


class ChannelSender(Protocol):
    """Sends to the URLs of some schemes."""

    async def send(self, url: str, message: Message) -> None:
        """Return when it was sent; SendError if it was not. It may be cancelled if it takes too long."""
        ...

    async def check(self, url: str) -> None:
        """SendError if it can be told without sending anything that nothing could be sent."""
        ...
