"""Who looks at an outbox beside its drainer: neither waits for the other, and neither ends the other."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path

from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from ostinato.integrations.transactions.connections import Connection
from ostinato.integrations.transactions.outbox import Outbox, open_outbox


def an_outbox(folder: Path) -> Outbox:
    outbox = open_outbox(create_engine(f"sqlite:///{folder}/shop.db", poolclass=NullPool))
    outbox.create()
    return outbox


async def test_a_list_beside_a_drainer_leaves_it_alone(tmp_path: Path) -> None:
    outbox = an_outbox(tmp_path)
    entered, free = threading.Event(), threading.Event()

    async def slow(_: Connection) -> str:
        entered.set()
        assert free.wait(60)
        return "drained"

    draining = asyncio.create_task(outbox._database.run(slow))
    waiting = asyncio.create_task(outbox.due(0, 10))
    assert await asyncio.to_thread(entered.wait, 60)
    assert await asyncio.to_thread(outbox.list) == []
    free.set()
    assert (await draining, list(await waiting)) == ("drained", [])
    await outbox.close()


def test_after_a_fork_an_outbox_has_a_thread_of_its_own(tmp_path: Path) -> None:
    outbox = an_outbox(tmp_path)
    assert list(asyncio.run(outbox.due(0, 10))) == []
    child = os.fork()
    if child == 0:  # nothing of pytest is to run here
        signal.alarm(30)
        try:
            os._exit(0 if list(asyncio.run(outbox.due(0, 10))) == [] else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0, "it hung until its alarm"
    asyncio.run(outbox.close())
