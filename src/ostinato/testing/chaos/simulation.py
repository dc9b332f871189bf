"""A whole cluster in one thread, on a clock of its own: hours of faults in a second, and the same again from its seed.

Several nodes with all their services work on one SQLite database in memory. They are killed, stopped and started again,
the database is slow or locked, and their clocks differ by a little. At the end all faults stop, what is queued comes to
its end, and everything is handed to the judge. The seed decides all of it: what is to be done, whose turn it is, and
what breaks.
"""

from __future__ import annotations

import asyncio
import logging
import random as global_random
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from random import Random

from ostinato.clock import SECOND, Micros
from ostinato.config import Settings
from ostinato.logs import get_logger
from ostinato.testing.chaos.evidence import Evidence, Execution, Mailbox, ProcessLife, Span
from ostinato.testing.chaos.ledger import read_rows, read_schedules
from ostinato.testing.chaos.report import Report
from ostinato.testing.chaos.simulated_client import SimulatedClient
from ostinato.testing.chaos.simulated_loop import SimulatedLoop
from ostinato.testing.chaos.simulated_machine import SharedDatabase
from ostinato.testing.chaos.simulated_node import SKEW, SimulatedNode
from ostinato.testing.chaos.workload import LANES, STUBBORNNESS, Pace
from ostinato.tuning import Tuning

__all__ = ["DENSE", "SPARSE", "Simulation", "simulate"]

DENSE = Pace((3, 5, 15, 60), 30, 1.0)
"""Many due times, within minutes."""
SPARSE = Pace((300, 900, 3_600), 8, 20.0)
"""Hours in which little happens, which cost little."""
_BEGINNINGS = range(1_767_225_600, 1_798_761_600)
"""Of 2026."""
_CALM: Micros = 5 * SECOND
"""How long the nodes have to record what they could not see."""
_REST: Micros = 1_200 * SECOND
"""So long what is left over may take once nothing is broken any more."""


def simulate(seeds: Iterable[int] = range(10), *, hours: float = 1.0, nodes: int = 3, pace: Pace = DENSE) -> Report:
    """Play the histories of these seeds, each so many simulated hours long, and judge them."""
    report = Report()
    for seed in seeds:
        report.add(Simulation(seed, hours=hours, nodes=nodes, pace=pace).run(), f"seed {seed}")
    return report


