"""The bot, for `ostinato doctor`: is it set up, does a node listen, and what keeps it from that?"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ostinato.cli.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ostinato.models.node import Node
    from ostinato.models.telegram import TelegramSettings

__all__ = ["examine_telegram"]


def examine_telegram(settings: TelegramSettings, alive: Sequence[Node]) -> Iterator[Finding]:
    """Nothing, where nobody wants a bot."""
    told = [(node, node.services["telegram"]) for node in alive if "telegram" in node.services]
    for node, how in told:
        if how.get("status"):
            text = f"on {node.id}: {how['status']}"
            if how.get("well"):
                yield Finding("telegram", "ok", text)
            else:
                yield Finding("telegram", "warn", text, "see docs/guides/telegram.md; it is tried again by itself")
    if settings.token is None:
        return
    if not settings.chats:
        fix = 'write [telegram.chats] and "42" = "admin" into ostinato.toml'
        yield Finding("telegram", "warn", "there is a token, but no chat may speak with the bot", fix)
    if find_spec("aiogram") is None:
        yield Finding("telegram", "warn", "the bot needs aiogram", "pip install 'ostinato[telegram]'")
    if alive and settings.chats and not told:
        yield Finding("telegram", "warn", "no node has a bot", "restart them with these settings")
