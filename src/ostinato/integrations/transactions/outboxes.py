"""The outboxes that an app declares, and the services that drain them beside its engine. Held by `app.py`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from ostinato.clock import Clock
from ostinato.integrations.transactions.drainer import Drainer
from ostinato.integrations.transactions.outbox import Outbox, open_outbox
from ostinato.models.outbox import OUTBOX_SERVICE, OutboxRow, Taken

__all__ = ["Outboxes"]


class Watchdog(Protocol):
    """What runs services beside an engine."""

    @property
    def services(self) -> Collection[str]: ...

    def start(self, name: str, service: Callable[[], Any], /) -> None: ...
    def tell(self, name: str, status: str, well: bool, /) -> None: ...


class Outboxes:
    """Those of one app, by name."""

    def __init__(self) -> None:
        self._by_name: dict[str, Outbox] = {}
        self._drainers: dict[str, Drainer] = {}
        """Of the engine that is started, by the names of their services."""

    def __iter__(self) -> Iterator[Outbox]:
        return iter(self._by_name.values())

    @property
    def are_drained(self) -> bool:
        """Whether an engine here looks into any of them."""
        return bool(self._drainers)

    def add(self, database: object) -> Outbox:
        """Declare one; twice is as once."""
        outbox = open_outbox(database)
        for known in self:
            if known.identity == outbox.identity:
                return known
        name, others = outbox.name, 1
        while outbox.name in self._by_name:  # engines whose URL names no database look the same
            others += 1
            outbox.call(f"{name} ({others})")
        self._by_name[outbox.name] = outbox
        return outbox

    def begin(self) -> None:
        """An engine has started: those of the one before are gone."""
        self._drainers.clear()

    def drain(self, watchdog: Watchdog, take: Callable[[Sequence[OutboxRow]], Awaitable[Taken]], clock: Clock) -> None:
        """Start a service for each that has none yet."""
        for outbox in self:
            name = f"{OUTBOX_SERVICE}{outbox.name}"
            if name not in self._drainers:
                self._drainers[name] = drainer = Drainer(outbox, take, clock, partial(watchdog.tell, name))
                watchdog.start(name, drainer.run)

    def poke(self) -> None:
        """Something was committed in this process that may be in one of them."""
        for drainer in self._drainers.values():
            drainer.signal.set()

    @staticmethod
    def services(watchdog: Watchdog) -> list[str]:
        """The services that drain, by name."""
        return [name for name in watchdog.services if name.startswith(OUTBOX_SERVICE)]
