"""A node whose files may not grow: `python limited.py PATH LOG`. It does what the lines on stdin say.

`limit BYTES` is the size that no file of it may pass from then on (-1: any), `enqueue` adds ten runs, `health` asks.
Each line that it prints is a JSON list: `acknowledged` with an id, `refused` with the reason, `health`, `done`.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from typing import Any

from ostinato import Ostinato, RunContext
from ostinato.errors import StoreUnavailable

PATH, LOG = sys.argv[1], os.open(sys.argv[2], os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
app = Ostinato(f"sqlite:///{PATH}", name="limited")


@app.task("later", retry=0)
def later() -> None:
    """What is enqueued is never executed here: it is counted."""


@app.task("work", retry=0)
async def work(run: RunContext) -> str:
    os.write(LOG, f"{run.key}\n".encode())
    return "done"


def tell(*what: Any) -> None:
    print(json.dumps(what), flush=True)


def obey(word: str, number: int = 0) -> None:
    if word == "limit":
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (number, most))
    elif word == "health":
        health = app.health()
        tell("health", health["ok"], health["paused"])
    else:
        for _ in range(10):
            try:
                tell("acknowledged", later.using(delay="1d").enqueue().id)
            except StoreUnavailable as error:
                tell("refused", str(error))
    tell("done")


if __name__ == "__main__":
    app.start()
    tell("done")
    for line in sys.stdin:
        word, *numbers = line.split()
        obey(word, *map(int, numbers))
