"""`ostinato up` with 200 schedules due each second, while clients ask for pages of a long list as fast as they can."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from link import arguments, lateness, next_second, tell, wait_until
from rest_ostinato import specs

from ostinato import Every, Ostinato, ScheduleSpec
from ostinato.models.access import Role
from ostinato.wiring import Container

LEAD_SECONDS = 12
"""For `up` to start, and two seconds to warm up."""
APP = """
import time
from ostinato import Ostinato, RunContext

app = Ostinato({db!r}, tz="UTC", lanes={{"cron": {count}}})
starts = open({starts!r}, "a", buffering=1)


@app.task("note")
async def note(run: RunContext) -> None:
    started = time.time()
    starts.write(f"{{run.schedule}} {{run.due_at.timestamp()}} {{started}}\\n")

"""


async def furnish(container: Container, size: int, names: list[str], first: int) -> str:
    """The list that is asked for, the schedules that are due, and a token; answers the token."""
    await container.services.schedules.add_many(specs(size))
    timing = Every(seconds=1, anchor=datetime.fromtimestamp(first - 2, UTC))
    await container.services.schedules.add_many([ScheduleSpec(name, timing, "note") for name in names])
    _, token = await container.services.access.make_token("bench", Role.VIEWER, "bench", None)
    return token


@contextmanager
def up(folder: Path) -> Iterator[int]:
    """`ostinato up` on a free port, which it prints; ended by its id."""
    words = [sys.executable, "-c", "import sys; from ostinato.cli.main import run; sys.exit(run())", "up"]
    log = folder / "up.log"
    environment = {**os.environ, "COLUMNS": "200"}
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [*words, "--app", "flooded:app", "--port", "0"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env=environment,
        )
    try:
        wait_until(lambda: "Ctrl-C to stop" in log.read_text() or process.poll() is not None, 60)
        line = next(line for line in log.read_text().splitlines() if line.startswith("page"))
        yield int(line.split()[1].rpartition(":")[2])
    finally:
        process.terminate()
        try:
            process.wait(45)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Client(threading.Thread):
    """Asks for one page after the other on one connection."""

    def __init__(self, port: int, token: str, stopped: threading.Event) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._headers = {"Authorization": f"Bearer {token}"}
        self._stopped = stopped
        self.answers = 0

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        path, cursor = "/api/schedules?sort=name&limit=500", None
        while not self._stopped.is_set():
            connection.request("GET", path if cursor is None else f"{path}&cursor={cursor}", headers=self._headers)
            response = connection.getresponse()
            body = response.read()
            if response.status != 200:
                raise RuntimeError(f"answered {response.status}: {body[:500]!r}")
            cursor = json.loads(body[body.rindex(b'"next":') + 7 : body.rindex(b"}")].split(b',"')[0])
            self.answers += 1
        connection.close()


def measure(folder: Path, token: str, asked: dict[str, Any], first: int, names: list[str]) -> dict[str, Any]:
    """Start it, flood it from two seconds before the first due time that counts, and read what was noted."""
    starts = folder / "starts.txt"
    stopped = threading.Event()
    with up(folder) as port:
        clients = [Client(port, token, stopped) for _ in range(asked["clients"])]
        if time.time() > first - 1:
            raise RuntimeError("it was not ready in time")
        time.sleep(max(0.0, first - 2 - time.time()))
        for client in clients:
            client.start()
        time.sleep(first + asked["seconds"] + 0.7 - time.time())
        stopped.set()
        for client in clients:
            client.join(60)
    noted = [line.split() for line in starts.read_text().splitlines()]
    found = lateness(
        [(name, float(due), float(at)) for name, due, at in noted if name in set(names)], names, first, asked["seconds"]
    )
    answers = sum(client.answers for client in clients) / (asked["seconds"] + 2.7)
    return {**found, "answers_per_second": answers}


def main() -> None:
    """Furnish, start, flood, tell."""
    asked = arguments()
    folder = Path(asked["folder"])
    app = Ostinato(asked["db"], tz="UTC")
    names = [f"due-{number}" for number in range(asked["count"])]
    first = next_second(LEAD_SECONDS + asked["size"] // 2_000)
    token = app._host.run(lambda container: furnish(container, asked["size"], names, first))
    app.stop()
    code = APP.format(db=asked["db"], count=asked["count"], starts=str(folder / "starts.txt"))
    (folder / "flooded.py").write_text(code)
    tell(**measure(folder, token, asked, first, names))


if __name__ == "__main__":
    main()
