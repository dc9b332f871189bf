"""Ctrl-C in `async with app` under `asyncio.run`: a line names what is waited for, and a second one forces."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from ostinato import Ostinato, RunState, Shell
from ostinato.termination import FORCING
from tests.doors.command_line import Process, eventually

SCRIPT = """
import asyncio
from pathlib import Path
from ostinato import Ostinato

app = Ostinato("sqlite:///jobs.db")


@app.task(retry=0)
async def work():
    Path("begun").touch()
    await asyncio.sleep(3600)


async def main():
    async with app:
        await work.aio.enqueue()
        await asyncio.sleep(3600)


try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupted_loop_says_what_it_waits_for_and_another_interrupt_forces(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    waiting = "waiting for run 1 of 'work' to end (Ctrl-C cuts off what is under way)"
    with Process(tmp_path, ("script.py",), "script", [sys.executable]) as script:
        eventually((tmp_path / "begun").exists, "the work has begun")
        script.signal(signal.SIGINT)
        eventually(lambda: waiting in script.err, "it says what it waits for")
        script.signal(signal.SIGINT)
        assert script.wait() == 0
    assert script.err.splitlines()[:2] == [waiting, FORCING]
    assert "Traceback" not in script.err
    assert script.out == "interrupted\n"
    app = Ostinato(f"sqlite:///{tmp_path / 'jobs.db'}")
    (run,) = app.runs.list()
    assert (run.state, run.cause, app.nodes.list()) == ("failed", "cut_off", [])
    app.stop()


def test_work_whose_loop_is_ended_under_it_is_tried_again_and_not_cancelled(tmp_path: Path) -> None:
    """A server that is forced to quit skips the end of the lifespan: `asyncio.run` cancels every task there is."""
    jobs = Ostinato(f"sqlite:///{tmp_path}/jobs.db")

    @jobs.task(retry=1)
    async def wait() -> None:
        await asyncio.Event().wait()

    async def serve() -> None:
        async def lifespan() -> None:
            async with jobs.lifespan()(None):
                ready.set()
                await asyncio.Event().wait()

        ready = asyncio.Event()
        serving.append(asyncio.create_task(lifespan()))
        await ready.wait()
        await wait.using(key="again").aio.enqueue()
        await wait.using(retry=0, key="once").aio.enqueue()
        await jobs.aio.schedules.add("shell", "every 1h", Shell(f"touch {tmp_path}/begun; sleep 3600"), retry=1)
        await jobs.aio.schedules.trigger("shell")
        gate = f"touch {tmp_path}/asked; sleep 3600"
        await jobs.aio.schedules.add("gated", "every 1h", Shell("true"), gate=gate, retry=0)
        await jobs.aio.schedules.trigger("gated")
        for file, what in (("begun", "the command runs"), ("asked", "the gate runs")):
            await asyncio.to_thread(eventually, (tmp_path / file).exists, what)

    serving: list[asyncio.Task[None]] = []
    asyncio.run(serve())
    runs = jobs.runs.list()
    told = {run.schedule or run.key: (run.state, [attempt.state for attempt in run.attempts]) for run in runs}
    jobs.stop()
    assert told == {
        "again": (RunState.QUEUED, ["cut_off"]),
        "shell": (RunState.QUEUED, ["cut_off"]),
        "once": (RunState.FAILED, ["failed"]),
        "gated": (RunState.QUEUED, []),  # it had not begun: that was no attempt
    }, [run.reason for run in runs]
    assert {run.cause for run in runs if run.key == "once"} == {"cut_off"}
