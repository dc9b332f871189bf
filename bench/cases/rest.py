"""A list of 10,000 schedules over REST: how long the server takes for a page of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bench.environments import OURS
from bench.measure import Case, Figures, Options, Place, Row
from bench.processes import ask

__all__ = ["rest"]

MUST_MS = 100.0
SIZE = 10_000
RUNS = 60
REQUESTS = 40
NOTES = (
    f"{SIZE:,} schedules of every kind of timing with {RUNS} ended runs each, and `ostinato web` on them in a process "
    f"of its own, without an engine. One client on one kept connection over loopback asks {REQUESTS} times, after 3 to "
    "warm up; the time is until the last byte, and includes token, query, shape and JSON. CPU is that of the server's "
    "process with all its threads, without PostgreSQL's.",
    "Pages hold 100 schedules with the last 60 runs of each, where nothing else is said; the deep page holds 500 of "
    "the middle of the list, by name.",
    "Bare: a Starlette route under uvicorn that answers as many bytes from memory, asked in turn with ours.",
)


def rest(place: Place, _: Options) -> Case:
    """The same list on each database."""

    def run(kind: str) -> Callable[[], Figures]:
        def measured() -> Figures:
            with place.fresh_database(kind) as db:
                asked = {"db": db, "size": SIZE, "runs": RUNS, "requests": REQUESTS}
                return ask(OURS, "rest_ostinato", asked, place.log, 600)

        return measured

    kinds = ("sqlite", "postgres")
    return Case("rest", f"a list of {SIZE:,} schedules over REST", {kind: run(kind) for kind in kinds}, _rows, NOTES)


def _rows(medians: Mapping[str, Figures]) -> list[Row]:
    return [_row(kind, what, figures) for kind, figures in medians.items() for what in _asked(figures)]


def _asked(figures: Figures) -> list[str]:
    return [name.removesuffix(": median_ms") for name in figures if name.endswith(": median_ms")]


def _row(kind: str, what: str, figures: Figures) -> Row:
    median, p95, bare = (figures[f"{what}: {figure}"] for figure in ("median_ms", "p95_ms", "bare_ms"))
    return Row(
        f"{kind}: {what}, {figures[f'{what}: bytes'] / 1_000:,.0f} kB",
        f"{median:.1f} ms, p95 {p95:.1f} ms, {figures[f'{what}: cpu_ms']:.0f} ms of CPU",
        f"bare {bare:.1f} ms",
        f"{median / bare:.1f}×",
        f"p95 < {MUST_MS:g} ms",
        p95 < MUST_MS,
    )
