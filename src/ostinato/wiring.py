"""The only file that chooses concrete classes: a database from its URL, and the container that uses it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any, Protocol

from ostinato.clock import Clock, micros_of
from ostinato.config import Settings, database_text, is_in_memory, switched_off
from ostinato.direct_execution import DirectExecution, ExecutionCallbacks
from ostinato.engine.node import Engine
from ostinato.errors import InvalidInput, NoDatabase, StoreError
from ostinato.execution.context import current_context
from ostinato.execution.guard import GUARD, interpreter
from ostinato.execution.guard_child import has_subreaper
from ostinato.execution.nested import nested_runs
from ostinato.execution.registry import Registry
from ostinato.models.ids import DeliveryId, NodeId
from ostinato.models.lane import DEFAULT_LANES
from ostinato.models.notification import Delivery, DeliveryFilter, DeliveryState, NoticeKind
from ostinato.models.run import Ending, NewRun, OuterRun, Run
from ostinato.models.states import Cause, RunState
from ostinato.notifications.base import SendError, Unusable
from ostinato.notifications.channels import Channels
from ostinato.notifications.sender import has_sender, is_busy
from ostinato.service.metrics import ConnectionCounts, collect_metrics
from ostinato.service.schedules.drafts import Code
from ostinato.service.services import Services
from ostinato.stores.base import Store
from ostinato.tuning import DEFAULT_TUNING, Tuning

__all__ = [
    "NO_ENGINE",
    "Container",
    "ExecutionCallbacks",
    "RemoteEngine",
    "end_guard",
    "has_subreaper",
    "interpreter",
    "open_container",
    "open_container_with_remote_engine",
    "open_store",
]

NO_ENGINE: dict[str, Any] = {"ok": False, "node": None, "reason": "no engine is started in this process"}
"""The health of a process without one."""

end_guard = GUARD.end
"""Before this process becomes another, which would not know the one that guards its commands."""

_NO_CALLBACKS = ExecutionCallbacks()
_UNAWAITED = Ending(Cause.CANCELLED, "whoever waited for it was cancelled")


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
        self._executions: set[asyncio.Task[Run]] = set()
        self._temporary = 0
        self._remote = remote
        self.services = self._make_services()

    def _make_services(self) -> Services:
        settings, registry = self.settings, self.registry
        return Services(
            self.store,
            self.clock,
            settings.tz,
            self._remote or registry,
            self._is_draining,
            self._is_unserved,
            settings.login_limits,
            settings.tuning,
            registry.listeners,
            settings.sessions,
            self,
            settings.app,
        )

    def use(self, settings: Settings) -> None:
        """Go on with other settings, of the same database. An engine that is started keeps those that it has."""
        self.settings = settings
        self.services = self._make_services()

    def _is_draining(self) -> bool:
        """Whether calls from outside are refused; work under way may still hand on to others."""
        if self._remote is not None:
            return self._remote.is_draining
        return self.engine is not None and self.engine.is_draining and current_context.get(None) is None

    def _is_unserved(self) -> bool:
        """Whether nobody executes what is queued: no other process sees the database, and there is no engine here."""
        return is_in_memory(self.settings.db) and not self.has_engine and self.is_idle

    @property
    def has_engine(self) -> bool:
        """Whether an engine is started."""
        return self.engine is not None if self._remote is None else self._remote.is_started

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs here that would miss the database."""
        return self.engine is None and not self._executions and not self._temporary

    async def health(self) -> dict[str, Any]:
        """How the engine is; `ok` is False when none is started."""
        if self._remote is not None:
            return await self._remote.health()
        if self.engine is not None:
            return self.engine.health()
        return {**NO_ENGINE, "reason": switched_off(self.settings) or NO_ENGINE["reason"]}

    async def statistics(self) -> dict[NodeId, dict[str, Any]]:
        """What the engine has counted so far, by its node."""
        if self._remote is not None:
            return await self._remote.statistics()
        return {} if self.engine is None else {self.engine.id: self.engine.statistics.shape()}

    async def metrics(self, connections: ConnectionCounts | None = None) -> str:
        """All metrics, in Prometheus' text format, with those of a server's connections."""
        return await collect_metrics(self.services, await self.statistics(), connections)

    def make_engine(self) -> Engine:
        """A new engine, not yet started; call on the loop that it shall live on."""
        return Engine(self.store, self.registry, self.clock, self.settings)

    @asynccontextmanager
    async def temporary_engine(self) -> AsyncIterator[Engine]:
        """One that only does what it is told, and is stopped at the end of the block."""
        engine = self.make_engine()
        self._temporary += 1
        try:
            await engine.prepare()
            try:
                yield engine
            finally:
                await engine.stop(grace=0)
        finally:
            self._temporary -= 1

    async def execute(
        self,
        run: NewRun,
        callbacks: ExecutionCallbacks = _NO_CALLBACKS,
        *,
        wait: bool = True,
        outer: OuterRun | None = None,
    ) -> Run:
        """Execute a run in this process and follow it to its end. In a session it waits for its turn first, or is a
        Conflict if it must not `wait`.

        It is told to stop if whoever waits for it here is cancelled, and with the run of this process that asks for it.
        `outer` is one of another process.
        """
        inside = current_context.get(None)
        if inside is not None:
            outer = OuterRun(inside.id, inside.claimed.node, inside.claimed.outer)
        if is_own := self.engine is None:
            engine = self.make_engine()
            await engine.prepare(takes_work=False)
        else:
            engine = self.engine
        execution = DirectExecution(engine, self.services.runs, run, callbacks, wait=wait, outer=outer)
        task = asyncio.get_running_loop().create_task(_executed(execution, engine if is_own else None))
        self._executions.add(task)
        task.add_done_callback(self._executions.discard)
        if inside is not None:
            nested_runs.add(inside, execution.stop)
            task.add_done_callback(lambda _: nested_runs.remove(inside, execution.stop))
        try:
            ended = await asyncio.shield(task)
            if inside is not None and ended.state is RunState.CANCELLED:
                inside.saw_cancel |= inside.is_cancelled  # it is how its work learns that it should stop
            return ended
        except asyncio.CancelledError:
            execution.stop(_UNAWAITED)
            task.add_done_callback(_retrieved)
            raise

    async def check_channel(self, url: str) -> str | None:
        """Why nothing could be sent to such a URL from here; None if nothing speaks against it. It sends nothing."""
        try:
            await Channels(self.settings).check(url)
        except SendError as error:
            return str(error)
        return None

    async def refuse_channel(self, url: str) -> None:
        """InvalidInput, if no machine could send anything to such a URL."""
        try:
            await Channels(self.settings).check(url)
        except Unusable as error:
            raise InvalidInput(str(error), field="url") from None
        except SendError:
            return  # another machine may

    @property
    def chats(self) -> Collection[int]:
        """The chats that may speak with the bot."""
        return self.settings.telegram.chats

    async def send_test(self, channel: str) -> Delivery:
        """Send a test to a channel, and answer what became of it: a node does it, or this process if none lives that
        sends. As it is, if that takes too long."""
        owed = await self.store.notifications.add_delivery(channel, NoticeKind.TEST, channel, {}, self.clock.now())
        try:
            async with asyncio.timeout(self.settings.tuning.send_test_seconds):
                await self._settled(owed)
        except TimeoutError:
            pass  # it says so itself: it is being sent
        return await self._delivery(owed)

    async def _settled(self, owed: Delivery) -> None:
        """Wait until a node is through with it. If none is left, send it."""
        pause = 0.02
        while (found := await self._delivery(owed)).state in (DeliveryState.PENDING, DeliveryState.SENDING):
            if found.state is DeliveryState.PENDING:
                await self._send_if_nobody_does(owed.channel)
            await asyncio.sleep(pause)
            pause = min(2 * pause, 0.5)

    async def _send_if_nobody_does(self, channel: str) -> None:
        now = self.clock.now()
        if (self.engine is not None and self.engine.sends) or await has_sender(self.store.nodes, now):
            return
        if await is_busy(self.store, channel, now - micros_of(self.settings.lease)):
            return  # an engine of ours could not claim it either
        engine = self.make_engine()
        await engine.prepare(takes_work=False)
        try:
            await engine.notifier.send_due(channel)
        finally:
            await engine.stop(grace=0)

    async def _delivery(self, owed: Delivery) -> Delivery:
        wanted = DeliveryFilter(channel=owed.channel, before_id=DeliveryId(owed.id + 1), limit=1)
        (found,) = await self.store.notifications.list_deliveries(wanted)
        return found

    async def close(self) -> None:
        for task in self._executions:
            task.cancel()
        if self._executions:
            await asyncio.wait(self._executions)
        await self.services.live.close()
        await self.store.close()


