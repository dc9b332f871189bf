"""The only file that chooses concrete classes: a database from its URL, and the container that uses it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, Protocol

from ostinato.clock import Clock
from ostinato.config import Settings
from ostinato.engine.node import Engine
from ostinato.errors import InvalidInput, StoreError, StoreUnavailable
from ostinato.execution.context import current_context
from ostinato.execution.guard import interpreter
from ostinato.execution.guard_child import has_subreaper
from ostinato.execution.registry import Registry
from ostinato.models.ids import NodeId, RunId
from ostinato.models.output import OutputLine
from ostinato.models.run import NewRun, Run
from ostinato.service.schedules.drafts import Code
from ostinato.service.services import Services
from ostinato.stores.base import Store
from ostinato.tuning import DEFAULT_TUNING, Tuning

__all__ = [
    "NO_ENGINE",
    "Container",
    "RemoteEngine",
    "has_subreaper",
    "interpreter",
    "open_container",
    "open_container_with_remote_engine",
    "open_store",
]

NO_ENGINE: dict[str, Any] = {"ok": False, "node": None, "reason": "no engine is started in this process"}
"""The health of a process without one."""

_PATIENCE = 60
"""Seconds for which whoever executes a run here waits for the ledger to take its end."""


class RemoteEngine(Code, Protocol):
    """An engine in another process, and the code there, for a server that stands beside it."""

    @property
    def is_started(self) -> bool: ...

    @property
    def is_draining(self) -> bool: ...

    async def health(self) -> dict[str, Any]:
        """WaitTimeout if it does not answer."""
        ...

    async def statistics(self) -> dict[NodeId, dict[str, Any]]: ...


class Container:
    """An open database, the services on it, and the engine once it is started, here or in another process."""

    def __init__(
        self, store: Store, clock: Clock, settings: Settings, registry: Registry, remote: RemoteEngine | None = None
    ) -> None:
        self.store = store
        self.clock = clock
        self.settings = settings
        self.registry = registry
        self.engine: Engine | None = None
        self._remote = remote
        code = remote or registry
        limits, tuning = settings.login_limits, settings.tuning
        listeners = registry.listeners
        self.services = Services(
            store, clock, settings.tz, code, self._is_draining, limits, tuning, listeners, settings.sessions
        )

    def _is_draining(self) -> bool:
        """Whether calls from outside are refused; work under way may still hand on to others."""
        if self._remote is not None:
            return self._remote.is_draining
        return self.engine is not None and self.engine.is_draining and current_context.get(None) is None

    @property
    def has_engine(self) -> bool:
        """Whether an engine is started."""
        return self.engine is not None if self._remote is None else self._remote.is_started

    async def health(self) -> dict[str, Any]:
        """How the engine is; `ok` is False when none is started."""
        if self._remote is not None:
            return await self._remote.health()
        return NO_ENGINE if self.engine is None else self.engine.health()

    async def statistics(self) -> dict[NodeId, dict[str, Any]]:
        """What the engine has counted so far, by its node."""
        if self._remote is not None:
            return await self._remote.statistics()
        return {} if self.engine is None else {self.engine.id: self.engine.statistics.shape()}

    def make_engine(self) -> Engine:
        """A new engine, not yet started; call on the loop that it shall live on."""
        return Engine(self.store, self.registry, self.clock, self.settings)

    async def execute(
        self,
        run: NewRun,
        begun: Callable[[RunId], None] = lambda _: None,
        printed: Callable[[OutputLine], Awaitable[None] | None] = lambda _: None,
    ) -> Run:
        """Execute a run in this process and follow it to its end; `printed` gets its lines as they come.

        One that goes back to the queue (a snooze, say) is answered as it is: others do it later.
        """
        engine = self.engine
        if engine is None:
            engine = self.make_engine()
            await engine.prepare(takes_work=False)
        try:
            id = await engine.execute(run)
            begun(id)
            following = asyncio.ensure_future(self._follow(id, printed))
            giving_up = asyncio.ensure_future(_unrecorded(engine))
            try:
                await asyncio.wait({following, giving_up}, return_when=asyncio.FIRST_COMPLETED)
                return await (following if following.done() else giving_up)
            finally:
                following.cancel()
                giving_up.cancel()
        finally:
            if engine is not self.engine:
                await engine.stop(grace=0)

    async def _follow(self, id: RunId, printed: Callable[[OutputLine], Awaitable[None] | None]) -> Run:
        async for line in self.services.runs.follow(id, only_running=True):
            told = printed(line)
            if told is not None:
                await told  # whoever reads slowly is waited for, and the run goes on meanwhile
        return await self.services.runs.get(id)

    async def close(self) -> None:
        await self.services.live.close()
        await self.store.close()


async def _unrecorded(engine: Engine) -> NoReturn:
    """Raise when nothing runs any more and the ledger has not taken its end for a while: the disk is full, say."""
    looks = 0
    while looks < _PATIENCE:
        await asyncio.sleep(1)
        looks = looks + 1 if engine.recorder.pending and not engine.runner.running else 0
    raise StoreUnavailable(f"the end of the run could not be recorded for {_PATIENCE} s: see what the recorder says")


def open_store(url: str, schema: str = "ostinato", lease: float = 15.0, tuning: Tuning = DEFAULT_TUNING) -> Store:
    """The store for a URL: sqlite:///path, sqlite://:memory:, or postgresql://… . With many nodes, no transaction may
    hold up others for as long as a `lease`, in seconds."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme == "sqlite":
        from ostinato.stores.sqlite.store import SqliteStore

        path = rest.removeprefix("/") if rest.startswith("/") else rest
        if not path:
            raise InvalidInput(f"{url!r} names no file", field="db", hint="write sqlite:///jobs.db")
        return SqliteStore(path, tuning)
    if separator and scheme in ("postgresql", "postgres"):
        try:
            from ostinato.stores.postgres.store import PostgresStore
        except ModuleNotFoundError as error:
            raise StoreError(f"PostgreSQL needs {error.name}: pip install 'ostinato[postgres]'") from error
        return PostgresStore(url, schema, lease, tuning)
    if not separator and url:
        # A bare path is what people type on a command line.
        return open_store(f"sqlite:///{url}", schema, lease, tuning)
    raise InvalidInput(
        f"{url!r} is not a database", field="db", hint="write sqlite:///jobs.db or postgresql://user@host/name"
    )


async def open_container(settings: Settings, clock: Clock, registry: Registry) -> Container:
    """Open and migrate the database, make its lanes, and put the services on it."""
    return Container(await _opened(settings), clock, settings, registry)


async def open_container_with_remote_engine(settings: Settings, clock: Clock, remote: RemoteEngine) -> Container:
    """The same for a server whose engine, and whose code, are in another process."""
    return Container(await _opened(settings), clock, settings, Registry(), remote)


async def _opened(settings: Settings) -> Store:
    store = open_store(settings.db, settings.schema, settings.lease.total_seconds(), settings.tuning)
    try:
        await store.open()
        # Only that they exist: an engine that starts sets them, so that looking does not undo a `lane set`.
        await store.lanes.ensure_lanes(settings.lane_limits, [])
    except BaseException:
        await store.close()
        raise
    return store
