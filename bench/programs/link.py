"""How a measured program talks to the bench that started it: one JSON object per line out, end of stdin is the end."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

POLL_SECONDS = 0.01
"""How often a producer looks whether all is recorded: the same for every contender."""


def arguments() -> dict[str, Any]:
    """What the bench asks for: the one argument of the program, a JSON object."""
    given: dict[str, Any] = json.loads(sys.argv[1])
    return given


def tell(**facts: Any) -> None:
    """Answer the bench."""
    print(json.dumps(facts), flush=True)


def wait_for_end() -> None:
    """Return when the bench closes our stdin, or is gone."""
    sys.stdin.read()


def next_second(lead: int = 2) -> int:
    """A whole second that is at least `lead` seconds away."""
    return math.ceil(time.time()) + lead


def produce(enqueue: Callable[[int], None], is_done: Callable[[int], bool], n: int, warm_up: int) -> dict[str, float]:
    """Enqueue `n` jobs and wait until all of them are recorded; the clock runs from the first to the last.

    `enqueue(n)` adds n jobs; `is_done(total)` says whether all jobs so far, `total`, are recorded as finished.
    """
    enqueue(warm_up)
    wait_until(lambda: is_done(warm_up))
    start = time.perf_counter()
    enqueue(n)
    enqueued = time.perf_counter()
    wait_until(lambda: is_done(warm_up + n))
    end = time.perf_counter()
    return {"rate": n / (end - start), "seconds": end - start, "enqueue_rate": n / (enqueued - start)}


def wait_until(is_done: Callable[[], bool], seconds: float = 120) -> None:
    """Look again and again until it is so."""
    deadline = time.monotonic() + seconds
    while not is_done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not all jobs were recorded within {seconds:g} s")
        time.sleep(POLL_SECONDS)


def lateness(
    starts: Sequence[tuple[str, float, float]], names: Sequence[str], first: int, seconds: int
) -> dict[str, float]:
    """Lateness of starts in milliseconds: of every (name, due, started) that is due in the window of whole seconds."""
    seen: dict[tuple[str, int], int] = {}
    late: list[float] = []
    for name, due, started in starts:
        second = round(due)
        if first <= second < first + seconds:
            seen[name, second] = seen.get((name, second), 0) + 1
            late.append((started - due) * 1_000)
    late.sort()
    if not late:
        return {"expected": len(names) * seconds, "missed": len(names) * seconds, "doubled": 0}
    return {
        "p50_ms": quantile(late, 0.50),
        "p99_ms": quantile(late, 0.99),
        "max_ms": late[-1],
        "min_ms": late[0],
        "expected": len(names) * seconds,
        "missed": len(names) * seconds - len(seen),
        "doubled": sum(count - 1 for count in seen.values()),
    }


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of them do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
