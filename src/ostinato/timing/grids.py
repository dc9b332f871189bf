"""How many instants several grids of real time hold together, by arithmetic: inclusion and exclusion over their meets.

`combine.py` counts the `every …` parts of an `or` with it. Instants are microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd

__all__ = ["Grid", "count_union"]


@dataclass(frozen=True, slots=True)
class Grid:
    """The instants first + k · step for k = 0, 1, 2, …"""

    first: int
    step: int

    def count(self, until: int) -> int:
        """How many lie at or before `until`."""
        return max(0, (until - self.first) // self.step + 1)

    def meet(self, other: Grid) -> Grid | None:
        """The instants of both (a grid again, by the Chinese remainder theorem), None when they never meet."""
        common = gcd(self.step, other.step)
        distance, rest = divmod(other.first - self.first, common)
        if rest:
            return None
        others = other.step // common
        meeting = self.first + self.step * (distance * pow(self.step // common, -1, others) % others)
        step, earliest = self.step * others, max(self.first, other.first)
        return Grid(earliest + (meeting - earliest) % step, step)


def count_union(grids: Iterable[Grid], until: int, most_meets: int = 20_000) -> int | None:
    """How many different instants at or before `until` the grids hold; None when they meet in too many ways.

    Fourteen grids meet in so many ways at most, which takes a tenth of a second; beyond that they are walked over.
    """
    signs: dict[Grid, int] = {}
    for grid in grids:
        # What is new: the grid itself, less where it meets what was counted, plus where it meets what was taken off.
        added = {grid: 1}
        for known, sign in signs.items():
            meet = known.meet(grid)
            if meet is not None and meet.first <= until:
                added[meet] = added.get(meet, 0) - sign
        for meet, sign in added.items():
            signs[meet] = signs.get(meet, 0) + sign
        signs = {meet: sign for meet, sign in signs.items() if sign}
        if len(signs) > most_meets:
            return None
    return sum(sign * grid.count(until) for grid, sign in signs.items())
