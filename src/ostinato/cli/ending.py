"""The end of a process that was told twice to stop, whatever its work does: a task may swallow its cancellation, hold
the loop or a thread. `serving.py`, `signals.py` and `foreground_run.py` ask for it."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import NoReturn

from ostinato.cli.console import stderr, stdout
from ostinato.signal_reader import FORCED_END, say_last

__all__ = ["FORCED", "LOST", "end_by_force", "end_now", "end_strays"]

FORCED = 130
"""The exit code after a second signal."""
LOST = 6
"""The exit code after the database file was deleted or replaced."""
_STRAY_SECONDS = 1.0


def end_by_force() -> NoReturn:
    """The process was told twice, and could not end by itself in time."""
    try:
        say_last(FORCED_END, stderr())
    finally:
        os._exit(FORCED)


async def end_strays() -> bool:
    """Cancel whatever else is on this loop; False if something of it does not end, for which asyncio would wait."""
    strays = asyncio.all_tasks() - {asyncio.current_task()}
    for stray in strays:
        stray.cancel()
    return not strays or not (await asyncio.wait(strays, timeout=_STRAY_SECONDS))[1]


def end_now(code: int) -> NoReturn:
    """Leave at once; all that is printed and logged so far is out."""
    logging.shutdown()
    for stream in (stdout(), stderr()):
        try:
            stream.flush()
        except (OSError, ValueError):  # nobody reads it, or work has closed it
            continue
    os._exit(code)
