"""Who uses a simulated cluster: adds schedules, enqueues, sends messages, and writes down what was acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import TYPE_CHECKING, Any

from ostinato import Ostinato
from ostinato.clock import SECOND, to_micros
from ostinato.errors import OstinatoError
from ostinato.models.lane import DEFAULT_LANES
from ostinato.service.runs import EnqueueSpec
from ostinato.testing.chaos.evidence import Expectation
from ostinato.testing.chaos.simulated_machine import SimulatedClock
from ostinato.testing.chaos.workload import LANES, Planned, draw_schedules, register_tasks
from ostinato.wiring import Container

if TYPE_CHECKING:
    from ostinato.testing.chaos.simulation import Simulation

__all__ = ["SimulatedClient"]


class SimulatedClient:
    """Who adds schedules, enqueues and sends messages, and writes down what was acknowledged."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._random = Random(f"{simulation.seed}/client")
        self._process = simulation.loop.new_process("client")
        self.expectations: list[Expectation] = []
        self.asked_for: dict[int, int] = {}
        self.sent: dict[str, list[int]] = {}
        self.is_over = False

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Let it run in the process of this client."""
        return self._simulation.loop.spawn(self._process, work)

    async def set_up(self) -> None:
        simulation = self._simulation
        clock = SimulatedClock(simulation.loop, simulation.began_at)
        app = Ostinato(settings=simulation.settings, clock=clock)
        register_tasks(app, "client", simulation.seed, 1.0, clock.now, simulation.executions.append)
        store = simulation.database.new_store()
        await store.open()
        await store.lanes.ensure_lanes({**DEFAULT_LANES, **LANES}, list(LANES))
        self._services = Container(store, clock, simulation.settings, app.registry).services
        for planned in draw_schedules(self._random, simulation.pace):
            await self._add(planned)

    async def _add(self, planned: Planned) -> None:
        added = await self._services.schedules.add(
            planned.name, planned.timing, planned.task, tz=planned.zone, **planned.policy
        )
        since = to_micros(added.anchor_at)
        max_age = planned.policy.get("max_age")
        self.expectations.append(
            Expectation(
                planned.name,
                planned.oracle(since),
                since,
                planned.retries,
                planned.policy["catch_up"],
                None if max_age is None else int(max_age[:-1]) * SECOND,
                planned.policy["overlap"] == "allow",
            )
        )

    async def work(self) -> None:
        """Enqueue and send, until it is over."""
        pause = self._simulation.pace.steps[0]
        while not self.is_over:
            await asyncio.sleep(self._random.expovariate(1 / pause))
            try:
                await self._ask()
            except OstinatoError:
                continue  # refused, or the database did not take it

    async def _ask(self) -> None:
        random, retries = self._random, self._random.choice((0, 2))
        if random.random() < 0.5:
            spec = EnqueueSpec("work", {"retry": retries, "lane": "main"})
            for id in await self._services.runs.enqueue(spec, [((), {})] * random.randint(1, 5)):
                self.asked_for[id] = retries
        else:
            key = f"box{random.randrange(3)}"
            for number in range(random.randint(1, 4)):
                id = await self._services.sessions.send(
                    key, number, task="letter", debounce=0, cap=1_000, retry=retries, lane="main"
                )
                self.asked_for[id] = retries
                self.sent.setdefault(key, []).append(id)
