"""`up` and `worker` whose database file is deleted or replaced: told once, nothing more starts, the process ends."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from ostinato import Ostinato
from tests.doors.command_line import CommandLine, eventually

TASKS = """
import asyncio, os
from ostinato import Ostinato

app = Ostinato()


@app.task("tick", schedule="every 1s", overlap="allow", retry=0)
async def tick():
    os.write(2, b"begun\\n")


@app.task("long", retry=0)
async def long():
    os.write(2, b"long begun\\n")
    try:
        await asyncio.sleep(3600)
    finally:
        os.write(2, b"long ended\\n")
"""

SLOW = """
import asyncio, os
from ostinato import Ostinato

app = Ostinato()


@app.task("slow", retry=0)
async def slow():
    os.write(2, b"slow begun\\n")
    while not os.path.exists("may-end"):
        await asyncio.sleep(0.01)
"""

FILES = ("ostinato.db", "ostinato.db-wal", "ostinato.db-shm")


def another(folder: Path) -> Path:
    """The file of another ledger, in which the same work is due."""
    path = folder / "another.db"
    app = Ostinato(f"sqlite:///{path}")
    app.schedules.add("tick", "every 1s", app.task("tick")(lambda: None))
    app.stop()
    return path


@pytest.mark.parametrize("command", ["worker", "up"])
@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_it_is_told_once_and_the_process_ends(cli: CommandLine, command: str, how: str) -> None:
    (cli.folder / "lost.py").write_text(TASKS)
    other = another(cli.folder)
    content = other.read_bytes()
    with cli.start(command, "--app", "lost:app", *(["--port", "0"] if command == "up" else [])) as process:
        eventually(lambda: "begun" in process.err, "the schedule fires")
        cli.ok("schedule", "add", "long", "every 1h", "--task", "long")
        cli.ok("schedule", "trigger", "long")
        eventually(lambda: "long begun" in process.err, "the long one runs")
        copy = shutil.copy(other, cli.folder / "copy.db")
        for name in FILES if how == "deleted" else FILES[1:]:
            (cli.folder / name).unlink(missing_ok=True)
        if how == "replaced":
            os.replace(copy, cli.folder / "ostinato.db")
        assert process.wait(60) == 6
    sentence = "nothing is read from it or written to it any more"
    assert process.err.count(sentence) == 1, process.err
    after = process.err.split(sentence)[1]
    # What was claimed before may begin until the engine hears of it, and then it stops what runs.
    assert "begun" not in after.split("long ended")[1]
    assert "Traceback" not in process.err
    assert "stopped: the database file was lost" in after
    assert (cli.folder / "ostinato.db").exists() == (how == "replaced")
    if how == "replaced":
        assert (cli.folder / "ostinato.db").read_bytes() == content
        assert not (cli.folder / "ostinato.db-wal").exists()


@pytest.mark.parametrize("command", ["worker", "up"])
def test_a_loss_during_the_grace_is_in_the_exit_code_too(cli: CommandLine, command: str) -> None:
    (cli.folder / "slow.py").write_text(SLOW)
    with cli.start(command, "--app", "slow:app", *(["--port", "0"] if command == "up" else [])) as process:
        eventually(lambda: "node " in process.err, "it has started")
        cli.ok("schedule", "add", "slow", "every 1h", "--task", "slow")
        cli.ok("schedule", "trigger", "slow")
        eventually(lambda: "slow begun" in process.err, "it runs")
        process.signal(signal.SIGTERM)
        eventually(lambda: "draining" in process.err, "it drains")
        for name in FILES:
            (cli.folder / name).unlink(missing_ok=True)
        (cli.folder / "may-end").touch()
        assert process.wait(60) == 6, process.err
    assert process.err.count("nothing is read from it or written to it any more") == 1, process.err
    assert "Traceback" not in process.err
