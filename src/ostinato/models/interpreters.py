"""Which programs run a text that is no list of words, and how each of them is given it.

Pure: `execution/executors/interpreter.py` looks for them and calls them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ostinato.errors import InvalidInput

__all__ = ["LONGEST_ARGUMENT", "Calling", "calling", "check_interpreter"]

LONGEST_ARGUMENT = 131_071
"""How many bytes Linux takes in one argument."""


@dataclass(frozen=True, slots=True)
class Calling:
    """How an interpreter is called with a text."""

    before: tuple[str, ...] = ()
    """What stands before the text as an argument; nothing where it can only be given a file."""
    takes_files: bool = True
    """Whether a text in a file means the same to it."""
    ends_options: bool = False
    """Whether it reads on for options behind those before the text, until a --."""

    @property
    def is_as_shells(self) -> bool:
        """Whether it takes a text as cron gives one to a shell."""
        return self.before == ("-c",)

    def words(self, text: str) -> tuple[str, ...]:
        """What it is called with where the text is an argument."""
        is_like_option = self.ends_options and text.startswith(("-", "+"))
        return (*self.before, "--", text) if is_like_option else (*self.before, text)


_SHELL = Calling(("-c",), ends_options=True)
_KNOWN = {
    **dict.fromkeys(("sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"), _SHELL),
    "fish": Calling(("-c",)),
    **dict.fromkeys(("perl", "ruby"), Calling(("-e",))),
    # In a file they would look for modules beside it, and PHP would take the text for a page.
    **dict.fromkeys(("python", "pypy"), Calling(("-c",), takes_files=False)),
    **dict.fromkeys(("node", "nodejs"), Calling(("-e",), takes_files=False)),
    "php": Calling(("-r",), takes_files=False),
    "pwsh": Calling(("-NoProfile", "-Command"), takes_files=False),
}
_IN_A_FILE = Calling()
_VERSION = re.compile(r"-?\d[\d.]*")
"""What may stand behind the name of a program: python3.12, ksh93."""


def calling(interpreter: str) -> Calling:
    """How this one, a name or a path, is called; one that is not known gets the text in a file."""
    name = PurePosixPath(interpreter).name
    return _KNOWN.get(name) or _KNOWN.get(_VERSION.sub("", name), _IN_A_FILE)


def check_interpreter(interpreter: Any, command: str | list[str]) -> None:
    """A name that is found in PATH, or a whole path, for a command that is text."""
    if interpreter is None:
        return
    is_name = isinstance(interpreter, str) and re.fullmatch(r"[A-Za-z0-9_][\w.+-]*", interpreter, re.ASCII)
    is_path = isinstance(interpreter, str) and re.fullmatch(r"/[^\0\r\n]*[^/\0\r\n]", interpreter)
    if not is_name and not is_path:
        raise InvalidInput(
            f"interpreter cannot be {interpreter!r}",
            field="interpreter",
            hint="give the name of a program such as bash or python3, or its whole path, without arguments",
        )
    if not isinstance(command, str):
        raise InvalidInput(
            f"a list of words runs without a shell, so interpreter {interpreter!r} would do nothing",
            field="interpreter",
            hint="give the command as text, or leave out interpreter",
        )
    size = len(command.encode(errors="surrogateescape"))
    if size > LONGEST_ARGUMENT and not calling(interpreter).takes_files:
        raise InvalidInput(
            f"{interpreter} can be given a text of {LONGEST_ARGUMENT:,} bytes, and this one has {size:,}",
            field="command",
            hint="write it to a file, and run that",
        )
