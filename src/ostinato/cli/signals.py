"""SIGINT and SIGTERM to an engine in the foreground: `serving.py` waits for the first, `ending.py` is the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from ostinato.cli.ending import FORCED, end_by_force
from ostinato.cli.times import span
from ostinato.signal_reader import signal_reader

if TYPE_CHECKING:
    from ostinato.app import Ostinato

__all__ = ["Signals"]


class Signals:
    """The first SIGINT or SIGTERM drains, the second forces and ends the process soon, a third ends it at once."""

    def __init__(self, app: Ostinato, talk: Callable[[str], None]) -> None:
        self._app = app
        self._talk = talk
        self._count = 0
        self.first = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        signal_reader().listen((signal.SIGINT, signal.SIGTERM), self._heard)

    @property
    def forced(self) -> bool:
        return self._count > 1

    def _heard(self, number: int) -> None:
        """On the reader's thread: work may hold the loop, and the second signal is to end that too."""
        self._count += 1
        if self._count == 2:
            signal_reader().end_later(number, end_by_force, self._app.settings.tuning.force_seconds)
        elif self._count > 2:
            os._exit(FORCED)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing is left to be drained
            self._loop.call_soon_threadsafe(self._arrived, self._count)

    def _arrived(self, count: int) -> None:
        if count == 1:
            grace = span(self._app.settings.grace.total_seconds())
            self._talk(f"draining: no new runs; what is under way has {grace} to end (once more to force)")
            self.first.set()
        elif count == 2:
            self._talk("forcing: what is under way is cut off")
            self._app.force()
