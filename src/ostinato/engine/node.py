"""A node: the engine's services put together, started, drained and asked for their health."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from ostinato.clock import Clock, Micros, micros_of
from ostinato.config import Settings
from ostinato.engine.budgets import BudgetKeeper
from ostinato.engine.dispatcher import Dispatcher
from ostinato.engine.lease import Lease
from ostinato.engine.pruner import Pruner
from ostinato.engine.quarantine import Quarantine
from ostinato.engine.recorder import Recorder
from ostinato.engine.rescuer import Rescuer
from ostinato.engine.statistics import Statistics
from ostinato.engine.ticker import Ticker
from ostinato.engine.waker import Waker
from ostinato.engine.watchdog import LoopMonitor, Watchdog
from ostinato.errors import StoreError
from ostinato.execution.outcome import Outcome, OutcomeKind
from ostinato.execution.registry import Registry
from ostinato.execution.runner import Runner
from ostinato.models.ids import NodeId, RunId
from ostinato.models.node import NodeBeat
from ostinato.models.run import ClaimedRun, NewRun
from ostinato.stores.base import Store

__all__ = ["Engine"]

log = logging.getLogger("ostinato.engine")


def new_node_id() -> NodeId:
    """A name that no other start of any process has."""
    return NodeId(f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}")


class Engine:
    """One node of the scheduler, on the loop that it is made on."""

    def __init__(self, store: Store, registry: Registry, clock: Clock, settings: Settings) -> None:
        self.store = store
        self.registry = registry
        self.clock = clock
        self.settings = settings
        self.id = new_node_id()
        lease = micros_of(settings.lease)
        self.budgets = BudgetKeeper(store, clock)
        self.quarantine = Quarantine(store.quarantine, clock)
        self.statistics = Statistics()
        self.recorder = Recorder(store.runs, registry.throttle, self.budgets, self.statistics)
        self.runner = Runner(registry, clock, self.recorder.add, store.projects, settings)
        self.dispatcher = Dispatcher(
            store.runs, self.runner, clock, self.id, settings.slots, self.quarantine, self.statistics
        )
        grace = micros_of(settings.misfire_grace)
        self.ticker = Ticker(store.schedules, clock, grace, self.dispatcher.wake, self.quarantine, self.statistics)
        self.lease = Lease(store.nodes, clock, lease, self._beat, self._lost, self._joined, self._jumped, self._asked)
        self.rescuer = Rescuer(store, clock, lease, lambda: self.id, self._look, self.quarantine, self.statistics)
        self.pruner = Pruner(store.upkeep, clock, self.quarantine)
        self.waker = Waker(store, self.ticker, self.dispatcher, self.runner, self.ask_drain, self.quarantine)
        self.watchdog = Watchdog()
        self.monitor = LoopMonitor()
        self._started_at: Micros | None = None
        self.is_started = False
        self.is_draining = False
        """It stops: calls from outside are refused too."""
        self.is_asked_to_drain = False
        """Somebody asked it to take no more work; it stays, and what others shall do may be enqueued here."""
        self.takes_work = True
        self._next_due_at: Micros | None = None

    async def prepare(self, *, takes_work: bool = True) -> None:
        """What must be before the first tick: lanes, a lease, and the runs of nodes that are gone.

        An engine that takes no work executes what it is handed and claims nothing; the lanes stay as they are.
        """
        self._started_at = self.clock.now()
        self.takes_work = self.dispatcher.is_open = takes_work
        settings = self.settings
        if takes_work:
            await self.store.lanes.ensure_lanes(settings.lane_limits, list(settings.lanes), settings.rates)
        self.dispatcher.know(sorted(self.registry.tasks))
        self.recorder.connect(self.runner, self.dispatcher)
        await self.lease.renew()
        await self.rescuer.rescue()

    async def start(self) -> None:
        """Take part: from here on this node ticks, claims and executes."""
        await self.prepare()
        self.monitor.start()
        # The recorder first, so that nothing can end before somebody writes it down.
        for name, service in (
            ("recorder", self.recorder.run),
            ("reporter", self.recorder.report),
            ("budgets", self.budgets.run),
            ("lease", self.lease.run),
            ("rescuer", self.rescuer.run),
            ("ticker", self.ticker.run),
            ("dispatcher", self.dispatcher.run),
            ("waker", self.waker.run),
            ("pruner", self.pruner.run),
            ("quarantine", self.quarantine.run),
        ):
            self.watchdog.start(name, service)
        self.is_started = True
        log.info("node %s started: %d tasks, %d slots", self.id, len(self.registry.tasks), self.settings.slots)

    async def execute(self, run: NewRun) -> RunId:
        """Execute one run here, at once, whatever lanes and slots say; answers when it has begun.

        On an engine that is only prepared, the services that such a run needs are started with it.
        """
        if not self.is_started:
            self.watchdog.start("recorder", self.recorder.run)
            self.watchdog.start("reporter", self.recorder.report)
            self.watchdog.start("budgets", self.budgets.run)
            self.watchdog.start("lease", self.lease.run)
            self.watchdog.start("waker", self.waker.run)
        claimed = await self.store.runs.start_run(run, self.id, self.clock.now())
        self.runner.start(self.runner.load(claimed))
        return claimed.id

    async def stop(self, grace: float | None = None) -> None:
        """Drain: claim nothing more, let running work end within the grace, put the rest back, and leave."""
        grace = self.settings.grace.total_seconds() if grace is None else grace
        self.is_draining = True
        self.dispatcher.is_open = False  # now: what a force puts back must not be claimed here again
        self.lease.signal.set()  # tell the others now, not at the next beat
        await self.watchdog.stop("ticker", "waker", "rescuer", "pruner", "quarantine")
        self._put_back(await self.dispatcher.close())
        await self.watchdog.stop("dispatcher")
        try:
            async with asyncio.timeout(grace):
                await self.runner.idle.wait()
        except TimeoutError:
            log.warning("%d runs did not end within %g s: they go back to the queue", self.runner.running, grace)
            self.runner.cut_off()
            await self.runner.idle.wait()
        try:
            while self.recorder.pending:
                await self.recorder.flush(claim=False)
            await self.budgets.look()
            await self.watchdog.stop()
            await self.store.nodes.leave(self.id)
        except StoreError:
            log.exception("%d finishes could not be written: others will rescue their runs", self.recorder.pending)
        finally:
            await self.watchdog.stop()
            self.monitor.stop()
            self.runner.threads.stop()

    async def run_due(self) -> int:
        """By hand: do all that is due or ready now, and answer how many runs that were once nothing is left.

        It needs no started services (but does no harm to them), waits for no due time and for nothing that is ready
        later. `ostinato.testing` drives the engine with it.
        """
        count = 0
        while True:
            count += (started := await self.step())
            was_busy = self.runner.running > 0 or self.recorder.pending > 0
            await self.runner.idle.wait()
            while self.recorder.pending:
                await self.recorder.flush(claim=False)
            await self.budgets.look()
            if not started and not was_busy:
                return count

    async def step(self) -> int:
        """By hand: record what is due now and start what is ready now; answers how many runs were started."""
        count = 0
        await self.rescuer.rescue()
        await self.rescuer.explain_unknown()
        while True:
            self._next_due_at = await self.ticker.tick()
            await self.dispatcher.rest()
            started = self.dispatcher.start_held(self.clock.now())
            started += await self.dispatcher.claim()
            count += started
            if not started:
                return count

    @property
    def next_at(self) -> Micros | None:
        """When there is something to do again, as the last step saw it."""
        times = (self._next_due_at, self.dispatcher.next_start_at)
        return min((at for at in times if at is not None), default=None)

    def force(self) -> None:
        """Do not wait for running work any longer, not even for it to stop."""
        self.runner.cut_off(at_once=True)

    def learn(self) -> None:
        """Tasks were registered since the start."""
        self.dispatcher.know(sorted(self.registry.tasks))
        self.lease.signal.set()
        self.dispatcher.wake()

    def health(self) -> dict[str, Any]:
        """How this node is, for people and load balancers."""
        services = {name: asdict(health) for name, health in self.watchdog.services.items()}
        blocked = self.monitor.blocked_for
        return {
            "ok": all(service["up"] for service in services.values()) and not blocked,
            "node": self.id,
            "draining": self.is_draining,
            "asked_to_drain": self.is_asked_to_drain,
            "services": services,
            "loop": {
                "blocked_for": round(blocked, 3),
                "blocked_times": self.monitor.blocked_times,
                "last_block": self.monitor.last_block,
            },
            "lost_runs": self.recorder.lost_runs,
            "held": self.dispatcher.held,
            "unwritten": self.recorder.pending,
            **self.runner.health(),
        }

    def _beat(self, now: Micros, lease_until: Micros) -> NodeBeat:
        services = {name: asdict(health) for name, health in self.watchdog.services.items()}
        return NodeBeat(
            id=self.id,
            host=socket.gethostname(),
            pid=os.getpid(),
            # Without slots it is no engine to anybody: only its lease counts, by which its run is rescued.
            slots=self.settings.slots if self.takes_work else 0,
            running=self.runner.running,
            draining=self.is_draining or self.is_asked_to_drain,
            tasks=tuple(sorted(self.registry.tasks)) if self.takes_work else (),
            started_at=self._started_at if self._started_at is not None else now,
            now=now,
            lease_until=lease_until,
            services=msgspec.json.encode(services).decode(),
            statistics=msgspec.json.encode(self.statistics.shape()).decode(),
            drain=self.is_asked_to_drain,  # under a new name too: whoever asked meant this process
        )

    def _lost(self) -> None:
        """Others declared this node lost: what it runs is theirs now. Go on under a new name."""
        held = self.dispatcher.forget_held()
        lost = self.runner.abandon()
        log.error("node %s lost its lease; gave up %d runs that others own now", self.id, len(lost) + held)
        self.dispatcher.is_open = False  # until the new name is in the database
        self.id = self.dispatcher.node = new_node_id()
        self.statistics.begin()

    def _joined(self) -> None:
        self._open()
        self._look()

    def _open(self) -> None:
        """Claim, unless something speaks against it."""
        self.dispatcher.is_open = (
            self.takes_work and not self.is_draining and not self.is_asked_to_drain and not self.lease.is_lost
        )

    def ask_drain(self, drain: bool) -> None:
        """Somebody asks this node to take no more work, or to take work again. Its state is told at once."""
        if self._asked(drain):
            self.lease.signal.set()

    def _asked(self, drain: bool) -> bool:
        """Do what a beat says; whether that is something new."""
        if drain == self.is_asked_to_drain:
            return False
        self.is_asked_to_drain = drain
        log.info("node %s %s", self.id, "takes no more work: it was asked to drain" if drain else "takes work again")
        self._open()
        if not drain:
            self._look()
        return True

    def _look(self) -> None:
        """Something may be due or ready that nobody told of."""
        self.ticker.signal.set()
        self.dispatcher.wake()

    def _jumped(self) -> None:
        log.warning("the clock jumped: looking for what is due")
        self._look()

    def _put_back(self, held: Sequence[ClaimedRun]) -> None:
        """Runs that were claimed and never started lose nothing."""
        for run in held:
            self.runner.refuse(run, Outcome(OutcomeKind.CUT_OFF))
