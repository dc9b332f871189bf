"""`ostinato report`: how a script says how far it is, or only that it is still at work. One line of JSON into the pipe
of its run, and nothing else.

Scripts call it in loops: it opens no database and loads no app. The other end is execution/executors/report.py.
"""

from __future__ import annotations

import json as json_text
import math
import os
import select
import time
from typing import Annotated, Any

from cyclopts import Parameter

from ostinato.cli.console import emit
from ostinato.errors import InvalidInput, NotRunning, OstinatoError

__all__ = ["report"]

_VARIABLE = "OSTINATO_REPORT"
_LONGEST = 4096
"""What a pipe takes in one piece; lines of several scripts would mix beyond it."""


def report(
    *,
    progress: str | None = None,
    text: Annotated[str, Parameter(allow_leading_hyphen=True)] = "",
    count: list[str] | None = None,
    total: list[str] | None = None,
    json: bool = False,
) -> None:
    """Report progress and totals from inside a shell or agent run; without flags, that it is still at work.

    Parameters
    ----------
    progress
        How much is done, such as 3/10, 3 or 30%.
    text
        What it is doing, shown beside the progress.
    count
        Add to one of the run's totals, such as copied=5; 'copied' alone adds 1. May be given again.
    total
        Set one of the run's totals, such as copied=5. May be given again.
    json
        Print what was reported.
    """
    said: dict[str, Any] = {}
    if progress is not None:
        said["progress"] = {**_progress(progress), "text": text}
    elif text:
        raise InvalidInput("--text goes with --progress", field="text", hint="write --progress 3/10 --text copying")
    if count:
        said["count"] = _counters("count", count)
    if total:
        said["totals"] = _counters("total", total)
    line = json_text.dumps(said, ensure_ascii=False)
    _write(f"{line}\n".encode("utf-8", "backslashreplace"))
    if json:
        emit(line)


def _progress(text: str) -> dict[str, float | None]:
    done, slash, whole = text.strip().partition("/")
    if not slash and done.endswith("%"):
        done, whole = done[:-1], "100"
    hint = "write 3/10, 3 or 30%"
    amount = _number("progress", text, done, hint)
    most = _number("progress", text, whole, hint) if whole or slash else None
    if amount < 0 or (most is not None and most < 0):
        raise InvalidInput(f"--progress cannot be {text!r}", field="progress", hint=hint)
    return {"done": amount, "total": most}


def _counters(flag: str, pairs: list[str]) -> dict[str, float]:
    counters: dict[str, float] = {}
    hint = f"write --{flag} copied=5"
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name.strip() or not (equals or flag == "count"):
            raise InvalidInput(f"--{flag} cannot be {pair!r}", field=flag, hint=hint)
        number = _number(flag, pair, value, hint) if equals else 1
        counters[name] = number + (counters.get(name, 0) if flag == "count" else 0)
    return counters


def _number(flag: str, given: str, text: str, hint: str) -> float:
    try:
        number = float(text)
        if math.isfinite(number):
            return int(number) if number.is_integer() and abs(number) <= 2**53 else number
    except ValueError:
        pass  # told below, with numbers that are not finite
    raise InvalidInput(f"--{flag} cannot be {given!r}", field=flag, hint=hint)


def _write(line: bytes) -> None:
    """Into the pipe of the run, without ever waiting for a reader that is gone."""
    path = os.environ.get(_VARIABLE)
    if not path:
        raise NotRunning(f"there is no run to report to: {_VARIABLE} is only set inside shell and agent runs")
    if len(line) > _LONGEST:
        raise InvalidInput(f"a report of {len(line)} bytes is too long", hint=f"{_LONGEST} is the most")
    try:
        pipe = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        # ENXIO is a pipe that nobody has open for reading, ENOENT one that is removed already.
        raise NotRunning(f"nobody listens to reports any more ({error.strerror}: {path}): the run has ended") from error
    try:
        _push(pipe, line)
    except OSError as error:
        raise NotRunning(f"the report could not be written ({error.strerror}: {path})") from error
    finally:
        os.close(pipe)


def _push(pipe: int, line: bytes, patience: float = 5.0) -> None:
    """Write it, when there is room in the pipe within so many seconds."""
    give_up_at = time.monotonic() + patience
    while True:
        try:
            os.write(pipe, line)
            return
        except BlockingIOError:
            left = give_up_at - time.monotonic()
            if left <= 0:
                raise OstinatoError(
                    f"nobody has read earlier reports for {patience:g} s: this one was not written"
                ) from None
            # A pipe counts as writable when it has room for a whole line.
            select.select([], [pipe], [], min(left, 0.1))
