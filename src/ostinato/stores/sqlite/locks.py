"""Locks that nobody else in this process can drop: SQLite's POSIX locks on our files become OFD locks (Linux).

POSIX locks belong to the process, and all of them on a file go when *any* descriptor of that file is closed there: by
Python's `sqlite3`, which is a second SQLite in the process, or by a plain `open(file).read()`. OFD locks belong to an
open file description. So SQLite's `open`, `fcntl` and `close` are hooked: each of our files has one private description
that all locks of this process go through, because SQLite locks by one connection's descriptor and unlocks by another's.
Other SQLite files keep their POSIX locks. database.py names our files, and connects while it holds `opening`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
import threading
from typing import Any
from weakref import WeakSet

import apsw

from ostinato.forks import lock_over_forks
from ostinato.logs import get_logger
from ostinato.stores.sqlite.query import Connection

__all__ = ["are_safe", "close", "connect", "opening", "protect", "report_foreign"]

log = get_logger("ostinato.stores")

_GETLK, _SETLK, _SETLKW = 5, 6, 7
_TO_OFD = 31
"""F_OFD_GETLK is F_GETLK + 31, and so on."""
_PID_OFFSET = 24
"""Where `l_pid` is in a 64-bit `struct flock`: it must be 0 for OFD locks, and SQLite leaves there what it finds."""
_STATEMENTS = 512
"""How many places apsw has for prepared statements, the most that it takes. It puts one back into the *next* place,
whoever is there: a hundred rows by `executemany` would drop all others of its usual hundred, in each transaction."""

opening = threading.Lock()
"""Held from a connection's making to the end of its first read, and while one is closed.

apsw closes connections without giving up the GIL, and our hooks need it: a thread that closes would wait for SQLite's
mutex, and a thread that opens holds that mutex and waits in a hook for the GIL."""


class _Table:
    """Which descriptors of SQLite are of our files, and the private one that their locks go through."""

    def __init__(self) -> None:
        self.mutex = threading.RLock()
        self.names: set[bytes] = set()
        self.private: dict[int, int] = {}
        """The descriptor that takes the locks, by the descriptor that SQLite has."""
        self.of_file: dict[tuple[int, int], int] = {}
        """The same by device and inode: a file may be open many times."""

    def add(self, descriptor: int) -> None:
        found = os.fstat(descriptor)
        file = (found.st_dev, found.st_ino)
        with self.mutex:
            private = self.of_file.get(file)
            if private is None:
                private = self.of_file[file] = _reopen(descriptor)
            self.private[descriptor] = private

    def drop(self, descriptor: int) -> None:
        with self.mutex:
            private = self.private.pop(descriptor, None)
            if private is None or private in self.private.values():
                return
            for file, of_file in tuple(self.of_file.items()):
                if of_file == private:
                    del self.of_file[file]
            os.close(private)

    def leave_behind(self) -> None:
        """In a forked child: these locks are the parent's, and would outlive it in here."""
        for private in set(self.private.values()):
            os.close(private)
        self.private.clear()
        self.of_file.clear()
        self.names.clear()


def _reopen(descriptor: int) -> int:
    """A file description of its own for the same file, writable if it may be."""
    try:
        return os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:  # only readable, or no /proc: whoever opened it first shares its description
        return os.dup(descriptor)


_table = _Table()
_private = _table.private
_kept: list[Any] = []
"""What SQLite points at, for as long as the process lives."""
_install_once = threading.Lock()
_ours: WeakSet[apsw.Connection] = WeakSet()
_foreign_reported = threading.Event()


def are_safe() -> bool:
    """Whether this system and this SQLite have what it takes."""
    return (
        sys.platform == "linux"
        and platform.machine() in ("x86_64", "aarch64")
        and sys.maxsize > 1 << 32
        # Without it SQLite holds a mutex over all locks of a file, which a closing connection waits for with the GIL.
        and "ENABLE_SETLK_TIMEOUT" in apsw.compile_options
    )


def protect(path: str) -> None:
    """From now on what SQLite opens by this (real) path has such locks."""
    if not are_safe():
        return
    with _install_once:
        if not _kept:
            report_foreign()
            _install()
    _table.names.update(os.fsencode(path + suffix) for suffix in ("", "-shm"))


