"""The locks behind test_sqlite_intruders.py: which files have them, what is left after a fork, a kill or a close."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from ostinato.stores.sqlite import locks
from ostinato.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has OFD locks")


def locks_on(path: Path) -> set[str]:
    """The kinds of locks that anybody has on a file."""
    inode = str(path.stat().st_ino)
    lines = Path("/proc/locks").read_text().splitlines()
    return {line.split()[1] for line in lines if line.split()[5].endswith(f":{inode}")}


async def use(path: Path) -> None:
    first, second = SqliteStore(str(path)), SqliteStore(str(path))
    await first.open()
    await second.open()
    await first.lanes.ensure_lanes({"main": 3}, [])
    assert [lane.name for lane in await second.lanes.list_lanes()] == ["main"]
    assert locks_on(path) == {"OFDLCK"}
    await first.close()
    assert locks_on(path) == {"OFDLCK"}
    await second.close()


def test_a_close_leaves_neither_log_nor_descriptor(tmp_path: Path) -> None:
    before = dict(locks._private)
    asyncio.run(use(tmp_path / "jobs.db"))
    assert os.listdir(tmp_path) == ["jobs.db"]
    assert locks_on(tmp_path / "jobs.db") == set()
    assert locks._private == before


def test_files_of_others_keep_their_locks(tmp_path: Path) -> None:
    asyncio.run(use(tmp_path / "jobs.db"))
    for mode in ("delete", "wal"):
        path = tmp_path / f"{mode}.db"
        one, two = apsw.Connection(str(path)), apsw.Connection(str(path))
        one.execute(f"PRAGMA journal_mode = {mode}")
        one.execute("CREATE TABLE t (a); BEGIN IMMEDIATE; INSERT INTO t VALUES (1)")
        assert locks_on(path) == {"POSIX"}
        with pytest.raises(apsw.BusyError):
            two.execute("BEGIN IMMEDIATE")
        one.execute("COMMIT")
        assert two.execute("SELECT a FROM t").fetchall() == [(1,)]
        one.close()
        two.execute("INSERT INTO t VALUES (2)")
        two.close()
        assert locks_on(path) == set()


def test_a_file_is_never_opened_but_by_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "jobs.db")
    asyncio.run(use(Path(path)))
    flags: list[int] = []
    real = os.open

    def noted(name: str, how: int, *rest: int) -> int:
        if name == path:
            flags.append(how)
        return real(name, how, *rest)

    monkeypatch.setattr(os, "open", noted)
    asyncio.run(use(Path(path)))
    # Only to make it if it is absent: with O_EXCL no file that is there is opened.
    assert len(flags) == 2
    assert all(how & os.O_EXCL for how in flags)
    assert (tmp_path / "jobs.db").stat().st_mode & 0o777 == 0o600


KILLED_IN_A_TRANSACTION = """
import asyncio, os, sys, threading, time
from ostinato.stores.sqlite.store import SqliteStore

async def main():
    store = SqliteStore(sys.argv[1])
    await store.open()
    inside = threading.Event()

    def hold(connection):
        connection.execute("UPDATE lanes SET note = 'half'")
        inside.set()
        time.sleep(600)

    store._database.submit(hold)
    inside.wait()
    if os.fork() == 0:
        print(os.getpid(), flush=True)  # by now it has let go of what it inherited
        os.read(0, 1)  # lives on until the test closes our stdin
        os._exit(0)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_a_kill_in_a_transaction_frees_the_lock_though_a_forked_child_lives(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    asyncio.run(use(path))
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED_IN_A_TRANSACTION, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    try:
        process.kill()
        process.wait(30)
        os.kill(child, 0)  # it lives
        other = apsw.Connection(str(path))
        other.execute("UPDATE lanes SET note = 'whole'")  # without any wait
        assert other.execute("SELECT note FROM lanes").fetchall() == [("whole",)]
        other.close()
    finally:
        os.kill(child, signal.SIGKILL)
        process.communicate(timeout=30)
