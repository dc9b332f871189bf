"""What the server needs of the process that it is in; `wiring.House` answers it."""

from __future__ import annotations

from typing import Any, Protocol

from ostinato.clock import Clock
from ostinato.config import Settings
from ostinato.service.services import Services

__all__ = ["ApiHouse"]


class ApiHouse(Protocol):
    """An open database with its services, and maybe an engine."""

    @property
    def services(self) -> Services: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def clock(self) -> Clock: ...

    def health(self) -> dict[str, Any]:
        """How the engine of this process is; `ok` is False when none is started."""
        ...

    def statistics(self) -> dict[str, Any]:
        """What the engine of this process has counted so far; empty when none is started."""
        ...
