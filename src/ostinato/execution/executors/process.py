"""Functions in a process of their own, which can be killed hard. child.py is the other side.

The child gets one JSON request on stdin and answers JSON lines on a pipe; what it prints is the run's output. Its
process group is killed when the call ends, or this process does, so nothing that it started is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from ostinato.config import SYSTEMD_VARIABLES
from ostinato.execution.context import DRAINING, NOT_DRAINING, SOFT_TIMEOUT
from ostinato.execution.descriptors import ensure_standard_descriptors
from ostinato.execution.executors import group
from ostinato.execution.executors.base import STOPPED, Call
from ostinato.execution.executors.group import NotStarted, end_of
from ostinato.execution.executors.pipes import PipeReader
from ostinato.execution.executors.process_call import ProcessCall, ProcessExecutor
from ostinato.execution.outcome import Outcome, OutcomeKind, raised
from ostinato.execution.resources import starved
from ostinato.logs import one_line, root_level
from ostinato.models.states import Cause
from ostinato.models.work import Function
from ostinato.tuning import Tuning

__all__ = ["ProcessFunctions"]

_LINE_LIMIT = 64 * 1024 * 1024
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class ProcessFunctions(ProcessExecutor):
    """A fresh interpreter for each call."""

    def __init__(self, tuning: Tuning, max_result: int) -> None:
        super().__init__(tuning)
        self._max_result = max_result

    def _begin(self, call: Call) -> ProcessCall:
        return _Child(call, self._tuning, self._max_result)


class _Answer(msgspec.Struct):
    """The child's last message."""

    kind: str
    cause: Cause | None
    reason: str | None
    error: str | None
    result: str | None
    delay: int | None
    begun: bool
    exception: str | None
    raised: list[str]

    @property
    def outcome(self) -> Outcome:
        delay = None if self.delay is None else timedelta(microseconds=self.delay)
        return Outcome(
            OutcomeKind[self.kind],
            self.reason,
            self.error,
            self.result,
            self.cause,
            delay,
            begun=self.begun,
            exception=self.exception,
            raised=self.raised,
        )


class _Child(ProcessCall):
    """One call, from its start to its outcome."""

    def __init__(self, call: Call, tuning: Tuning, max_result: int) -> None:
        self._max_result = max_result
        self._begun: list[bytes] = []
        """What has come of a message that is not whole yet."""
        self._answer: Outcome | None = None
        self._nonsense: Exception | None = None
        super().__init__(call, tuning)

    async def _execute(self) -> Outcome:
        request = _request(self._call, self._max_result)
        with contextlib.ExitStack() as ours:
            with contextlib.ExitStack() as theirs:
                ensure_standard_descriptors()
                answers, channel = os.pipe()
                theirs.callback(os.close, channel)
                reader = PipeReader(answers, self._heard)
                ours.callback(reader.close)
                child = await self._start(
                    [sys.executable, "-m", "ostinato.execution.child", str(channel)],
                    folder=Path.cwd(),
                    environment={name: os.environ[name] for name in os.environ.keys() - SYSTEMD_VARIABLES},
                    stdout=self._call.context.write,
                    # Left open until the end: the child goes when it closes, even by a kill of this process.
                    stdin=request + b"\n",
                    keep_stdin=True,
                    pass_fds=(channel,),
                )
            self._call.context.on_drain = lambda draining: child.write(DRAINING if draining else NOT_DRAINING)
            if self._call.context.draining:
                child.write(DRAINING)
            if (limit := self._call.context.soft_limit) is not None:
                limit.ask = lambda: child.write(SOFT_TIMEOUT)
            status = await child.wait()
            if not reader.ended.done():
                await asyncio.wait([reader.ended], timeout=group.DRAIN_SECONDS)
        if self._is_stopping:
            return STOPPED
        if self._nonsense is not None:
            reason = f"its process could not be understood: {one_line(self._nonsense)}"
            return Outcome(OutcomeKind.FAILED, reason, raised(self._nonsense).error, cause=Cause.CRASHED)
        return self._answer or Outcome(
            OutcomeKind.FAILED, f"its process {end_of(status)} before the function returned", cause=Cause.CRASHED
        )

    def _not_started(self, error: NotStarted) -> Outcome:
        if error.may_pass:
            return starved(str(error))
        reason = f"its process could not be started: {error}"
        return Outcome(OutcomeKind.ABORTED, reason, cause=Cause.NOT_STARTED)

    def _heard(self, data: bytes) -> None:
        """Pass on what the child reports, and keep its answer."""
        first, *more = data.split(b"\n")
        self._begun.append(first)
        try:
            for line in more:
                self._take(b"".join(self._begun))
                self._begun = [line]
            if sum(map(len, self._begun)) > _LINE_LIMIT:
                raise ValueError("it sent more than 64 MB without a line end")
        except Exception as error:  # whatever is wrong with it
            self._begun.clear()
            self._nonsense = self._nonsense or error
            if self._group is not None:
                self._group.kill()

    def _take(self, line: bytes) -> None:
        if self._nonsense is not None:
            return
        context = self._call.context
        message = _decode(line)
        if "progress" in message:
            context.progress(**message["progress"])
        elif "count" in message:
            context.count(**message["count"])
        elif "total" in message:
            context.set_total(**message["total"])
        elif "heartbeat" in message:
            context.heartbeat()
        else:
            self._answer = msgspec.convert(message, _Answer).outcome


def _request(call: Call, max_result: int) -> bytes:
    definition, work = call.definition, call.work
    assert definition is not None
    assert isinstance(work, Function)
    function = definition.function
    main = sys.modules.get("__main__")
    contexts = definition.contexts
    return msgspec.json.encode(
        {
            "task": definition.name,
            "module": function.__module__,
            "function": function.__qualname__,
            "main": getattr(main, "__file__", None) if function.__module__ == "__main__" else None,
            "path": sys.path,
            "setup": contexts.process_setup,
            "setup_state": None if contexts.process_state is None else contexts.process_state(),
            "args": work.args,
            "kwargs": work.kwargs,
            "context_parameter": definition.context_parameter,
            "max_result": max_result,
            "run": call.context.claimed,
            "trace": call.context.trace,
            "is_traced": call.context.span is not None,
            "log_level": root_level(),
        }
    )
