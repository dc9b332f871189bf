"""A worker that is told to stop while PostgreSQL is away: what its runs did is written, once the database is back.

The worker is a real process behind a line that the test breaks; the test itself looks past that line.
"""

from __future__ import annotations

import shutil
import signal
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ostinato import Ostinato, RunHandle, RunState
from tests.doors.command_line import Process, eventually
from tests.proxy import Proxy, proxied

RUNS = 5
BOUND = 60.0

pytestmark = pytest.mark.timeout(240)


class Outage(NamedTuple):
    """How the database goes away, and how often a worker is seen to try again in a reasonable time."""

    begin: Callable[[Proxy], None]
    tries: int


OUTAGES = {"nobody is let in": Outage(Proxy.refuse, 3), "nobody answers": Outage(Proxy.black_hole, 1)}


@pytest.fixture(params=OUTAGES)
def outage(request: pytest.FixtureRequest) -> Outage:
    return OUTAGES[request.param]


@pytest.fixture
def line(postgres_url: str) -> Iterator[Proxy]:
    with proxied(postgres_url) as proxy:
        yield proxy


@pytest.fixture
def reader(postgres_url: str) -> Iterator[Ostinato]:
    app = Ostinato(postgres_url, name="reader")
    yield app
    app.stop()


class Folder:
    """Where the workers of one user run, one after the other."""

    def __init__(self, path: Path, line: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path = path
        self._line = line
        shutil.copy(Path(__file__).with_name("gated.py"), path)
        monkeypatch.setenv("XDG_STATE_HOME", str(path / "state"))

    def worker(self, name: str) -> Process:
        return Process(self._path, ("worker", "--db", self._line.url, "--app", "gated:app"), name)

    def open_gate(self) -> None:
        (self._path / "gate").touch()

    def count(self, word: str) -> Counter[str]:
        """How often each run began or ended."""
        log = self._path / "executions"
        lines = log.read_text().splitlines() if log.exists() else []
        return Counter(line.split()[1] for line in lines if line.split()[0] == word)

    @property
    def spooled(self) -> list[Path]:
        return sorted((self._path / "state").rglob("*.spool-*"))


@pytest.fixture
def folder(tmp_path: Path, line: Proxy, monkeypatch: pytest.MonkeyPatch) -> Folder:
    return Folder(tmp_path, line, monkeypatch)


def enqueue(reader: Ostinato) -> list[RunHandle[Any]]:
    """Some that are never to run twice, and some that would be tried again."""
    gated = reader.task("gated")(lambda: None)
    return [gated.using(key=f"r{retry}-{number}", retry=retry).enqueue() for retry in (0, 2) for number in range(RUNS)]


def end_without_database(folder: Folder, line: Proxy, outage: Outage, runs: list[RunHandle[Any]]) -> None:
    """All runs begin, the database goes away, and then they end."""
    eventually(lambda: len(folder.count("began")) == len(runs), "all runs began", BOUND)
    outage.begin(line)
    folder.open_gate()
    eventually(lambda: len(folder.count("ended")) == len(runs), "all runs ended", BOUND)


def check_all_succeeded_once(folder: Folder, runs: list[RunHandle[Any]]) -> None:
    rows = [run.get() for run in runs]
    assert [(row.state, row.result, row.attempt) for row in rows] == [(RunState.SUCCEEDED, "done", 1)] * len(runs)
    assert folder.count("began") == {f"r{retry}-{number}": 1 for retry in (0, 2) for number in range(RUNS)}


def test_finishes_are_kept_for_all_of_the_grace_and_written_when_the_database_is_back(
    folder: Folder,
    line: Proxy,
    reader: Ostinato,
    outage: Outage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OSTINATO_GRACE", "10m")
    with folder.worker("worker") as worker:
        runs = enqueue(reader)
        end_without_database(folder, line, outage, runs)
        worker.signal(signal.SIGTERM)
        waits = f"{len(runs)} finishes wait for the database"
        eventually(lambda: worker.err.count(waits) >= outage.tries, "it goes on trying", BOUND)
        assert [run.get().state for run in runs] == [RunState.RUNNING] * len(runs)
        line.cut()
        assert worker.wait(BOUND) == 0
    check_all_succeeded_once(folder, runs)
    assert folder.spooled == []
    assert reader.nodes.list() == [], "it could say that it left"


def test_finishes_are_spooled_at_the_end_of_the_grace_and_the_next_worker_writes_them(
    folder: Folder,
    line: Proxy,
    reader: Ostinato,
    outage: Outage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OSTINATO_GRACE", "3s")
    # So long that a transaction on a silent line takes longer than this test waits: the grace alone ends it.
    monkeypatch.setenv("OSTINATO_LEASE", "3m")
    with folder.worker("first") as first:
        runs = enqueue(reader)
        end_without_database(folder, line, outage, runs)
        first.signal(signal.SIGTERM)
        assert first.wait(BOUND) == 0
        (path,) = folder.spooled
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert f"spooled {len(runs)} finishes to {path}" in first.err
    assert [run.get().state for run in runs] == [RunState.RUNNING] * len(runs)

    line.cut()
    with folder.worker("second") as second:
        eventually(lambda: " started: " in second.err, "the second worker started", BOUND)
        check_all_succeeded_once(folder, runs)
        assert f"wrote {len(runs)} finishes that node " in second.err
        assert folder.spooled == []
        second.signal(signal.SIGTERM)
        assert second.wait(BOUND) == 0
    check_all_succeeded_once(folder, runs)


def test_a_worker_that_has_nothing_to_write_ends_too(
    folder: Folder, line: Proxy, outage: Outage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OSTINATO_GRACE", "1s")
    monkeypatch.setenv("OSTINATO_LEASE", "3m")
    with folder.worker("worker") as worker:
        eventually(lambda: "tasks gated" in worker.err, "it says what runs here", BOUND)
        outage.begin(line)
        worker.signal(signal.SIGTERM)
        assert worker.wait(BOUND) == 0
        assert "could not record its stop" in worker.err
    assert folder.spooled == []
