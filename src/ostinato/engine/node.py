"""A node: the engine's services put together, started, drained and asked for their health."""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

import msgspec

from ostinato.announcer import Announcer
from ostinato.clock import SECOND, Clock, Micros, from_micros, micros_of
from ostinato.config import Settings
from ostinato.engine.admission import Admission
from ostinato.engine.budgets import BudgetKeeper
from ostinato.engine.direct import DirectRuns
from ostinato.engine.dispatcher import Dispatcher
from ostinato.engine.fence import Fence
from ostinato.engine.freshness import FreshnessKeeper
from ostinato.engine.lease import Lease, new_node_id
from ostinato.engine.pruner import Pruner
from ostinato.engine.quarantine import Quarantine
from ostinato.engine.reconciler import Reconciler
from ostinato.engine.recorder import Recorder
from ostinato.engine.replanner import Replanner
from ostinato.engine.rescuer import Rescuer
from ostinato.engine.spool import Spool, spool_prefix
from ostinato.engine.statistics import Statistics
from ostinato.engine.stopping import Stopping
from ostinato.engine.task_finder import TaskFinder
from ostinato.engine.ticker import Ticker
from ostinato.engine.waker import Waker
from ostinato.engine.watchdog import LoopMonitor, ServiceHealth, Watchdog
from ostinato.execution.descriptors import ensure_standard_descriptors
from ostinato.execution.registry import Registry
from ostinato.execution.runner import Runner
from ostinato.logs import get_logger
from ostinato.models.ids import NodeId
from ostinato.models.node import NodeBeat
from ostinato.notifications.sender import Notifier
from ostinato.plurals import counted
from ostinato.stores.base import Store

__all__ = ["Engine"]

log = get_logger("ostinato.engine")

_FOR_EXECUTED = frozenset({"recorder", "reporter", "budgets", "lease", "fence", "waker"})
"""The services that a run needs which is executed on an engine that does nothing else."""
_FOR_EVERY_RUN = frozenset({"recorder", "lease", "fence", "ticker", "dispatcher"})
"""The services without which nothing is run here any more."""


