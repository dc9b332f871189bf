"""A node that also sends: `python mailer.py URL LOG SENDER PLAN`. It says `ready` on stdout and runs until it is ended.

PLAN is JSON, a list of sessions: key, task, options of `send`, how many messages all senders send to it together, the
pause between two of them, how long each works, and how long it is on its way. A sender sends its share of each session
in order and notes every answer; started anew after a kill it goes on at the first message without one, under the same
message_id.

Notes are lines of JSON, each appended with one write: `start` and `end` of an execution, and `sent` with its answer.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ostinato import Draining, MessageStale, Ostinato, QueueFull, Retry, RunContext
from ostinato.clock import Micros
from ostinato.config import load_settings
from ostinato.durations import parse_duration
from ostinato.models.session import Message, Sent
from ostinato.stores.sql.sessions import Sessions

SENDERS = 3
RETRY = Retry(50, base="20ms", longest="100ms")
"""So that no kill is the last try of anything."""
FORGETFUL = 0.05
"""For how many seconds, at most, a sender has its answer and has not noted it."""


class Notes:
    """The log that all processes append to."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)

    def add(self, what: str, **facts: Any) -> None:
        note = {"what": what, "at": time.time(), "pid": os.getpid(), **facts}
        os.write(self._descriptor, json.dumps(note).encode() + b"\n")

    @contextmanager
    def execution(self, run: RunContext, payloads: list[Any]) -> Iterator[float]:
        """Note the start and the end; gives how long to work."""
        self.add("start", run=run.id, attempt=run.attempt, payloads=payloads)
        try:
            yield payloads[0]["seconds"]
        finally:
            self.add("end", run=run.id, attempt=run.attempt)


def make_app(url: str, notes: Notes) -> Ostinato:
    # Shorter than settings allow: nothing here starts commands, and tests shall not wait for a long one.
    lease = parse_duration(os.environ.get("FAULTS_LEASE", "15s"))
    app = Ostinato(settings=replace(load_settings(db=url), lease=lease), name="mailers")

    @app.task("work", retry=RETRY)
    async def work(payloads: list[Any], run: RunContext) -> None:
        with notes.execution(run, payloads) as seconds:
            await asyncio.sleep(seconds)

    @app.task("work_sync", retry=RETRY)
    def work_sync(payloads: list[Any], run: RunContext) -> None:
        with notes.execution(run, payloads) as seconds:
            time.sleep(seconds)

    return app


def dawdle(seconds: dict[str, float]) -> None:
    """Let messages be on their way for a while, with their time noted and nothing written."""
    send = Sessions.send

    async def send_late(self: Sessions[Any], messages: Sequence[Message], now: Micros) -> list[Sent]:
        await asyncio.sleep(max(seconds.get(message.key, 0) for message in messages))
        return await send(self, messages, now)

    Sessions.send = send_late  # type: ignore[method-assign]


def answered(log: str, sender: int) -> set[tuple[str, int]]:
    """The messages of this sender that have their answer."""
    # What follows the last end of a line is being written by another process.
    notes = [json.loads(line) for line in Path(log).read_text().split("\n")[:-1]]
    return {(note["session"], note["number"]) for note in notes if note["what"] == "sent" and note["sender"] == sender}


async def send_all(app: Ostinato, notes: Notes, sender: int, plan: dict[str, Any], done: set[tuple[str, int]]) -> None:
    """This sender's messages to one session, each after the answer to the one before."""
    key = plan["key"]
    for number in range(sender, plan["count"], SENDERS):
        if (key, number) in done:
            continue
        await asyncio.sleep(random.random() * 2 * plan["pause"])
        payload = {"session": key, "sender": sender, "number": number, "seconds": plan["seconds"]}
        run: int | None = None
        try:
            run = await app.aio.sessions.send(
                key, payload, task=plan["task"], message_id=f"{sender}-{number}", **plan["options"]
            )
            answer = "queued"
        except QueueFull:
            answer = "full"
        except MessageStale:
            answer = "stale"
        except Draining:
            return
        except Exception as error:  # whatever it is, the test must see it
            answer = repr(error)
        # Killed here, it sends again what was queued.
        await asyncio.sleep(random.random() * FORGETFUL)
        notes.add("sent", session=key, sender=sender, number=number, answer=answer, run=run)


async def main() -> None:
    url, log, sender, plans = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
    notes = Notes(log)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with make_app(url, notes) as app:
        dawdle({plan["key"]: plan["dawdle"] for plan in plans if plan["dawdle"]})
        print("ready", flush=True)
        done = answered(log, sender)
        sending = asyncio.gather(*(send_all(app, notes, sender, plan, done) for plan in plans))
        await stop.wait()
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending


if __name__ == "__main__":
    asyncio.run(main())
