"""How long a search for a due time may go on: in days that are looked at, so that it ends alike on every machine.

`combine.py` looks at days one by one; whoever reads what people type gives it a limit for all of that together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

__all__ = ["at_most", "bounded", "count_step"]

# An exception over ten years of days takes two steps for each; combinations of combinations get some more.
_MOST_STEPS = 20_000


class _Steps(threading.local):
    """What is left to the search of this thread, and to all its searches together where that is limited."""

    search: int | None = None
    together: int | None = None


class _TooFar(Exception):
    """The search has looked at as many days as it may."""


_steps = _Steps()


@contextmanager
def at_most(steps: int) -> Iterator[None]:
    """Let all searches in here look at so many days together; then nothing more is found."""
    _steps.together = steps
    try:
        yield
    finally:
        _steps.together = None


def bounded(search: Callable[[], datetime | None]) -> datetime | None:
    """What a search finds, None if it goes too far. The searches within it count as its own."""
    if _steps.search is not None:
        return search()
    given = _MOST_STEPS if _steps.together is None else min(_MOST_STEPS, _steps.together)
    _steps.search = given
    try:
        return search()
    except _TooFar:
        return None
    finally:
        if _steps.together is not None:
            _steps.together -= given - max(_steps.search, 0)
        _steps.search = None


def count_step() -> None:
    """One more day is looked at."""
    if _steps.search is not None:
        _steps.search -= 1
        if _steps.search < 0:
            raise _TooFar
