"""A list of many schedules over REST: `ostinato web` and a bare server take turns, each in a process of its own."""

from __future__ import annotations

import http.client
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import psutil
from link import arguments, quantile, tell, wait_until

from ostinato import Cron, DailyAt, Every, Ostinato, ScheduleSpec, Timing
from ostinato.clock import to_micros
from ostinato.models.access import Role
from ostinato.models.run import NewRun
from ostinato.models.schedule import ScheduleFilter
from ostinato.models.states import RunState, Trigger
from ostinato.models.work import Function, work_text
from ostinato.wiring import Container

BATCH = 10_000
WARM_UP = 3
STATES = [RunState.SUCCEEDED] * 8 + [RunState.FAILED, RunState.MISSED]


def timing_of(number: int) -> Timing:
    """Every kind that people use, due at different times."""
    match number % 4:
        case 0:
            return Every(minutes=5 + number % 600)
        case 1:
            return DailyAt(number % 24, number % 60)
        case 2:
            return Cron(f"{number % 60} {number % 24} * * 1-5")
        case _:
            return Cron(f"*/{5 + number % 20} * * * *")


def specs(size: int) -> list[ScheduleSpec]:
    """Schedules as a large company has them: some off, some with a note."""
    return [
        ScheduleSpec(
            f"schedule-{number}",
            timing_of(number),
            f"task-{number % 50}",
            enabled=number % 20 != 0,
            note="looks after itself" if number % 3 == 0 else None,
        )
        for number in range(size)
    ]


def history(ids: Sequence[int], runs: int) -> Iterator[NewRun]:
    """So many ended runs of each, one schedule after the other in each hour."""
    now = datetime.now(UTC)
    for number in range(runs):
        due = to_micros(now - timedelta(hours=runs - number))
        for id in ids:
            task = f"task-{id % 50}"
            yield NewRun(
                kind="function",
                task=task,
                work=work_text(Function(task)),
                policy="{}",
                trigger=Trigger.SCHEDULE,
                due_at=due + id,
                ready_at=due + id,
                lane="cron",
                state=STATES[(id + number) % len(STATES)],
                schedule_id=id,  # type: ignore[arg-type]  # a number from a list of numbers
            )


async def furnish(container: Container, size: int, runs: int) -> str:
    """Schedules with a history, and a token to read them; answers the token."""
    await container.services.schedules.add_many(specs(size))
    found = await container.store.schedules.list_schedules(ScheduleFilter())
    rows = history([schedule.id for schedule in found], runs)
    while batch := list(islice(rows, BATCH)):
        await container.store.runs.insert_runs(batch)
    _, token = await container.services.access.make_token("bench", Role.VIEWER, "bench", None)
    return token


@contextmanager
def server(command: Sequence[str]) -> Iterator[tuple[int, psutil.Process]]:
    """A server process on a free port, which it answers; ended by its id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    process = subprocess.Popen([*command, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: answers(port), 60)
        yield port, psutil.Process(process.pid)
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(port: int) -> bool:
    """Whether something listens there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Client:
    """One connection that is kept, as a browser keeps it."""

    def __init__(self, port: int, headers: dict[str, str]) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = headers

    def get(self, path: str) -> tuple[bytes, float]:
        """The body, and how many milliseconds it took until its last byte."""
        start = time.perf_counter()
        self._connection.request("GET", path, headers=self._headers)
        response = self._connection.getresponse()
        body = response.read()
        took = (time.perf_counter() - start) * 1_000
        if response.status != 200:
            raise RuntimeError(f"{path} answered {response.status}: {body[:500]!r}")
        return body, took


def queries(ours: Client, size: int) -> dict[str, str]:
    """What is asked, by its name; the deep page is found by walking there."""
    path, cursor = "/api/schedules?sort=name&limit=500", None
    for _ in range(max(1, size // 1_000)):
        page = json.loads(ours.get(path if cursor is None else f"{path}&cursor={cursor}")[0])
        cursor = page["next"] or cursor
    return {
        "first page": "/api/schedules?limit=100&recent=60",
        "without recent": "/api/schedules?limit=100",
        "deep page": f"/api/schedules?sort=name&limit=500&cursor={cursor}",
        "search": "/api/schedules?limit=100&recent=60&q=e-99",
        "by last run": "/api/schedules?limit=100&recent=60&sort=-last",
        "only those off": "/api/schedules?limit=100&recent=60&state=off",
        "overview": "/api/overview",
    }


def cpu_seconds(process: psutil.Process) -> float:
    """What a process has used so far, with all its threads."""
    used = process.cpu_times()
    return float(used.user + used.system)


def measure(ours: Client, bare: Client, process: psutil.Process, path: str, requests: int) -> dict[str, float]:
    """Ours and the bare server in turn; the bare one answers as many bytes."""
    for _ in range(WARM_UP):
        body, _ = ours.get(path)
        bare.get(f"/?bytes={len(body)}")
    times: list[float] = []
    others: list[float] = []
    begin = cpu_seconds(process)
    for _ in range(requests):
        body, took = ours.get(path)
        times.append(took)
        others.append(bare.get(f"/?bytes={len(body)}")[1])
    return {
        "median_ms": statistics.median(times),
        "p95_ms": quantile(sorted(times), 0.95),
        "cpu_ms": (cpu_seconds(process) - begin) / requests * 1_000,
        "bare_ms": statistics.median(others),
        "bytes": len(body),
    }


def main() -> None:
    """Furnish, start both servers, measure every query."""
    asked = arguments()
    app = Ostinato(asked["db"], tz="UTC")
    start = time.perf_counter()
    token = app._host.run(lambda container: furnish(container, asked["size"], asked["runs"]))
    app.stop()
    furnished = time.perf_counter() - start
    figures: dict[str, Any] = {"furnish_seconds": furnished}
    web = [sys.executable, "-c", "import sys; from ostinato.cli.main import run; sys.exit(run())", "web"]
    with ExitStack() as stack:
        port, process = stack.enter_context(server([*web, "--db", asked["db"], "--port"]))
        other, _ = stack.enter_context(server([sys.executable, str(Path(__file__).parent / "rest_bare.py")]))
        ours, bare = Client(port, {"Authorization": f"Bearer {token}"}), Client(other, {})
        for name, path in queries(ours, asked["size"]).items():
            for figure, value in measure(ours, bare, process, path, asked["requests"]).items():
                figures[f"{name}: {figure}"] = value
    tell(**figures)


if __name__ == "__main__":
    main()
