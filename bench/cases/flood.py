"""Lateness of starts while clients flood `ostinato up` with lists: 200 schedules every second, beside 10,000 others."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bench.environments import OURS
from bench.measure import Case, Figures, Options, Place, Row
from bench.processes import ask

__all__ = ["flood"]

COUNT = 200
SIZE = 10_000
CLIENTS = 4
MUST_MS = 20.0
MOST_SECONDS = 10
"""Of one measurement: several short ones say more on a machine that others use, too."""
NOTES = (
    f"`ostinato up` in a process of its own: {COUNT} schedules `every 1s` of an async function, all due at the same "
    f"instant, beside {SIZE:,} idle ones. Lateness is time.time() as the first thing inside the function, minus the "
    "due time, after two seconds of warm-up.",
    f"Flooded: {CLIENTS} clients in another process, each on one kept connection, ask for pages of 500 of the list one "
    "after the other, as fast as they are answered. Calm: the same without them, in turn.",
)


def flood(place: Place, options: Options) -> Case:
    """Flooded and calm, on both databases."""
    seconds = min(MOST_SECONDS, options.seconds)

    def run(kind: str, clients: int) -> Callable[[], Figures]:
        def measured() -> Figures:
            with place.fresh_database(kind) as db, place.fresh_folder() as folder:
                asked = {"db": db, "folder": str(folder), "count": COUNT, "size": SIZE, "seconds": seconds}
                return ask(OURS, "flood_ostinato", {**asked, "clients": clients}, place.log, seconds + 240)

        return measured

    contenders = {
        f"{kind} {how}": run(kind, clients)
        for kind in ("sqlite", "postgres")
        for how, clients in (("flooded", CLIENTS), ("calm", 0))
    }
    title = f"lateness of starts while lists of {SIZE:,} are asked for, {COUNT} schedules every second"
    return Case("flood", title, contenders, _rows, NOTES)


def _rows(medians: Mapping[str, Figures]) -> list[Row]:
    found = []
    for kind in ("sqlite", "postgres"):
        flooded, calm = medians[f"{kind} flooded"], medians[f"{kind} calm"]
        p99 = flooded["p99_ms"]
        found.append(
            Row(
                f"lateness, {kind}, {flooded['answers_per_second']:.0f} pages a second",
                f"p50 {flooded['p50_ms']:.1f}, p99 {p99:.1f}, max {flooded['max_ms']:.1f} ms",
                f"calm p99 {calm['p99_ms']:.1f} ms",
                f"{p99 / calm['p99_ms']:.1f}×",
                f"p99 ≤ {MUST_MS:g} ms",
                p99 <= MUST_MS,
            )
        )
        faults = f"{flooded['missed']:g} missed, {flooded['doubled']:g} doubled of {flooded['expected']:g}"
        none = flooded["missed"] == flooded["doubled"] == 0
        found.append(Row(f"due times, {kind}", faults, must="none", passed=none))
    return found
