"""Lateness of starts: 200 schedules due at the same instant of every second, on both databases."""

from __future__ import annotations

from collections.abc import Mapping

from bench.environments import OURS, interpreter
from bench.measure import Case, Figures, Options, Place, Row
from bench.processes import ask

__all__ = ["lateness"]

COUNT = 200
MUST_MS = 10.0
NOTES = (
    "200 schedules `every 1s from <a whole second>`, all due at the same instant, after one second of warm-up. "
    "Lateness is time.time() as the first thing inside the async function, minus the due time.",
    "Ostinato: one process, every fire recorded, claimed and finished in the database; lane cron=200, so that all may "
    "run at once; the heap is frozen after the start, as `ostinato up` does. Missed or doubled are counted by schedule "
    "and due time inside the function.",
    "APScheduler 3.11 in memory, nothing recorded: AsyncIOScheduler (jobs on the loop, as ours) and "
    "BackgroundScheduler with 200 threads; misfire_grace_time=None, so that lateness is seen and not dropped.",
    "Bare asyncio: loop.call_at for the same callbacks, in the same run: what this machine allows just now.",
)


def lateness(place: Place, options: Options) -> Case:
    """Ours on both databases, APScheduler in memory, and the bare loop."""
    asked = {"count": COUNT, "seconds": options.seconds}
    seconds = options.seconds + 60

    def ours(kind: str) -> Figures:
        with place.fresh_database(kind) as db:
            return ask(OURS, "lateness_ostinato", {**asked, "db": db}, place.log, seconds)

    def apscheduler(scheduler: str) -> Figures:
        wanted = {**asked, "scheduler": scheduler}
        return ask(interpreter("apscheduler"), "lateness_apscheduler", wanted, place.log, seconds)

    return Case(
        "lateness",
        f"lateness of starts, {COUNT} schedules every second for {options.seconds} s",
        {
            "ostinato sqlite": lambda: ours("sqlite"),
            "ostinato postgres": lambda: ours("postgres"),
            "apscheduler asyncio": lambda: apscheduler("asyncio"),
            "apscheduler threads": lambda: apscheduler("threads"),
            "bare asyncio": lambda: ask(OURS, "lateness_asyncio", asked, place.log, seconds),
        },
        _rows,
        NOTES,
    )


def _rows(medians: Mapping[str, Figures]) -> list[Row]:
    bare = medians["bare asyncio"]["p99_ms"]
    found = []
    for name, figures in medians.items():
        shown = f"p50 {figures['p50_ms']:.1f}, p99 {figures['p99_ms']:.1f}, max {figures['max_ms']:.1f} ms"
        if not name.startswith("ostinato"):
            found.append(Row("lateness", "", f"{name}: {shown}{_faults(figures)}"))
            continue
        p99 = figures["p99_ms"]
        against = f"bare asyncio p99 {bare:.1f} ms ({p99 - bare:+.1f} ms)"
        ratio = f"{p99 / bare:.2f}× the bare loop"
        found.append(Row(f"lateness, {name}", shown, against, ratio, f"p99 ≤ {MUST_MS:g} ms", p99 <= MUST_MS))
        faults = f"{figures['missed']:g} missed, {figures['doubled']:g} doubled of {figures['expected']:g}"
        found.append(
            Row(f"due times, {name}", faults, must="none", passed=figures["missed"] == figures["doubled"] == 0)
        )
    return found


def _faults(figures: Figures) -> str:
    if not figures["missed"] and not figures["doubled"]:
        return ""
    return f"; {figures['missed']:g} missed, {figures['doubled']:g} doubled"
