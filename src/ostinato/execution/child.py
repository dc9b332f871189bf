"""The other side of isolation="process": one interpreter, one function, one answer.

Started by executors/process.py as `python -m ostinato.execution.child FD`. The request comes as one line on stdin,
which the parent then leaves open: its end is the parent's end, and this process goes too, with all that it started.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import runpy
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from ostinato.clock import micros_of
from ostinato.execution.arguments import TaskSignature
from ostinato.execution.binding import ContextParameter, bind_context
from ostinato.execution.context import DRAINING, SOFT_TIMEOUT, RunContext, current_context, finite
from ostinato.execution.outcome import Outcome, OutcomeKind, raised, returned
from ostinato.execution.output import readable, storable
from ostinato.logs import NAMED, RecordFormatter, set_up
from ostinato.models.run import ClaimedRun
from ostinato.models.states import Cause
from ostinato.tracing import enter_trace

if TYPE_CHECKING:
    from ostinato.task_contexts import TaskContexts

__all__: list[str] = []


class _Request(msgspec.Struct):
    task: str
    module: str
    function: str
    main: str | None
    path: list[str]
    setup: str | None
    """What is called before the task is imported: `module:function`."""
    setup_state: Any
    """What that function is given, if there is something."""
    args: list[Any]
    kwargs: dict[str, Any]
    context_parameter: ContextParameter | None
    max_result: int
    run: ClaimedRun
    trace: str | None
    """What it is a part of."""
    is_traced: bool
    """Whether that is a span of the parent."""
    log_level: int
    """Of the root logger in the parent: no other part of how it logs can be handed over."""


class _ChildContext(RunContext):
    """Sends what the function reports to the parent at once."""

    __slots__ = ("_send",)

    has_own_stdout = True

    def __init__(self, claimed: ClaimedRun, send: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(claimed, lambda _: None)
        self._send = send

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        super().progress(done, total, text)
        self._send({"progress": self._progress})

    def count(self, name: str, by: float = 1) -> None:
        super().count(name, by)
        self._send({"count": {"name": storable(name), "by": finite(name, by)}})

    def set_total(self, name: str, value: float) -> None:
        super().set_total(name, value)
        self._send({"total": {"name": storable(name), "value": finite(name, value)}})

    def heartbeat(self) -> None:
        self._send({"heartbeat": True})

    def log(self, text: str) -> None:
        self.write(text if text.endswith("\n") else text + "\n")

    def write(self, text: str | bytes) -> None:
        sys.stdout.write(storable(text if isinstance(text, str) else readable(text)))
        sys.stdout.flush()


def _find(request: _Request) -> Any:
    """The function, or the task that it was decorated to, by its place in the code."""
    if request.main is not None:
        # As multiprocessing does it: the script's code without its `if __name__ == "__main__"` part.
        found: Any = runpy.run_path(request.main, run_name="__mp_main__")[request.function.split(".")[0]]
        names = request.function.split(".")[1:]
    else:
        found = importlib.import_module(request.module)
        names = request.function.split(".")
    for name in names:
        found = getattr(found, name)
    return found


def _call(request: _Request, context: _ChildContext) -> Outcome:
    current_context.set(context)
    try:
        if request.setup is not None:
            module, _, name = request.setup.partition(":")
            set_up_app = getattr(importlib.import_module(module), name)
            set_up_app() if request.setup_state is None else set_up_app(request.setup_state)
        found = _find(request)
    except BaseException as error:
        outcome = raised(error)
        where = f"{request.module}.{request.function}"
        return Outcome(
            OutcomeKind.ABORTED,
            f"its process cannot import {where}: {outcome.reason}; define the task at the top of a module",
            outcome.error,
            cause=Cause.NOT_STARTED,
        )
    set_up(request.log_level, RecordFormatter(NAMED), sys.stdout)  # unless its module has done that
    _enter_trace(request)
    function, contexts = getattr(found, "function", found), getattr(found, "contexts", None)
    signature = TaskSignature(request.task, function, request.context_parameter)
    try:
        args, kwargs = signature.decode(request.args, request.kwargs)
        args, kwargs = bind_context(request.context_parameter, args, kwargs, context)
        with contextlib.nullcontext() if contexts is None else contexts.enter():
            value = function(*args, **kwargs)
            if asyncio.iscoroutine(value):
                value = asyncio.run(_awaited(value, contexts))
            return returned(value, request.max_result, signature)
    except BaseException as error:
        return raised(error)


def _enter_trace(request: _Request) -> None:
    """Whatever the function enqueues belongs to the trace of its run, and so do its spans, if it makes some."""
    if request.trace is None:
        return
    if request.is_traced:
        # The parent makes spans: so may the function, and it may import what it needs for that only now.
        with contextlib.suppress(ImportError):
            importlib.import_module("opentelemetry.trace")
    enter_trace(request.trace)


async def _awaited(coroutine: Coroutine[Any, Any, Any], contexts: TaskContexts | None) -> Any:
    enter = None if contexts is None else contexts.enter_async
    async with contextlib.nullcontext() if enter is None else enter():
        return await coroutine


def _take_stdin() -> int:
    """The pipe that stdin was; from here on stdin is empty, for the function and for what it starts."""
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return pipe


def _end_with(stream: BinaryIO, context: RunContext) -> None:
    """Hear from the parent that its node drains, or that a soft timeout is over.

    Its end is the pipe's: take along whatever was started here.
    """
    with contextlib.suppress(OSError):
        while said := stream.read(1):
            if said == SOFT_TIMEOUT:
                context.see_cancel()
            else:
                context.set_draining(said == DRAINING)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def main() -> None:
    """Read the request, call the function, write the answer."""
    channel = os.fdopen(int(sys.argv[1]), "wb")
    os.set_inheritable(channel.fileno(), False)

    def send(message: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):  # the parent is gone: nobody to tell
            channel.write(msgspec.json.encode(message) + b"\n")
            channel.flush()

    stream = os.fdopen(_take_stdin(), "rb")
    request = msgspec.json.decode(stream.readline(), type=_Request)
    context = _ChildContext(request.run, send)
    threading.Thread(target=_end_with, args=(stream, context), name="ostinato-parent", daemon=True).start()
    sys.path[:] = request.path
    outcome = _call(request, context)
    if context.saw_cancel and outcome.kind is OutcomeKind.RETURNED:
        outcome = Outcome(OutcomeKind.FAILED, "stopped early: its soft timeout is over", cause=Cause.TIMED_OUT)
    with contextlib.suppress(OSError, ValueError):  # the function may have closed it
        sys.stdout.flush()
    send(
        {
            "kind": outcome.kind.name,
            "cause": outcome.cause,
            "reason": outcome.reason and storable(outcome.reason),
            "error": outcome.error and storable(outcome.error),
            "result": outcome.result,
            "begun": outcome.begun,
            "exception": outcome.exception,
            "raised": list(outcome.raised),
            "delay": None if outcome.delay is None else micros_of(outcome.delay),
        }
    )


if __name__ == "__main__":
    main()
