"""What a bot needs besides the verbs of everybody: its turn among the nodes, and a channel for each of its chats."""

from __future__ import annotations

from collections.abc import Iterable

from ostinato.clock import Clock, Micros
from ostinato.models.ids import NodeId
from ostinato.models.notification import ChannelDraft
from ostinato.models.telegram import channel_of
from ostinato.stores.base import Store

__all__ = ["ChatService"]

_LEASE = "telegram"


class ChatService:
    """Not for people: the bot calls it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def take_turn(self, node: NodeId, lasting: Micros) -> bool:
        """Be, or stay, the node that listens; False while another one is."""
        now = self._clock.now()
        return await self._store.notifications.take_lease(_LEASE, node, now, now + lasting)

    async def leave_turn(self, node: NodeId) -> None:
        """Let another node listen."""
        await self._store.notifications.drop_lease(_LEASE, node)

    async def ensure_channels(self, chats: Iterable[int]) -> None:
        """Make a channel for each chat that has none; what somebody set for one stays."""
        names = {channel_of(chat): chat for chat in chats}
        known = {channel.name for channel in await self._store.notifications.list_channels(list(names))}
        for name, chat in names.items():
            if name not in known:
                await self._store.notifications.put_channel(ChannelDraft(name, f"telegram://{chat}"), self._clock.now())
