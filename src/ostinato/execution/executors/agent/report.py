"""The report that an agent leaves in its folder: `.ostinato/run-{id}-report.md`.

The folder belongs to the work, and others may write there: nothing is followed out of it, only a plain file is read.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ostinato.models.ids import RunId
from ostinato.tuning import DEFAULT_TUNING

__all__ = ["ReportFile"]

_FOLDER = ".ostinato"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_in_use: Counter[Path] = Counter()
"""How many runs of this process have their report in a folder: it goes with the last of them."""


class ReportFile:
    """The place of one run's report; OSError if it cannot be made there."""

    def __init__(self, folder: Path, run: RunId, cap: int = DEFAULT_TUNING.agent_report_bytes) -> None:
        self._folder = folder
        self._cap = cap
        self._name = f"run-{run}-report.md"
        self.path = folder.absolute() / _FOLDER / self._name
        with _opened(folder) as outer:
            with contextlib.suppress(FileExistsError):
                os.mkdir(_FOLDER, 0o700, dir_fd=outer)
            with _opened(_FOLDER, outer) as inner:
                # Of an attempt that was cut short; and not left there empty: some agents only write to new files.
                _remove(self._name, inner)
                made = os.open(self._name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=inner)
                os.close(made)
                _remove(self._name, inner)
        _in_use[folder] += 1

    def read(self) -> str | None:
        """The report, None if there is none; OSError says why it cannot be read."""
        try:
            with _opened(self._folder) as outer, _opened(_FOLDER, outer) as inner:
                # Without waiting for the other end of a pipe that somebody put there.
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                opened = os.open(self._name, flags, dir_fd=inner)
                try:
                    if not stat.S_ISREG(os.fstat(opened).st_mode):
                        raise OSError(f"{self.path} is not a plain file")
                    with open(opened, "rb", closefd=False) as file:
                        data = file.read(self._cap + 1)
                finally:
                    os.close(opened)
        except FileNotFoundError:
            return None
        is_cut = len(data) > self._cap
        text, _ = codecs.utf_8_decode(data[: self._cap], "backslashreplace", not is_cut)  # no half characters
        return text if not is_cut else f"{text}\n… cut after {self._cap:,} bytes …\n"

    def remove(self) -> None:
        """The file goes, and the folder that was made for it, if nobody needs it."""
        _in_use[self._folder] -= 1
        is_last = _in_use[self._folder] <= 0
        if is_last:
            del _in_use[self._folder]
        with contextlib.suppress(OSError), _opened(self._folder) as outer:
            with contextlib.suppress(OSError), _opened(_FOLDER, outer) as inner:
                _remove(self._name, inner)
            if is_last:
                os.rmdir(_FOLDER, dir_fd=outer)


@contextlib.contextmanager
def _opened(folder: str | Path, within: int | None = None) -> Iterator[int]:
    """A folder's descriptor; one that is looked up within another must be no link."""
    opened = os.open(folder, _DIRECTORY | (0 if within is None else os.O_NOFOLLOW), dir_fd=within)
    try:
        yield opened
    finally:
        os.close(opened)


def _remove(name: str, within: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=within)
