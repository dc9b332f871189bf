"""SIGUSR1 to `up`, `worker` and `web`: once it is drained, the process becomes a new one in place, with new code.

The process id stays, so that whoever watches over it (systemd, a container) sees no end. Descriptors close by
themselves at that: none of ours is inheritable but 0, 1 and 2. Before that, a trial loads the new code in another
process: one that cannot start must not end one that works. `signals.py` hears the signal.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from ostinato.cli.console import restore_streams
from ostinato.logs import get_logger
from ostinato.signal_reader import say_last

if TYPE_CHECKING:
    from ostinato.config import Settings

__all__ = ["Launch"]

log = get_logger("ostinato")

_TRIAL = "_OSTINATO_TRIAL"
"""The variable of a process that only tries whether the app loads."""
_TRIAL_SECONDS = 300.0
_TOLD = 2_000
"""How many bytes of what a trial has said at last are told."""
_EXIT_SECONDS = 10.0
"""How long the exit functions of the user's code may take."""
_FAILED = 1


@dataclass(frozen=True, slots=True)
class Launch:
    """How this process was started. The user's code may change its folder and its environment later."""

    command: tuple[str, ...]
    folder: str | None
    """None if it was deleted."""
    environment: Mapping[str, str]
    is_trial: bool = False
    """Whether it is only tried if the app loads: `end_trial` follows."""

    @classmethod
    def of_this_process(cls) -> Launch:
        """As it is now: before the user's code is loaded."""
        is_trial = os.environ.pop(_TRIAL, None) is not None
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGUSR1, _too_early)  # else one that comes before somebody listens would end it
        try:
            folder = os.getcwd()
        except FileNotFoundError:
            folder = None
        return cls((sys.executable, *sys.orig_argv[1:]), folder, os.environ.copy(), is_trial)

    def end_trial(self, settings: Settings, *, page: bool = False) -> NoReturn:
        """It loads. What else the settings ask for is refused here if it can be told without the database, which may
        have to be migrated. What the app has begun at its import is not waited for."""
        import asyncio

        from ostinato.cli.ending import end_now
        from ostinato.wiring import open_store

        open_store(settings.db)  # a kind of database that there is; nothing is opened
        if page:
            from ostinato.cli.server import check_listening

            asyncio.run(check_listening(settings))
        elif settings.metrics is not None:
            from ostinato.cli.metrics_server import check_metrics

            asyncio.run(check_metrics(settings, settings.metrics))
        _run_exit_functions()
        end_now(0)

    async def can_repeat(self) -> bool:
        """Whether settings and app load as they are now, tried in another process. If not, the log says why."""
        try:
            hindrance = await self._try()
        except OSError as error:
            hindrance = str(error)
        if hindrance is not None:
            log.error("not starting anew, since that would fail; this process goes on as it is: %s", hindrance)
        return hindrance is None

    async def _try(self) -> str | None:
        """What hinders a start."""
        import asyncio  # here: a help needs no loop
        import tempfile

        from ostinato.config import SYSTEMD_VARIABLES

        # The service manager hears from this process alone.
        environment = {name: value for name, value in self.environment.items() if name not in SYSTEMD_VARIABLES}
        with tempfile.TemporaryFile() as told:  # not a pipe: what the app starts may hold it open
            trial = await asyncio.create_subprocess_exec(
                *self.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=told,
                cwd=self.folder,
                env=environment | {_TRIAL: "1"},
                start_new_session=True,
            )
            try:
                async with asyncio.timeout(_TRIAL_SECONDS):
                    code = await trial.wait()
            except TimeoutError:
                return f"it did not load within {_TRIAL_SECONDS:g} s"
            finally:
                if trial.returncode is None:
                    with suppress(ProcessLookupError):
                        os.killpg(trial.pid, signal.SIGKILL)
                    await trial.wait()
            if code == 0:
                return None
            told.seek(max(0, told.seek(0, os.SEEK_END) - _TOLD))
            return told.read().decode(errors="replace").strip() or f"it ended with exit code {code}"

    def repeat(self) -> NoReturn:
        """Start it so again, in the place of this one. Nothing may be under way any more."""
        from ostinato.wiring import end_guard

        _run_exit_functions()
        end_guard()
        _reap()
        restore_streams()
        try:
            if self.folder is not None:
                os.chdir(self.folder)
            os.execve(self.command[0], self.command, self.environment)
        except OSError as error:
            # Not by an exception: what would be cleaned up on its way is cleaned up already.
            say_last(f"error: cannot start anew: {error}")
            os._exit(_FAILED)


def _too_early(*_: object) -> None:
    """It starts just now, with the code that is there."""


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
