"""How long a wait may still take, over several waits in turn."""

from __future__ import annotations

import math
import time

from ostinato.durations import Duration, parse_duration

__all__ = ["left_of", "until_after"]


def until_after(timeout: Duration | None) -> float | None:
    """When a wait that begins now is over, by the monotonic clock; None for never."""
    return None if timeout is None else time.monotonic() + parse_duration(timeout, field="timeout").total_seconds()


def left_of(until: float | None) -> float | None:
    """How many seconds are left of it, in milliseconds that people may be told."""
    return None if until is None else max(0.0, math.ceil((until - time.monotonic()) * 1_000) / 1_000)
