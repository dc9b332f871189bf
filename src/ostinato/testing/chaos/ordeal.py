"""An ordeal of real processes: an app of yours on a database of its own, faults for some minutes, and the judge.

The nodes are processes of `cluster.py`. This process adds schedules and asks for runs by the Python API as any client,
breaks things, and in the end lets everything come to rest. A PostgreSQL server is used by a schema that is made for the
ordeal and dropped after it; without a database it is an SQLite file in a folder of its own.
"""

from __future__ import annotations

import random
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ostinato.app import Ostinato
from ostinato.cli.open_database import import_app
from ostinato.clock import SECOND, Micros, micros_of, to_micros
from ostinato.durations import Duration, parse_duration
from ostinato.errors import InvalidInput, OstinatoError, OutcomeUnknown
from ostinato.models.policy import Overlap
from ostinato.models.schedule import Schedule
from ostinato.run_handles import RunHandle
from ostinato.testing.chaos.cluster import Cluster, RealNode, wall
from ostinato.testing.chaos.database import RealDatabase, ends_after, open_database
from ostinato.testing.chaos.evidence import Evidence, Expectation, Span
from ostinato.testing.chaos.ledger import read_rows, read_schedules
from ostinato.testing.chaos.node import NodeSpec, put_on
from ostinato.testing.chaos.oracle import oracle_of
from ostinato.testing.chaos.report import Report
from ostinato.testing.chaos.witness import read_witnesses

__all__ = ["FAULTS", "Load", "run"]

FAULTS = ("kill", "pause", "drain", "database", "failpoint")
"""What can be done: SIGKILL, SIGSTOP for up to three leases, SIGTERM and a new process; to the database: another
program locks the SQLite file, or every connection to PostgreSQL is ended, several times a second; and a process kills
itself at any step of a fire, now and then."""

Load = Callable[[], Iterable[RunHandle[Any]]]
"""Asks for runs, and hands out the handle of each that was acknowledged."""

_FAILPOINTS = "*=kill%0.0005"
_REST_SECONDS = 120.0
_LOOK_SECONDS = 1.0


def run(
    app: Ostinato | str,
    *,
    minutes: float = 1.0,
    faults: Sequence[str] = FAULTS,
    nodes: int = 3,
    db: str | None = None,
    lease: Duration = "3s",
    seed: int | None = None,
    set_up: Callable[[Ostinato], object] | None = None,
    load: Load | None = None,
) -> Report:
    """Run an app in so many processes, break things for some minutes, and judge what became of its due times.

    The app is one that can be imported (`jobs:app`, or the object itself). It works on a database of the ordeal's own:
    an SQLite file, or a schema of the PostgreSQL that `db` names, which is dropped afterwards. `set_up` adds schedules
    to those that the code declares; `load` is called every second and asks for runs. The seed draws the faults.

        report = chaos.run("jobs:app", minutes=5, faults=["kill", "pause"], db="postgresql://localhost/scratch")
        report.check()
    """
    unknown = sorted(set(faults) - set(FAULTS))
    if unknown:
        raise InvalidInput(f"there is no fault {unknown[0]!r}", field="faults", hint=f"use some of {', '.join(FAULTS)}")
    place = app if isinstance(app, str) else _place_of(app)
    known = import_app(place)
    mark = secrets.token_hex(4)
    with tempfile.TemporaryDirectory(prefix="ostinato-chaos-") as folder:
        seconds = parse_duration(lease, field="lease").total_seconds()
        with open_database(db, Path(folder), mark) as database, _lent(known, database, seconds):
            spec = NodeSpec(mark, "", place, database.url, database.schema, seconds, "")
            ordeal = _Ordeal(known, Cluster(spec, Path(folder), nodes), database, faults, random.Random(seed), load)
            return ordeal.play(minutes * 60, set_up)


