"""In which order the workers of pytest-xdist run the tests: what waits and starts processes first, what is short last.

Each worker is given an equal share of all tests, in the order in which they were collected, and takes over the end of
another's share when its own is done (`--dist worksteal`). So each share gets its part of every folder, and ends with
tests that take no time. Otherwise one worker would be alone with the slowest folder at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["SLOW", "share_out"]

SLOW = ("faults", "browser", "django", "doors")
"""Folders of tests that start processes and wait for them. The others follow in the order of their names."""

Test = TypeVar("Test")


def share_out(tests: Sequence[Test], folder_of: Callable[[Test], str], workers: int) -> list[Test]:
    """The tests in the order in which equal shares of it are fair to all workers."""
    by_folder: dict[str, list[Test]] = {name: [] for name in SLOW}
    for test in tests:
        by_folder.setdefault(folder_of(test), []).append(test)
    slow = [by_folder.pop(name) for name in SLOW]
    quick = [test for folder in by_folder.values() for test in folder]
    ordered: list[Test] = []
    for worker, end in enumerate(_ends(len(tests), workers)):
        # They do not all begin with the same folder: while some of them wait, others keep the cores busy.
        first = worker % len(slow)
        for folder in (*slow[first:], *slow[:first]):
            ordered += _share(folder, worker, workers)
        missing = max(0, end - len(ordered))
        ordered += quick[:missing]
        del quick[:missing]
    return ordered + quick


def _ends(count: int, shares: int) -> list[int]:
    """Where each share ends, as xdist cuts them."""
    ends: list[int] = []
    end = 0
    for left in range(shares, 0, -1):
        end += (count - end) // left
        ends.append(end)
    return ends


def _share(tests: list[Test], worker: int, workers: int) -> list[Test]:
    return tests[len(tests) * worker // workers : len(tests) * (worker + 1) // workers]
