"""Many idle schedules, then ten due each second: how fast they are added, and what they cost while nothing is due."""

from __future__ import annotations

import gc
import os
import time
from datetime import UTC, datetime, timedelta

import psutil
from link import arguments, lateness, next_second, tell

from ostinato import Cron, DailyAt, Every, Ostinato, RunContext, ScheduleSpec, Timing

LIVE = 10


def far_away(number: int, now: datetime) -> Timing:
    """Half of them daily, half of them cron, none of them due within the next two hours."""
    due = now + timedelta(hours=2, minutes=number % 1_200)
    if number % 2:
        return DailyAt(due.hour, due.minute)
    return Cron(f"{due.minute} {due.hour} * * *")


def idle_specs(size: int, work: str) -> list[ScheduleSpec]:
    """The idle schedules, as their user would list them."""
    now = datetime.now(UTC)
    return [ScheduleSpec(f"idle-{number}", far_away(number, now), work) for number in range(size)]


def main() -> None:
    """Engine started, add, settle, measure idle; then ten live schedules, settle, measure again."""
    asked = arguments()
    app = Ostinato(asked["db"], tz="UTC", lanes={"cron": 100})
    starts: list[tuple[str, float, float]] = []

    @app.task("note")
    async def note(run: RunContext) -> None:
        started = time.time()
        starts.append((run.schedule or "", run.due_at.timestamp(), started))

    app.start()
    # One first, so that the rate is that of adding, not of connecting and preparing statements.
    app.schedules.add("warm-up", "daily 00:00", note.name)
    app.schedules.remove("warm-up")
    specs = idle_specs(asked["size"], note.name)
    gc.collect()  # what the start left behind is not a cost of adding
    start, cpu = time.perf_counter(), time.process_time()
    app.schedules.add_many(specs)
    add_rate = asked["size"] / (time.perf_counter() - start)
    add_cpu_us = (time.process_time() - cpu) / asked["size"] * 1e6
    del specs
    time.sleep(2)
    idle_cpu = cpu_percent(asked["seconds"])

    first = next_second(2)
    timing = Every(seconds=1, anchor=datetime.fromtimestamp(first - 1, UTC))
    names = [f"live-{number}" for number in range(LIVE)]
    app.schedules.add_many([ScheduleSpec(name, timing, note) for name in names])
    time.sleep(first + 0.9 - time.time())
    live_cpu = cpu_percent(asked["seconds"])
    time.sleep(0.8)
    figures = lateness(list(starts), names, first + 1, asked["seconds"])
    rss = psutil.Process().memory_info().rss / 2**20
    tell(
        **figures,
        add_rate=add_rate,
        add_cpu_us=add_cpu_us,
        idle_cpu_percent=idle_cpu,
        live_cpu_percent=live_cpu,
        rss_mib=rss,
    )
    app.stop()


def cpu_percent(seconds: float) -> float:
    """CPU time of this process, all its threads, as a share of one core."""
    before, start = os.times(), time.perf_counter()
    time.sleep(seconds)
    after, end = os.times(), time.perf_counter()
    used = after.user + after.system - before.user - before.system
    return 100 * used / (end - start)


if __name__ == "__main__":
    main()
