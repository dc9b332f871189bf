"""Why deliveries wait and until when: gathers what `models/delivery_wait.py` decides by. Asked by what lists them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ostinato.clock import Clock, from_micros, micros_of
from ostinato.models.delivery_wait import MINUTE, ChannelNow, wait_of
from ostinato.models.notification import Delivery, DeliveryFilter, DeliveryState, Wait
from ostinato.stores.base import Store

__all__ = ["DeliveryWaits"]


class DeliveryWaits:
    """Reads only if something waits."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def of(self, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        """The same, each with why it waits."""
        now_of = await self._look({one.channel for one in deliveries if one.state is DeliveryState.PENDING})
        now = from_micros(self._clock.now())
        return [
            replace(one, waits=wait_of(one, now_of[one.channel], now)) if one.channel in now_of else one
            for one in deliveries
        ]

    async def first(self, channel: str) -> Wait | None:
        """Why the channel does not get now what goes there first."""
        waits = [one.waits for one in await self.of(await self._store.notifications.first_deliveries(channel))]
        known = [wait for wait in waits if wait is not None]
        if len(known) < len(waits):
            return None  # something is about to be sent
        return min(known, key=lambda wait: (wait.until is None, wait.until), default=None)

    async def _look(self, names: Iterable[str]) -> Mapping[str, ChannelNow]:
        wanted = sorted(names)
        if not wanted:
            return {}
        notifications, now = self._store.notifications, self._clock.now()
        is_served = any(node.state == "alive" for node in await self._store.nodes.list_nodes(now))
        channels = {channel.name: channel for channel in await notifications.list_channels(wanted)}
        return {
            name: ChannelNow(
                channels.get(name),
                is_served,
                bool(await notifications.list_deliveries(_sending(name))),
                await notifications.recent_messages(name, now - micros_of(MINUTE)),
            )
            for name in wanted
        }


def _sending(channel: str) -> DeliveryFilter:
    return DeliveryFilter(channel=channel, state=DeliveryState.SENDING, limit=1)
