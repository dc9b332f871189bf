"""What a simulated cluster has to do, drawn from a seed: schedules, with when they are due, and how long work takes.

The tasks write down what they see: a start when they begin, an end when they come to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from ostinato import Ostinato, Retry, RunContext
from ostinato.clock import SECOND, Micros
from ostinato.testing.chaos.evidence import Execution
from ostinato.testing.chaos.oracle import Daily, Grid, Minutes, Oracle

__all__ = ["LANES", "STUBBORNNESS", "Pace", "Planned", "draw_schedules", "register_tasks"]

LANES = {"cron": 4, "narrow": 1, "main": 6}
"""Narrow enough that runs have to wait for each other."""
STUBBORNNESS: Micros = 8 * SECOND
"""How long some tasks go on at most that were told to stop."""
_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Antarctica/Troll")


@dataclass(frozen=True, slots=True)
class Pace:
    """How much happens: seconds between due times, and how many schedules there are."""

    steps: tuple[int, ...]
    schedules: int
    lasts: float
    """How many seconds work takes on average."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A schedule that is to be added."""

    name: str
    timing: str
    zone: str
    oracle: Callable[[Micros], Oracle]
    """Of the instant that its grid counts from."""
    task: str
    policy: dict[str, Any]
    retries: int


def draw_schedules(random: Random, pace: Pace) -> list[Planned]:
    """The schedules of one simulation."""
    return [_draw(random, pace, f"s{number}") for number in range(pace.schedules)]


def _draw(random: Random, pace: Pace, name: str) -> Planned:
    zone = random.choice(_ZONES)
    timing, oracle = _draw_timing(random, pace, zone)
    retries = random.choice((0, 0, 1, 2))
    policy: dict[str, Any] = {
        "retry": Retry(retries, base="2s", longest="20s"),
        "overlap": random.choice(("skip", "queue_one", "queue_all", "allow", "cancel_running")),
        "catch_up": random.choice(("none", "latest", "latest", "all")),
        "lane": random.choice(("cron", "cron", "narrow")),
        "priority": random.randrange(3),
        "keep": {"age": None, "count": None},
    }
    if random.random() < 0.2:
        policy["max_age"] = f"{random.choice((20, 300))}s"
    if random.random() < 0.2:
        policy["timeout"] = f"{max(1, round(pace.lasts * 2))}s"
    return Planned(name, timing, zone, oracle, random.choice(("work", "work", "stubborn")), policy, retries)


def _draw_timing(random: Random, pace: Pace, zone: str) -> tuple[str, Callable[[Micros], Oracle]]:
    kind = random.random()
    step = random.choice(pace.steps)
    if kind < 0.3:
        return f"every {step}s", lambda anchor: Grid(anchor, step * SECOND)
    if kind < 0.7 and 60 % step == 0:
        return f"*/{step} * * * * *", lambda _: Grid(0, step * SECOND)
    if kind < 0.9:
        every = random.choice((1, 5, 15, 30))
        minutes = Minutes(range(0, 60, every), ZoneInfo(zone))
        return f"*/{every} * * * *", lambda _: minutes
    hour, minute = random.randrange(24), random.choice((0, 15, 30, 59))
    daily = Daily(hour, minute, ZoneInfo(zone))
    return f"daily {hour:02}:{minute:02}", lambda _: daily


def register_tasks(
    app: Ostinato,
    process: str,
    seed: int,
    lasts: float,
    now: Callable[[], Micros],
    witness: Callable[[Execution], None],
) -> None:
    """Give an app the tasks, as they run in one process."""

    async def work(run: RunContext, *, stubborn: bool = False) -> str:
        claimed = run.claimed
        fate = Random(f"{seed}/{claimed.id}/{claimed.token}")
        execution = Execution(
            claimed.id, claimed.attempt, claimed.token, process, claimed.due_at, now(), claimed.schedule
        )
        witness(execution)
        try:
            await asyncio.sleep(fate.expovariate(1 / lasts))
            if fate.random() < 0.1:
                raise RuntimeError("this attempt is one that fails")
            execution.returned = True
        except asyncio.CancelledError:
            execution.told_at = now()
            if stubborn:
                await asyncio.sleep(fate.uniform(0, STUBBORNNESS / SECOND))  # longer than a stop waits, now and then
            execution.ended_at = now()
            raise
        except RuntimeError:
            execution.ended_at = now()
            raise
        execution.ended_at = now()
        return process

    @app.task("work")
    async def plain(run: RunContext) -> str:
        return await work(run)

    @app.task("stubborn")
    async def stubborn(run: RunContext) -> str:
        return await work(run, stubborn=True)

    @app.task("letter")
    async def letter(run: RunContext, payloads: list[int]) -> int:
        await work(run)
        return len(payloads)
