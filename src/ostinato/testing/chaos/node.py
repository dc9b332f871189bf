"""`python -m ostinato.testing.chaos.node`: one process of a cluster of real ones, on the app that `cluster.py` names.

It says `ready` on stdout when its engine is started, and drains at SIGTERM.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import msgspec

from ostinato.app import Ostinato
from ostinato.cli.open_database import import_app
from ostinato.errors import StoreUnavailable
from ostinato.testing.chaos.witness import WitnessLog, watch_tasks

__all__ = ["NODE", "NodeSpec", "put_on"]

NODE = "OSTINATO_CHAOS_NODE"
"""The variable with its NodeSpec, as JSON. Whatever it starts inherits it, and can be found by it."""

_AGAIN_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """What a node is told."""

    ordeal: str
    """Which one it belongs to."""
    name: str
    app: str
    db: str
    schema: str
    lease: float
    witness: str


def put_on(app: Ostinato, db: str, schema: str, lease: float) -> None:
    """Let an app work on this database."""
    app.settings = replace(app.settings, db=db, schema=schema, lease=timedelta(seconds=lease))


async def _serve(spec: NodeSpec) -> None:
    app = import_app(spec.app)
    put_on(app, spec.db, spec.schema, spec.lease)
    watch_tasks(app.registry, WitnessLog(Path(spec.witness), spec.name))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with AsyncExitStack() as stack:
        while True:
            try:
                await stack.enter_async_context(app)
                break
            except StoreUnavailable:  # whoever supervises it starts it again
                await asyncio.sleep(_AGAIN_SECONDS)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(_serve(msgspec.json.decode(os.environ[NODE], type=NodeSpec)))
