"""Functions in a process of their own, which can be killed hard. child.py is the other side.

The child gets one JSON request on stdin and answers JSON lines on a pipe; what it prints is the run's output. Its
process group is killed when the call ends, or this process does, so nothing that it started is left.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import signal
import sys
from collections.abc import Coroutine
from datetime import timedelta
from typing import IO, Any

import msgspec

from ostinato.execution.context import RunContext
from ostinato.execution.executors.base import Call
from ostinato.execution.outcome import Outcome, OutcomeKind, one_line, raised

__all__ = ["ProcessFunctions"]

KILL_SECONDS = 10.0
"""Between SIGTERM and SIGKILL."""
DRAIN_SECONDS = 2.0
"""How long an ended process's last words are waited for: what it started may have fled and hold the pipes open."""
_LINE_LIMIT = 64 * 1024 * 1024
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class ProcessFunctions:
    """A fresh interpreter for each call."""

    @property
    def stop_seconds(self) -> float:
        return KILL_SECONDS + 5

    def start(self, call: Call) -> None:
        call.handle = _Child(call)

    def stop(self, call: Call) -> None:
        call.context.request_cancel()
        child: _Child = call.handle
        child.terminate()


class _Answer(msgspec.Struct):
    """The child's last message."""

    kind: str
    reason: str | None
    error: str | None
    result: str | None
    delay: int | None

    @property
    def outcome(self) -> Outcome:
        delay = None if self.delay is None else timedelta(microseconds=self.delay)
        return Outcome(OutcomeKind[self.kind], self.reason, self.error, self.result, delay)


class _Child:
    def __init__(self, call: Call) -> None:
        self._call = call
        self._process: asyncio.subprocess.Process | None = None
        self._answer: Outcome | None = None
        self._is_stopping = False
        self._task = asyncio.get_running_loop().create_task(self._run())

    def terminate(self) -> None:
        """SIGTERM to the group now, SIGKILL later if it does not go."""
        if not self._is_stopping:
            self._is_stopping = True
            self._signal(signal.SIGTERM)
            asyncio.get_running_loop().call_later(KILL_SECONDS, self._signal, signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            self._signal_group(self._process, number)

    def _signal_group(self, process: asyncio.subprocess.Process, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)

    async def _run(self) -> None:
        try:
            outcome = await self._execute()
        except Exception as error:  # whatever the child did, the run gets its outcome
            what = "could not be started" if self._process is None else "could not be understood"
            outcome = Outcome(OutcomeKind.FAILED, f"its process {what}: {one_line(error)}", raised(error).error)
        self._call.done(outcome)

    async def _execute(self) -> Outcome:
        request = _request(self._call)
        with contextlib.ExitStack() as ours:
            with contextlib.ExitStack() as theirs:
                stdin, questions = _pipe(theirs, ours)
                output, stdout = _pipe(ours, theirs)
                answers, channel = _pipe(ours, theirs)
                # Pipes of our own: asyncio's would make wait() wait for everybody who holds them.
                process = self._process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "ostinato.execution.child",
                    str(channel.fileno()),
                    stdin=stdin,
                    stdout=stdout,
                    stderr=asyncio.subprocess.STDOUT,
                    pass_fds=(channel.fileno(),),
                    start_new_session=True,
                )
            ours.callback(self._signal_group, process, signal.SIGKILL)
            if self._is_stopping:
                self._signal(signal.SIGTERM)
            # Left open until the end: the child goes when it closes, even by a kill of this process.
            writer, _ = await asyncio.get_running_loop().connect_write_pipe(asyncio.BaseProtocol, questions)
            ours.callback(_abort, writer)
            writer.write(request + b"\n")
            return await self._converse(process, await _reader(answers, ours), await _reader(output, ours))

    async def _converse(
        self, process: asyncio.subprocess.Process, answers: asyncio.StreamReader, output: asyncio.StreamReader
    ) -> Outcome:
        listening = asyncio.ensure_future(self._or_kill(self._listen(answers)))
        capturing = asyncio.ensure_future(self._or_kill(_capture(output, self._call.context)))
        status = await process.wait()
        # Whatever the function started goes with it, and lets go of the pipes.
        self._signal_group(process, signal.SIGKILL)
        _, late = await asyncio.wait({listening, capturing}, timeout=DRAIN_SECONDS)
        for task in (listening, capturing):
            if task in late:
                task.cancel()
            else:
                task.result()
        if self._is_stopping:
            return Outcome(OutcomeKind.CANCELLED, reason="cancelled")
        return self._answer or Outcome(OutcomeKind.FAILED, reason=_silent_end(status))

    async def _or_kill(self, conversation: Coroutine[Any, Any, None]) -> None:
        """Nobody reads on after an error: without a kill, the child would wait for that."""
        try:
            await conversation
        except Exception:
            self._signal(signal.SIGKILL)
            raise

    async def _listen(self, answers: asyncio.StreamReader) -> None:
        """Pass on what the child reports, until its end, and keep its answer."""
        context = self._call.context
        while line := await answers.readline():
            message = _decode(line)
            if "progress" in message:
                context.progress(**message["progress"])
            elif "count" in message:
                context.count(**message["count"])
            else:
                self._answer = msgspec.convert(message, _Answer).outcome


def _pipe(readers: contextlib.ExitStack, writers: contextlib.ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    """A new pipe; each stack closes its end."""
    reading, writing = os.pipe()
    return (
        readers.enter_context(os.fdopen(reading, "rb", buffering=0)),
        writers.enter_context(os.fdopen(writing, "wb", buffering=0)),
    )


def _abort(writer: asyncio.WriteTransport) -> None:
    if not writer.is_closing():  # it closes by itself when the child does
        writer.abort()


async def _reader(pipe: IO[bytes], stack: contextlib.ExitStack) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=_LINE_LIMIT)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    stack.callback(transport.close)
    return reader


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
