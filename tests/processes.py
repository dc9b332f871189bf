"""Whether processes that tests look at are still there; one that ends while it is looked at is not."""

from __future__ import annotations

import contextlib

import psutil

__all__ = ["lives", "servers_of"]


def lives(pid: int) -> bool:
    """Whether it runs: what has ended and waits to be buried does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def servers_of(process: int) -> list[int]:
    """The servers that this process, an `up`, has started."""
    found = []
    for child in psutil.Process(process).children():
        with contextlib.suppress(psutil.Error):
            if "server_child" in " ".join(child.cmdline()):
                found.append(child.pid)
    return found
