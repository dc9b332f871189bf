"""Whether processes that tests look at are still there; one that ends while it is looked at is not."""

from __future__ import annotations

import psutil

__all__ = ["lives"]


def lives(pid: int) -> bool:
    """Whether it runs: what has ended and waits to be buried does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
