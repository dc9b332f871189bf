"""The drain at the end of a process: while it lasts, running work may use threads and executors as ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ostinato import Ostinato, RunState

SCRIPT = """
import asyncio, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from ostinato import Ostinato, RunContext

app = Ostinato("sqlite:///jobs.db")


@app.task("pool", retry=0)
def pool(run: RunContext) -> int:
    Path("begun-pool").touch()
    while not run.draining:
        time.sleep(0.01)
    with ThreadPoolExecutor(2) as executor:
        return sum(executor.map(int, "123"))


@app.task("loop", retry=0)
async def loop(run: RunContext) -> int:
    Path("begun-loop").touch()
    while not run.draining:
        await asyncio.sleep(0.01)
    with ThreadPoolExecutor(1) as executor:
        return await asyncio.get_running_loop().run_in_executor(executor, int, "6")


def go_on():
    # Not a daemon: the process lives for it after its main thread, and so does the engine.
    while not Path("begun-pool").exists() or not Path("begun-loop").exists():
        time.sleep(0.01)
    late.enqueue().wait(timeout="60s")


@app.task("late", retry=0)
def late() -> str:
    return "late"


app.start()
pool.enqueue()
loop.enqueue()
if sys.argv[1] == "threads":
    threading.Thread(target=go_on).start()
else:
    while not Path("begun-pool").exists() or not Path("begun-loop").exists():
        time.sleep(0.01)
"""


@pytest.mark.parametrize("way", ["alone", "threads"])
def test_work_that_runs_at_the_end_of_the_process_is_drained(way: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, way], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    assert ended.returncode == 0, ended.stderr
    app = Ostinato(f"sqlite:///{tmp_path}/jobs.db")
    runs = {run.task: run for run in app.runs.list()}
    app.stop()
    if way == "alone":
        assert {name: (run.state, run.result) for name, run in runs.items()} == {
            "pool": (RunState.SUCCEEDED, 6),
            "loop": (RunState.SUCCEEDED, 6),
        }
    else:
        assert (runs["late"].state, runs["late"].result) == (RunState.SUCCEEDED, "late")
