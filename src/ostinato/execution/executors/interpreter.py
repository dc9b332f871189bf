"""Gives a text to the program that runs it: bash or sh, unless the work names another one.

`models/interpreters.py` says how each is called. shell.py and the gate run what comes of it.
"""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache

from ostinato.execution.executors.private_places import PLACES
from ostinato.execution.executors.starting import NotStarted
from ostinato.execution.resources import is_exhausted
from ostinato.models.interpreters import LONGEST_ARGUMENT, calling

__all__ = ["called", "check_is_there", "default_shell"]

_USUAL = ("/bin", "/usr/bin", "/usr/local/bin")


@cache
def default_shell() -> str:
    """What runs a text that names no interpreter: bash where this machine has it, else sh. It is looked for once."""
    places = [*_USUAL, *filter(os.path.isabs, os.get_exec_path())]
    return shutil.which("bash", path=os.pathsep.join(places)) or "/bin/sh"


@contextmanager
def called(
    command: str | Sequence[str], interpreter: str | None = None, owner: pwd.struct_passwd | None = None
) -> Iterator[list[str]]:
    """The words to execute, while the block lasts: a list as it is, a text behind its interpreter.

    What cannot be an argument is in a file that only `owner`, or else the engine's user, may read; NotStarted if there
    can be none.
    """
    if not isinstance(command, str):
        yield list(command)
        return
    program = interpreter or default_shell()
    how, text = calling(program), os.fsencode(command)
    if how.before and len(text) <= LONGEST_ARGUMENT:
        yield [program, *how.words(command)]
        return
    try:
        path = PLACES.take("script", lambda path: _write(path, text, owner))
    except OSError as error:
        reason = f"its text for {program!r} cannot be written to a file: {error}"
        raise NotStarted(reason, may_pass=is_exhausted(error)) from error
    try:
        yield [program, path]
    finally:
        PLACES.give_back(path)


def _write(path: str, text: bytes, owner: pwd.struct_passwd | None) -> None:
    """A file that nobody else can read, or none."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700)
    try:
        with open(file, "wb") as script:
            script.write(text)
            if owner is not None:
                os.fchown(script.fileno(), owner.pw_uid, owner.pw_gid)
    except BaseException:
        os.unlink(path)
        raise


def check_is_there(interpreter: str | None, environment: Mapping[str, str]) -> None:
    """NotStarted if the work names an interpreter that a command with this environment does not find."""
    path = environment.get("PATH", os.defpath)
    if interpreter is None or shutil.which(interpreter, path=path) is not None:
        return
    looked = "" if "/" in interpreter else f"; looked in PATH ({path})"
    raise NotStarted(
        f"this node has no interpreter {interpreter!r}{looked}: install it there, or give the work another interpreter"
    )
