"""Lanes: named pools with a limit on how many runs are under way at once, across all nodes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_LANES", "FALLBACK_LANE", "Lane"]

DEFAULT_LANES: dict[str, int] = {"main": 30, "subagent": 50, "team": 100, "cron": 30}
FALLBACK_LANE = "main"


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane and how full it is."""

    name: str
    limit: int
    paused: bool = False
    note: str | None = None
    running: int = 0
    queued: int = 0
