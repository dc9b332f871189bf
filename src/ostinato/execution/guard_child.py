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

__all__ = ["NUMBER", "ROOM", "groups_of", "signal_groups"]

NUMBER: Final = "i"
"""How a session stands in the table; 0 is an empty place."""
ROOM = 65_536
"""The size of the table in bytes."""

_LOOK_SECONDS = 0.05


def groups_of(session: int) -> set[int]:
    """The process groups of a session in which something still runs; what has ended and waits to be buried does not.

    Usually one; a shell with job control, and `timeout`, make more.
    """
    if not os.path.isdir("/proc/self"):
        return {session} if signal_groups({session}, 0) else set()
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:
                    # After the name, which may hold anything, in its brackets: state, parent, group, session.
                    state, _, group, its_session = stat.read().rpartition(b")")[2].split()[:4]
            except (OSError, ValueError):
                continue  # it is gone
            if int(its_session) == session and state not in (b"Z", b"X"):
                found.add(int(group))
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


def _end(sessions: set[int], seconds: float) -> None:
    until = time.monotonic() + seconds
    for session in sessions:
        signal_groups(groups_of(session), signal.SIGTERM)
    while time.monotonic() < until and any(groups_of(session) for session in sessions):
        time.sleep(_LOOK_SECONDS)
    for session in sessions:
        signal_groups(groups_of(session), signal.SIGKILL)


def main() -> None:
    """Wait for the engine's end."""
    os.setsid()
    os.chdir("/")
    os.closerange(3, 65_536)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _wait_for_end(int(sys.argv[1]))
    sessions = set(memoryview(os.pread(1, ROOM, 0)).cast(NUMBER)) - {0}
    _end(sessions, float(sys.argv[2]))


if __name__ == "__main__":
    main()
