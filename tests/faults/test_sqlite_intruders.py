"""Whoever else opens the SQLite file, in this process or another: nothing acknowledged is lost, nothing fires twice.

Each process is killed without a goodbye: what only the deleted log of a lost lock knew would be gone.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ostinato import Ostinato, Run, RunState

pytestmark = [
    pytest.mark.timeout(150),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has OFD locks"),
]

OUTSIDE = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=30)
database.execute('SELECT count(*) FROM runs').fetchall()
database.close()
"""


class Intruded:
    """A process of intruded.py, and what it said."""

    def __init__(self, path: Path, way: str, *arguments: str, **environment: str) -> None:
        program = str(Path(__file__).with_name("intruded.py"))
        self.errors = path.with_name(f"{way}-{time.monotonic_ns()}.err")
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, program, str(path), way, *arguments],
                env={**os.environ, **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.acknowledged: list[int] = []
        self.refused: list[str] = []

    def until(self, word: str) -> list[Any]:
        """Hear what it says up to this word."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said: list[Any] = json.loads(line)
            if said[0] == "acknowledged":
                self.acknowledged.append(said[1])
            if said[0] == "refused":
                self.refused.append(said[1])
            if said[0] == word:
                return said
        raise AssertionError(f"it ended before it said {word!r}: {self.errors.read_text()[-2000:]}")

    def ask(self, line: str, word: str) -> list[Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.until(word)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


@contextmanager
def intruded(path: Path, way: str, *arguments: str, **environment: str) -> Iterator[Intruded]:
    process = Intruded(path, way, *arguments, **environment)
    try:
        yield process
    finally:
        process.kill()


def look_from_outside(path: Path) -> None:
    """Another process that reads and closes: it deletes the log if it sees no lock."""
    subprocess.run([sys.executable, "-c", OUTSIDE, str(path)], check=True, timeout=60)


def found(path: Path) -> tuple[list[int], str]:
    with closing(sqlite3.connect(path)) as database:
        ids = [id for (id,) in database.execute("SELECT id FROM runs WHERE task = 'noop' ORDER BY id")]
        (whole,) = database.execute("PRAGMA integrity_check").fetchone()
        return ids, whole


WAYS = ["nobody", "select", "read_file", "write", "sqlalchemy", "django", "fork", "recipe"]


@pytest.mark.parametrize("way", WAYS)
def test_nothing_acknowledged_is_lost_whoever_opened_the_file(tmp_path: Path, way: str) -> None:
    path = tmp_path / "jobs.db"
    with intruded(path, way) as app:
        app.until("intruded")
        look_from_outside(path)
        app.ask("more", "done")
        look_from_outside(path)
        app.ask("more", "done")
        assert app.refused == []
    ids, whole = found(path)
    assert whole == "ok"
    assert len(app.acknowledged) >= 60
    assert ids == app.acknowledged


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="there is no sqlite3 program")
def test_a_backup_by_the_sqlite3_program_takes_nothing_away(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with intruded(path, "second_app") as app:
        app.until("intruded")
        for number in range(3):
            command = ["sqlite3", str(path), f".backup {tmp_path}/copy{number}.db"]
            subprocess.run(command, check=True, timeout=60)
            app.ask("more", "done")
            copied, whole = found(tmp_path / f"copy{number}.db")
            assert (len(copied), whole) == (20 * (number + 1), "ok")
    assert found(path) == (app.acknowledged, "ok")
    assert len(app.acknowledged) == 80


NO_ROOM = """
import os, resource, sys
import apsw
from ostinato.stores.sqlite.locks import protect
path = sys.argv[1]
protect(path)
def count():
    return len(os.listdir("/proc/self/fd"))
connection = apsw.Connection(path)  # whatever is loaded at the first time
connection.close()
before = count()
free = os.open(os.devnull, os.O_RDONLY)
os.close(free)
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
for _ in range(5):
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, limits[1]))  # room for SQLite's descriptor, none for its twin
    try:
        apsw.Connection(path)
    except apsw.CantOpenError:
        pass
    else:
        sys.exit("it could be opened")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    print(count() - before)
