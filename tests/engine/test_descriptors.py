"""A task that closes stdout and stderr, of the process: what the engine starts later works as before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, sys
from ostinato import Ostinato, Shell
from tests.engine.process_tasks import answer

app = Ostinato("sqlite:///jobs.db")
closes = [int(number) for number in sys.argv[1].split(",")]


@app.task("close", retry=0)
def close():
    for number in closes:
        os.close(number)


isolated = app.task("answer", isolation="process", retry=0)(answer)
app.start()
assert close.enqueue().wait(timeout=60).state == "succeeded"
said = app.enqueue(Shell("cat; echo out; echo err >&2"), retry=0).wait(timeout=60)
assert said.state == "succeeded", said
assert app.runs.output(said.id) == "out\\nerr\\n", app.runs.output(said.id)
ended = isolated.enqueue(2, 3).wait(timeout=60)
assert (ended.state, ended.result["sum"]) == ("succeeded", 5), ended
for number in (0, 1, 2):
    assert os.readlink(f"/proc/self/fd/{number}") == "/dev/null", number
app.stop()
open("passed", "w").close()
"""


@pytest.mark.parametrize("closed", ["1,2", "0,1,2", "0", "2"])
def test_what_is_started_after_a_task_closed_them_works(tmp_path: Path, closed: str) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    process = subprocess.run(
        [sys.executable, "script.py", closed],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    assert (process.returncode, (tmp_path / "passed").exists()) == (0, True)
