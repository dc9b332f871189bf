"""`ostinato worker --metrics`: metrics and health of a worker, on its own loop. A scrape is rare and short.

`serving.py` says which engine it is; `server.py` listens, with the same limits and the same refusals as for the page.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ostinato.api.app import create_metrics_app
from ostinato.cli.server import Flags, check_listening, serving
from ostinato.config import Settings, split_address
from ostinato.service.metrics import ConnectionCounts, collect_metrics
from ostinato.wiring import NO_ENGINE

if TYPE_CHECKING:
    from ostinato.cli.server_process import Engine
    from ostinato.clock import Clock
    from ostinato.service.services import Services
    from ostinato.wiring import Container

__all__ = ["MetricsServer", "check_metrics", "serving_metrics"]

_FLAGS = Flags(
    elsewhere="--metrics",
    tls="set tls_cert and tls_key (OSTINATO_TLS_CERT, OSTINATO_TLS_KEY)",
    here="give --metrics 127.0.0.1:9464",
)


class MetricsServer:
    """A worker as its small server knows it; answers api.container.ApiContainer."""

    def __init__(self, view: Container, address: str) -> None:
        self._view = view
        self.settings = _listening_at(view.settings, address)
        self.engine: Engine | None = None
        """None until it is started."""

    @property
    def services(self) -> Services:
        return self._view.services

    @property
    def clock(self) -> Clock:
        return self._view.clock

    @property
    def has_engine(self) -> bool:
        return self.engine is not None

    async def health(self) -> dict[str, Any]:
        """How the engine is."""
        return {**NO_ENGINE, "starting": True} if self.engine is None else self.engine.health()

    async def metrics(self, connections: ConnectionCounts | None = None) -> str:
        """The same as the page's server tells."""
        engine = self.engine
        own = {} if engine is None else {engine.id: engine.statistics.shape()}
        return await collect_metrics(self.services, own, connections)


@asynccontextmanager
async def serving_metrics(view: Container, address: str, talk: Callable[[str], None]) -> AsyncIterator[MetricsServer]:
    """Serve at this address until the body ends."""
    server = MetricsServer(view, address)
    async with serving(server, talk, create=create_metrics_app, flags=_FLAGS) as found:
        talk(f"metrics at {found}/metrics")
        yield server


async def check_metrics(settings: Settings, address: str) -> None:
    """Refuse what `serving_metrics` would refuse, as `check_listening` does."""
    await check_listening(_listening_at(settings, address), _FLAGS)


def _listening_at(settings: Settings, address: str) -> Settings:
    host, port = split_address(address)
    return replace(settings, host=host, port=port)
