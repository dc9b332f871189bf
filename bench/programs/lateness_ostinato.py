"""200 schedules due each second through Ostinato: what the clock says inside the function, against the due time."""

from __future__ import annotations

import gc
import time
from datetime import UTC, datetime

from link import arguments, lateness, next_second, tell

from ostinato import Every, Ostinato, RunContext, ScheduleSpec


def main() -> None:
    """One process that ticks, claims and executes, as `ostinato up` does."""
    asked = arguments()
    count, seconds = asked["count"], asked["seconds"]
    app = Ostinato(asked["db"], tz="UTC", lanes={"cron": count})
    starts: list[tuple[str, float, float]] = []

    @app.task("note")
    async def note(run: RunContext) -> None:
        started = time.time()
        starts.append((run.schedule or "", run.due_at.timestamp(), started))

    app.start()
    # As `ostinato up` does: a full collection at the due instant would be seen.
    gc.collect()
    gc.freeze()
    first = next_second(3)
    timing = Every(seconds=1, anchor=datetime.fromtimestamp(first - 1, UTC))
    names = [f"s{number}" for number in range(count)]
    app.schedules.add_many([ScheduleSpec(name, timing, note) for name in names])
    # The first second is a warm-up: threads, statements and caches.
    time.sleep(first + 1 + seconds + 0.7 - time.time())
    figures = lateness(list(starts), names, first + 1, seconds)
    states: dict[str, int] = {}
    for run in app.runs.list(limit=count * (seconds + 5)):
        states[run.state] = states.get(run.state, 0) + 1
    tell(**figures, states=states)
    app.stop()


if __name__ == "__main__":
    main()