def _place_of(app: Ostinato) -> str:
    for name, module in list(sys.modules.items()):
        for attribute, value in list(vars(module).items()) if name != "__main__" else []:
            if value is app:
                return f"{name}:{attribute}"
    raise InvalidInput(
        "the nodes cannot import this app", field="app", hint="put it into a module, and name it: chaos.run('jobs:app')"
    )


@contextmanager
def _lent(app: Ostinato, database: RealDatabase, lease: float) -> Iterator[None]:
    """Let the app of this process be a client of that database for a while."""
    before = app.settings
    app.stop()
    put_on(app, database.url, database.schema, lease)
    try:
        yield
    finally:
        app.stop()
        app.settings = before


class _Ordeal:
    """One of them."""

    def __init__(
        self,
        app: Ostinato,
        cluster: Cluster,
        database: RealDatabase,
        faults: Sequence[str],
        random: random.Random,
        load: Load | None,
    ) -> None:
        self._app = app
        self._cluster = cluster
        self._database = database
        self._wanted = faults
        self._random = random
        self._load = load
        self._lease = cluster.spec.lease
        self._later: list[tuple[float, Callable[[], None]]] = []
        """What is to be done when, by time.monotonic()."""
        self._faults = Counter[str]()
        self._outages: list[Span] = []
        self._asked_for: dict[int, int | None] = {}
        self._is_unsure = False
        self._ends: dict[int, tuple[Any, ...]] = {}
        """How runs had ended when that was seen first."""
        self._complaints: list[str] = []
        self._began_at: Micros = wall()

    def play(self, seconds: float, set_up: Callable[[Ostinato], object] | None) -> Report:
        """From the first process to the verdict."""
        cluster = self._cluster
        try:
            if set_up is not None:
                set_up(self._app)
            for node in cluster.nodes:
                node.start()
            if "failpoint" in self._wanted:
                cluster.failpoints = _FAILPOINTS  # whatever is started from now on
            schedules = self._app.schedules.list()
            self._break_things(time.monotonic() + seconds)
            self._mend()
            expectations = [self._switched_off(schedule) for schedule in schedules]
            self._come_to_rest()
            for node in cluster.nodes:
                if (status := node.drain()) != 0:
                    self._complaints.append(f"a node that was drained ended with status {status}")
            report = Report()
            report.add(self._evidence(expectations))
            return report
        finally:
            cluster.close()

    def _break_things(self, end: float) -> None:
        fault_at, look_at = time.monotonic(), 0.0
        while (now := time.monotonic()) < end:
            if self._wanted and now >= fault_at:
                fault_at = now + self._random.expovariate(1 / (self._lease / 2))
                self._break_something(self._random.choice(self._cluster.nodes))
            if now >= look_at:
                look_at = now + _LOOK_SECONDS
                self._ask()
                self._look_at_ends()
            self._start_the_dead()
            self._do_later(now)
            time.sleep(0.02)

    def _start_the_dead(self) -> None:
        for node in self._cluster.nodes:
            if node.has_died():
                self._faults["failpoint"] += 1
                self._in(self._random.uniform(0, self._lease), partial(node.start, wait=False))

    def _do_later(self, now: float) -> None:
        due = [entry for entry in self._later if entry[0] <= now]
        self._later = [entry for entry in self._later if entry[0] > now]
        for _, action in due:
            action()

    def _in(self, seconds: float, action: Callable[[], None]) -> None:
        self._later.append((time.monotonic() + seconds, action))

    def _break_something(self, node: RealNode) -> None:
        fault = self._random.choice(self._wanted)
        match fault:
            case "kill" if node.is_running:
                node.kill()
                self._in(self._random.uniform(0, self._lease), partial(node.start, wait=False))
            case "pause" if node.is_running:
                node.pause()
                self._in(self._random.uniform(0, 3 * self._lease), node.go_on)
            case "drain" if node.is_running:
                self._let_go_on()
                node.drain()
                self._in(self._random.uniform(0, 1), partial(node.start, wait=False))
            case "database":
                self._let_go_on()
                since = wall()
                self._database.disturb(self._random.uniform(0, 2 * self._lease))
                self._outages.append(Span(since, wall()))
            case _:
                return
        self._faults[fault] += 1

    def _let_go_on(self) -> None:
        """Before this process waits itself: a stopped one may hold the lock of an SQLite file."""
        for node in self._cluster.nodes:
            node.go_on()

    def _ask(self) -> None:
        """Let the client ask for runs."""
        if self._load is None:
            return
        try:
            for handle in self._load():
                self._asked_for[handle.id] = None
        except OutcomeUnknown:
            self._is_unsure = True
        except OstinatoError:
            return  # refused, or the database did not take it

    def _look_at_ends(self) -> None:
        for id, *end in ends_after(self._database, max(self._ends, default=0) - 5_000):
            self._ends.setdefault(id, tuple(end))

    def _mend(self) -> None:
        """No more faults: whatever was stopped goes on, whatever is gone is started, and all catch up."""
        self._later.clear()
        self._cluster.failpoints = ""
        self._let_go_on()
        for node in self._cluster.nodes:
            node.kill()  # it may have failpoints
            node.start()
        time.sleep(2 * self._lease)

    def _switched_off(self, schedule: Schedule) -> Expectation:
        """What was expected of a schedule until now, when it is switched off."""
        since = wall()
        self._app.schedules.disable(schedule.name, keep_retries=True)
        policy = schedule.policy
        return Expectation(
            schedule.name,
            oracle_of(schedule),
            to_micros(schedule.anchor_at),
            policy.retry.max,
            str(policy.catch_up),
            None if policy.max_age is None else micros_of(policy.max_age),
            policy.overlap is Overlap.ALLOW,
            Span(since, wall()),
        )

    def _come_to_rest(self) -> None:
        """Nothing new is due any more: wait for what was."""
        end = time.monotonic() + _REST_SECONDS
        count = "SELECT count(*) FROM runs WHERE state IN ('queued', 'running')"
        while self._database.select(count)[0][0] and time.monotonic() < end:
            self._look_at_ends()
            time.sleep(0.2)

    def _evidence(self, expectations: Sequence[Expectation]) -> Evidence:
        cluster, database, tuning = self._cluster, self._database, self._app.settings.tuning
        if database.has_one_lock:  # which a stopped process may have held
            self._outages += [absence for life in cluster.lives.values() for absence in life.absences]
        for life in cluster.lives.values():
            until = life.ended_at or wall()
            life.absences += [one for one in self._outages if one.overlaps(life.started_at, until)]
        rows = read_rows(database.select)
        changed = [row for row in rows if row.id in self._ends]
        return Evidence(
            began_at=self._began_at,
            ended_at=wall(),
            lease=round(self._lease * SECOND),
            kill=round(tuning.function_stop_seconds * SECOND),
            expectations=expectations,
            executions=read_witnesses(cluster.witnesses()),
            rows=rows,
            schedules=read_schedules(database.select),
            processes=cluster.lives,
            asked_for=self._asked_for,
            perhaps_asked_for=self._is_unsure,
            lanes={lane.name: lane.limit for lane in self._app.lanes.list()},
            outages=self._outages,
            faults=self._faults,
            rewritten=[
                f"run {row.id} was {self._ends[row.id]}, and is {end}"
                for row in changed
                if (end := (row.state, row.token, row.finished_at)) != self._ends[row.id]
            ],
            witnessed=frozenset(name for name, task in self._app.registry.tasks.items() if task.isolation == "none"),
            left_over=[f"process {process}" for process in self._gone_soon()],
            damage=database.damage(),
            complaints=self._complaints,
        )

    def _gone_soon(self) -> list[int]:
        """What lives on a moment after the nodes have ended: their guard has to kill what killed ones left."""
        end = time.monotonic() + self._app.settings.tuning.command_kill_seconds
        while (left := self._cluster.left_over()) and time.monotonic() < end:
            time.sleep(0.1)
        return left
