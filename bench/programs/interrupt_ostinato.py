"""A message that interrupts an agent which works in a session: sent by the node itself, or by another process.

With `role` engine it is the node of another's messages, sender sends to such a node, and both is one process.
"""

from __future__ import annotations

import gc
from typing import Any

from interrupt_clock import PATIENCE, STAND_IN_COMMAND, measure
from link import arguments, tell, wait_for_end

from ostinato import Agent, Ostinato
from ostinato.config import AgentCli, load_settings

SESSION = "dm:1"
AGENT = Agent(cli="stand-in", context="isolated")


def make_app(db: str) -> Ostinato:
    # Its prompt is the socket of the bench.
    stand_in = AgentCli((*STAND_IN_COMMAND, "{prompt}", "{system}"))
    app = Ostinato(settings=load_settings(db=db, tz="UTC", agents={"stand-in": stand_in}))

    @app.task("reply", retry=0)
    async def reply(payloads: list[str]) -> int:
        return len(payloads)

    return app


def interrupts(app: Ostinato, asked: dict[str, Any]) -> dict[str, float]:
    """Measure them; each waits until the message that interrupted has been carried out, after what it interrupted."""
    interrupted: list[int] = []
    sent: list[int] = []

    def start(bench: str) -> None:
        interrupted.append(app.sessions.send(SESSION, bench, agent=AGENT, debounce=0).id)

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
