"""SIGUSR1 to `up` and `worker`: once it is drained, the process becomes a new one in place, with the code of today.

The process id stays, so that whoever watches over it (systemd, a container) sees no end. Descriptors close by
themselves at that: none of ours is inheritable but 0, 1 and 2. `signals.py` hears the signal, `serving.py` drains.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from ostinato.cli.console import restore_streams
from ostinato.signal_reader import say_last

__all__ = ["Launch"]

_EXIT_SECONDS = 10.0
"""How long the exit functions of the user's code may take."""
_FAILED = 1


@dataclass(frozen=True, slots=True)
class Launch:
    """How this process was started. The user's code may change its folder and its environment later."""

    command: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]

    @classmethod
    def of_this_process(cls) -> Launch:
        """As it is now: before the user's code is loaded."""
        return cls((sys.executable, *sys.orig_argv[1:]), os.getcwd(), os.environ.copy())

    def repeat(self) -> NoReturn:
        """Start it so again, in the place of this one. Nothing may be under way any more."""
        from ostinato.wiring import end_guard

        _run_exit_functions()
        end_guard()
        _reap()
        restore_streams()
        try:
            os.chdir(self.folder)
            os.execve(self.command[0], self.command, self.environment)
        except OSError as error:
            # Not by an exception: what would be cleaned up on its way is cleaned up already.
            say_last(f"error: cannot start anew: {error}")
            os._exit(_FAILED)


def _run_exit_functions() -> None:
    """What an end of the process would do: remove temporary folders, say. On a thread without a loop, in time."""
    thread = threading.Thread(target=atexit._run_exitfuncs, name="ostinato-exit", daemon=True)
    thread.start()
    thread.join(_EXIT_SECONDS)
    logging.shutdown()


def _reap() -> None:
    """Ended children that nobody has asked for: the new process would not know them, and they would stay for ever."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
