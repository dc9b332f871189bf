"""The inside of `ostinato exec`: an engine that does one run, its output printed as it comes, stopped by signals."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from ostinato.cli.console import say, warn
from ostinato.cli.output import OutputPrinter
from ostinato.errors import Conflict

if TYPE_CHECKING:
    from ostinato.models.ids import RunId
    from ostinato.models.output import OutputLine
    from ostinato.models.run import NewRun, Run
    from ostinato.wiring import House

__all__ = ["INTERRUPTED", "Attended"]

INTERRUPTED = 130


class Attended:
    """A run that a person waits for: its output is printed, and signals stop it."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._printer: OutputPrinter | None = None
        self._stopping: asyncio.Task[None] | None = None
        self.signals = 0
        self.is_unread = False
        """Whoever read our output went away."""

    async def execute(self, house: House, draft: NewRun) -> Run:
        """Execute it on an engine of its own, which does nothing else."""
        engine = house.engine = house.make_engine()
        loop = asyncio.get_running_loop()
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
            numbers.append(signal.SIGHUP)
        for number in numbers:
            loop.add_signal_handler(number, self._interrupted, house)
        try:
            await engine.prepare(takes_work=False)
            return await house.execute(draft, partial(self._begun, house), partial(self._printed, house))
        finally:
            house.engine = None
            await engine.stop(grace=0)
            for number in numbers:
                loop.remove_signal_handler(number)

    def _begun(self, house: House, id: RunId) -> None:
        self._printer = OutputPrinter(id, as_json=self._as_json)
        if not self._as_json:
            say(f"run {id} begins", "dim")
        if self.signals:
            self._stop(house, "interrupted")

    def _printed(self, house: House, line: OutputLine) -> None:
        if self._printer is None or self.is_unread:
            return
        if line.number is None and not self._as_json:
            warn(f"{line.text} (it printed more than output_cap of the settings, faster than it is recorded)")
            return
        try:
            self._printer(line)
        except BrokenPipeError:
            # As the command itself would be ended, if it wrote there.
            self.is_unread = True
            self._stop(house, "nobody reads its output any more")

    def _interrupted(self, house: House) -> None:
        self.signals += 1
        if self.signals == 1:
            say("interrupted: it is told to stop (once more to force)")
            self._stop(house, "interrupted")
        elif self.signals == 2 and house.engine is not None:
            say("forcing")
            house.engine.force()
        else:
            sys.stdout.flush()
            os._exit(INTERRUPTED)

    def _stop(self, house: House, reason: str) -> None:
        if self._printer is None or house.engine is None:
            return
        id = self._printer.id
        if not house.engine.runner.cancel(id, reason):
            # It is not under way here: it waits for another try, or has just ended.
            self._stopping = asyncio.get_running_loop().create_task(_cancel(house, id, reason))


async def _cancel(house: House, id: RunId, reason: str) -> None:
    with suppress(Conflict):
        await house.services.runs.cancel(id, reason=reason)
