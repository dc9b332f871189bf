"""The same commands started by a bare asyncio loop: a semaphore, a process, its output, its status. Nothing is kept."""

from __future__ import annotations

import asyncio
import time

from link import arguments, tell

REPEATS = 5
"""The median of so many counts: one takes less than a second."""


async def start_all(command: list[str], n: int, concurrency: int) -> float:
    """Run the command n times, so many at once; answers the seconds that took."""
    room = asyncio.Semaphore(concurrency)

    async def one() -> None:
        async with room:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
            await process.communicate()
            assert process.returncode == 0

    begun = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(n)))
    return time.perf_counter() - begun


async def main() -> None:
    """A few to warm up, then all."""
    asked = arguments()
    await start_all(asked["command"], asked["warm_up"], asked["concurrency"])
    found = sorted([await start_all(asked["command"], asked["n"], asked["concurrency"]) for _ in range(REPEATS)])
    seconds = found[REPEATS // 2]
    tell(rate=asked["n"] / seconds, seconds=seconds)


if __name__ == "__main__":
    asyncio.run(main())
