"""`python -m bench profile`: what one run costs, step by step, in microseconds.

First all runs are enqueued with no engine started, then an engine drains them: two phases that do not disturb each
other. docs/decisions holds what was found.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.cases.throughput import LANE
from bench.postgres import postgres
from bench.programs.link import wait_until
from bench.stopwatch import Stopwatch
from bench.store_steps import store_steps
from ostinato import Ostinato
from ostinato.engine.dispatcher import Dispatcher
from ostinato.engine.recorder import Recorder
from ostinato.errors import WaitTimeout
from ostinato.execution import runner
from ostinato.execution.executors.function import AsyncFunctions
from ostinato.service import runs as run_service

__all__ = ["profile"]

BATCH = 500
BATCHES = (LANE // 2, LANE, 5 * LANE)


@dataclass(frozen=True, slots=True)
class Phase:
    """One half of a run's life."""

    name: str
    wall: float
    """Microseconds per run, all steps together, as a user sees them; 0 where steps are no parts of a whole."""
    cpu: float
    """CPU microseconds per run, of all threads of the process."""
    steps: dict[str, tuple[float, float]]
    """Step → (microseconds per run, runs per call)."""


def profile(folder: Path, databases: list[str], n: int, rounds: int) -> int:
    """Measure on each database and print a table for each. Of all rounds the least counts: noise only adds."""
    console = Console(width=110, highlight=False)
    with ExitStack() as stack:
        for database in databases:
            if database == "sqlite":
                fresh: Iterator[str] = iter(f"sqlite:///{folder / f'profile{number}.db'}" for number in count())
                wrap = _wrap_sqlite
            else:
                fresh = iter(stack.enter_context(postgres(folder)).fresh, None)
                wrap = _wrap_postgres
            for phase in _least([_measure(next(fresh), wrap, n) for _ in range(rounds)]):
                _show(console, database, phase, n)
            for phase in _least([_store_alone(fresh, n) for _ in range(rounds)]):
                _show(console, database, phase, n)
    return 0


def _least(rounds: list[list[Phase]]) -> list[Phase]:
    """Phase by phase and step by step the least of all rounds."""
    found = []
    for phases in zip(*rounds, strict=True):
        steps: dict[str, tuple[float, float]] = {}
        for phase in phases:
            for step, figures in phase.steps.items():
                steps[step] = min(steps.get(step, figures), figures)
        best = min(phases, key=lambda phase: phase.wall)
        found.append(Phase(best.name, best.wall, min(phase.cpu for phase in phases), steps))
    return found


def _store_alone(fresh: Iterator[str], n: int) -> list[Phase]:
    """Each kind of transaction by itself; they are no parts of a whole, so there is no sum."""
    phases = []
    for batch in BATCHES:
        steps = asyncio.run(store_steps(next(fresh), n, batch))
        phases.append(Phase(f"the store alone, claims and finishes of {batch}", 0, 0, steps))
    return phases