async def _executed(execution: DirectExecution, own: Engine | None) -> Run:
    """How it ended, once the engine is stopped that was made for it."""
    try:
        return await execution.execute()
    finally:
        if own is not None:
            await own.stop(grace=0)


def _retrieved(task: asyncio.Task[Run]) -> None:
    """Nobody waits for it any more, and nobody is to be told how it failed."""
    if not task.cancelled():
        task.exception()


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


async def database_exists(settings: Settings) -> bool:
    """Whether there is a database to open; asking creates none."""
    store = _store(settings)
    try:
        return await store.exists()
    finally:
        await store.close()


async def open_container(settings: Settings, clock: Clock, registry: Registry, *, create: bool = True) -> Container:
    """Open and migrate the database, make its lanes, and put the services on it. NoDatabase if it is not there and not
    to be created."""
    return Container(await _opened(settings, create=create), clock, settings, registry)


async def open_container_with_remote_engine(settings: Settings, clock: Clock, remote: RemoteEngine) -> Container:
    """The same for a server whose engine, and whose code, are in another process."""
    return Container(await _opened(settings), clock, settings, Registry(), remote)


def _store(settings: Settings) -> Store:
    return open_store(settings.db, settings.schema, settings.lease.total_seconds(), settings.tuning)


async def _opened(settings: Settings, *, create: bool = True) -> Store:
    store = _store(settings)
    try:
        if not create and not await store.exists():
            raise NoDatabase(f"there is no {database_text(settings)}")
        await store.open()
        # Only that they exist, the default ones with their defaults: an engine that starts sets the limits, and notes
        # what there was before; looking does not undo a `lane set`.
        await store.lanes.ensure_lanes({**settings.lanes, **DEFAULT_LANES}, [])
    except BaseException:
        await store.close()
        raise
    return store
