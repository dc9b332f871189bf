"""Before a command starts: its turn, the user that it runs as, and if it cannot start, why not. group.py starts it."""

from __future__ import annotations

import asyncio
import errno
import os
import pwd
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ostinato.execution.resources import is_exhausted

__all__ = ["NotStarted", "identity_of", "look_for", "not_started", "turn"]

_IN_A_TURN = 8
"""How many commands are started before the loop looks after others."""


class NotStarted(Exception):
    """The command could not be started; the text says what was looked for, where, and how to mend it."""

    def __init__(self, reason: str, *, may_pass: bool = False) -> None:
        super().__init__(reason)
        self.may_pass = may_pass
        """Whether it may go better later: the machine has no room just now."""


class _Turns:
    """Lets a few start in each turn of the loop: a start takes a millisecond, and thirty would hold up all others."""

    def __init__(self) -> None:
        self._begun = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Return when it is one's turn."""
        loop = asyncio.get_running_loop()
        if not self._begun:
            loop.call_soon(self._next)
        if self._begun < _IN_A_TURN:
            self._begun += 1
            return
        waiting = loop.create_future()
        self._waiting.append(waiting)
        await waiting

    def _next(self) -> None:
        self._begun = 0
        while self._waiting and self._begun < _IN_A_TURN:
            waiting = self._waiting.popleft()
            if not waiting.done():  # cancelled
                waiting.set_result(None)
                self._begun += 1
        if self._begun:
            asyncio.get_running_loop().call_soon(self._next)


_TURNS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Turns] = weakref.WeakKeyDictionary()
"""Each loop has its own; they must not hold the loop, or it would stay for ever."""


async def turn() -> None:
    """Return when this loop may start another."""
    loop = asyncio.get_running_loop()
    if (turns := _TURNS.get(loop)) is None:
        turns = _TURNS[loop] = _Turns()
    await turns.wait()


def identity_of(user: pwd.struct_passwd | None) -> dict[str, Any]:
    """The user that it runs as, with that user's groups."""
    if user is None:
        return {}
    if user.pw_uid == os.geteuid():
        return {}
    if os.geteuid() != 0:
        raise NotStarted(
            f"only root can run it as user {user.pw_name!r}, and the engine runs as uid {os.geteuid()}: "
            f"start the engine as {user.pw_name!r}, or leave out user"
        )
    groups = os.getgrouplist(user.pw_name, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": groups}


def look_for(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], user: pwd.struct_passwd | None = None
) -> None:
    """NotStarted if its program is not there, as a start would say: a shell around it would only exit with 127."""
    program = command[0]
    folders = [""] if "/" in program else os.get_exec_path(environment)
    places = [folder / name / program for name in folders]
    if not any(place.is_file() and os.access(place, os.X_OK) for place in places):
        number = errno.EACCES if any(place.exists() for place in places) else errno.ENOENT
        raise not_started(command, folder, environment, user, OSError(number, os.strerror(number)))


def not_started(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    user: pwd.struct_passwd | None,
    error: OSError | ValueError,
) -> NotStarted:
    """The error of a start, in words."""
    may_pass = is_exhausted(error)
    return NotStarted(_why_not(command, folder, environment, user, error), may_pass=may_pass)


def _why_not(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    user: pwd.struct_passwd | None,
    error: OSError | ValueError,
) -> str:
    program = command[0]
    who = f" for user {user.pw_name!r}" if user else ""
    if not isinstance(error, OSError):
        return f"{program!r} cannot be started: {error}"
    if is_exhausted(error):
        return f"the machine has no room for another process: {error.strerror}"
    if not folder.is_dir():
        return f"its folder {folder} does not exist: make it, or correct the project or the work"
    place = folder / program
    match error.errno:
        case errno.ENOENT if "/" not in program:
            path = environment.get("PATH", os.defpath)
            return f"there is no program {program!r}; looked in PATH ({path}): install it, or give its whole path"
        case errno.ENOENT if place.exists():
            return f"{program!r} cannot be started: the interpreter that its first line names is not there"
        case errno.ENOENT:
            return f"{program!r} cannot be started: {place} does not exist"
        case errno.EACCES if place.is_dir():
            return f"{program!r} cannot be started: {place} is a folder, not a program"
        case errno.EACCES:
            hint = f"chmod +x it, and look at who may enter {folder}"
            return f"{program!r} cannot be started{who}: permission denied; {hint}"
        case errno.ENOEXEC:
            return f"{program!r} cannot be started: it is not a program; begin a script with a line such as #!/bin/sh"
        case errno.E2BIG:
            return f"{program!r} cannot be started: its arguments and environment are too long for this system"
        case _:
            return f"{program!r} cannot be started: {error.strerror or error}"
