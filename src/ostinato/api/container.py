"""What the server needs of the process that it is in: `wiring.Container` answers it, alone or beside an engine."""

from __future__ import annotations

from typing import Any, Protocol

from ostinato.clock import Clock
from ostinato.config import Settings
from ostinato.service.metrics import ConnectionCounts
from ostinato.service.services import Services

__all__ = ["ApiContainer"]


class ApiContainer(Protocol):
    """An open database with its services, and maybe an engine."""

    @property
    def services(self) -> Services: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def has_engine(self) -> bool:
        """Whether this server stands beside an engine."""
        ...

    async def health(self) -> dict[str, Any]:
        """How that engine is; `ok` is False when there is none. WaitTimeout if it does not answer."""
        ...

    async def metrics(self, connections: ConnectionCounts | None = None) -> str:
        """All metrics, in Prometheus' text format, with those of a server's connections."""
        ...
