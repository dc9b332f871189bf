"""A whole copy of the database while everything runs, by SQLite's own backup: one state of it, complete or not there.

Called by upkeep.py, inside a read.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress

import apsw

from ostinato.errors import Conflict, StoreError
from ostinato.stores.sqlite.locks import close, connect
from ostinato.stores.sqlite.query import fetch, snapshot

__all__ = ["back_up"]

_PAGES = 1000
"""How many are copied between two words about how far it is."""
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)
"""What a file system without hard links answers."""


def back_up(
    connection: apsw.Connection, path: str, target: str, told: Callable[[int, int], None], *, overwrite: bool
) -> int:
    """Copy what the connection reads to a new file that only its owner may read; answers its size in bytes."""
    _check_target(path, target, overwrite)
    partial = f"{target}.{os.getpid()}.partial"
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreError(f"{target!r} cannot be written: {error.strerror}; choose another place") from error
    try:
        _copy(connection, partial, told)
        size = os.stat(partial).st_size
        _publish(partial, target, overwrite)
        return size
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(partial + suffix)


def _check_target(path: str, target: str, overwrite: bool) -> None:
    real = os.path.realpath(path)
    if os.path.realpath(target) in {real + suffix for suffix in ("", "-wal", "-shm", "-journal")}:
        raise Conflict(f"{target!r} is the database itself: choose another file")
    if os.path.isdir(target):
        raise Conflict(f"{target!r} is a folder: name a file in it")
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise Conflict(f"{target!r} already exists: choose another name, or overwrite it with --force")
    for suffix in ("-wal", "-journal"):
        if os.path.lexists(target + suffix):
            raise Conflict(
                f"{target!r} is a database that is in use: {target + suffix!r} is there; choose another name"
            )


def _copy(connection: apsw.Connection, partial: str, told: Callable[[int, int], None]) -> None:
    copy = connect(partial)
    try:
        # A read that stays open: whatever others write meanwhile, it is one state, and the copy never begins anew.
        with snapshot(connection):
            fetch(connection, "SELECT count(*) FROM sqlite_schema")
            with copy.backup("main", connection, "main") as work:
                while not work.done:
                    work.step(_PAGES)
                    told(work.page_count - work.remaining, work.page_count)
    finally:
        close(copy)


def _publish(partial: str, target: str, overwrite: bool) -> None:
    """Give the finished copy its name, and let the disk know."""
    if overwrite:
        os.replace(partial, target)
    else:
        _publish_new(partial, target)
    folder = os.open(os.path.dirname(target), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _publish_new(partial: str, target: str) -> None:
    """A link is refused where there is a file already; where there are no links, it is looked for once more."""
    taken = f"{target!r} was just made by another process: choose another name"
    try:
        os.link(partial, target)
    except FileExistsError as error:
        raise Conflict(taken) from error
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(target):
            raise Conflict(taken) from error
        os.rename(partial, target)
