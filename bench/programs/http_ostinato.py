"""HTTP calls through Ostinato, all under way at once on one node: what they cost in memory, threads and CPU."""

from __future__ import annotations

import gc
import time
from http.client import HTTPConnection

import psutil
from link import arguments, tell, wait_until

from ostinato import Http, Ostinato
from ostinato.config import Settings


def said(port: int, path: str) -> bytes:
    """What the server answers."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse().read()
    connection.close()
    return answer


def call_all(app: Ostinato, port: int, n: int) -> tuple[int, int, int]:
    """Bytes and threads while n calls are under way, and how many of them succeeded."""
    said(port, "/held")
    work = Http("GET", f"http://127.0.0.1:{port}/hold")
    first = min(app.enqueue(work, retry=0, timeout="5m").id for _ in range(n))
    wait_until(lambda: said(port, "/held") == b"%d" % n)
    process = psutil.Process()
    memory, threads = process.memory_info().rss, process.num_threads()
    said(port, "/go")
    wait_until(lambda: not app.runs.list(state=["queued", "running"], limit=1))
    done = [run for run in app.runs.list(limit=n) if run.id >= first and run.result]
    return memory, threads, sum(run.result["json"] == {"ok": True} for run in done)


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
    before, cpu = psutil.Process().memory_info().rss, time.process_time()
    memory, threads, recorded = call_all(app, asked["port"], n)
    cpu_ms = (time.process_time() - cpu) / n * 1e3
    tell(memory_kb=(memory - before) / n / 1e3, rss_mb=memory / 1e6, threads=threads, cpu_ms=cpu_ms, recorded=recorded)
    app.stop()


if __name__ == "__main__":
    main()
