"""A node whose `claude` is a stand-in: `python chatter.py URL LOG`. It says `ready` and runs until it is ended.

STAND_IN is the stand-in's executable.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace

from ostinato import Ostinato
from ostinato.agent_clis import CLAUDE
from ostinato.config import SHORTEST_LEASE, load_settings


async def main() -> None:
    # As short as settings allow: until then the guard ends what a killed node has left.
    settings = replace(load_settings(db=sys.argv[1]), lease=SHORTEST_LEASE)
    agents = {"claude": replace(CLAUDE, command=(os.environ["STAND_IN"],))}
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with Ostinato(settings=replace(settings, agents=agents), name="chatter"):
        print("ready", flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main())
