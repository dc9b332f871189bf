"""Sends messages to chats of our bot, `telegram://CHAT`: long ones in parts, failures with buttons under them.

channels.py calls it for its scheme; what a press of a button does is in `integrations/telegram/buttons.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ostinato.models.incident import FAILINGS
from ostinato.models.notification import NoticeKind
from ostinato.models.telegram import Button, TelegramSettings
from ostinato.notifications.base import SendError, Suppressed
from ostinato.notifications.telegram_api import TelegramClient, TelegramError, parts_of
from ostinato.notifications.text import Message

__all__ = ["TelegramSender", "buttons_of"]

_CHAT = re.compile(r"telegram://(-?\d{1,20})/?")
_LARGEST = 64
"""Bytes of what a button stands for."""
_REMEMBERED = 1_000


class TelegramSender:
    """Answers base.ChannelSender."""

    def __init__(self, settings: TelegramSettings) -> None:
        self._settings = settings
        self._sent: dict[tuple[int, str], int] = {}
        """How many parts of a message were sent whose rest was not: another try goes on from there."""

    async def send(self, url: str, message: Message) -> None:
        """Return when all of it was sent; SendError if not, or if nobody knows."""
        chat = self._chat_of(url)
        text = f"{message.title}\n{message.body}" if message.title else message.body
        parts, buttons = parts_of(text) or ["…"], buttons_of(message)
        begun = self._sent.pop((chat, message.key), 0)
        # A client for each message: there are few, and so nothing is left open on whichever loop it was.
        client = TelegramClient(self._settings)
        try:
            for number in range(begun, len(parts)):
                await client.send(chat, parts[number], buttons if number == len(parts) - 1 else ())
                begun = number + 1
        except TelegramError as error:
            raise SendError(str(error), error.retry_after) from None
        finally:
            if 0 < begun < len(parts):
                self._remember(chat, message.key, begun)
            await client.close()

    async def check(self, url: str) -> None:
        """SendError if the URL names no chat, or none on the list, or Telegram does not know the bot."""
        self._chat_of(url)
        client = TelegramClient(self._settings)
        try:
            await client.name()
        except TelegramError as error:
            raise SendError(str(error), error.retry_after) from None
        finally:
            await client.close()

    def _chat_of(self, url: str) -> int:
        """Of a node without a bot nobody made a list: it says that it has none, and others send."""
        chat = _chat_in(url)
        if self._settings.token is not None and chat not in self._settings.chats:
            raise Suppressed("its chat is not on the list of [telegram] chats")
        return chat

    def _remember(self, chat: int, key: str, sent: int) -> None:
        while len(self._sent) >= _REMEMBERED:
            self._sent.pop(next(iter(self._sent)))
        self._sent[chat, key] = sent


def buttons_of(message: Message) -> Sequence[Sequence[Button]]:
    """What a person may want to do about a failure: by its run, or by the name of its schedule."""
    if message.kind not in FAILINGS:
        return ()
    run, name = message.run, message.schedule
    # Of what was missed there is a row, and nothing that could be run again or has printed anything.
    of_run = None if run is None or message.kind in (NoticeKind.MISSED, NoticeKind.LATE) else str(run)
    of_schedule = None if name is None else (of_run or f"={name}")
    wanted = [
        ("Run again", "again", of_run or of_schedule),
        ("Why", "why", of_schedule),
        ("Pause", "off", None if message.kind is NoticeKind.BROKEN else of_schedule),
        ("Show output", "output", of_run),
    ]
    found = [Button(text, f"{verb}:{about}") for text, verb, about in wanted if about is not None]
    fitting = [button for button in found if len(button.data.encode()) <= _LARGEST]
    return [fitting[at : at + 2] for at in range(0, len(fitting), 2)]


def _chat_in(url: str) -> int:
    found = _CHAT.fullmatch(url)
    if found is None:
        raise SendError("the channel names no chat: write telegram://42")
    return int(found[1])
