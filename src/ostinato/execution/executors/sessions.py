"""What still runs of a command's session: one look at the system answers all who ask at the same time.

Looks take milliseconds and stay off the loop, and off its default executor, which is the application's. group.py asks,
and hands over what nobody waits for any more; guard_child.py knows how to look.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import sys
import threading
import time
import weakref
from typing import Protocol

from ostinato.execution.guard_child import running
from ostinato.execution.threads import on_own_thread

__all__ = ["UNDERTAKER", "Left", "Sessions", "is_in_use", "look"]

Sessions = dict[int, set[int]]
"""The process groups of each session in which something runs."""

LOOK_SECONDS = 0.02, 0.25
"""Between two looks whether somebody is left, at first and at last."""
_UNDERTAKER_SECONDS = 5.0
"""How long it tries to kill the others of a session before it buries the first."""


class _Looks:
    """The looks of one loop: one at a time, shared by all who asked before it began."""

    def __init__(self) -> None:
        self._next: asyncio.Task[Sessions | None] | None = None
        self._one = asyncio.Lock()

    async def look(self) -> Sessions | None:
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._look())
        return await asyncio.shield(self._next)

    async def _look(self) -> Sessions | None:
        async with self._one:
            self._next = None  # who asks from now on wants a newer one
            try:
                return await on_own_thread(running)
            except RuntimeError:  # the machine has no room for a thread
                return running()


_LOOKS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Looks] = weakref.WeakKeyDictionary()


async def look() -> Sessions | None:
    """What runs now; None where the system does not tell."""
    loop = asyncio.get_running_loop()
    if (looks := _LOOKS.get(loop)) is None:
        looks = _LOOKS[loop] = _Looks()
    return await looks.look()


def is_in_use(number: int) -> bool:
    """Whether a process, a group or a session has this number; if that cannot be told, yes.

    Costs next to nothing: the system looks the number up for the owner of a file, whatever the number is of.
    """
    if sys.platform != "linux":
        return True
    try:
        file = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        fcntl.fcntl(file, fcntl.F_SETOWN, number)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    finally:
        os.close(file)
    return True


class Left(Protocol):
    """A command that nobody waits for any more."""

    @property
    def number(self) -> int:
        """The number of its first process, its group and its session."""

    def send(self, groups: set[int], number: signal.Signals) -> None:
        """Send a signal to these groups of it."""

    def bury(self) -> bool:
        """Whether its first process has ended, and is buried now."""


class Undertaker:
    """Kills and buries what nobody waits for any more; one thread for all, while there are any."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """In a fork: they are not its children."""
        self._lock = threading.Lock()
        self._left: dict[Left, float] = {}
        """Each with the time until which the others of its session are looked for."""
        self._is_at_work = False

    def take(self, left: Left) -> None:
        """From now on it is the undertaker's."""
        with self._lock:
            self._left[left] = time.monotonic() + _UNDERTAKER_SECONDS
            if self._is_at_work:
                return
            self._is_at_work = True
        try:
            threading.Thread(target=self._work, name="ostinato-undertaker", daemon=True).start()
        except RuntimeError:  # the machine has no room for a thread: what is not dead yet waits for the next
            self._is_at_work = False
            self._go_round()

    def _work(self) -> None:
        pause, longest = LOOK_SECONDS
        while True:
            self._go_round()
            with self._lock:
                if not self._left:
                    self._is_at_work = False
                    return
            time.sleep(pause)
            pause = min(pause * 2, longest)

    def _go_round(self) -> None:
        with self._lock:
            all_left = dict(self._left)
        sessions = running() or {}
        for left, until in all_left.items():
            others = sessions.get(left.number)
            if others and time.monotonic() < until:
                left.send(others, signal.SIGKILL)
            elif left.bury():
                with self._lock:
                    self._left.pop(left, None)


UNDERTAKER = Undertaker()
os.register_at_fork(after_in_child=UNDERTAKER.forget)
