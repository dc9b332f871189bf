"""How long a search for a due time may go on: in days that are looked at, so that it ends alike on every machine.

`combine.py` looks at days one by one; whoever reads what people type gives it a limit for all of that together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ostinato.timing.base import Timing

__all__ = ["at_most", "bounded", "count_step", "following", "preceding"]

# An exception over ten years of days takes two steps for each; combinations of combinations get some more.
_MOST_STEPS = 15_000

_Known = dict[int, "tuple[Timing, datetime, datetime | None]"]
"""By its id; the part is kept with it, so that no other gets the same."""


class _Steps(threading.local):
    """What is left to the search of this thread, and to all its searches together where that is limited."""

    search: int | None = None
    together: int | None = None
    following: _Known | None = None
    preceding: _Known | None = None
    """What this search has asked: of each part from when on, and the answer, which holds until that is reached."""


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
    _steps.search, _steps.following, _steps.preceding = given, {}, {}
    try:
        return search()
    except _TooFar:
        return None
    finally:
        if _steps.together is not None:
            _steps.together -= given - max(_steps.search, 0)
        _steps.search = _steps.following = _steps.preceding = None


def count_step() -> None:
    """One more day is looked at."""
    if _steps.search is not None:
        _steps.search -= 1
        if _steps.search < 0:
            raise _TooFar


def following(part: Timing, t: datetime) -> datetime | None:
    """The next time of a part after `t`. Who goes from day to day asks a part seldom that is seldom due."""
    known = _steps.following
    if known is None or part.anchored(t) is not part:  # an interval without an anchor counts from whoever asks
        return part.next_after(t)
    if (found := known.get(id(part))) is not None:
        _, since, due = found
        if since <= t and (due is None or t < due):
            return due
    due = part.next_after(t)
    known[id(part)] = (part, t, due)
    return due


def preceding(part: Timing, t: datetime) -> datetime | None:
    """The last time of a part at `t` or before it, in the same way."""
    known = _steps.preceding
    if known is None or part.anchored(t) is not part:
        return part.previous(t)
    if (found := known.get(id(part))) is not None:
        _, until, due = found
        if t <= until and (due is None or due <= t):
            return due
    due = part.previous(t)
    known[id(part)] = (part, t, due)
    return due
