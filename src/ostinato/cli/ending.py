"""The end of a process that was told twice to stop, whatever its work does: a task may swallow its cancellation, hold
the loop or a thread. `serving.py` and `attended.py` ask for it."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from queue import Empty, SimpleQueue
from typing import NoReturn

__all__ = ["FORCED", "Ending", "end_now", "end_strays"]

FORCED = 130
"""The exit code after a second signal."""
FORCE_SECONDS = 5.0
"""How long the ledger may take to learn what becomes of the runs, once a stop is forced."""
_STRAY_SECONDS = 1.0


class Ending:
    """Ends the process FORCE_SECONDS after it was armed. Its thread is there before: a signal may come at any place,
    also where no thread can be started."""

    def __init__(self) -> None:
        self._armed: SimpleQueue[None] = SimpleQueue()
        threading.Thread(target=self._wait, name="ostinato-ending", daemon=True).start()

    def arm(self) -> None:
        """From a signal handler too."""
        self._armed.put(None)

    def _wait(self) -> None:
        self._armed.get()
        try:
            self._armed.get(timeout=FORCE_SECONDS)
        except Empty:
            os.write(2, b"forced: the process ends now; what it ran is rescued by others\n")
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
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # nobody reads it, or work has closed it
            continue
    os._exit(code)
