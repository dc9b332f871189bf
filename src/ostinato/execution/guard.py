"""The guard of this process: if it is killed, its commands do not live on beside the rescued runs.

One process for all engines of this one, started with the first command. It sleeps until this process is gone, then
reads from a table in shared memory what was running, and ends what is left of that. Neighbours: executors/group.py
writes the table, guard_child.py is the other side.
"""

from __future__ import annotations

import logging
import mmap
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

from ostinato.execution import guard_child
from ostinato.execution.guard_child import NUMBER, ROOM

__all__ = ["GUARD", "Guard"]

log = logging.getLogger("ostinato.execution")

RESTART_SECONDS = 1.0
"""Between two starts of a guard that dies."""


class Guard:
    """The guard's process and the table of what runs. A command that begins or ends costs a write into memory."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """In a fork too, as its first step: the commands and the guard are those of the process that it came from."""
        self._lock = threading.Lock()  # a thread that is not in the fork may hold the other
        self.process: int | None = None
        """The guard's process id; None while there is none."""
        self._lifeline: int | None = None
        """A pipe that ends when this process does. A fork leaves it open: the number may be another's by now."""
        self._not_before = 0.0
        self._table: memoryview | None = None
        self._descriptor = -1
        self._places: dict[int, int] = {}
        self._free: list[int] = []

    def watch(self, session: int, kill_seconds: float) -> None:
        """A command began; its session has this number. If we are killed, it has so long after SIGTERM."""
        with self._lock:
            if self.process is None or not self._is_there(self.process):
                self._restart(kill_seconds)
            if self._table is not None and self._free:
                place = self._places[session] = self._free.pop()
                self._table[place] = session

    def dismiss(self, session: int) -> None:
        """Nothing of it is left."""
        with self._lock:
            if self._table is not None and session in self._places:
                place = self._places.pop(session)
                self._table[place] = 0
                self._free.append(place)

    def _is_there(self, process: int) -> bool:
        try:
            return os.waitpid(process, os.WNOHANG) == (0, 0)
        except ChildProcessError:  # somebody else buried it
            return False

    def _restart(self, kill_seconds: float) -> None:
        """Start it, but not again and again where it cannot live."""
        self.process = None
        if time.monotonic() >= self._not_before:
            self._not_before = time.monotonic() + RESTART_SECONDS
            self._start(kill_seconds)

    def _start(self, kill_seconds: float) -> None:
        """Start the process. Work goes on without it: it serves only when this one is killed."""
        reading = -1
        try:
            if self._lifeline is not None:
                old, self._lifeline = self._lifeline, None
                os.close(old)
            if self._table is None:
                self._make_table()
            reading, self._lifeline = os.pipe()
            self.process = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", str(Path(guard_child.__file__)), str(os.getpid()), str(kill_seconds)],
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, reading, 0),
                    (os.POSIX_SPAWN_DUP2, self._descriptor, 1),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
                setsigmask=guard_child.DEAF_TO,  # from its first moment
            )
        except Exception as error:  # whatever it is, the command that has begun must not suffer
            log.warning("no guard could be started (%s): if this node is killed, its commands live on", error)
        finally:
            if reading >= 0:
                os.close(reading)

    def _make_table(self) -> None:
        if hasattr(os, "memfd_create"):
            self._descriptor = os.memfd_create("ostinato-guard")
        else:
            with tempfile.TemporaryFile() as file:
                self._descriptor = os.dup(file.fileno())
        os.ftruncate(self._descriptor, ROOM)
        self._table = memoryview(mmap.mmap(self._descriptor, ROOM)).cast(NUMBER)
        self._free = list(range(len(self._table) - 1, -1, -1))


GUARD = Guard()
os.register_at_fork(after_in_child=GUARD.forget)
