"""`[telegram]` in the settings: the bot's token, the chats that may speak with it, and who answers their texts.

config.py reads it; `notifications/telegram.py` sends with it, `integrations/telegram` listens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ostinato.errors import InvalidInput
from ostinato.models.access import Role
from ostinato.models.policy_values import check_key
from ostinato.models.work_values import Agent

__all__ = [
    "NO_TELEGRAM",
    "TOKEN_VARIABLE",
    "Button",
    "TelegramSettings",
    "channel_of",
    "read_telegram_settings",
    "telegram_from_environment",
]

PREFIX = "OSTINATO_TELEGRAM_"
TOKEN_VARIABLE = f"{PREFIX}TOKEN"
"""The variable with the token itself. Shell and agent work does not see it."""
_OFFICIAL = "https://api.telegram.org"
_REFERENCE = re.compile(r"env:[A-Za-z_]\w*|file:.+")
_URL = re.compile(r"https?://[^\s{}?#@]+")
_CHAT = re.compile(r"-?[1-9]\d{0,18}")
_CHATS_HINT = 'write [telegram.chats] and "42" = "admin"; a role is viewer, operator or admin'


@dataclass(frozen=True, slots=True)
class TelegramSettings:
    """How the bot is reached, and who may speak with it."""

    token: str | None = None
    """A reference, `env:NAME` or `file:PATH`: the token itself is in no setting."""
    chats: Mapping[int, Role] = field(default_factory=dict)
    """The chats that may speak with it, and users that have a role of their own in a group. Nobody else is answered."""
    api: str = _OFFICIAL
    """Where the Bot API is, for a server of one's own."""
    agent: Agent | None = None
    """The agent that texts go to which are no commands."""
    task: str | None = None
    """The task that they go to instead."""
    agent_role: Role = Role.ADMIN
    """Who may write to that agent. It does what it is told: a text is as much as a command."""


NO_TELEGRAM = TelegramSettings()


@dataclass(frozen=True, slots=True)
class Button:
    """A button under a message: what it says, and what the bot gets when somebody presses it (64 bytes at most)."""

    text: str
    data: str


def channel_of(chat: int) -> str:
    """The channel that every chat of the allow-list is."""
    return f"telegram:{chat}"


def read_telegram_settings(value: Any) -> TelegramSettings:
    """`[telegram]` as it is written."""
    if isinstance(value, TelegramSettings):
        return value
    if not isinstance(value, Mapping):
        raise InvalidInput(f"telegram cannot be {value!r}", field="telegram", hint="write [telegram] and its settings")
    known = [one.name for one in fields(TelegramSettings)]
    for name in value:
        if name not in known:
            raise InvalidInput(f"telegram.{name} is unknown", field="telegram", hint=f"known: {', '.join(known)}")
    settings = TelegramSettings(**{name: _read(name, given) for name, given in value.items() if given is not None})
    if settings.agent is not None and settings.task is not None:
        raise InvalidInput("telegram has both an agent and a task", field="telegram.task", hint="texts go to one")
    return settings


def telegram_from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """What variables say of it. The token stays where it is: the setting only says where."""
    found: dict[str, Any] = {
        name: environment[f"{PREFIX}{name.upper()}"]
        for name in ("api", "agent", "task", "agent_role", "chats")
        if environment.get(f"{PREFIX}{name.upper()}")
    }
    if token := environment.get(TOKEN_VARIABLE):
        found["token"] = token if _REFERENCE.fullmatch(token) else f"env:{TOKEN_VARIABLE}"
    return found


def _read(name: str, value: Any) -> Any:
    match name:
        case "token":
            return _token(value)
        case "chats":
            return _chats(value)
        case "api":
            if not isinstance(value, str) or not _URL.fullmatch(value):
                raise InvalidInput(f"telegram.api cannot be {value!r}", field="telegram.api", hint=f"as {_OFFICIAL}")
            return value.rstrip("/")
        case "agent":
            return _agent(value)
        case "task":
            return check_key(value, "telegram.task", "give the name of a task")
        case _:
            return _role(value, f"telegram.{name}", "it is viewer, operator or admin")


def _token(value: Any) -> str:
    if not isinstance(value, str) or not _REFERENCE.fullmatch(value):
        # What was given may be the token: it is not repeated.
        hint = f"write env:NAME or file:PATH, or set {TOKEN_VARIABLE}"
        raise InvalidInput("telegram.token is no reference", field="telegram.token", hint=hint)
    return value


def _chats(value: Any) -> dict[int, Role]:
    """A table; in a variable `42=admin,-1001=viewer`."""
    if isinstance(value, str):
        value = dict(part.strip().partition("=")[::2] for part in value.split(",") if part.strip())
    if not isinstance(value, Mapping):
        raise InvalidInput(f"telegram.chats cannot be {value!r}", field="telegram.chats", hint=_CHATS_HINT)
    for chat in value:
        if not _CHAT.fullmatch(str(chat)):
            hint = "a chat is a number: 42, or -1001234 for a group"
            raise InvalidInput(f"telegram.chats cannot hold {chat!r}", field="telegram.chats", hint=hint)
    return {int(chat): _role(role, f"telegram.chats.{chat}", _CHATS_HINT) for chat, role in value.items()}


def _role(value: Any, field: str, hint: str) -> Role:
    if value not in list(Role):
        raise InvalidInput(f"{field} cannot be {value!r}", field=field, hint=hint)
    return Role(value)


def _agent(value: Any) -> Agent:
    """Its name, or a table with its options."""
    if isinstance(value, Agent):
        return value
    given = {"cli": value} if isinstance(value, str) else value
    options = [one.name for one in fields(Agent) if one.name != "prompt"]
    if not isinstance(given, Mapping) or given.keys() - set(options):
        hint = f'write agent = "claude", or [telegram.agent] with {", ".join(options)}'
        raise InvalidInput(f"telegram.agent cannot be {value!r}", field="telegram.agent", hint=hint)
    return Agent(**given)
