"""Apps with a Telegram bot, for tests: who is in the chats, and how the bot is set up."""

from __future__ import annotations

from collections.abc import Callable

from ostinato import Ostinato
from ostinato.models.access import Role

__all__ = ["ADMIN", "CHATS", "GROUP", "OPERATOR", "VIEWER", "MakeBot"]

ADMIN, OPERATOR, VIEWER, GROUP = 42, 43, 44, -1001
CHATS = {ADMIN: Role.ADMIN, OPERATOR: Role.OPERATOR, VIEWER: Role.VIEWER, GROUP: Role.VIEWER}

MakeBot = Callable[..., Ostinato]
