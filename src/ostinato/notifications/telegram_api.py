"""The Bot API of Telegram, by aiogram: one place that makes requests, hides the token and names what went wrong.

`telegram.py` sends deliveries with it, `integrations/telegram` listens and answers.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ostinato.errors import InvalidInput, OstinatoError
from ostinato.execution.secrets import resolve_all
from ostinato.logs import get_logger
from ostinato.models.telegram import Button, TelegramSettings

if TYPE_CHECKING:
    from aiogram import Bot
    from aiogram.types import InlineKeyboardMarkup, Update

__all__ = ["LONGEST", "TelegramClient", "TelegramError", "TelegramFault", "parts_of"]

log = get_logger("ostinato.telegram")

T = TypeVar("T")

LONGEST = 4096
"""Of a message, in the units that Telegram counts: a letter outside of the basic plane is two."""
_REQUEST_SECONDS = 30.0
_PATIENCE = 10.0
"""Telegram may ask to wait so many seconds in all; whoever is to wait longer decides that himself."""
_LISTENED_TO = ["message", "edited_message", "callback_query"]


class TelegramFault(StrEnum):
    """What is wrong, as far as somebody does something else about it."""

    TOKEN = "token"
    """There is none, or Telegram does not know it."""
    CONFLICT = "conflict"
    """Somebody else asks for the same updates."""
    FLOOD = "flood"
    """Too many requests: it says how long to wait."""
    REFUSED = "refused"
    """The request cannot be fulfilled, now or later: the chat is gone, or has blocked the bot."""
    NETWORK = "network"
    """It did not get there, or nobody knows."""


class TelegramError(OstinatoError):
    """A request that failed."""

    def __init__(self, message: str, fault: TelegramFault, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.fault = fault
        self.retry_after = retry_after


class TelegramClient:
    """Requests to the Bot API on the running loop. The token is read with the first, and again once it is refused."""

    def __init__(self, settings: TelegramSettings) -> None:
        self._settings = settings
        self._bot: Bot | None = None
        self._opening = asyncio.Lock()

    async def close(self) -> None:
        """Give the connections back; the next request opens new ones."""
        bot, self._bot = self._bot, None
        if bot is not None:
            await bot.session.close()

    async def name(self) -> str:
        """What the bot is called."""
        me = await self._ask(lambda bot: bot.get_me())
        return me.username or str(me.id)

    async def take_updates(self) -> None:
        """Have updates wait here: a webhook that was set once would get them instead."""
        await self._ask(lambda bot: bot.delete_webhook(drop_pending_updates=False))

    async def updates(self, offset: int | None, seconds: float) -> list[Update]:
        """What has come since; waits so long for something."""

        async def ask(bot: Bot) -> list[Update]:
            from aiogram.exceptions import ClientDecodeError

            try:
                return await bot.get_updates(
                    offset=offset,
                    timeout=round(seconds),
                    allowed_updates=_LISTENED_TO,
                    request_timeout=round(seconds + _REQUEST_SECONDS),
                )
            except ClientDecodeError as error:
                return _readable(error.data, bot)

        return await self._ask(ask)

    async def send(
        self, chat: int, text: str, buttons: Sequence[Sequence[Button]] = (), *, patience: float = _PATIENCE
    ) -> None:
        """Send a text of at most `LONGEST`, as it is: nothing in it is markup. Waits if Telegram asks for it."""

        async def ask(bot: Bot) -> None:
            from aiogram.types import LinkPreviewOptions  # here: with a bot it is loaded, off the loop

            preview = LinkPreviewOptions(is_disabled=True)
            await bot.send_message(chat, text, reply_markup=_keyboard(buttons), link_preview_options=preview)

        await self._patiently(ask, patience)

    async def answer_button(self, id: str, text: str | None = None) -> None:
        """Say that a button was heard, with a word that is shown for a moment."""
        await self._ask(lambda bot: bot.answer_callback_query(id, text=text))

    async def replace(self, chat: int, message: int, text: str) -> None:
        """Put another text in the place of a message, without buttons."""
        await self._patiently(lambda bot: bot.edit_message_text(text, chat_id=chat, message_id=message))

    async def type(self, chat: int) -> None:
        """Show for some seconds that an answer is being written."""
        await self._ask(lambda bot: bot.send_chat_action(chat, "typing"))

    async def _patiently(self, request: Callable[[Bot], Awaitable[T]], patience: float = _PATIENCE) -> T:
        waited = 0.0
        while True:
            try:
                return await self._ask(request)
            except TelegramError as error:
                if error.fault is not TelegramFault.FLOOD or error.retry_after is None:
                    raise
                waited += error.retry_after
                if waited > patience:
                    raise
                await asyncio.sleep(error.retry_after)

    async def _ask(self, request: Callable[[Bot], Awaitable[T]]) -> T:
        bot = await self._opened()
        try:
            return await request(bot)
        except Exception as error:
            found = _told(error, bot.token)
            if found is None:
                raise
            if found.fault is TelegramFault.TOKEN and self._bot is bot:
                await self.close()
            raise found from None  # its cause may hold the token

    async def _opened(self) -> Bot:
        async with self._opening:
            if self._bot is None:
                self._bot = await self._open()
            return self._bot

    async def _open(self) -> Bot:
        token = await asyncio.to_thread(_read_token, self._settings)
        await asyncio.to_thread(_load_aiogram)
        from aiogram import Bot
        from aiogram.client.session.aiohttp import AiohttpSession
        from aiogram.client.telegram import TelegramAPIServer
        from aiogram.utils.token import TokenValidationError

        session = AiohttpSession(api=TelegramAPIServer.from_base(self._settings.api), timeout=_REQUEST_SECONDS)
        try:
            return Bot(token, session=session)
        except TokenValidationError:
            raise TelegramError("telegram.token is not the token of a bot", TelegramFault.TOKEN) from None


def _read_token(settings: TelegramSettings) -> str:
    if settings.token is None:
        missing = "this node has no Telegram bot: set telegram.token in ostinato.toml"
        raise TelegramError(missing, TelegramFault.TOKEN)
    try:
        resolved, _ = resolve_all({"telegram.token": settings.token}, os.environ, Path.cwd())
    except InvalidInput as error:
        raise TelegramError(str(error), TelegramFault.TOKEN) from None
    return resolved["telegram.token"].strip()


def _load_aiogram() -> None:
    """In a thread: it takes a second or two."""
    try:
        importlib.import_module("aiogram")
    except ModuleNotFoundError as error:
        missing = f"Telegram needs {error.name}: pip install 'ostinato[telegram]'"
        raise TelegramError(missing, TelegramFault.TOKEN) from None


def _told(error: Exception, token: str) -> TelegramError | None:
    """What an error of aiogram means; None if it is none of its."""
    from aiogram import exceptions as said

    if not isinstance(error, (said.AiogramError, OSError, TimeoutError)):
        return None
    text = " ".join((error.message if isinstance(error, said.DetailedAiogramError) else str(error)).split())
    text = text.replace(token, "***")[:300] or type(error).__name__
    match error:
        case said.TelegramRetryAfter():
            return TelegramError(f"Telegram asks to wait {error.retry_after} s", TelegramFault.FLOOD, error.retry_after)
        case said.TelegramUnauthorizedError() | said.TelegramNotFound():
            return TelegramError(f"Telegram does not know the bot's token ({text})", TelegramFault.TOKEN)
        case said.TelegramConflictError():
            return TelegramError(f"another program asks for the bot's updates ({text})", TelegramFault.CONFLICT)
        case said.TelegramMigrateToChat():
            moved = f"the group has become chat {error.migrate_to_chat_id}: put that on the allow-list"
            return TelegramError(moved, TelegramFault.REFUSED)
        case said.TelegramBadRequest() | said.TelegramForbiddenError():
            return TelegramError(f"Telegram refuses it: {text}", TelegramFault.REFUSED)
        case _:
            return TelegramError(f"Telegram cannot be reached: {text}", TelegramFault.NETWORK)


def _readable(data: Any, bot: Bot) -> list[Update]:
    """The updates of an answer of which one cannot be read: it must not keep back the others for ever."""
    from aiogram.types import Update
    from pydantic import ValidationError

    found = data.get("result") if isinstance(data, dict) else None
    if not isinstance(found, list) or not found:
        raise TelegramError("Telegram answers what cannot be read", TelegramFault.NETWORK)
    updates = []
    for one in found:
        try:
            updates.append(Update.model_validate(one, context={"bot": bot}))
        except ValidationError:
            number = one.get("update_id") if isinstance(one, dict) else None
            log.error("update %s cannot be read, and is left out", number)
            if isinstance(number, int):
                updates.append(Update(update_id=number))
    return updates


def _keyboard(rows: Sequence[Sequence[Button]]) -> InlineKeyboardMarkup | None:
    from aiogram.types import InlineKeyboardButton, InlineKeyboardMarkup

    if not rows:
        return None
    return InlineKeyboardMarkup(
        inline_keyboard=[[InlineKeyboardButton(text=one.text, callback_data=one.data) for one in row] for row in rows]
    )


def parts_of(text: str, most: int = LONGEST) -> list[str]:
    """The text in messages that are not too long, cut at the ends of lines, of words, or where it must be."""
    parts: list[str] = []
    rest = text.strip()
    while rest:
        end = _fitting(rest, most)
        if end < len(rest):
            place = max(rest.rfind("\n", 1, end + 1), 0) or max(rest.rfind(" ", 1, end + 1), 0)
            # A cut at the very beginning would leave a part with a word or two.
            end = place if place > end // 4 else end
        part, rest = rest[:end].rstrip(), rest[end:].lstrip("\n " if end < len(rest) else "")
        if part:
            parts.append(part)
    return parts


def _fitting(text: str, most: int) -> int:
    """How many letters of it are no more than so many units."""
    units = 0
    for at, letter in enumerate(text[: most + 1]):
        units += 2 if ord(letter) > 0xFFFF else 1
        if units > most:
            return at
    return min(len(text), most + 1)
