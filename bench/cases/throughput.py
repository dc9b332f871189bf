"""No-op runs, enqueued in batches and all recorded as finished: SQLite async and sync, PostgreSQL async."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bench.environments import OURS, interpreter
from bench.measure import Case, Figures, Options, Place, Row
from bench.processes import Program, ask

__all__ = ["postgres_async", "sqlite_async", "sqlite_sync"]

LANE = 100
"""Our limit of runs under way: the same as pgqueuer's batch."""
WIDE_LANE = 250
WARM_UP = 500
SQLITE_NOTES = (
    "Worker in one process, producer in another; the clock runs from the first enqueue until the producer sees that "
    "all are recorded (a cheap look every 10 ms). Each contender is warmed up first. "
    "Rates are medians of all rounds; a ratio is the median of the ratios within each round. Rows with `itself` are "
    "information.",
    "Ostinato: enqueue_many of 500, lane main=100, slots 256. Each run stays as a row with state, times, attempt, "
    "node and result; synchronous=FULL.",
    "Huey: 4 worker threads, fsync=True (synchronous=FULL), store_none=True: one result row per task, and the task's "
    "own row deleted. It has no batch enqueue and no async tasks. Its pauses when idle are shortened to 10-50 ms. It "
    "gets fewer jobs, because the figure is a rate.",
    "Raw: one thread with apsw, a narrow table, insert 500 per transaction, then finish and claim 500 in one "
    "transaction; nothing executed. A ceiling, not a peer.",
)
POSTGRES_NOTES = (
    "One server for all: fsync, synchronous_commit and full_page_writes on, a fresh database each time, reached over "
    "its Unix socket. Process layout and clock as for SQLite.",
    "pgqueuer: asyncpg on uvloop (as its command line), one connection, batch_size 100, enqueue of 500, and no limit "
    "of jobs under way (it takes none below twice its batch), where ours is 100; deletes the job's row and keeps "
    "three rows of its log per job. "
    "Procrastinate: concurrency 100, pool of 20, batch_defer of 500, fewer jobs.",
    "Raw: psycopg on one connection, unnest inserts of 500, claim and finish of 500, each its own transaction.",
)


def sqlite_async(place: Place, options: Options) -> Case:
    """Async functions on SQLite."""
    return _sqlite("sqlite-async", "async", 12, place, options)


def sqlite_sync(place: Place, options: Options) -> Case:
    """Sync functions on SQLite."""
    return _sqlite("sqlite-sync", "sync", 8, place, options)


def _sqlite(name: str, kind: str, must: float, place: Place, options: Options) -> Case:
    def huey() -> Figures:
        with place.fresh_folder() as folder:
            asked = {"path": str(folder / "huey.db"), "n": options.n // 5, "warm_up": WARM_UP // 5, "workers": 4}
            return _split(place, "huey", "noop_huey", asked)

    def raw() -> Figures:
        with place.fresh_folder() as folder:
            return ask(OURS, "raw_sqlite", {"path": str(folder / "raw.db"), "n": options.n}, place.log)

    return Case(
        name,
        f"{options.n:,} no-op {kind} runs enqueued in batches and all finished, SQLite",
        {
            "ostinato": lambda: _ostinato(place, "sqlite", kind, options),
            "huey": huey,
            "raw": raw,
            **_others(place, "sqlite", kind, options),
        },
        _rows({"huey": must}),
        SQLITE_NOTES,
    )


def postgres_async(place: Place, options: Options) -> Case:
    """Async functions on PostgreSQL."""

    def peer(script: str, environment: str, n: int, **settings: Any) -> Callable[[], Figures]:
        def run() -> Figures:
            with place.fresh_database("postgres") as db:
                asked = {"db": db, "n": n, "warm_up": WARM_UP, **settings}
                ask(interpreter(environment), script, {**asked, "role": "install"}, place.log)
                return _split(place, environment, script, asked)

        return run

    def raw() -> Figures:
        with place.fresh_database("postgres") as db:
            return ask(OURS, "raw_postgres", {"db": db, "n": options.n}, place.log)

    return Case(
        "postgres-async",
        f"{options.n:,} no-op async runs enqueued in batches and all finished, PostgreSQL",
        {
            "ostinato": lambda: _ostinato(place, "postgres", "async", options),
            "pgqueuer": peer("noop_pgqueuer", "pgqueuer", options.n, batch=100),
            "procrastinate": peer(
                "noop_procrastinate", "procrastinate", options.n // 10, concurrency=100, connections=20
            ),
            "raw": raw,
            **_others(place, "postgres", "async", options),
        },
        _rows({"pgqueuer": 1.2}),
        POSTGRES_NOTES,
    )


def _others(place: Place, database: str, kind: str, options: Options) -> dict[str, Callable[[], Figures]]:
    """Ours in other settings, for information."""
    return {
        "itself in one process": lambda: _ostinato(place, database, kind, options, one_process=True),
        f"itself with lane {WIDE_LANE}": lambda: _ostinato(place, database, kind, options, lane=WIDE_LANE),
    }


def _ostinato(
    place: Place, database: str, kind: str, options: Options, *, lane: int = LANE, one_process: bool = False
) -> Figures:
    with place.fresh_database(database) as db:
        asked = {"db": db, "kind": kind, "lane": lane, "n": options.n, "warm_up": WARM_UP}
        if one_process:
            return _checked(ask(OURS, "noop_ostinato", {**asked, "role": "both"}, place.log), asked)
        return _split(place, None, "noop_ostinato", asked)


def _split(place: Place, environment: str | None, script: str, asked: Mapping[str, Any]) -> Figures:
    """A worker process that is ready, and a producer process that takes the time."""
    python = OURS if environment is None else interpreter(environment)
    with Program(python, script, {**asked, "role": "worker"}, place.log) as worker:
        worker.answer(60)
        return _checked(ask(python, script, {**asked, "role": "producer"}, place.log), asked)


def _checked(figures: Figures, asked: Mapping[str, Any]) -> Figures:
    if figures["recorded"] != asked["n"]:
        raise AssertionError(f"{figures['recorded']} of {asked['n']} jobs are recorded as finished")
    return figures


def _rows(musts: Mapping[str, float]) -> Callable[[Mapping[str, Figures]], list[Row]]:
    def rows(medians: Mapping[str, Figures]) -> list[Row]:
        ours = medians["ostinato"]["rate"]
        found = []
        for name, figures in medians.items():
            if name == "ostinato":
                continue
            ratio = figures["ratio"]
            must = musts.get(name)
            found.append(
                Row(
                    "runs per second",
                    f"{ours:,.0f}",
                    f"{name} {figures['rate']:,.0f}",
                    f"{ratio:.2f}×",
                    f"≥ {must:g}×" if must else "",
                    ratio >= must if must else None,
                )
            )
        return found

    return rows
