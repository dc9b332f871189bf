"""Who may speak with the bot, and as what; who may not gets no answer, and an entry in the audit log.

Neighbours: handler.py asks for everything that comes, whatever it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from ostinato.clock import SECOND, Clock, Micros
from ostinato.integrations.telegram.incoming import Caller, Incoming
from ostinato.models.access import Actor, Role
from ostinato.service.audit import AuditService

__all__ = ["AllowList"]

HOUR: Micros = 3_600 * SECOND
MOST_AN_HOUR = 60
"""So many are told apart. Everybody can find a bot: nobody fills the log by knocking."""
_OTHERS = 0
"""Stands for all the others; no user has this number."""


class AllowList:
    """The chats and users of the settings."""

    def __init__(self, chats: Mapping[int, Role], audit: AuditService, clock: Clock) -> None:
        self._chats = chats
        self._audit = audit
        self._clock = clock
        self._noted: dict[tuple[int, int], Micros] = {}
        """Who was turned away in the last hour, by user and status."""

    def caller_of(self, incoming: Incoming) -> Caller | None:
        """Who it is; None for a stranger.

        The chat must be on the list: what is said there is read by all who are in it. A user who is on the list has
        that role, in a group as well; the others have the role of the chat.
        """
        chat = self._chats.get(incoming.chat)
        if chat is None or (incoming.is_private and incoming.user != incoming.chat):
            return None
        role = self._chats.get(incoming.user, chat)
        return Caller(incoming.chat, incoming.user, role, incoming.is_private)

    async def note_stranger(self, incoming: Incoming) -> None:
        """Somebody who is not on the list, once in an hour each."""
        name = f" of {incoming.user_name[:64]}" if incoming.user_name else ""
        await self._note(incoming, 401, f"{incoming.kind}{name} in chat {incoming.chat}")

    async def note_denial(self, incoming: Incoming) -> None:
        """Somebody on the list wanted what needs a higher role."""
        await self._note(incoming, 403, incoming.text[:64])

    async def _note(self, incoming: Incoming, status: int, asked: str) -> None:
        now = self._clock.steady()
        self._noted = {one: at for one, at in self._noted.items() if now - at < HOUR}
        user = incoming.user
        if (user, status) not in self._noted and len(self._noted) >= MOST_AN_HOUR:
            user, asked = _OTHERS, "messages of many"
        if (user, status) in self._noted:
            return
        self._noted[user, status] = now
        actor = Actor(f"telegram:{user}" if user else "unknown", "telegram", f"chat {incoming.chat}")
        await self._audit.note_denial(actor, status, {asked: 1})
