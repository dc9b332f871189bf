"""A message that interrupts a process which runs in a session: sent by the node itself, or by another process.

With `role` engine it is the node of another's messages, sender sends to such a node, and both is one process.
"""

from __future__ import annotations

import gc
from typing import Any

from interrupt_clock import PATIENCE, measure
from link import arguments, tell, wait_for_end

from ostinato import Ostinato, Shell

SESSION = "dm:1"


def make_app(db: str) -> Ostinato:
    app = Ostinato(db, tz="UTC")

    @app.task("reply", retry=0)
    async def reply(payloads: list[str]) -> int:
        return len(payloads)

    return app


def interrupts(app: Ostinato, asked: dict[str, Any]) -> dict[str, float]:
    """Measure them; each waits until the message that interrupted has been carried out, after what it interrupted."""
    interrupted: list[int] = []
    sent: list[int] = []

    def start(command: list[str]) -> None:
        interrupted.append(app.enqueue(Shell(command), session=SESSION, retry=0).id)

    def interrupt() -> None:
        message = app.sessions.send(SESSION, "no, this", task="reply", mode="interrupt", debounce=0)
        sent.append(message.id)

    def end() -> None:
        app.runs.wait(sent[-1], timeout=PATIENCE)

    found = measure(start, interrupt, end, asked["n"], asked["warm_up"])
    states = [str(app.runs.get(id).state) for id in interrupted]
    return {**found, "superseded": states.count("superseded") - asked["warm_up"]}


def main() -> None:
    """One process, as `ostinato up` is, or one of two."""
    asked = arguments()
    app = make_app(asked["db"])
    if asked["role"] != "sender":
        app.start()
        # As `ostinato up` does.
        gc.collect()
        gc.freeze()
    if asked["role"] == "engine":
        tell(ready=True)
        wait_for_end()
    else:
        tell(**interrupts(app, asked))
    app.stop()


if __name__ == "__main__":
    main()
