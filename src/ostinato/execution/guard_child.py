"""The guard's process: outlives the engine for a moment, and takes along the commands that the engine left behind.

Started by guard.py as a script; it imports nothing but the standard library's smallest parts. Stdin ends when the
engine does; in the place of stdout is a table with the sessions of its commands. What is left of them gets SIGTERM,
and SIGKILL after the seconds that argv names.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

__all__ = ["DEAF_TO", "NUMBER", "ROOM", "running", "signal_groups"]

NUMBER: Final = "i"
"""How a session stands in the table; 0 is an empty place."""
ROOM = 65_536
"""The size of the table in bytes."""

DEAF_TO = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that a terminal or an init sends to all: the guard is needed after them. It is started with them blocked."""

_LOOK_SECONDS = 0.05


def running() -> dict[int, set[int]] | None:
    """The process groups of each session in which something runs; what has ended and waits to be buried does not.

    A session has usually one; a shell with job control, and `timeout`, make more. None: the system does not tell.
    """
    found: dict[int, set[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return None
    if "self" not in names:
        return None
    for name in names:
        if not name.isdigit():
            continue
        try:
            stat = os.open(f"/proc/{name}/stat", os.O_RDONLY | os.O_CLOEXEC)
            try:
                # After the name, which may hold anything, in its brackets: state, parent, group, session.
                state, _, group, session = os.read(stat, 4_096).rpartition(b")")[2].split()[:4]
            finally:
                os.close(stat)
        except (FileNotFoundError, ProcessLookupError, PermissionError, ValueError):
            continue  # it is gone, or nobody's business
        except OSError:  # there are too many open files
            return None
        if state not in (b"Z", b"X"):
            found.setdefault(int(session), set()).add(int(group))
    return found


def signal_groups(groups: set[int], number: int) -> bool:
    """Send a signal; whether anybody was there to get it."""
    was_there = False
    for group in groups:
        try:
            os.killpg(group, number)
            was_there = True
        except (ProcessLookupError, PermissionError):
            continue
    return was_there


def _wait_for_end(engine: int) -> None:
    """Return when the engine is gone."""
    waited = [0]
    if hasattr(os, "pidfd_open") and os.getppid() == engine:
        # A fork of the engine may hold the pipe open: look at the engine itself too.
        waited.append(os.pidfd_open(engine))
    if os.getppid() == engine:
        select.select(waited, [], [])


def _left_of(sessions: set[int]) -> set[int]:
    """The groups of these in which something still runs."""
    found = running()
    if found is None:
        return {session for session in sessions if signal_groups({session}, 0)}
    return {group for session in sessions for group in found.get(session, ())}


def _end(sessions: set[int], seconds: float) -> None:
    until = time.monotonic() + seconds
    left = _left_of(sessions)
    signal_groups(left, signal.SIGTERM)
    signal_groups(left, signal.SIGCONT)  # who was stopped would not hear it
    while left and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
        left = _left_of(sessions)
    signal_groups(left, signal.SIGKILL)


def main() -> None:
    """Wait for the engine's end."""
    os.setsid()
    os.chdir("/")
    os.closerange(3, 65_536)
    _wait_for_end(int(sys.argv[1]))
    sessions = set(memoryview(os.pread(1, ROOM, 0)).cast(NUMBER)) - {0}
    _end(sessions, float(sys.argv[2]))


if __name__ == "__main__":
    main()
