"""Texts that are no commands: they go to the session of their chat, and the answer comes back as a delivery.

The chat shows that an answer is being written, as long as something of its session is under way.
"""

from __future__ import annotations

import asyncio

from ostinato.config import Settings
from ostinato.errors import NotFound, OstinatoError, QueueFull
from ostinato.integrations.telegram.incoming import Caller
from ostinato.integrations.telegram.views import Reply
from ostinato.logs import get_logger
from ostinato.models.access import Role
from ostinato.models.session import Session
from ostinato.notifications.telegram_api import TelegramClient, TelegramError
from ostinato.service.permissions import require_role
from ostinato.service.services import Services

__all__ = ["Conversation"]

log = get_logger("ostinato.telegram")

_IN_GROUPS = 3
"""How many runs of a group may be under way at once, unless the settings of sessions say otherwise."""
_LOOK_SECONDS = 0.5


class Conversation:
    """Sends texts to sessions, and shows that somebody works on them."""

    def __init__(self, services: Services, settings: Settings, client: TelegramClient) -> None:
        self._services = services
        self._settings = settings.telegram
        self._sessions = settings.sessions
        self._seconds = settings.tuning.telegram_typing_seconds
        self._client = client
        self._typing: dict[int, asyncio.Task[None]] = {}

    @property
    def needed_role(self) -> Role:
        """Who may write."""
        return self._settings.agent_role if self._settings.agent is not None else Role.OPERATOR

    async def send(self, caller: Caller, update: int, text: str) -> Reply | None:
        """Put a text into the session of its chat; an answer only if it is not there now."""
        agent, task = self._settings.agent, self._settings.task
        if agent is None and task is None:
            return Reply("Nobody answers texts here: set telegram.agent or telegram.task. /help lists the commands.")
        require_role(caller.who, caller.role, self.needed_role, "writing here")
        most = None
        if self._sessions.of(caller.session).max_concurrent is None:
            most = 1 if caller.is_private else _IN_GROUPS
        try:
            await self._services.sessions.send(
                caller.session,
                text,
                agent=agent,
                task=task,
                max_concurrent=most,
                message_id=f"telegram:{update}",
                notify=[f"{caller.channel}=answer"],
            )
        except QueueFull:
            return Reply("Too much waits here already: try again later, or /stopall.")
        self.show_typing(caller.chat, caller.session)
        return None

    def show_typing(self, chat: int, session: str) -> None:
        """Show that an answer is being written, until nothing of the session is queued or running."""
        known = self._typing.get(chat)
        if known is None or known.done():
            self._typing[chat] = asyncio.get_running_loop().create_task(self._type(chat, session))

    async def stopped(self, caller: Caller) -> None:
        """Somebody stopped what was under way: nothing is shown any more, unless more waits for its turn."""
        if (task := self._typing.pop(caller.chat, None)) is not None:
            task.cancel()
        session = await self._look(caller.session)
        if session is not None and session.queued:
            self.show_typing(caller.chat, caller.session)

    async def resume(self, chat: int) -> None:
        """Show it again for what was sent to another node, or before a restart."""
        for session in (f"dm:{chat}", f"group:{chat}"):
            if _is_busy(await self._look(session)):
                self.show_typing(chat, session)

    async def close(self) -> None:
        """Show nothing more."""
        tasks = [*self._typing.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _type(self, chat: int, session: str) -> None:
        now = asyncio.get_running_loop().time
        shown_until = 0.0
        while _is_busy(await self._look(session)):
            if now() >= shown_until:
                try:
                    await self._client.type(chat)
                except TelegramError as error:
                    log.debug("chat %s is not shown that an answer is being written: %s", chat, error)
                shown_until = now() + self._seconds
            await asyncio.sleep(min(_LOOK_SECONDS, self._seconds))

    async def _look(self, session: str) -> Session | None:
        try:
            return await self._services.sessions.get(session)
        except NotFound:
            return None
        except OstinatoError as error:
            log.debug("session %s cannot be looked at: %s", session, error)
            return None


def _is_busy(session: Session | None) -> bool:
    return session is not None and (session.running > 0 or session.queued > 0)
