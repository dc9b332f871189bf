"""Idle schedules: what it costs to add them, and to have them while ten others are due each second."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bench.environments import OURS
from bench.measure import Case, Figures, Options, Place, Row
from bench.processes import ask

__all__ = ["idle"]

MUST_ADD = 20_000
MUST_CPU = 2.0
SAME_MS = 5.0
NOTES = (
    "One process with its engine started. Idle schedules: half daily, half cron, spread over the next day, none due "
    "within two hours. add_many takes a list of ScheduleSpec with Timing objects, made before the clock starts, and "
    "the time includes its commits.",
    "CPU is that of the engine's process with all its threads, as a share of one core, over 10 s: `idle` with nothing "
    "due, `with 10/s` while ten schedules every second are due at the same instant. The server's own CPU is not in it.",
    "Lateness is the same at each size when its p99 is within 5 ms of that of the smallest size.",
)


def idle(place: Place, options: Options) -> Case:
    """Each size on each database."""

    def run(kind: str, size: int) -> Callable[[], Figures]:
        def measured() -> Figures:
            with place.fresh_database(kind) as db:
                asked = {"db": db, "size": size, "seconds": min(10, options.seconds)}
                return ask(OURS, "idle_ostinato", asked, place.log, 300)

        return measured

    kinds = ("sqlite", "postgres")
    return Case(
        "idle",
        "idle schedules, plus 10 due each second",
        {f"{kind} {size}": run(kind, size) for kind in kinds for size in options.sizes},
        _rows,
        NOTES,
    )


def _rows(medians: Mapping[str, Figures]) -> list[Row]:
    smallest: dict[str, Figures] = {}
    found = []
    for name, figures in medians.items():
        kind, _, size = name.partition(" ")
        what = f"{int(size):,} idle, {kind}"
        first = smallest.setdefault(kind, figures)
        rate, idle_cpu, live_cpu = figures["add_rate"], figures["idle_cpu_percent"], figures["live_cpu_percent"]
        found.append(
            Row(
                f"{what}: add_many",
                f"{rate:,.0f}/s, {figures['add_cpu_us']:.0f} µs of CPU each",
                must="≥ 20,000/s",
                passed=rate >= MUST_ADD,
            )
        )
        found.append(Row(f"{what}: CPU idle", f"{idle_cpu:.2f} %", must="< 2 %", passed=idle_cpu < MUST_CPU))
        found.append(Row(f"{what}: CPU with 10/s", f"{live_cpu:.2f} %", must="< 2 %", passed=live_cpu < MUST_CPU))
        found.append(
            Row(
                f"{what}: lateness",
                f"p50 {figures['p50_ms']:.1f}, p99 {figures['p99_ms']:.1f} ms",
                f"{first['p99_ms']:.1f} ms at the smallest",
                must="the same; none missed or doubled",
                passed=figures["p99_ms"] - first["p99_ms"] <= SAME_MS and figures["missed"] == figures["doubled"] == 0,
            )
        )
        found.append(Row(f"{what}: memory", f"{figures['rss_mib']:.0f} MiB"))
    return found
