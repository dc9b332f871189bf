"""Waiting for a lock that another process holds: it says after a moment what it waits for, and it ends.

The busy handler of every connection of database.py; the writer bounds it by the age of its oldest operation.
"""

from __future__ import annotations

import time

from ostinato.logs import get_logger

__all__ = ["LockWait"]

log = get_logger("ostinato.stores")

_PAUSES = (0.001, 0.002, 0.005, 0.010, 0.015, 0.020, 0.025, 0.025, 0.025, 0.050, 0.050, 0.100)


class LockWait:
    """Called by SQLite each time that it finds the lock taken, with how often that was; False gives up."""

    def __init__(self, path: str, seconds: float, tell_seconds: float) -> None:
        self.path = path
        self.seconds = seconds
        """How long it waits, if `until` says nothing else."""
        self._tell_seconds = tell_seconds
        self._since = time.monotonic()
        self._told = False
        self.until: float | None = None
        """The instant by time.monotonic() at which it gives up, where that is not so many seconds from now."""

    def __call__(self, tries: int) -> bool:
        now = time.monotonic()
        if tries == 0:
            self._since, self._told = now, False
        if now >= (self._since + self.seconds if self.until is None else self.until):
            return False
        if now - self._since >= self._tell_seconds and not self._told:
            self._told = True
            log.warning("waiting for the lock of %s: another process holds it", self.path)
        time.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
        return True
