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
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ostinato import Ostinato

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


def test_two_workers_beside_intruders_fire_each_due_time_once(tmp_path: Path) -> None:
    path, log = tmp_path / "jobs.db", tmp_path / "fires"
    reader = Ostinato(f"sqlite:///{path}")
    names = [f"s{number}" for number in range(8)]
    for name in names:
        reader.schedules.add(name, "every 1s", "work", retry=0)
    with intruded(path, "worker", str(log)) as first, intruded(path, "worker", str(log)) as second:
        first.until("ready")
        second.until("ready")
        deadline = time.monotonic() + 60
        while fires(log).total() < 6 * len(names):
            assert time.monotonic() < deadline, "they fire too little"
            look_from_outside(path)
        for name in names:
            reader.schedules.disable(name)
        while any(not run.ended for run in reader.runs.list(limit=1000)):
            assert time.monotonic() < deadline + 30, "something goes on for ever"
            time.sleep(0.1)
    reader.stop()
    rows = Counter[tuple[str, str]]()
    again = Ostinato(f"sqlite:///{path}")
    for name in names:
        runs = again.runs.list(schedule=name, limit=1000)
        # A row of missed due times, before the first worker was there, stands for several.
        due = sorted(run.due_at.timestamp() + step for run in runs for step in range(run.count))
        assert {later - earlier for earlier, later in pairwise(due)} == {1.0}, f"{name} lost a due time"
        rows.update((name, f"{at:.6f}") for at in due)
    again.stop()
    fired = fires(log)
    assert set(fired.values()) == {1}, "a due time fired twice"
    assert fired.keys() <= rows.keys(), "a fire has no row"
    assert set(rows.values()) == {1}


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
    with intruded(path, "engine", OSTINATO_LEASE="3s") as app:
        app.until("intruded")
        path.unlink()
        deadline = time.monotonic() + 60
        while "was deleted while it was open here" not in app.errors.read_text():
            assert time.monotonic() < deadline, "it did not notice"
            time.sleep(0.1)
