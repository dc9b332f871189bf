"""A node of a simulated cluster: its processes, one after the other, each with an engine of its own.

`simulation.py` starts, kills and stops it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from ostinato import Ostinato
from ostinato.clock import SECOND, Micros
from ostinato.engine.node import Engine
from ostinato.errors import StoreUnavailable
from ostinato.models.ids import NodeId
from ostinato.testing.chaos.evidence import ProcessLife, Span
from ostinato.testing.chaos.simulated_loop import SimulatedProcess
from ostinato.testing.chaos.simulated_machine import SimulatedClock
from ostinato.testing.chaos.workload import register_tasks

if TYPE_CHECKING:
    from ostinato.testing.chaos.simulation import Simulation

__all__ = ["SKEW", "SimulatedNode"]

SKEW: Micros = SECOND // 20
"""How wrong the clock of a node is at most."""


class SimulatedNode:
    """A node of the cluster, over all the processes that it has been."""

    def __init__(self, simulation: Simulation, name: str) -> None:
        self._simulation = simulation
        self._name = name
        self._starts = 0
        self._names = 0
        self._process: SimulatedProcess | None = None
        self._engine: Engine | None = None
        self._leave = asyncio.Event()
        self._life = ProcessLife("", 0)
        self._is_wanted = True
        self._fast_by = simulation.random.randint(-SKEW, SKEW)
        self._go_on: Callable[[], None] = lambda: None
        """Ends a pause."""
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_running(self) -> bool:
        """Whether it has a process that goes on."""
        return self._process is not None and not self._process.is_stopped

    @property
    def is_up(self) -> bool:
        """Whether its engine is started."""
        return self.is_running and self._engine is not None

    @property
    def has_left(self) -> bool:
        """Whether it has no process."""
        return self._process is None

    def start(self) -> None:
        """A new process, if there is none."""
        if self._process is not None or not self._is_wanted:
            return
        simulation, self._starts = self._simulation, self._starts + 1
        name = f"{self._name}{self._starts}"
        self._life = simulation.lives[name] = ProcessLife(name, simulation.now)
        self._leave = asyncio.Event()
        self._process = simulation.loop.new_process(name)
        self._tasks.append(simulation.loop.spawn(self._process, self._serve(self._process, self._leave)))

    async def _serve(self, process: SimulatedProcess, leave: asyncio.Event) -> None:
        simulation, loop = self._simulation, self._simulation.loop
        clock = SimulatedClock(loop, simulation.began_at, self._fast_by)
        app = Ostinato(settings=simulation.settings, clock=clock)
        lasts, witness = simulation.pace.lasts, simulation.executions.append
        register_tasks(app, process.name, simulation.seed, lasts, lambda: simulation.now, witness)
        store = simulation.database.new_store()
        await store.open()
        engine: Engine | None = None
        while engine is None:
            try:
                engine = Engine(store, app.registry, clock, simulation.settings, self._new_id)
                await engine.start()
            except StoreUnavailable:  # whoever supervises it starts it again
                engine = None
                await asyncio.sleep(1)
        self._engine = engine
        await leave.wait()
        self._engine = None
        await engine.stop()
        await store.close()
        self._end()

    def _new_id(self) -> NodeId:
        self._names += 1
        return NodeId(f"{self._name}{self._starts}-{self._names}")

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None
        self._simulation.loop.kill(self._process)
        self._end()

    def _end(self) -> None:
        self._life.ended_at = self._simulation.now
        self._process = self._engine = None

    def pause(self, seconds: float) -> None:
        """SIGSTOP for so long."""
        process, simulation, life = self._process, self._simulation, self._life
        assert process is not None
        process.is_stopped = True
        since = simulation.now

        def go_on() -> None:
            if process.is_stopped:
                process.is_stopped = False
                life.absences.append(Span(since, simulation.now))

        self._go_on = go_on
        simulation.loop.call_later(seconds, go_on)

    def drain(self) -> None:
        """SIGTERM, and a new process when it has drained."""
        self._leave.set()
        self._simulation.loop.call_later(60, self.start)

    def mend(self) -> None:
        """No more faults: let it go on, or start it."""
        if self._process is not None and self._process.is_stopped:
            self._go_on()
        self._simulation.database.locked_until = 0
        self.start()

    def rest(self) -> None:
        """Plan nothing new."""
        assert self._engine is not None
        assert self._process is not None
        self._is_wanted = False
        self._tasks.append(self._simulation.loop.spawn(self._process, self._engine.watchdog.stop("ticker")))

    def leave(self) -> None:
        """SIGTERM."""
        self._leave.set()