def connect(path: str) -> Connection:
    """A connection of ours. It makes no file: one that was deleted must be missed, and not be there again, empty."""
    create = apsw.SQLITE_OPEN_CREATE if path == ":memory:" else 0
    with opening:
        connection = Connection(path, flags=apsw.SQLITE_OPEN_READWRITE | create, statementcachesize=_STATEMENTS)
        _ours.add(connection)
    return connection


def report_foreign() -> None:
    """Say once if other code of this process has a file open by apsw: it closes that without holding `opening`."""
    if not are_safe() or _foreign_reported.is_set():
        return
    # Whoever opens just now has one that is not known yet: then the next beat looks.
    if opening.acquire(blocking=False):
        try:
            foreign = [name for one in apsw.connections() if one not in _ours and (name := _file_of(one))]
        finally:
            opening.release()
        if foreign:
            _foreign_reported.set()
            log.error(
                "other code of this process has %s open by apsw: the process can freeze when it closes that while "
                "Ostinato opens or closes its own; use Python's sqlite3 for it, or another process",
                foreign[0],
            )


def _file_of(connection: apsw.Connection) -> str:
    """Empty for one in memory, which closes no file."""
    try:
        return connection.filename
    except apsw.ConnectionClosedError:
        return ""


def close(connection: apsw.Connection) -> None:
    """Close a connection of ours."""
    with opening:
        connection.close()


def _install() -> None:
    """Hook the three calls, for the whole library; no connection of ours is open yet."""
    # Without giving up the GIL: a lock is taken or refused at once.
    quick = ctypes.PyDLL(None, use_errno=True)
    libc = ctypes.CDLL(None, use_errno=True)
    call, call_and_wait, close, open_file = quick.fcntl, libc.fcntl, libc.close, libc.open
    for function in (call, call_and_wait):
        function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
    close.argtypes = (ctypes.c_int,)
    open_file.argtypes = (ctypes.c_char_p, ctypes.c_int, ctypes.c_int)
    pid_at = ctypes.c_int.from_address

    # An exception in a hook would be told SQLite as 0, success: so none may leave it.
    def ofd_fcntl(descriptor: int, command: int, argument: int | None) -> int:
        try:
            private = _private.get(descriptor)
            if private is None or argument is None or not _GETLK <= command <= _SETLKW:
                return int(call_and_wait(descriptor, command, argument))
            pid_at(argument + _PID_OFFSET).value = 0
            if command == _SETLKW:
                return int(call_and_wait(private, command + _TO_OFD, argument))
            return call(private, command + _TO_OFD, argument)  # type: ignore[no-any-return]
        except BaseException:  # a signal's handler may raise anything; the lock counts as not taken
            ctypes.set_errno(errno.EIO)
            return -1

    def ofd_open(path: bytes, flags: int, mode: int) -> int:
        descriptor = -1
        try:
            descriptor = int(open_file(path, flags, mode))
            if descriptor >= 0 and path in _table.names:
                _table.add(descriptor)
            return descriptor
        except BaseException as error:  # too many open files, say: SQLite is told that, and has none to close
            if descriptor >= 0:
                _table.drop(descriptor)
                close(descriptor)
            ctypes.set_errno(getattr(error, "errno", None) or errno.EIO)
            return -1

    def ofd_close(descriptor: int) -> int:
        try:
            if descriptor in _private:
                _table.drop(descriptor)
            return int(close(descriptor))
        except BaseException:
            ctypes.set_errno(errno.EIO)
            return -1

    integer, pointer = ctypes.c_int, ctypes.c_void_p
    hooks = {
        "fcntl": ctypes.CFUNCTYPE(integer, integer, integer, pointer, use_errno=True)(ofd_fcntl),
        "open": ctypes.CFUNCTYPE(integer, ctypes.c_char_p, integer, integer, use_errno=True)(ofd_open),
        "close": ctypes.CFUNCTYPE(integer, integer, use_errno=True)(ofd_close),
    }
    vfs = apsw.VFS("ostinato-locks", "unix")
    for name, hook in hooks.items():
        vfs.xSetSystemCall(name, ctypes.cast(hook, pointer).value or 0)
    _kept.extend((vfs, hooks))


def _before_fork() -> None:
    opening.acquire()
    _table.mutex.acquire()


def _after_fork() -> None:
    _table.mutex.release()
    opening.release()


def _after_fork_in_child() -> None:
    _table.leave_behind()
    _after_fork()


if hasattr(os, "register_at_fork"):
    lock_over_forks(_before_fork)
    os.register_at_fork(after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
