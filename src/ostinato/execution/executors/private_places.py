"""Where the files of a run are that only its work may read: its report pipe, and a text that needs a file.

`report.py` and `interpreter.py` put them here. What a killed node left is removed by the next one of its user.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable

__all__ = ["PLACES", "PrivatePlaces"]

_FOLDER = re.compile(r"ostinato-\d+-.*")
_IN_MEMORY = "/dev/shm"
_TRIES = 3


class PrivatePlaces:
    """Files in a folder that is there as long as one of them is. Several engines of one process share it."""

    def __init__(self) -> None:
        self._made = 0
        self._made_before = False
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._lock = threading.Lock()
        self.folder: str | None = None
        self._taken = 0
        self._held: int | None = None
        """The open folder, locked while we live: by its number alone, no other container could tell that we do."""

    def forget(self) -> None:
        """In a fork: what was made belongs to the parent."""
        held = self._held
        self._begin_anew()
        if held is not None:
            os.close(held)  # the parent's lock stays

    def take(self, name: str, make: Callable[[str], None]) -> str:
        """The path of a new file, which `make` makes there; the name begins with this one."""
        with self._lock:
            self._made += 1
            if self.folder is not None:
                with contextlib.suppress(FileNotFoundError):  # somebody tidied up
                    return self._make(self.folder, name, make)
            # Where nothing is written to a disk, if there is such a place: what is here is gone with its run.
            place = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else None
            if not self._made_before:
                self._made_before = True
                _tidy(place or tempfile.gettempdir())
            self._let_go()
            (self.folder, self._held), self._taken = _new_folder(place), 0
            # Others may pass through, not look: each file belongs to the user of its work.
            os.chmod(self.folder, 0o711)
            return self._make(self.folder, name, make)

    def _let_go(self) -> None:
        if self._held is not None:
            os.close(self._held)
        self.folder = self._held = None

    def _make(self, folder: str, name: str, make: Callable[[str], None]) -> str:
        path = f"{folder}/{name}-{self._made}"
        make(path)
        self._taken += 1
        return path

    def give_back(self, path: str) -> None:
        """Nobody needs it any more."""
        with self._lock, contextlib.suppress(FileNotFoundError):
            folder = os.path.dirname(path)
            if folder == self.folder:
                self._taken -= 1
                if not self._taken:
                    self._let_go()
            os.unlink(path)
            if folder != self.folder:
                with contextlib.suppress(OSError):  # others of an older folder are still there
                    os.rmdir(folder)


def _tidy(place: str) -> None:
    """Remove what nodes of this user left behind that were killed."""
    with contextlib.suppress(OSError):
        for name in os.listdir(place):
            path = os.path.join(place, name)
            if not _FOLDER.fullmatch(name) or os.lstat(path).st_uid != os.geteuid():
                continue
            # The number of a killed node may be ours: each is the first process of its container.
            if (held := _locked(path)) is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(held)


def _new_folder(place: str | None) -> tuple[str, int | None]:
    """A folder and its lock. Before that is there, another node may take it for left behind: then another folder."""
    prefix = f"ostinato-{os.getpid()}-"
    for _ in range(_TRIES):
        folder = tempfile.mkdtemp(prefix=prefix, dir=place)
        held = _locked(folder)
        if held is not None and os.path.isdir(folder):
            return folder, held
        if held is not None:
            os.close(held)
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    return tempfile.mkdtemp(prefix=prefix, dir=place), None  # where no lock can be had, nobody tidies either


def _locked(folder: str) -> int | None:
    """The open folder, locked until it is closed or we end; None if somebody else has it, or it cannot be."""
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        return None
    return held


PLACES = PrivatePlaces()
os.register_at_fork(after_in_child=PLACES.forget)
