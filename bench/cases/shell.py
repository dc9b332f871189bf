"""Short shell commands: what a run costs beyond starting its process."""

from __future__ import annotations

from collections.abc import Mapping

from bench.environments import OURS
from bench.measure import Case, Figures, Options, Place, Row
from bench.processes import ask

__all__ = ["shell"]

MUST_COST = 1.3
COMMANDS = 200
CONCURRENCY = 30
WARM_UP = 60
COMMAND = "true"
NOTES = (
    f"`/bin/sh -c {COMMAND}`, {COMMANDS} times, at most {CONCURRENCY} at once (the limit of the lane, a semaphore), "
    f"after {WARM_UP} to warm up; the median of five. Each is a process in a session of its own with empty stdin, and "
    "its output is read to the end.",
    "Ostinato: one process on SQLite; all runs are enqueued beforehand for one instant, and the clock runs from then "
    "until the last has ended, which leaves out the last commit. Each is claimed, prepared, given a report pipe, "
    "guarded, and recorded with its status.",
    "Bare asyncio: create_subprocess_exec and communicate, nothing kept, with the child watcher that this Python takes "
    "by itself (on 3.11 a thread for each child).",
)


def shell(place: Place, _: Options) -> Case:
    """Ours on SQLite, and the bare loop."""
    asked = {"n": COMMANDS, "concurrency": CONCURRENCY, "warm_up": WARM_UP}

    def ours() -> Figures:
        with place.fresh_database("sqlite") as db:
            figures = ask(OURS, "shell_ostinato", {**asked, "command": COMMAND, "db": db}, place.log)
        if figures["recorded"] != COMMANDS:
            raise AssertionError(f"{figures['recorded']} of {COMMANDS} commands are recorded with status 0")
        return figures

    def bare() -> Figures:
        return ask(OURS, "shell_asyncio", {**asked, "command": ["/bin/sh", "-c", COMMAND]}, place.log)

    return Case(
        "shell",
        f"{COMMANDS} short shell commands, {CONCURRENCY} at once",
        {"ostinato": ours, "bare asyncio": bare},
        _rows,
        NOTES,
    )


def _rows(medians: Mapping[str, Figures]) -> list[Row]:
    ours, bare = medians["ostinato"], medians["bare asyncio"]
    cost = 1 / bare["ratio"]
    return [
        Row(
            "sqlite: a short shell command",
            f"{1_000 / ours['rate']:.2f} ms",
            f"bare asyncio {1_000 / bare['rate']:.2f} ms",
            f"{cost:.2f}×",
            f"≤ {MUST_COST:g}×",
            cost <= MUST_COST,
        )
    ]
