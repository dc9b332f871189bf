"""A command that prints far more than anybody reads: it neither fills the memory nor holds up others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import psutil
import pytest

from ostinato import Ostinato, RunContext, RunState, Shell

MEGABYTES = 150
FLOODS = {
    "one line": f"head -c {MEGABYTES}000000 /dev/zero | tr '\\0' x",
    "short lines": f"yes | head -c {MEGABYTES}000000",
    "no text at all": f"head -c {MEGABYTES}000000 /dev/urandom",
}
PAUSE = 0.005


@pytest.fixture
def app() -> Iterator[Ostinato]:
    """On the real clock: it is real lateness that is looked at."""
    app = Ostinato("sqlite://:memory:", name="floods")

    @app.task("watch")
    async def watch(run: RunContext) -> dict[str, float]:
        """How late the loop is, again and again, and how much memory it has at most, until it is cancelled."""
        late: list[float] = []
        most = 0
        process = psutil.Process()
        while not run.cancelled:
            due = time.perf_counter() + PAUSE
            await asyncio.sleep(PAUSE)
            late.append(time.perf_counter() - due)
            most = max(most, process.memory_info().rss)
            run.progress(len(late), text=f"{sorted(late)[len(late) * 9 // 10]} {max(late)} {most}")
        return {}

    app.start()
    yield app
    app.stop(grace=0)


def watched(app: Ostinato, command: str) -> tuple[float, float, int]:
    """Run a command, and answer how late nine of ten looks were at most, how late the latest, and the most memory."""
    watch = app.enqueue("watch", timeout="2m")
    end = time.monotonic() + 60
    while watch.get().progress is None:
        assert time.monotonic() < end
        time.sleep(0.01)
    run = app.enqueue(Shell(command), retry=0).wait(timeout=60)
    assert run.state is RunState.SUCCEEDED, run.reason
    watch.cancel()
    progress = watch.wait(timeout=60).progress
    assert progress is not None
    usual, worst, most = progress.text.split()
    return float(usual), float(worst), int(most)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_a_flood_of_output_neither_fills_memory_nor_holds_up_others(app: Ostinato, flood: str) -> None:
    # Others have the machine too, now more and now less: what holds up the loop does so each time.
    seen = []
    for _ in range(4):
        usual_before, worst_before, before = watched(app, f"({flood}) > /dev/null")
        usual, worst, most = watched(app, flood)
        assert most - before < MEGABYTES * 1_000_000 / 4
        # The same work beside it in both: what is left is what reading its output costs the loop.
        if usual < 5 * usual_before + PAUSE and worst < 10 * worst_before + 20 * PAUSE:
            return
        seen.append((usual_before, usual, worst_before, worst))
    pytest.fail(f"the loop was held up each time: {seen}")