apsw.Connection(path).execute("SELECT count(*) FROM sqlite_schema").fetchall()
"""


def test_an_open_that_finds_no_room_leaves_no_descriptor_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-c", NO_ROOM, str(tmp_path / "jobs.db")]
    ended = subprocess.run(command, capture_output=True, check=False, text=True, timeout=60)
    assert (ended.returncode, ended.stdout.split()) == (0, ["0"] * 5), ended.stderr


NAMES = [f"s{number}" for number in range(8)]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Ostinato]:
    """Somebody who looks, with schedules that fire every second."""
    app = Ostinato(f"sqlite:///{tmp_path}/jobs.db", name="reader")
    for name in NAMES:
        app.schedules.add(name, "every 1s", "work", retry=0)
    yield app
    app.stop()


def test_two_workers_beside_intruders_fire_each_due_time_once(tmp_path: Path, reader: Ostinato) -> None:
    path, log = tmp_path / "jobs.db", tmp_path / "fires"
    with intruded(path, "worker", str(log)) as first, intruded(path, "worker", str(log)) as second:
        first.until("ready")
        second.until("ready")
        look_until(path, lambda: fires(log).total() >= 6 * len(NAMES))
        end_all(path, reader)
    reader.stop()
    count_fires(path, log)


def test_a_kill_of_one_of_two_workers_beside_intruders_neither_loses_nor_repeats_a_due_time(
    tmp_path: Path, reader: Ostinato
) -> None:
    path, log = tmp_path / "jobs.db", tmp_path / "fires"
    hung, lease = NAMES[0], "3s"
    with (
        intruded(path, "worker", str(log), FAULTS_LEASE=lease, FAULTS_HANGS=hung) as victim,
        intruded(path, "worker", str(log), FAULTS_LEASE=lease) as other,
    ):
        victim.until("ready")
        other.until("ready")

        def under_way() -> list[Run]:
            """What the victim runs and will not end."""
            running = reader.runs.list(schedule=hung, state=RunState.RUNNING)
            return [run for run in running if f"-{victim.process.pid}-" in (run.node or "")]

        look_until(path, lambda: under_way() and fires(log)[fire_of(under_way()[0])] == 1)
        (lost,) = under_way()
        victim.kill()
        look_until(path, lambda: reader.runs.get(lost.id).ended)
        goes_on = fires(log).total() + 3 * len(NAMES)
        look_until(path, lambda: fires(log).total() >= goes_on)
        end_all(path, reader)
    ended = reader.runs.get(lost.id)
    assert ended.state is RunState.FAILED
    assert "was lost" in (ended.reason or "")
    succeeded = reader.runs.list(schedule=hung, state=RunState.SUCCEEDED)
    assert max(run.due_at for run in succeeded) > lost.due_at, "the other worker did not go on with it"
    reader.stop()
    count_fires(path, log)


def look_until(path: Path, is_so: Callable[[], object]) -> None:
    """Look from outside all the while."""
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, "the workers do too little"
        look_from_outside(path)


def end_all(path: Path, reader: Ostinato) -> None:
    for name in NAMES:
        reader.schedules.disable(name)
    look_until(path, lambda: all(run.ended for run in reader.runs.list(limit=1000)))


def count_fires(path: Path, log: Path) -> None:
    """Every due time has one row, and fired once or never."""
    rows = Counter[tuple[str, str]]()
    app = Ostinato(f"sqlite:///{path}")
    for name in NAMES:
        runs = app.runs.list(schedule=name, limit=1000)
        # A row of missed due times, before the first worker was there, stands for several.
        due = sorted(run.due_at.timestamp() + step for run in runs for step in range(run.count))
        assert {later - earlier for earlier, later in pairwise(due)} == {1.0}, f"{name} lost a due time"
        rows.update((name, f"{at:.6f}") for at in due)
    app.stop()
    fired = fires(log)
    assert set(fired.values()) == {1}, "a due time fired twice"
    assert fired.keys() <= rows.keys(), "a fire has no row"
    assert set(rows.values()) == {1}


def fire_of(run: Run) -> tuple[str, str]:
    return run.schedule or "", f"{run.due_at.timestamp():.6f}"


def fires(log: Path) -> Counter[tuple[str, str]]:
    counted = Counter[tuple[str, str]]()
    for line in log.read_text().splitlines() if log.exists() else ():
        name, due = line.split()
        counted[name, due] += 1
    return counted


def delete(path: Path) -> None:
    path.unlink()


def delete_log(path: Path) -> None:
    Path(f"{path}-wal").unlink()


def replace_and_remove_log(path: Path) -> None:
    replace_file(path)
    Path(f"{path}-wal").unlink()
    Path(f"{path}-shm").unlink()


def replace_file(path: Path) -> None:
    shutil.copy(path, f"{path}.new")
    os.replace(f"{path}.new", path)


@pytest.mark.parametrize("take_away", [delete, delete_log, replace_and_remove_log, replace_file])
def test_nothing_is_acknowledged_once_the_file_is_not_ours(tmp_path: Path, take_away: Any) -> None:
    path = tmp_path / "jobs.db"
    with intruded(path, "engine") as app:
        app.until("intruded")
        assert app.ask("health", "health")[1:] == [True, None]
        take_away(path)
        app.ask("more", "done")
        said = app.ask("health", "health")
        assert said[1] is False
        assert "while it was open here" in said[2]
    assert len(app.acknowledged) == 20
    assert len(app.refused) == 20
    for reason in app.refused:
        assert "restart this process" in reason
    assert app.errors.read_text().count("nothing is read from it") >= 1


def test_an_idle_engine_notices_at_its_next_beat(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with intruded(path, "engine", FAULTS_LEASE="3s") as app:
        app.until("intruded")
        path.unlink()
        deadline = time.monotonic() + 60
        while "was deleted while it was open here" not in app.errors.read_text():
            assert time.monotonic() < deadline, "it did not notice"
            time.sleep(0.1)
