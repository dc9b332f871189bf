"""The same calls by a bare loop: httpcore2's pool without limits, the body read, nothing kept."""

from __future__ import annotations

import asyncio
import gc
import time

import httpcore2
import psutil
from link import arguments, tell


async def call_all(url: str, n: int) -> tuple[int, int]:
    """Bytes and threads while n calls are under way."""
    async with httpcore2.AsyncConnectionPool(max_connections=None, max_keepalive_connections=0) as pool:
        await pool.request("GET", f"{url}/held")
        calls = [asyncio.create_task(pool.request("GET", f"{url}/hold")) for _ in range(n)]
        held = 0
        while held < n:
            held = int((await pool.request("GET", f"{url}/held")).content)
        process = psutil.Process()
        memory, threads = process.memory_info().rss, process.num_threads()
        await pool.request("GET", f"{url}/go")
        assert all(answer.status == 200 for answer in await asyncio.gather(*calls))
        return memory, threads


async def main() -> None:
    """A few to warm up, then all."""
    asked = arguments()
    url, n = f"http://127.0.0.1:{asked['port']}", asked["n"]
    await call_all(url, asked["warm_up"])
    gc.collect()
    before, cpu = psutil.Process().memory_info().rss, time.process_time()
    memory, threads = await call_all(url, n)
    cpu_ms = (time.process_time() - cpu) / n * 1e3
    tell(memory_kb=(memory - before) / n / 1e3, rss_mb=memory / 1e6, threads=threads, cpu_ms=cpu_ms)


if __name__ == "__main__":
    asyncio.run(main())
