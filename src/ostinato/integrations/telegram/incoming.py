"""What came from Telegram, as the rest of the bot knows it. Pure; the only file here that knows aiogram's types."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from ostinato.models.access import Actor, Role
from ostinato.models.telegram import channel_of

if TYPE_CHECKING:
    from aiogram.types import Message, Update, User

__all__ = ["Caller", "Incoming", "IncomingKind", "read_update"]


class IncomingKind(StrEnum):
    """What somebody did."""

    MESSAGE = "message"
    EDIT = "edit"
    """Of an earlier message, which was handled when it came."""
    BUTTON = "button"


@dataclass(frozen=True, slots=True)
class Incoming:
    """One thing that somebody did in a chat."""

    update: int
    kind: IncomingKind
    chat: int
    is_private: bool
    user: int
    """The chat itself, if nobody is named: an admin of a group who hides, or a channel."""
    user_name: str
    message: int
    text: str = ""
    """Of a message what it says, of a button what it stands for."""
    is_forward: bool = False
    """Somebody else wrote it: it is a text, and no command."""
    answers: str = ""
    """The name of whose message it is a reply to, if that has one."""
    button: str = ""
    """The id of the press, by which it is answered."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody on the allow-list, in a chat."""

    chat: int
    user: int
    role: Role
    is_private: bool

    @property
    def who(self) -> str:
        """By the number, which nobody chooses; a name in a chat is whatever its owner likes."""
        return f"telegram:{self.user}"

    @property
    def actor(self) -> Actor:
        return Actor(self.who, "telegram", f"chat {self.chat}")

    @property
    def session(self) -> str:
        """Where the texts of the chat go."""
        return f"dm:{self.chat}" if self.is_private else f"group:{self.chat}"

    @property
    def channel(self) -> str:
        """Where answers go."""
        return channel_of(self.chat)


def read_update(update: Update) -> Incoming | None:
    """What an update says; None if it is nothing that concerns us."""
    number = update.update_id
    if (message := update.message) is not None:
        return _of_message(number, message, IncomingKind.MESSAGE)
    if (message := update.edited_message) is not None:
        return _of_message(number, message, IncomingKind.EDIT)
    query = update.callback_query
    if query is None or query.message is None:
        return None
    # What the message says that the button is under is not known of an old one; its chat always is.
    chat = query.message.chat
    found = Incoming(
        number,
        IncomingKind.BUTTON,
        chat.id,
        chat.type == "private",
        query.from_user.id,
        _name_of(query.from_user),
        query.message.message_id,
    )
    return replace(found, text=query.data or "", button=query.id)


def _of_message(number: int, message: Message, kind: IncomingKind) -> Incoming:
    user = None if message.sender_chat is not None else message.from_user
    return Incoming(
        number,
        kind,
        message.chat.id,
        message.chat.type == "private",
        message.chat.id if user is None else user.id,
        "" if user is None else _name_of(user),
        message.message_id,
        message.text or message.caption or "",
        is_forward=message.forward_origin is not None,
        answers=_author_of(message.reply_to_message),
    )


def _author_of(message: Message | None) -> str:
    user = None if message is None else message.from_user
    return "" if user is None else user.username or ""


def _name_of(user: User) -> str:
    return f"@{user.username}" if user.username else user.full_name
