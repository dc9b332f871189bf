"""HTTP calls through Ostinato, all under way at once on one node: what they cost in memory, threads and time."""

from __future__ import annotations

import gc
import time
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection

import psutil
from link import arguments, tell, wait_until

from ostinato import Http, Ostinato
from ostinato.config import Settings


def said(port: int, path: str) -> int:
    """What the server answers."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse().read()
    connection.close()
    return int(answer) if answer.isdigit() else 0


def call_all(app: Ostinato, port: int, n: int) -> tuple[float, int, int, int]:
    """Enqueue n calls for one instant; seconds from then to the last end, bytes and threads with all of them under way,
    and how many succeeded."""
    url = f"http://127.0.0.1:{port}/hold"
    said(port, "/held")
    due = datetime.now(UTC) + timedelta(seconds=1 + n / 200)
    first = min(app.enqueue(Http("GET", url), at=due, retry=0, timeout="5m").id for _ in range(n))
    time.sleep(max(0.0, due.timestamp() - time.time()) + 0.5)
    wait_until(lambda: said(port, "/held") == n)
    process = psutil.Process()
    memory, threads = process.memory_info().rss, process.num_threads()
    going = time.time()
    said(port, "/go")
    wait_until(lambda: not app.runs.list(state=["queued", "running"], limit=1))
    runs = [run for run in app.runs.list(limit=n) if run.id >= first]
    begun = max(run.started_at or due for run in runs) - due
    ended = max((run.finished_at or due).timestamp() for run in runs) - going
    done = sum(run.result["json"] == {"ok": True} for run in runs if run.result)
    return begun.total_seconds() + ended, memory, threads, done


def main() -> None:
    """One process, as `ostinato up` is: a few calls to warm up, then all."""
    asked = arguments()
    n = asked["n"]
    settings = Settings(db=asked["db"], tz="UTC", slots=n + 10, lanes={"main": n}, http_allow=("127.0.0.1",))
    app = Ostinato(settings=settings)
    app.start()
    call_all(app, asked["port"], asked["warm_up"])
    # As `ostinato up` does.
    gc.collect()
    gc.freeze()
    process = psutil.Process()
    before = process.memory_info().rss
    cpu = process.cpu_times()
    seconds, memory, threads, recorded = call_all(app, asked["port"], n)
    used = sum(process.cpu_times()[:2]) - sum(cpu[:2])
    tell(rate=n / seconds, memory_mb=(memory - before) / 1e6, rss_mb=memory / 1e6, threads=threads, cpu_ms=used / n * 1e3, recorded=recorded)
    app.stop()


if __name__ == "__main__":
    main()
