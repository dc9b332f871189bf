"""How a node stops: it claims nothing more, lets running work end, writes what is left, and leaves.

Neighbours: node.py has the services; what the database does not take, spool.py keeps for the next start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ostinato.errors import StoreError
from ostinato.execution.outcome import Outcome, OutcomeKind
from ostinato.logs import get_logger, one_line
from ostinato.models.run import ClaimedRun
from ostinato.notifications.sender import has_sender
from ostinato.plurals import counted

if TYPE_CHECKING:
    from ostinato.engine.node import Engine

__all__ = ["Stopping"]

log = get_logger("ostinato.engine")

_LAST_WRITE = 4.0
"""Seconds that the last write has, though the grace is over: running work may have used it up."""
_FORCED_WRITE = 2.0
"""The same after a force."""


class Stopping:
    """The stop of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._is_forced = False
        self._writing: asyncio.Timeout | None = None
        """The bound of the last write, while it is under way."""

    async def stop(self, grace: float) -> None:
        """Drain, cut off what does not end within so many seconds, write it, and leave."""
        engine = self._engine
        until = asyncio.get_running_loop().time() + grace
        engine.dispatcher.is_open = False  # now: what a force puts back must not be claimed here again
        engine.lease.signal.set()  # tell the others now, not at the next beat
        services = ("ticker", "waker", "rescuer", "pruner", "replanner", "freshness", "quarantine")
        await engine.watchdog.stop(*services)
        await engine.direct.close(self._patience(until))
        self._put_back(await engine.dispatcher.close(until))
        await engine.watchdog.stop("dispatcher")
        try:
            async with asyncio.timeout_at(until):
                await engine.runner.idle.wait()
        except TimeoutError:
            log.warning("cut off %s that did not end within %g s", counted(engine.runner.running, "run"), grace)
            engine.runner.cut_off()
            await engine.runner.idle.wait()
        try:
            if await self._write_rest(until):
                await self._send_rest()
                async with asyncio.timeout(self._patience(until)):
                    await self._leave()
        except (StoreError, TimeoutError) as error:
            why = self._why(error)
            log.error("node %s could not record its stop: others will declare it lost (%s)", engine.id, why)
        finally:
            await engine.watchdog.stop()
            await engine.notifier.close(0)
            engine.monitor.stop()
            await engine.runner.ping_urls.close(self._patience(until))
            engine.runner.close()
            await engine.registry.listeners.close()

    def force(self) -> None:
        """Do not wait any longer: neither for running work to stop, nor for a database that is away."""
        self._is_forced = True
        self._engine.runner.cut_off(at_once=True)
        if self._writing is not None:
            soon = asyncio.get_running_loop().time() + _FORCED_WRITE
            when = self._writing.when()
            self._writing.reschedule(soon if when is None else min(when, soon))

    async def _write_rest(self, until: float) -> bool:
        """Write what has ended, and go on trying while there is grace; False if the rest had to be spooled."""
        engine, clock = self._engine, asyncio.get_running_loop().time
        while engine.recorder.pending:
            try:
                async with asyncio.timeout(self._patience(until)) as self._writing:
                    await engine.recorder.flush(claim=False)
            except (StoreError, TimeoutError) as error:
                if self._is_forced or clock() >= until or engine.is_database_lost():
                    await engine.watchdog.stop("recorder", "reporter")  # nobody else writes them meanwhile
                    self._keep_rest(error)
                    return False
                waiting = counted(engine.recorder.pending, "finish waits", "finishes wait")
                log.warning("%s for the database: %s", waiting, self._why(error))
                await asyncio.sleep(min(engine.settings.tuning.write_again_seconds, max(0.0, until - clock())))
            finally:
                self._writing = None
        return True

    def _patience(self, until: float) -> float:
        """How many seconds the database has to take what is left."""
        if self._is_forced:
            return _FORCED_WRITE
        return max(until - asyncio.get_running_loop().time(), _LAST_WRITE)

    async def _send_rest(self) -> None:
        """What ended to the last is told too. An engine that takes no work leaves that to nodes, if there are any."""
        engine = self._engine
        await engine.watchdog.stop("notifier")
        is_sending = engine.takes_work or not await has_sender(engine.store.nodes, engine.clock.now())
        await engine.notifier.close(
            engine.settings.tuning.send_stop_seconds if is_sending and not self._is_forced else 0
        )

    async def _leave(self) -> None:
        """All is written: tell the others that this node is gone."""
        engine = self._engine
        await engine.watchdog.stop("budgets")
        await engine.budgets.look()
        await engine.watchdog.stop()
        await self._put_back_unknown()
        await engine.store.nodes.leave(engine.id)

    def _keep_rest(self, error: Exception) -> None:
        """The database did not take them: a file does, until the next start here."""
        engine = self._engine
        finishes = counted(engine.recorder.pending, "finish", "finishes")
        try:
            path = engine.spool.keep(engine.id, engine.recorder.unwritten)
        except OSError:
            log.exception("%s could be neither written nor spooled: other nodes will rescue the runs", finishes)
            return
        if path is None:
            log.error("%s could not be written: %s", finishes, self._why(error))
            return
        engine.recorder.spooled()
        log.error("spooled %s to %s; the next start here reads it: %s", finishes, path, self._why(error))

    def _why(self, error: Exception) -> str:
        """For the log, in which the loss of the database was told already."""
        if self._engine.is_database_lost():
            return "its database is lost"
        return "the database did not answer in time" if isinstance(error, TimeoutError) else one_line(error)

    async def _put_back_unknown(self) -> None:
        """Nothing runs here any more: what the ledger still says that runs here, nobody has heard of."""
        engine = self._engine
        for _ in range(2):
            await engine.lease.renew()
        await engine.reconciler.rest()
        while engine.recorder.pending:
            await engine.recorder.flush(claim=False)

    def _put_back(self, held: Sequence[ClaimedRun]) -> None:
        """Runs that were claimed and never started lose nothing."""
        for run in held:
            self._engine.runner.refuse(run, Outcome(OutcomeKind.PUT_OFF))
