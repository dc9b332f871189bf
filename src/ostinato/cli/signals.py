"""SIGINT, SIGTERM and SIGUSR1 to an engine in the foreground, or to a page without one: `serving.py` or `web.py` waits
for the first, `ending.py` and `restart.py` are what follows.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from ostinato.cli.console import stdout
from ostinato.cli.ending import FORCED, end_by_force
from ostinato.cli.times import span
from ostinato.signal_reader import signal_reader

if TYPE_CHECKING:
    from ostinato.app import Ostinato
    from ostinato.cli.restart import Launch

__all__ = ["PageSignals", "Signals"]


_STOP = (signal.SIGINT, signal.SIGTERM)
_RESTART = signal.SIGUSR1
_HOW_TO_FORCE = "(once more to force)"


class Signals:
    """The first SIGINT or SIGTERM drains, the second forces and ends the process soon, a third ends it at once.

    SIGUSR1 drains too, to start anew, if that is possible. Another one says nothing new, and a SIGINT or SIGTERM
    meanwhile makes it an end: `ended` is called then.
    """

    def __init__(
        self, app: Ostinato, talk: Callable[[str], None], launch: Launch, ended: Callable[[], None] = lambda: None
    ) -> None:
        self._app = app
        self._talk = talk
        self._launch = launch
        self._ended = ended
        self._trial: asyncio.Task[None] | None = None
        self._count = 0
        self._is_asked_to_restart = False
        self.first = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        signal_reader().listen((*_STOP, _RESTART), self._heard)

    @property
    def forced(self) -> bool:
        return self._count > 1

    @property
    def restarts(self) -> bool:
        """Whether it is to start anew, as far as one knows."""
        return self._is_asked_to_restart and not self._count

    def settle_restart(self) -> bool:
        """Whether it is to start anew: once everything is drained, and nothing is changed by a signal any more.

        From here on, SIGINT and SIGTERM end the process as if nobody handled them. Another SIGUSR1 is ignored, also by
        the new process until it listens.
        """
        if not self.restarts:
            return False
        signal.signal(_RESTART, signal.SIG_IGN)
        signal_reader().leave((*_STOP, _RESTART))  # who came before that is counted
        return not self._count

    def _heard(self, number: int) -> None:
        """On the reader's thread: work may hold the loop, and the second signal is to end that too."""
        if number == _RESTART:
            self._restart()
            return
        self._count += 1
        if self._count == 2:
            signal_reader().end_later(number, end_by_force, self._app.settings.tuning.force_seconds)
        elif self._count > 2:
            os._exit(FORCED)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing is left to be drained
            self._loop.call_soon_threadsafe(self._arrived, self._count)

    def _restart(self) -> None:
        if self._count or self._is_asked_to_restart:
            return  # it ends, or is about to start anew
        self._is_asked_to_restart = True
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._begin_trial)

    def _begin_trial(self) -> None:
        if not self._count:
            self._talk("trying whether the code loads, to start anew")
            self._trial = asyncio.create_task(self._try_restart(), name="ostinato-restart-trial")

    async def _try_restart(self) -> None:
        can_restart = await self._launch.can_repeat()
        if self._count:
            return  # it drains to end
        if can_restart:
            self._drain("draining to start anew", "(SIGTERM to end instead)")
        else:
            self._is_asked_to_restart = False

    def _drain(self, what: str, how: str = _HOW_TO_FORCE) -> None:
        grace = span(self._app.settings.grace.total_seconds())
        self._talk(f"{what}: no new runs; what is under way has {grace} to end {how}")
        self.first.set()

    def _arrived(self, count: int) -> None:
        if count == 1 and self.first.is_set():
            self._talk(f"draining to end: it will not start anew {_HOW_TO_FORCE}")
            self._ended()
        elif count == 1:
            if self._trial is not None:
                self._trial.cancel()
            self._drain("draining")
        elif count == 2:
            self._talk("forcing: what is under way is cut off")
            self._app.force()


class PageSignals:
    """The first SIGINT or SIGTERM ends it, the second ends the process where it stands. SIGUSR1 ends it to start anew,
    if that is possible, unless one of those comes meanwhile.
    """

    def __init__(self, talk: Callable[[str], None], launch: Launch) -> None:
        self.first = asyncio.Event()
        self.restarts = False
        self._talk = talk
        self._launch = launch
        self._is_told_to_end = False
        self._trial: asyncio.Task[None] | None = None
        loop = asyncio.get_running_loop()
        for number in _STOP:
            loop.add_signal_handler(number, self._end)
        loop.add_signal_handler(_RESTART, self._begin_trial)

    def settle_restart(self) -> bool:
        """Whether it is to start anew. From here on, SIGINT and SIGTERM end the process as if nobody handled them, and
        another SIGUSR1 is ignored, also by the new process until it listens."""
        if self.restarts:
            for number in _STOP:
                signal.signal(number, signal.SIG_DFL)
            signal.signal(_RESTART, signal.SIG_IGN)
        return self.restarts

    def _end(self) -> None:
        if self._is_told_to_end:
            stdout().flush()
            os._exit(FORCED)
        self._is_told_to_end = True
        self.restarts = False
        if self._trial is not None:
            self._trial.cancel()
        self.first.set()

    def _begin_trial(self) -> None:
        if not self.first.is_set() and (self._trial is None or self._trial.done()):
            self._talk("trying whether the code loads, to start anew")
            self._trial = asyncio.create_task(self._try_restart(), name="ostinato-restart-trial")

    async def _try_restart(self) -> None:
        if await self._launch.can_repeat():
            self.restarts = True
            self.first.set()
