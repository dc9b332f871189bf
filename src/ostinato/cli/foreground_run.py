"""The inside of `ostinato exec`: an engine that does one run, its output printed as it comes, stopped by signals."""

from __future__ import annotations

import asyncio
import os
import queue
import signal
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ostinato.cli.console import say, warn
from ostinato.cli.ending import FORCED, end_by_force, end_now
from ostinato.cli.output import OutputPrinter
from ostinato.errors import Conflict
from ostinato.models.run import Ending
from ostinato.models.states import Cause
from ostinato.signal_reader import signal_reader

if TYPE_CHECKING:
    from ostinato.models.ids import RunId
    from ostinato.models.output import OutputLine
    from ostinato.models.run import NewRun, OuterRun, Run
    from ostinato.wiring import Container

__all__ = ["ForegroundRun"]


class ForegroundRun:
    """A run that a person waits for: its output is printed, and signals stop it."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._run: RunId | None = None
        self._voice: _Voice | None = None
        self._stopping: asyncio.Task[None] | None = None
        self.signals = 0
        self._has_cuts = False
        self._main: asyncio.Task[Any] | None = None
        self.is_unread = False
        """Whoever read our output went away."""

    async def execute(self, container: Container, draft: NewRun, *, wait: bool, outer: OuterRun | None) -> Run:
        """Execute it on an engine of its own, which does nothing else."""
        from ostinato.wiring import ExecutionCallbacks

        callbacks = ExecutionCallbacks(
            queued=partial(self._queued, container),
            waits=self._waits,
            begun=self._begun,
            printed=partial(self._printed, container),
        )
        engine = container.engine = container.make_engine()
        loop = asyncio.get_running_loop()
        self._main = asyncio.current_task()
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
            numbers.append(signal.SIGHUP)
        signal_reader().listen(tuple(numbers), partial(self._signalled, container, loop))
        try:
            await engine.prepare(takes_work=False)
            engine.runner.hush()
            return await container.execute(draft, callbacks, wait=wait, outer=outer)
        finally:
            container.engine = None
            await engine.stop(grace=0)
            signal_reader().leave(tuple(numbers))

    def _queued(self, container: Container, id: RunId) -> None:
        self._run = id
        if self.signals:
            self._stop(container, "interrupted")

    def _waits(self, run: Run) -> None:
        if not self._as_json and run.reason is not None and not run.ended:
            say(f"run {run.id}: {run.reason}", "dim")

    def _begun(self, id: RunId) -> None:
        self._voice = _Voice(OutputPrinter(id, as_json=self._as_json))
        if not self._as_json:
            say(f"run {id} begins", "dim")

    async def _printed(self, container: Container, line: OutputLine) -> None:
        if self._voice is None or self.is_unread:
            return
        if line.number is None and not self._has_cuts:
            self._has_cuts = True
            warn("it prints more than the setting output_cap: what is not recorded is not printed here either")
        try:
            await self._voice.say(line)
        except BrokenPipeError:
            # As the command itself would be ended, if it wrote there.
            self.is_unread = True
            self._stop(container, "nobody reads its output any more")

    def _signalled(self, container: Container, loop: asyncio.AbstractEventLoop, number: int) -> None:
        """On the reader's thread: work may hold the loop, and the second signal is to end that too."""
        self.signals += 1
        if self.signals == 2:
            signal_reader().end_later(number, end_by_force, container.settings.tuning.force_seconds)
        elif self.signals > 2:
            os._exit(FORCED)
        with suppress(RuntimeError):  # the loop is closed: nothing is left to be stopped
            loop.call_soon_threadsafe(self._interrupted, container, self.signals)

    def _interrupted(self, container: Container, count: int) -> None:
        if count == 1:
            say("interrupted: it was told to stop (once more to force)")
            self._stop(container, "interrupted")
        elif container.engine is not None:
            say("forcing")
            container.engine.force()
            if self._main is not None:
                # The ledger may not take it, on a full disk, say: then others learn of it by the lost lease.
                seconds = container.settings.tuning.exec_write_seconds
                asyncio.get_running_loop().call_later(seconds, self._main.cancel)
        else:
            end_now(FORCED)

    def _stop(self, container: Container, reason: str) -> None:
        id = self._run
        if id is None or container.engine is None:
            return
        if not container.engine.runner.cancel(id, Ending(Cause.CANCELLED, reason)):
            # It is not under way here: it waits for another try, or has just ended.
            self._stopping = asyncio.get_running_loop().create_task(_cancel(container, id, reason))


async def _cancel(container: Container, id: RunId, reason: str) -> None:
    with suppress(Conflict):
        await container.services.runs.cancel(id, reason=reason)


class _Voice:
    """Prints on a thread: whoever reads our output may stop to read, and then it waits, and not the engine."""

    def __init__(self, printer: OutputPrinter) -> None:
        self._printer = printer
        self._lines: queue.SimpleQueue[tuple[OutputLine, asyncio.Future[None]]] = queue.SimpleQueue()
        threading.Thread(target=self._speak, name="ostinato-print", daemon=True).start()

    async def say(self, line: OutputLine) -> None:
        """Return when the line is printed; BrokenPipeError if nobody reads it."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.put((line, done))
        await done

    def _speak(self) -> None:
        while True:
            line, done = self._lines.get()
            error: Exception | None = None
            try:
                self._printer(line)
            except Exception as raised:
                error = raised
            with suppress(RuntimeError):  # the loop was closed
                done.get_loop().call_soon_threadsafe(_settle, done, error)


def _settle(done: asyncio.Future[None], error: Exception | None) -> None:
    if done.cancelled():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
