"""A real `ostinato …` at a terminal of its own: what a person types there, and what they see."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Self

__all__ = ["Terminal"]

_PATIENCE = 60.0
_PROGRAM = [
    sys.executable,
    "-c",
    "import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "  # so that Ctrl-C is a signal
    "from ostinato.cli.main import run; sys.exit(run())",
]
_STYLES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """A command with a terminal around it."""

    def __init__(self, folder: Path, *argv: str) -> None:
        self._controller, terminal = os.openpty()
        kept = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "INPUTRC")}
        self._process = subprocess.Popen(
            [*_PROGRAM, *argv],
            cwd=folder,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            env={**kept, "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "200"},
        )
        os.close(terminal)
        self._seen = b""
        self._passed = 0
        """How far it was looked at."""
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                part = os.read(self._controller, 65_536)
            except OSError:  # the end of a terminal is an error on Linux
                part = b""
            with self._changed:
                self._seen += part
                self._changed.notify_all()
            if not part:
                return

    @property
    def text(self) -> str:
        """All that it has shown, as lines of text."""
        return _STYLES.sub("", self._seen.decode(errors="replace")).replace("\r\n", "\n")

    def shows(self, expected: str) -> None:
        """Wait until it shows this, after what it was seen to show before."""

        def found() -> bool:
            return expected in self.text[self._passed :]

        with self._changed:
            assert self._changed.wait_for(found, _PATIENCE), f"{expected!r} is not shown: {self.text!r}"
            self._passed = self.text.index(expected, self._passed) + len(expected)

    def type(self, keys: str) -> None:
        """Press these keys."""
        os.write(self._controller, keys.encode())

    def enter(self, line: str) -> None:
        """Type a line at the prompt."""
        self.shows("you> ")
        self.type(f"{line}\r")

    def wait(self) -> int:
        """Its exit code."""
        code = self._process.wait(_PATIENCE)
        self._reader.join(_PATIENCE)
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._reader.join(_PATIENCE)
        os.close(self._controller)
