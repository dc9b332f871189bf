"""Wakes the ticker, the dispatcher, the notifier and cancelled runs when somebody changed the database, maybe another
process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from ostinato.clock import Signal
from ostinato.engine.dispatcher import Dispatcher
from ostinato.engine.quarantine import Quarantine
from ostinato.engine.ticker import Ticker
from ostinato.execution.runner import Runner
from ostinato.stores.base import Store

__all__ = ["Waker"]

COALESCE_SECONDS = 0.005


class Waker:
    """Waits for changes and has one cheap look at what they mean for this node."""

    def __init__(
        self,
        store: Store,
        ticker: Ticker,
        dispatcher: Dispatcher,
        runner: Runner,
        drain: Callable[[bool], None],
        quarantine: Quarantine,
        notifier: Signal,
    ) -> None:
        self._notifier = notifier
        self._quarantine = quarantine
        self._store = store
        self._ticker = ticker
        self._dispatcher = dispatcher
        self._runner = runner
        self._drain = drain

    async def run(self) -> None:
        """Look after every change."""
        watch = await self._store.watch()
        loop = asyncio.get_running_loop()
        try:
            while True:
                looked = loop.time()
                # The first look comes without a change: something may be there from before.
                node = self._dispatcher.node
                wake_hints = await self._quarantine.attempt(partial(watch.wake_hints, node))
                if wake_hints.next_at is not None:
                    self._ticker.expect(wake_hints.next_at)
                if wake_hints.ready_at is not None:
                    self._dispatcher.expect(wake_hints.ready_at)
                for id, ending in wake_hints.cancel:
                    if not self._runner.cancel(id, ending):
                        self._dispatcher.cancel_claimed(id, ending)
                self._notifier.set()
                if wake_hints.drain is not None and node == self._dispatcher.node:  # not what an old name was asked
                    self._drain(wake_hints.drain)
                await watch.changed()
                # A burst of changes is one look; a single one is looked at right away.
                await asyncio.sleep(max(0.0, looked + COALESCE_SECONDS - loop.time()))
        finally:
            await watch.close()
