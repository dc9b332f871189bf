"""What the machine allows: bare `loop.call_at` for the same 200 callbacks due each second, nothing stored."""

from __future__ import annotations

import asyncio
import time
from functools import partial

from link import arguments, lateness, next_second, tell


async def call_back(names: list[str], first: int, seconds: int) -> list[tuple[str, float, float]]:
    """All callbacks of all seconds are handed to the loop beforehand."""
    loop = asyncio.get_running_loop()
    offset = loop.time() - time.time()
    starts: list[tuple[str, float, float]] = []

    def note(name: str, due: int) -> None:
        starts.append((name, float(due), time.time()))

    for due in range(first, first + seconds):
        for name in names:
            loop.call_at(due + offset, partial(note, name, due))
    await asyncio.sleep(first + seconds + 0.5 - time.time())
    return starts


def main() -> None:
    """No warm-up is needed: there is nothing to warm."""
    asked = arguments()
    names = [f"s{number}" for number in range(asked["count"])]
    first = next_second(1)
    starts = asyncio.run(call_back(names, first, asked["seconds"]))
    tell(**lateness(starts, names, first, asked["seconds"]))


if __name__ == "__main__":
    main()
