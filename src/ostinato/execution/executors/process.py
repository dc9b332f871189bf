"""Functions in a process of their own, which can be killed hard. child.py is the other side.

The child gets one JSON request on stdin and answers JSON lines on a pipe; what it prints is the run's output. Its
process group is killed when the call ends, so nothing that it started is left.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import signal
import sys
from datetime import timedelta
from typing import Any

import msgspec

from ostinato.execution.context import RunContext
from ostinato.execution.executors.base import Call
from ostinato.execution.outcome import Outcome, OutcomeKind

__all__ = ["ProcessFunctions"]

STOP_SECONDS = 10.0
"""Between SIGTERM and SIGKILL."""
_LINE_LIMIT = 64 * 1024 * 1024
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class ProcessFunctions:
    """A fresh interpreter for each call."""

    def start(self, call: Call) -> None:
        call.handle = _Child(call)

    def stop(self, call: Call) -> bool:
        call.context.request_cancel()
        child: _Child = call.handle
        child.terminate()
        return True


class _Child:
    def __init__(self, call: Call) -> None:
        self._call = call
        self._process: asyncio.subprocess.Process | None = None
        self._is_stopping = False
        self._task = asyncio.get_running_loop().create_task(self._run())

    def terminate(self) -> None:
        """SIGTERM to the group now, SIGKILL later if it does not go."""
        if not self._is_stopping:
            self._is_stopping = True
            self._signal(signal.SIGTERM)
            asyncio.get_running_loop().call_later(STOP_SECONDS, self._signal, signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    async def _run(self) -> None:
        try:
            outcome = await self._execute()
        except OSError as error:
            outcome = Outcome(OutcomeKind.FAILED, reason=f"its process could not be started: {error}")
        self._call.done(outcome)

    async def _execute(self) -> Outcome:
        receive, send = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "ostinato.execution.child",
                str(send),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                pass_fds=(send,),
                start_new_session=True,
            )
        except BaseException:
            os.close(receive)
            raise
        finally:
            os.close(send)
        if self._is_stopping:
            self._signal(signal.SIGTERM)
        reader = asyncio.StreamReader(limit=_LINE_LIMIT)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(receive, "rb", buffering=0)
        )
        try:
            return await self._converse(self._process, reader)
        finally:
            transport.close()
            # Whatever the function started goes with it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _converse(self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader) -> Outcome:
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(_request(self._call))
            process.stdin.close()
        answer, _ = await asyncio.gather(
            _listen(reader, self._call.context), _capture(process.stdout, self._call.context)
        )
        status = await process.wait()
        if self._is_stopping:
            return Outcome(OutcomeKind.CANCELLED, reason="cancelled")
        return answer or Outcome(OutcomeKind.FAILED, reason=_silent_end(status))


def _request(call: Call) -> bytes:
    function = call.definition.function
    main = sys.modules.get("__main__")
    return msgspec.json.encode(
        {
            "module": function.__module__,
            "function": function.__qualname__,
            "main": getattr(main, "__file__", None) if function.__module__ == "__main__" else None,
            "path": sys.path,
            "args": call.args,
            "kwargs": call.kwargs,
            "context_parameter": call.definition.context_parameter,
            "run": call.context.claimed,
        }
    )


async def _listen(reader: asyncio.StreamReader, context: RunContext) -> Outcome | None:
    """Pass on what the child reports, until its answer or its end."""
    answer: Outcome | None = None
    while line := await reader.readline():
        message = _decode(line)
        if "progress" in message:
            context.progress(**message["progress"])
        elif "count" in message:
            context.count(**message["count"])
        else:
            delay = message["delay"]
            answer = Outcome(
                OutcomeKind[message["kind"]],
                message["reason"],
                message["error"],
                message["result"],
                None if delay is None else timedelta(microseconds=delay),
            )
    return answer


async def _capture(stream: asyncio.StreamReader, context: RunContext) -> None:
    """What the child prints is the run's output; bytes that are not UTF-8 stay readable."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="backslashreplace")
    while chunk := await stream.read(65_536):
        context.write(decoder.decode(chunk))
    context.write(decoder.decode(b"", final=True))


def _silent_end(status: int) -> str:
    if status < 0:
        return f"its process was killed by {signal.Signals(-status).name} before the function returned"
    return f"its process exited with status {status} before the function returned"
