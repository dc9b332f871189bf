"""Rounds and rows: every contender is measured once per round, in turn, so that noise falls on all of them alike."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from bench.postgres import Postgres

__all__ = ["Case", "Figures", "Options", "Place", "Row", "measure"]

Figures = dict[str, Any]
"""What one measurement of one contender gave."""
CALM_PERCENT = 15.0
"""Less than this in use by others is calm."""
WORST = {"missed", "doubled", "max_ms"}
"""Figures of which no median is taken: the worst of all rounds counts."""


@dataclass(frozen=True, slots=True)
class Options:
    """How much is measured."""

    rounds: int = 3
    n: int = 10_000
    seconds: int = 20
    sizes: tuple[int, ...] = (1_000, 10_000, 100_000)


@dataclass(frozen=True, slots=True)
class Place:
    """Where to measure: a folder, and a server if the case needs one."""

    folder: Path
    server: Postgres | None

    @property
    def log(self) -> Path:
        """Where programs complain."""
        return self.folder / "programs.log"

    @contextmanager
    def fresh_folder(self) -> Iterator[Path]:
        """An empty folder, gone afterwards."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            yield Path(name)

    @contextmanager
    def fresh_database(self, kind: str) -> Iterator[str]:
        """The URL of an empty SQLite file or PostgreSQL database, gone afterwards."""
        if kind == "sqlite":
            with self.fresh_folder() as folder:
                yield f"sqlite:///{folder / 'bench.db'}"
            return
        assert self.server is not None
        url = self.server.fresh()
        try:
            yield url
        finally:
            self.server.drop(url)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what was found, what it must be, and whether it is."""

    what: str
    ours: str
    against: str = ""
    ratio: str = ""
    must: str = ""
    passed: bool | None = None
    """None where nothing is demanded: the figure is for information."""


@dataclass(slots=True)
class Case:
    """A case: its contenders in turn, and how their medians become rows."""

    name: str
    title: str
    contenders: Mapping[str, Callable[[], Figures]]
    rows: Callable[[Mapping[str, Figures]], list[Row]]
    notes: tuple[str, ...] = ()
    values: dict[str, list[Figures]] = field(default_factory=dict)

    @property
    def medians(self) -> dict[str, Figures]:
        """The median of each figure of each contender, or its worst."""
        return {name: _medians(found) for name, found in self.values.items()}


def measure(case: Case, rounds: int, calm: float) -> list[Row]:
    """All rounds of a case; before each measurement wait up to `calm` seconds for a machine that others leave alone."""
    for number in range(1, rounds + 1):
        for name, contender in case.contenders.items():
            busy = _wait_for_calm(calm)
            figures = {**contender(), "busy_before_percent": busy}
            values = case.values.setdefault(name, [])
            values.append(figures)
            if "rate" in figures and "ostinato" in case.values:
                # Against its neighbour in time: half a minute later the machine may be another.
                figures["ratio"] = case.values["ostinato"][-1]["rate"] / figures["rate"]
            shown = ", ".join(f"{key} {value:,.4g}" for key, value in figures.items() if isinstance(value, int | float))
            print(f"  {case.name} round {number}/{rounds} {name}: {shown}", file=sys.stderr, flush=True)
    return case.rows(case.medians)


def _wait_for_calm(seconds: float) -> float:
    """Wait, but not for ever, until others use little of the machine; answers how much they use, in percent."""
    deadline = time.monotonic() + seconds
    while True:
        busy = psutil.cpu_percent(interval=0.5)
        if busy < CALM_PERCENT or time.monotonic() > deadline:
            return busy


def _medians(found: list[Figures]) -> Figures:
    keys = [key for key in found[0] if all(isinstance(figures.get(key), int | float) for figures in found)]
    return {key: (max if key in WORST else statistics.median)([figures[key] for figures in found]) for key in keys}