def _measure(db: str, wrap: Callable[[Stopwatch], None], n: int) -> list[Phase]:
    watch = Stopwatch()
    app = Ostinato(db, tz="UTC", lanes={"main": LANE})

    @app.task("noop")
    async def noop() -> None:
        pass

    # Once without the stopwatch, so that everything is imported, prepared and warm.
    noop.enqueue_many([()] * BATCH)
    app.start()
    app.wait_idle(timeout=60)
    app.stop()
    with watch.wrapped():
        _wrap_engine(watch)
        wrap(watch)
        watch.wrap_collector("the garbage collector")
        app.health()  # opens the database again, and starts nothing
        watch.clear()
        gc.collect()

        def enqueue() -> None:
            for _ in range(n // BATCH):
                noop.enqueue_many([()] * BATCH)

        def drain() -> None:
            app.start()
            wait_until(lambda: _is_idle(app))

        phases = [_phase("enqueue", enqueue, watch, n), _phase("claim, execute, finish", drain, watch, n)]
        threading.Thread(target=app.stop, daemon=True).start()
        time.sleep(1)
        return phases


def _is_idle(app: Ostinato) -> bool:
    try:
        app.wait_idle(timeout=0)
    except WaitTimeout:
        return False
    return True


def _phase(name: str, work: Callable[[], None], watch: Stopwatch, n: int) -> Phase:
    watch.clear()
    cpu, start = time.process_time(), time.perf_counter()
    work()
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    steps = {
        step: (spent.seconds / n * 1e6, n / spent.calls) for step, spent in watch.steps.items() if spent.calls >= 10
    }
    return Phase(name, wall / n * 1e6, cpu / n * 1e6, steps)


def _wrap_engine(watch: Stopwatch) -> None:
    """Steps on the loop, the same for both databases."""
    watch.wrap(run_service, "NewRun", "make the row (work and policy as JSON)")
    watch.wrap(run_service, "work_text", "make the row (work and policy as JSON)")
    watch.wrap(Dispatcher, "accept", "accept: hand claimed runs to the runner")
    watch.wrap(runner.Runner, "start", "start: load policy and work, context, call")
    watch.wrap(AsyncFunctions, "start", "start: create the task of the loop")
    watch.wrap_step(AsyncFunctions, "_call", "execute: the function's call and its outcome")
    watch.wrap(runner.Runner, "complete", "complete: from outcome to record")
    watch.wrap(runner, "decide", "decide: retry, end, or snooze")
    watch.wrap(Recorder, "add", "record: into the recorder's buffer")


def _wrap_sqlite(watch: Stopwatch) -> None:
    """Steps on the writer's thread."""
    from ostinato.stores.sqlite import claims, parts, runs
    from ostinato.stores.sqlite.writer import Writer

    watch.wrap(runs, "insert_all", "writer: insert rows")
    watch.wrap(parts, "end_rows", "writer: finish rows, fenced by token")
    watch.wrap_step(runs, "finish_all", "writer: finish, what follows")
    watch.wrap_step(runs, "claim_now", "writer: claim, lanes and room")
    watch.wrap(claims, "_pick_lane", "writer: claim, pick rows")
    watch.wrap(claims, "load_claimed", "writer: claim, row to ClaimedRun")
    watch.wrap_step(claims, "_take", "writer: claim, mark rows running")
    watch.wrap(Writer, "_commit", "writer: begin, commit (fsync)")


def _wrap_postgres(watch: Stopwatch) -> None:
    """Steps of the writer, which lives on the loop: sending is our own time, the rest is waiting for the server."""
    from ostinato.stores.postgres import claims, finishes, inserts, runs
    from ostinato.stores.postgres.writer import Writer

    watch.wrap(inserts._Columns, "values", "writer: insert, columns to arrays")
    watch.wrap(finishes, "_end_values", "writer: finish, columns to arrays")
    watch.wrap(claims, "load_claimed", "writer: claim, row to ClaimedRun")
    watch.wrap_waiting(runs, "send_insert", "writer: insert, send (with arrays)")
    watch.wrap_waiting(runs, "send_ends", "writer: finish, send (with arrays)")
    watch.wrap_waiting(runs, "send_claim", "writer: claim, send")
    watch.wrap_waiting(Writer, "_transact", "writer: whole transaction, with waiting for server and fsync")


def _show(console: Console, database: str, phase: Phase, n: int) -> None:
    title = f"{database}: {phase.name} ({n:,} async no-op runs, lane {LANE})"
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("step")
    table.add_column("µs per run", justify="right")
    table.add_column("runs per call", justify="right")
    for step, (micros, runs) in phase.steps.items():
        table.add_row(step, f"{micros:.1f}", f"{runs:,.3g}")
    if phase.wall == 0:
        console.print(table)
        return
    table.add_section()
    table.add_row("wall, all together", f"{phase.wall:.1f}", f"{1e6 / phase.wall:,.0f}/s")
    table.add_row("CPU of the process", f"{phase.cpu:.1f}", "")
    console.print(table)
