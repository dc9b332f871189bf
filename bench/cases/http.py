"""Many HTTP calls at once on one node: what each holds while it waits for its answer."""

from __future__ import annotations

from collections.abc import Mapping

from bench.environments import OURS
from bench.measure import Case, Figures, Options, Place, Row
from bench.processes import Program, ask

__all__ = ["http"]

CALLS = 1_000
WARM_UP = 20
MUST_MEMORY = 1.25
MUST_THREADS = 16
NOTES = (
    f"{CALLS} calls of a server of its own on this machine, which answers nobody before all are there; memory (RSS, "
    f"against that before them) and threads are read then. {WARM_UP} calls before, to warm up.",
    "Ostinato: one process on SQLite, with all that a run has: its row, its context, its time limit.",
    "Bare: httpcore2's connection pool on an asyncio loop, nothing kept. CPU is that of the whole process, from the "
    "first call to the last end; a run is also enqueued, claimed and recorded.",
)


def http(place: Place, _: Options) -> Case:
    """Ours on SQLite, and the bare library."""

    def measured(script: str, **asked: str) -> Figures:
        with Program(OURS, "http_server", {}, place.log) as server:
            port = server.answer(30)["port"]
            return ask(OURS, script, {**asked, "port": port, "n": CALLS, "warm_up": WARM_UP}, place.log)

    def ours() -> Figures:
        with place.fresh_database("sqlite") as db:
            figures = measured("http_ostinato", db=db)
        if figures["recorded"] != CALLS:
            raise AssertionError(f"{figures['recorded']} of {CALLS} calls are recorded with their answer")
        return figures

    return Case(
        "http",
        f"{CALLS:,} HTTP calls at once on one node",
        {"ostinato": ours, "bare httpcore2": lambda: measured("http_bare")},
        _rows,
        NOTES,
    )


def _rows(medians: Mapping[str, Figures]) -> list[Row]:
    ours, bare = medians["ostinato"], medians["bare httpcore2"]
    memory = ours["memory_kb"] / bare["memory_kb"]
    return [
        Row(
            "memory of a call",
            f"{ours['memory_kb']:.0f} KB",
            f"bare httpcore2 {bare['memory_kb']:.0f} KB",
            f"{memory:.2f}×",
            f"≤ {MUST_MEMORY:g}×",
            memory <= MUST_MEMORY,
        ),
        Row(
            "threads of the process",
            f"{ours['threads']:.0f}",
            f"bare httpcore2 {bare['threads']:.0f}",
            must=f"≤ {MUST_THREADS}",
            passed=ours["threads"] <= MUST_THREADS,
        ),
        Row(
            "CPU of a call",
            f"{ours['cpu_ms']:.2f} ms",
            f"bare httpcore2 {bare['cpu_ms']:.2f} ms",
            f"{ours['cpu_ms'] / bare['cpu_ms']:.2f}×",
        ),
    ]
