"""Whether the database file and its write-ahead log are still the ones that were opened.

A file that was deleted or replaced under an open connection takes every write, and nobody finds it again. The writer
asks before and after each commit, readers ask now and then, and health asks whenever somebody asks it.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from weakref import WeakValueDictionary

import apsw

from ostinato.errors import StoreError
from ostinato.logs import get_logger

__all__ = ["FileIdentity"]

log = get_logger("ostinato.stores.identity")

_NOW_AND_THEN = 1.0
"""Seconds between two looks of the readers."""

_Files = tuple[tuple[str, tuple[int, int]], ...]


class _Shared:
    """What was found of files that several stores of this process have open: an engine, its feed and its page."""

    def __init__(self) -> None:
        self.fault: str | None = None


_shared: WeakValueDictionary[_Files, _Shared] = WeakValueDictionary()
_sharing = threading.Lock()


class FileIdentity:
    """The file and the log behind a connection that has read from them. Once they are lost, they stay so.

    Whoever finds that first finds it for all stores of this process that have the same files open, and says it once.
    """

    def __init__(self, connection: apsw.Connection, path: str) -> None:
        # SQLite follows a symbolic link: the log is beside the file that it points at.
        paths = (path, f"{os.path.realpath(path)}-wal")
        self._files = tuple((one, was) for one in paths if (was := _identity(one)) is not None)
        moved = ctypes.c_int()
        connection.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(moved))
        if moved.value:
            raise StoreError(f"the database file {path} was replaced while it was being opened; open it again")
        self._looked_at = time.monotonic()
        with _sharing:
            shared = _shared.get(self._files)
            # A file system gives the number of a lost file to a new one: that one is not lost.
            if shared is None or shared.fault is not None:
                shared = _shared[self._files] = _Shared()
            self._found = shared

    @property
    def fault(self) -> str | None:
        """What was found, if something was."""
        return self._found.fault

    def look(self) -> str | None:
        """What is wrong, if something is; a few microseconds."""
        if self.fault is None:
            self._looked_at = time.monotonic()
            if (fault := self._compare()) is not None:
                with _sharing:
                    is_first = self.fault is None
                    if is_first:
                        self._found.fault = fault
                if is_first:
                    log.error("%s", fault)
        return self.fault

    def look_now_and_then(self) -> str | None:
        """The same for whoever asks often: not at every call."""
        if self.fault is None and time.monotonic() - self._looked_at < _NOW_AND_THEN:
            return None
        return self.look()

    def _compare(self) -> str | None:
        for path, was in self._files:
            try:
                now = _identity(path)
            except OSError:  # a network that is away, a folder that is closed to us: nobody knows, and nothing is lost
                continue
            if now != was:
                how = "deleted" if now is None else "replaced"
                advice = "restart this process, and check the database with 'ostinato db check'"
                if now is None and path == self._files[0][0]:
                    advice = "put a backup in its place before you restart this process, which would begin a new one"
                loss = f"{path} was {how} while it was open here"
                return f"{loss}: nothing is read from it or written to it any more; {advice}"
        return None


def _identity(path: str) -> tuple[int, int] | None:
    """None if there is no such file."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino
