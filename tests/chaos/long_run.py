"""`make chaos MINUTES=30`: a third of the time simulated clusters on all cores, a third real processes on SQLite, a
third the same on PostgreSQL; then how much was checked, what was broken, and what does not agree.

`python -m tests.chaos.long_run --seed N` plays the one simulated history again that a violation named.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import count
from pathlib import Path
from random import SystemRandom

from ostinato.testing import chaos
from ostinato.testing.chaos import sample
from ostinato.testing.chaos.report import Report
from tests.postgres_server import server_url, stop_server

TOLD = 30.0
"""Seconds between two lines that say how far it is."""


def history(seed: int) -> Report:
    """One: most are minutes with many due times, some are days with few."""
    if seed % 4 == 3:
        return chaos.simulate([seed], hours=24, pace=chaos.SPARSE, nodes=1 + seed % 3)
    return chaos.simulate([seed], hours=0.2, nodes=1 + seed % 3)


def histories(minutes: float, first: int) -> Report:
    """As many as there is time for, on all cores."""
    report, began, told = Report(), time.monotonic(), time.monotonic()
    seeds, done_so_far = count(first), 0
    with ProcessPoolExecutor() as pool:
        under_way: set[Future[Report]] = set()
        while True:
            is_over = time.monotonic() - began >= minutes * 60
            while not is_over and len(under_way) < (os.cpu_count() or 1):
                under_way.add(pool.submit(history, next(seeds)))
            if not under_way:
                return report
            done, under_way = wait(under_way, timeout=TOLD, return_when=FIRST_COMPLETED)
            for future in done:
                report.merge(future.result())
                done_so_far += 1
            if time.monotonic() - told >= TOLD:
                told = time.monotonic()
                so_far = f"{report.due_times:,} due times, {report.faults.total():,} faults"
                say(f"{done_so_far} histories, {so_far}, violations: {len(report.violations)}")


def ordeal(minutes: float, seed: int, db: str | None) -> Report:
    return chaos.run(
        "ostinato.testing.chaos.sample:app",
        minutes=minutes,
        seed=seed,
        db=db,
        set_up=sample.add_schedules,
        load=sample.ask,
    )


def ordeal_on_postgres(minutes: float, seed: int) -> Report:
    folder = Path(tempfile.mkdtemp(prefix="ostinato-chaos-pg-"))
    try:
        return ordeal(minutes, seed, server_url(folder, os.getpid()))
    finally:
        stop_server(folder)
        shutil.rmtree(folder, ignore_errors=True)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.long_run", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to go on in all")
    parser.add_argument("--seed", type=int, help="play this one simulated history, and nothing else")
    given = parser.parse_args()
    if given.seed is not None:
        report = history(given.seed)
        say(str(report))
        return 0 if report.ok else 1
    first, minutes, all_of_it = SystemRandom().randrange(10**9), given.minutes / 3, Report()
    parts: dict[str, Callable[[], Report]] = {
        f"simulated, from seed {first}": lambda: histories(minutes, first),
        f"processes on SQLite, seed {first}": lambda: ordeal(minutes, first, None),
        f"processes on PostgreSQL, seed {first}": lambda: ordeal_on_postgres(minutes, first),
    }
    for title, part in parts.items():
        say(f"==> {title}")
        report = part()
        say(str(report))
        all_of_it.merge(report)
    say(f"==> in all\n{all_of_it}")
    return 0 if all_of_it.ok else 1


if __name__ == "__main__":
    sys.exit(main())
