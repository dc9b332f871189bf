"""No-op runs through Ostinato, by its public interface only.

Roles: worker, producer, both in one process, and rules: who adds a channel with a rule before the worker starts.
"""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

from link import arguments, produce, tell, wait_for_end

from ostinato import Ostinato
from ostinato.errors import WaitTimeout

BATCH = 500


def make_app(db: str, lane: int) -> Ostinato:
    """The same app in both processes."""
    return Ostinato(db, tz="UTC", lanes={"main": lane}, slots=max(lane, 256))


def make_task(app: Ostinato, kind: str) -> Any:
    """A task that does nothing."""
    if kind == "async":

        @app.task("noop")
        async def noop() -> None:
            pass

        return noop

    @app.task("noop")
    def noop_sync() -> None:
        pass

    return noop_sync


def worker(asked: dict[str, Any]) -> None:
    """A node, and nothing else."""
    app = make_app(asked["db"], asked["lane"])
    make_task(app, asked["kind"])
    app.start()
    if asked.get("settled"):  # as `ostinato worker` does
        gc.collect()
        gc.freeze()
    if asked.get("rules") == "here":
        add_rules(app, "here")
    tell(ready=True)
    wait_for_end()
    app.stop()


def add_rules(app: Ostinato, rules: str) -> None:
    """A channel, and a rule for whatever goes wrong, or for the successes of a project that has none."""
    app.notifications.add("hook", "json://hooks.example")
    if rules == "elsewhere":
        app.projects.add("other", Path.cwd())
        app.notifications.add_rule("hook", "succeeded", project="other")
    else:
        app.notifications.add_rule("hook")


def producer(asked: dict[str, Any]) -> None:
    """Enqueue, and wait until all is recorded; `both` also executes in this process."""
    app = make_app(asked["db"], asked["lane"])
    task = make_task(app, asked["kind"])
    if asked["role"] == "both":
        app.start()

    last: list[Any] = []

    def enqueue(n: int) -> None:
        while n > 0:
            last[:] = task.enqueue_many([()] * min(BATCH, n))[-1:]
            n -= BATCH

    def is_done(_: int) -> bool:
        # A cheap look first: the last one in is among the last to end.
        if not last[0].get().ended:
            return False
        try:
            app.wait_idle(timeout=0)
        except WaitTimeout:
            return False
        return True

    figures = produce(enqueue, is_done, asked["n"], asked["warm_up"])
    everything = asked["n"] + asked["warm_up"]
    figures["recorded"] = len(app.runs.list(state="succeeded", limit=everything + 1)) - asked["warm_up"]
    tell(**figures)
    app.stop()


def main(asked: dict[str, Any]) -> None:
    """Play the role that is asked for."""
    if asked["role"] == "worker":
        worker(asked)
    elif asked["role"] == "rules":
        add_rules(make_app(asked["db"], asked["lane"]), asked["rules"])
        tell(added=True)
    else:
        producer(asked)


if __name__ == "__main__":
    main(arguments())