class Simulation:
    """One history."""

    def __init__(self, seed: int, *, hours: float = 1.0, nodes: int = 3, pace: Pace = DENSE) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.loop = SimulatedLoop(self.random)  # type: ignore[abstract]  # it reads no files and sockets
        self.pace = pace
        self.began_at: Micros = self.random.choice(_BEGINNINGS) * SECOND
        self.length = round(hours * 3_600 * SECOND)
        lease = 15 if pace is DENSE else 300
        tuning = Tuning(loop_block_seconds=0, lease_look_seconds=lease / 3)
        self.settings = Settings(
            db="sqlite://:memory:", lanes=LANES, lease=timedelta(seconds=lease), slots=8, tuning=tuning
        )
        self.database = SharedDatabase(self.loop, self.random, tuning)
        self.nodes = [SimulatedNode(self, name) for name in "abcdefgh"[:nodes]]
        self.executions: list[Execution] = []
        self.lives: dict[str, ProcessLife] = {}
        self.client = SimulatedClient(self)
        self.outages: list[Span] = []
        self.faults = Counter[str]()

    def run(self) -> Evidence:
        """From the beginning to the end."""
        state = global_random.getstate()
        global_random.seed(self.seed)  # what the engine draws, for jitter and retries
        try:
            with _silenced(self.loop.complaints):
                self._play()
                return self._evidence()
        finally:
            global_random.setstate(state)
            self.loop.close()
            self.database.close()

    @property
    def now(self) -> Micros:
        """What time it is, by a clock that is right."""
        return self.began_at + self.loop.now

    def _play(self) -> None:
        loop = self.loop
        loop.run_until_complete(self.client.spawn(self.client.set_up()))
        for node in self.nodes:
            node.start()
        work = self.client.spawn(self.client.work())
        end = loop.now + self.length
        faults = loop.create_task(self._break_things(end))
        loop.run_until(faults.done)
        faults.result()
        self.client.is_over = True
        self._be_quick()
        for node in self.nodes:
            node.mend()
        loop.run_until(work.done)
        work.result()
        loop.run_until(lambda: all(node.is_up for node in self.nodes))
        loop.run_to(loop.now + _CALM)
        self._rested_at = self.now
        for node in self.nodes:
            node.rest()
        self._come_to_rest()
        for node in self.nodes:
            node.leave()
        loop.run_until(lambda: all(node.has_left for node in self.nodes))

    def _come_to_rest(self) -> None:
        """Nothing new is due any more: wait for what was."""
        end = self.loop.now + _REST
        count = "SELECT count(*) FROM runs WHERE state IN ('queued', 'running')"
        while self.database.connection.execute(count).fetchall()[0][0] and self.loop.now < end:
            self.loop.run_to(self.loop.now + SECOND)

    async def _break_things(self, end: Micros) -> None:
        """One fault after the other, with times between that are drawn."""
        pause = self.pace.steps[0] * 10
        while self.loop.now < end:
            await asyncio.sleep(min(self.random.expovariate(1 / pause), (end - self.loop.now) / SECOND + 0.001))
            if self.loop.now < end:
                self._break_something(self.random.choice(self.nodes))

    def _break_something(self, node: SimulatedNode) -> None:
        lease = self.settings.lease.total_seconds()
        loop, random = self.loop, self.random
        match random.randrange(8):
            case 0 | 1 | 2 if node.is_running:
                self.faults["kill"] += 1
                node.kill()
                loop.call_later(random.choice((0.1, 2.0, lease, 3 * lease)), node.start)
            case 3 | 4 if node.is_running:
                self.faults["pause"] += 1
                node.pause(random.uniform(0, 3 * lease))
            case 5:
                self.faults["slow database"] += 1
                self.database.slowness = random.choice((10.0, 100.0))
                loop.call_later(random.uniform(1, lease), self._be_quick)
            case 6:
                self.faults["locked database"] += 1
                self._lock(round(random.uniform(0, 2 * lease) * SECOND))
            case 7 if node.is_up:
                self.faults["drain"] += 1
                node.drain()
            case _:
                pass

    def _lock(self, length: Micros) -> None:
        """Another program locks the database: nobody reaches it."""
        if self.database.locked_until <= self.loop.now:
            self.database.locked_until = self.loop.now + length
            self.outages.append(Span(self.now, self.now + length))

    def _be_quick(self) -> None:
        self.database.slowness = 1.0

    def _evidence(self) -> Evidence:
        client, connection = self.client, self.database.connection
        for life in self.lives.values():
            life.absences += [one for one in self.outages if one.overlaps(life.started_at, life.ended_at or self.now)]
        return Evidence(
            began_at=self.began_at,
            ended_at=self.now,
            lease=round(self.settings.lease.total_seconds() * SECOND),
            kill=round(self.settings.tuning.function_stop_seconds * SECOND),
            expectations=client.expectations,
            executions=self.executions,
            rows=read_rows(connection.execute),
            schedules=read_schedules(connection.execute),
            processes=self.lives,
            asked_for=client.asked_for,
            mailboxes=[Mailbox(key, messages) for key, messages in client.sent.items()],
            lanes=LANES,
            outages=self.outages,
            faults=self.faults,
            fast_by=SKEW,
            rewritten=self.database.rewritten(),
            rest=self.now - self._rested_at,
            stubbornness=STUBBORNNESS,
            complaints=self.loop.complaints,
        )


@contextmanager
def _silenced(complaints: list[str]) -> Iterator[None]:
    """What the engine logs is not printed; errors with a traceback are complaints."""
    logger = get_logger("ostinato")
    handler = _Complaints(complaints)
    before = logger.propagate, logger.level
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate, logger.level = before


class _Complaints(logging.Handler):
    def __init__(self, complaints: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._complaints = complaints

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self._complaints.append(f"{record.getMessage()}: {record.exc_info[1]!r}")
