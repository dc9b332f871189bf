"""What has to be done before a fork, in order: first what is idle is closed, then locks are taken over it.

Python calls what was registered last first. Closing needs the locks of others (of pools, of the log, of SQLite's
files), so all of ours goes through here, and this is registered after theirs.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401  # registers its own
import logging  # noqa: F401  # and so does this
import os
from collections.abc import Callable

__all__ = ["close_before_forks", "lock_over_forks"]

_closing: list[Callable[[], None]] = []
_locking: list[Callable[[], None]] = []


def close_before_forks(close: Callable[[], None]) -> None:
    """Call this before each fork, before anybody takes a lock for it."""
    _closing.append(close)


def lock_over_forks(lock: Callable[[], None]) -> None:
    """Call this before each fork, after all was closed. Whoever takes a lock gives it back on both sides."""
    _locking.append(lock)


def _before_fork() -> None:
    for step in (*_closing, *_locking):
        step()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)
