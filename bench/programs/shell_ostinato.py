"""Short shell commands through Ostinato: one node claims, prepares, starts, listens to and records each."""

from __future__ import annotations

import gc
import time
from datetime import UTC, datetime, timedelta

from link import arguments, tell, wait_until

from ostinato import Ostinato, Run, Shell

REPEATS = 5
"""The median of so many counts: one takes less than a second."""


def start_all(app: Ostinato, command: str, n: int) -> tuple[float, list[Run]]:
    """Enqueue the command n times for one instant; the seconds from then until the last has ended, and the runs."""
    due = datetime.now(UTC) + timedelta(seconds=1 + n / 100)
    enqueued = {app.enqueue(Shell(command, interpreter="/bin/sh"), at=due, retry=0).id for _ in range(n)}
    # Not looked at while it runs: this thread would take part of the machine.
    time.sleep(max(0.0, due.timestamp() - time.time()) + 0.5)
    wait_until(lambda: not app.runs.list(state=["queued", "running"], limit=1))
    runs = [run for run in app.runs.list(limit=n) if run.id in enqueued]
    last = max(run.finished_at or due for run in runs)
    return (last - due).total_seconds(), runs


def main() -> None:
    """One process, as `ostinato up` is."""
    asked = arguments()
    app = Ostinato(asked["db"], tz="UTC", lanes={"main": asked["concurrency"]})
    app.start()
    start_all(app, asked["command"], asked["warm_up"])
    # As `ostinato up` does.
    gc.collect()
    gc.freeze()
    found = sorted((start_all(app, asked["command"], asked["n"]) for _ in range(REPEATS)), key=lambda each: each[0])
    seconds, runs = found[REPEATS // 2]
    recorded = sum(run.result == {"exit_code": 0} for run in runs)
    tell(rate=asked["n"] / seconds, seconds=seconds, recorded=recorded)
    app.stop()


if __name__ == "__main__":
    main()
