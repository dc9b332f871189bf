"""What every call that is a process has in common: it is begun, told to stop, killed, and has one outcome.

shell.py, process.py and agent/executor.py say what is started and what its end means; group.py is the process itself.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Self

from ostinato.execution.executors.base import LOOP_ENDED, STOPPED, Call, ExecutorHost, has_begun
from ostinato.execution.executors.group import NotStarted, ProcessGroup
from ostinato.execution.outcome import Outcome, OutcomeKind, raised
from ostinato.execution.resources import is_exhausted, starved
from ostinato.logs import one_line
from ostinato.models.states import Cause
from ostinato.tuning import Tuning

__all__ = ["ProcessCall", "ProcessExecutor"]


class ProcessCall(ABC):
    """One call, from its start to its outcome."""

    lost = "its process was lost"
    """What is said when something went wrong that nobody thought of."""

    def __init__(self, call: Call, tuning: Tuning) -> None:
        self._call = call
        self._tuning = tuning
        self._group: ProcessGroup | None = None
        self._is_stopping = False
        self._task = asyncio.get_running_loop().create_task(self._run())

    @abstractmethod
    async def _execute(self) -> Outcome:
        """Start it, attend to it, and judge its end."""

    def terminate(self) -> None:
        """SIGTERM to all of it now, SIGKILL later to what does not go. What had ended by itself keeps its outcome."""
        if self._group is not None:
            self._group.terminate()
        self._is_stopping = self._group is None or self._group.was_terminated

    def kill(self) -> None:
        """SIGKILL to all of it; what has not begun does not."""
        self._is_stopping = True
        if self._group is None:
            if has_begun(self._task):  # else it ends with its first turn
                self._task.cancel()
        else:
            self._group.kill()

    async def _run(self) -> None:
        try:
            outcome = replace(STOPPED, begun=False) if self._is_stopping else await self._execute()
        except NotStarted as error:
            outcome = self._not_started(error)
        except asyncio.CancelledError:
            outcome = STOPPED if self._is_stopping else LOOP_ENDED
        except Exception as error:  # whatever happened, the run gets its outcome
            if self._group is None and is_exhausted(error):
                outcome = starved(one_line(error))
            else:
                outcome = Outcome(
                    OutcomeKind.FAILED, f"{self.lost}: {one_line(error)}", raised(error).error, cause=Cause.CRASHED
                )
        self._done(outcome)

    async def _start(self, command: list[str], **places: Any) -> ProcessGroup:
        """Start the process; `places` are those of ProcessGroup.start."""
        kill_seconds = self._tuning.command_kill_seconds
        self._group = await ProcessGroup.start(command, kill_seconds=kill_seconds, **places)
        if self._is_stopping:  # it was told so while it waited for its turn
            self._group.terminate()
        return self._group

    def _not_started(self, error: NotStarted) -> Outcome:
        if error.may_pass:
            return starved(str(error))
        return Outcome(OutcomeKind.ABORTED, str(error), cause=Cause.NOT_STARTED)

    def _done(self, outcome: Outcome) -> None:
        self._call.done(outcome)


class ProcessExecutor(ABC):
    """A process group for each call."""

    def __init__(self, tuning: Tuning) -> None:
        self._tuning = tuning
        self.stop_seconds = tuning.command_kill_seconds + 5
        self.kill_seconds = tuning.command_gone_seconds

    @classmethod
    def made(cls, host: ExecutorHost) -> Self:
        """For a node."""
        return cls(host.settings.tuning)

    @abstractmethod
    def _begin(self, call: Call) -> ProcessCall: ...

    def start(self, call: Call) -> None:
        call.handle = self._begin(call)

    def stop(self, call: Call) -> None:
        call.context.request_cancel()
        begun: ProcessCall = call.handle
        begun.terminate()

    def kill(self, call: Call) -> None:
        call.context.request_cancel()
        begun: ProcessCall = call.handle
        begun.kill()