class Engine:
    """One node of the scheduler, on the loop that it is made on."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        clock: Clock,
        settings: Settings,
        new_id: Callable[[], NodeId] = new_node_id,
    ) -> None:
        self.store = store
        self.registry = registry
        self.clock = clock
        self.settings = settings
        self._new_id = new_id
        self.id = new_id()
        lease = micros_of(settings.lease)
        self.budgets = BudgetKeeper(store, clock)
        self.quarantine = Quarantine(store.quarantine, clock)
        self.statistics = Statistics()
        self.announcer = announcer = Announcer(registry.listeners, lambda: self.id)
        self.notifier = notifier = self._new_notifier()
        announcer.on_told = notifier.told
        self.recorder = Recorder(
            store.runs, registry.throttle, self.budgets, clock, self.statistics, announcer, lambda: notifier.interests
        )
        self.runner = Runner(registry, clock, self.recorder.add, store.projects, store.runs.upstreams_of, settings)
        tuning = settings.tuning
        self.fence = Fence(lease, clock.uptime, self._beat_now, self._fenced, self._unfenced, tuning)
        self.runner.may_begin = self.fence.wait
        self.runner.on_wait = self._runner_waits
        self.dispatcher = self._new_dispatcher()
        self.monitor = LoopMonitor(tuning.loop_block_seconds)
        self.ticker = self._new_ticker()
        self.reconciler = Reconciler(store.runs, clock, self.runner, self.dispatcher, self.recorder, announcer)
        self.lease = self._new_lease(lease)
        self.rescuer = self._new_rescuer(lease)
        self.direct = self._new_direct()
        self.spool = Spool(store.runs, spool_prefix(settings), announcer, clock)
        self.pruner = Pruner(store.upkeep, clock, self.quarantine)
        self.freshness = FreshnessKeeper(store, clock, self.quarantine, announcer)
        self.replanner = Replanner(store.schedules, clock, self._look)
        self.task_finder = TaskFinder(store.runs, clock, self.quarantine, registry.find_task)
        self.waker = self._new_waker()
        self.watchdog = Watchdog(tuning.service_restart_seconds, self.is_database_lost)
        self._started_at: Micros | None = None
        self.is_started = False
        self.is_draining = False
        """It stops: calls from outside are refused too."""
        self.is_asked_to_drain = False
        """Somebody asked it to take no more work; it stays, and what others shall do may be enqueued here."""
        self.takes_work = True
        self._stopping = Stopping(self)
        self._next_due_at: Micros | None = None
        self._stopped_runs = 0
        """How many runs were stopped because the lease could not be renewed."""
        self._page_address: Callable[[], str | None] = lambda: None
        """Where the page is served beside it, while it is."""
        self._jump: dict[str, Any] | None = None
        """By how many seconds the clock was set last, and when."""

    def _new_dispatcher(self) -> Dispatcher:
        return Dispatcher(
            self.store.runs,
            self.runner,
            self.clock,
            self.id,
            self.settings.slots,
            self.quarantine,
            Admission(self.store.sessions, self.registry.throttle, self.runner, self.clock),
            self.statistics,
            self.fence.admits,
            self.announcer,
        )

    def _new_rescuer(self, lease: Micros) -> Rescuer:
        of = self.store, self.clock, lease, lambda: self.id, self._look
        return Rescuer(*of, self.quarantine, self.statistics, self.announcer)

    def _new_waker(self) -> Waker:
        of = self.store, self.ticker, self.dispatcher, self.runner, self.ask_drain
        return Waker(*of, self.quarantine, self.notifier.signal)

    def _new_direct(self) -> DirectRuns:
        return DirectRuns(
            self.store.runs,
            self.runner,
            self.clock,
            lambda: self.id,
            self.fence,
            self.reconciler,
            self.rescuer,
            self.registry.throttle,
            self.announcer,
        )

    def _new_ticker(self) -> Ticker:
        return Ticker(
            self.store.schedules,
            self.clock,
            self.settings,
            self.dispatcher.wake,
            self.quarantine,
            self.statistics,
            self.monitor.stood,
            self.announcer,
        )

    def _new_lease(self, lasting: Micros) -> Lease:
        return Lease(
            self.store.nodes,
            self.clock,
            lasting,
            self._beat,
            lost=self._lost,
            joined=self._joined,
            jumped=self._jumped,
            asked=self._asked,
            renewed=self.fence.renewed,
            compare=self.reconciler.compare,
            jump_seconds=self.settings.tuning.clock_jump_seconds,
        )

    def _new_notifier(self) -> Notifier:
        return Notifier(
            self.store,
            self.clock,
            self.settings,
            lambda: self.id,
            lambda: self.fence.holds and not self.lease.is_lost,
            self.statistics.told,
        )

    async def prepare(self, *, takes_work: bool = True) -> None:
        """What must be before the first tick: lanes, a lease, and the runs of nodes that are gone.

        An engine that takes no work executes what it is handed and claims nothing; the lanes stay as they are.
        """
        self._started_at = self.clock.now()
        self.takes_work = self.dispatcher.is_open = takes_work
        settings = self.settings
        if takes_work:
            of = settings.lane_limits, list(settings.lanes), settings.rates
            await self.store.lanes.ensure_lanes(*of, (self.id, self._started_at))
        self.dispatcher.know(self.runner.served)
        self.recorder.connect(self.runner, self.dispatcher)
        await self.notifier.learn()
        await self.spool.write()  # first: what is written cannot be rescued any more
        await self.lease.renew()
        await self.rescuer.rescue()
        self.runner.open()

    async def start(self) -> None:
        """Take part: from here on this node ticks, claims and executes."""
        await self.prepare()
        self.monitor.start()
        for name, service in self._services().items():
            self.watchdog.start(name, service)
        self.is_started = True
        tasks = counted(len(self.registry.tasks), "task")
        log.info("node %s started: %s, %s", self.id, tasks, counted(self.settings.slots, "slot"))

    def attend(self) -> None:
        """On an engine that is only prepared: start the services that a run needs which is executed here."""
        if self.watchdog.services:
            return
        self.direct.rescues = True
        for name, service in self._services().items():
            if name in _FOR_EXECUTED:
                self.watchdog.start(name, service)

    def _services(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """By name; the recorder first, so that nothing can end before somebody writes it down."""
        services: dict[str, Callable[[], Awaitable[None]]] = {
            "recorder": self.recorder.run,
            "reporter": self.recorder.report,
            "budgets": self.budgets.run,
            "lease": self.lease.run,
            "fence": self.fence.run,
            "rescuer": self.rescuer.run,
            "ticker": self.ticker.run,
            "dispatcher": self.dispatcher.run,
            "waker": self.waker.run,
            "pruner": self.pruner.run,
            "replanner": self.replanner.run,
            "freshness": self.freshness.run,
            "notifier": self.notifier.run,
            "quarantine": self.quarantine.run,
        }
        if self.registry.find_task is not None:
            services["task_finder"] = self.task_finder.run
        return services

    async def stop(self, grace: float | None = None) -> None:
        """Drain: claim nothing more, let running work end within the grace, cut off the rest, write it, and leave.

        The grace counts from here. While the database is away, the finishes are kept for all of it, and then spooled.
        """
        self.is_draining = True
        self.runner.set_draining(True)
        await self._stopping.stop(self.settings.grace.total_seconds() if grace is None else grace)

    def force(self) -> None:
        """Do not wait any longer: neither for running work to stop, nor for a database that is away."""
        self._stopping.force()

    async def run_due(self) -> int:
        """By hand: do all that is due or ready now, and answer how many runs that were once nothing is left.

        It needs no started services (but does no harm to them), waits for no due time and for nothing that is ready
        later. `ostinato.testing` drives the engine with it.
        """
        count = 0
        while True:
            # What ends while the step looks may make due what it has looked for already.
            was_busy = self.runner.running > 0 or self.recorder.pending > 0
            ends = self.recorder.ends
            count += (started := await self.step())
            await self.runner.idle.wait()
            while self.recorder.pending:
                await self.recorder.flush(claim=False)
            await self.recorder.tell_late_ends()
            await self.budgets.look()
            if not started and not was_busy and ends == self.recorder.ends:
                await self.freshness.look()  # last: what succeeded now is not late
                await self.notifier.send_due()
                return count

    async def step(self) -> int:
        """By hand: record what is due now and start what is ready now; answers how many runs were started."""
        count = 0
        if not self.is_started:
            self.ticker.attendance.forget()
        await self.rescuer.rescue()
        await self.rescuer.explain_unknown()
        while True:
            if not self.fence.is_fresh:
                await self.lease.renew()  # whoever drives it by hand beats by hand
            self._next_due_at = await self.ticker.tick()
            await self.dispatcher.rest()
            started = self.dispatcher.start_claimed(self.clock.now())
            started += await self.dispatcher.claim()
            started += await self.dispatcher.admit()
            count += started
            if not started:
                return count

    @property
    def next_at(self) -> Micros | None:
        """When there is something to do again, as the last step saw it."""
        times = (self._next_due_at, self.dispatcher.next_start_at, self.freshness.next_at, self.notifier.next_at)
        return min((at for at in times if at is not None), default=None)

    def is_database_lost(self) -> bool:
        """Whether the file was deleted or replaced. Then nothing can be recorded any more, and nothing is started."""
        if self.store.fault is None:
            return False
        self.fence.close()
        self.dispatcher.is_open = False
        return True

    @property
    def sends(self) -> bool:
        """Whether what is owed to channels is sent from here, without being asked."""
        return self.is_started and not self.is_draining

    def learn(self) -> None:
        """Tasks were registered since the start."""
        self.dispatcher.know(self.runner.served)
        self.lease.signal.set()
        self.dispatcher.wake()

    def health(self) -> dict[str, Any]:
        """How this node is, for people and load balancers. Any thread may ask, also while the loop is blocked."""
        services = {name: asdict(health) for name, health in tuple(self.watchdog.services.items())}
        blocked, fault, paused = self.monitor.blocked_for, self.store.fault, self.dispatcher.paused
        return {
            "ok": (
                all(service["up"] for service in services.values())
                and not blocked
                and fault is None
                and paused is None
                and self.fence.holds
            ),
            "node": self.id,
            "draining": self.is_draining,
            "asked_to_drain": self.is_asked_to_drain,
            "database": fault,
            "paused": paused,
            "restart": self.why_restart(),
            "services": services,
            "lease": {
                "holds": self.fence.holds,
                "unrenewed_since": None if self.fence.holds else self._renewed_at(),
                "stopped_runs": self._stopped_runs,
            },
            "loop": {
                "blocked_for": round(blocked, 3),
                "blocked_times": self.monitor.blocked_times,
                "last_block": self.monitor.last_block,
            },
            "clock_jump": self._jump,
            "lost_runs": self.recorder.lost_runs,
            "held": self.dispatcher.claimed_ahead,
            "unwritten": self.recorder.pending,
            **self.runner.health(),
        }

    def why_restart(self) -> str | None:
        """Why this process should be started anew, for those who do that. Any thread may ask.

        A restart cuts off what runs: so neither for a database that is away, nor for a service that runs do not need.
        """
        if self.store.fault is not None:
            return "its database file was deleted or replaced"
        dying = [] if self.is_draining else self.watchdog.dying(_FOR_EVERY_RUN)
        return f"engine service {', '.join(dying)} keeps dying" if dying else None

    def _beat(self, now: Micros, lease_until: Micros) -> NodeBeat:
        ensure_standard_descriptors()
        services = {name: asdict(health) for name, health in self.watchdog.services.items()}
        if (address := self._page_address()) is not None:
            services["page"] = asdict(ServiceHealth(up=True, status=address))
        return NodeBeat(
            id=self.id,
            host=socket.gethostname(),
            pid=os.getpid(),
            # Without slots it is no engine to anybody: only its lease counts, by which its run is rescued.
            slots=self.settings.slots if self.takes_work else 0,
            running=self.runner.running,
            draining=self.is_draining or self.is_asked_to_drain,
            tasks=tuple(self.runner.served) if self.takes_work else (),
            started_at=self._started_at if self._started_at is not None else now,
            now=now,
            lease_until=lease_until,
            services=msgspec.json.encode(services).decode(),
            statistics=msgspec.json.encode(self.statistics.shape()).decode(),
            drain=self.is_asked_to_drain,  # under a new name too: whoever asked meant this process
        )

    def _lost(self) -> None:
        """Others declared this node lost: what it runs is theirs now. Go on under a new name."""
        held = self.dispatcher.forget_claimed()
        lost = self.runner.abandon()
        log.error("node %s lost its lease; gave up %s to other nodes", self.id, counted(len(lost) + held, "run"))
        self.dispatcher.is_open = False  # until the new name is in the database
        self.fence.lost()
        self.id = self.dispatcher.node = self._new_id()
        self.statistics.begin()

    def _beat_now(self) -> None:
        self.lease.signal.set()

    def _fenced(self) -> None:
        """The lease has ended and cannot be renewed: others may start anew what runs here."""
        seconds = self.fence.age / SECOND
        stopped = self.runner.stop_unleased(f"the node could not renew its lease for {seconds:.0f} s")
        self._stopped_runs += stopped
        log.error(
            "node %s could not renew its lease for %.0f s: it starts nothing, stops %s, and lets %d go on "
            "(on_lost_lease is continue)",
            *(self.id, seconds, counted(stopped, "run"), self.runner.running - stopped),
        )

    def _unfenced(self, unrenewed_for: Micros | None) -> None:
        """The lease holds again, and work may start that was refused."""
        if unrenewed_for is not None:
            log.warning("node %s renewed its lease after %.0f s", self.id, unrenewed_for / SECOND)
        self._look()

    def _renewed_at(self) -> str:
        """When the last beat that succeeded was sent, by the clock of now."""
        return from_micros(self.clock.now() - self.fence.age).isoformat(timespec="seconds")

    def _joined(self) -> None:
        self._open()
        self._look()

    def _open(self) -> None:
        """Claim, unless something speaks against it."""
        self.dispatcher.is_open = (
            self.takes_work
            and not self.is_draining
            and not self.is_asked_to_drain
            and not self.lease.is_lost
            and not self.is_database_lost()
        )

    def tell_page(self, address: Callable[[], str | None]) -> None:
        """The page is served beside this engine: others shall know where, while it is."""
        self._page_address = address
        self._beat_now()

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
        self.runner.set_draining(drain or self.is_draining)
        self._open()
        if not drain:
            self._look()
        return True

    def _runner_waits(self) -> None:
        """A run waits for another one, and needs no slot meanwhile."""
        self.dispatcher.wake()

    def _look(self) -> None:
        """Something may be due or ready that nobody told of."""
        self.ticker.signal.set()
        self.dispatcher.wake()

    def _jumped(self, by: Micros) -> None:
        """Somebody set the clock, by so much."""
        direction = "forward" if by > 0 else "back"
        log.warning("the clock was set %s by %.1f s: looking for what is due", direction, abs(by) / SECOND)
        self._jump = {"by": round(by / SECOND, 3), "at": from_micros(self.clock.now()).isoformat(timespec="seconds")}
        if by < 0:
            self.replanner.signal.set()
        self._look()
