"""The witness log: what tasks saw, written by the process that runs them, and read by whoever judges.

Each start and each end is a line of JSON, appended and synced before the task goes on: what is killed a moment later
has said that it began. The ledger plays no part in it.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ostinato.clock import Micros, SystemClock
from ostinato.execution.context import RunContext, current_run
from ostinato.execution.registry import Registry, TaskDefinition
from ostinato.testing.chaos.evidence import Execution

__all__ = ["WitnessLog", "read_witnesses", "watch_tasks"]

_CLOCK = SystemClock()


class WitnessLog:
    """That of one process."""

    def __init__(self, path: Path, process: str) -> None:
        self._process = process
        self._descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o600)

    def began(self, run: RunContext) -> None:
        """A task begins."""
        claimed = run.claimed
        self._write(
            "began",
            run,
            attempt=claimed.attempt,
            due_at=claimed.due_at,
            schedule=claimed.schedule,
            process=self._process,
        )

    def ended(self, run: RunContext, *, returned: bool, told: bool) -> None:
        """It came to its end, or raised; maybe because it was told to stop."""
        self._write("ended", run, returned=returned, told=told)

    def _write(self, what: str, run: RunContext, **more: Any) -> None:
        line = {"what": what, "run": run.id, "token": run.claimed.token, "at": _CLOCK.now(), **more}
        os.write(self._descriptor, f"{json.dumps(line)}\n".encode())
        os.fsync(self._descriptor)


def watch_tasks(registry: Registry, log: WitnessLog) -> None:
    """From now on, the tasks of an app write down when they begin and end; but for those in processes of their own."""
    for name, definition in list(registry.tasks.items()):
        if definition.isolation == "none":
            registry.tasks[name] = replace(definition, function=_watched(definition, log))


def _watched(definition: TaskDefinition, log: WitnessLog) -> Callable[..., Any]:
    function = definition.function

    @functools.wraps(function)
    def watched(*args: Any, **options: Any) -> Any:
        run = current_run()
        log.began(run)
        try:
            result = function(*args, **options)
        except BaseException:
            log.ended(run, returned=False, told=run.cancelled)
            raise
        log.ended(run, returned=True, told=run.cancelled)
        return result

    @functools.wraps(function)
    async def watched_async(*args: Any, **options: Any) -> Any:
        run = current_run()
        log.began(run)
        try:
            result = await function(*args, **options)
        except BaseException as error:
            log.ended(run, returned=False, told=run.cancelled or isinstance(error, asyncio.CancelledError))
            raise
        log.ended(run, returned=True, told=run.cancelled)
        return result

    return watched_async if definition.is_async else watched


def read_witnesses(paths: Iterable[Path]) -> list[Execution]:
    """All executions that were written down. The last line of a process that was killed may be cut."""
    found: dict[tuple[int, int], Execution] = {}
    for path in paths:
        for line in path.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                _read(json.loads(line), found)
    return list(found.values())


def _read(said: dict[str, Any], found: dict[tuple[int, int], Execution]) -> None:
    key: tuple[int, int] = said["run"], said["token"]
    at: Micros = said["at"]
    if said["what"] == "began":
        # The same token twice is for the judge: the second one gets a place of its own.
        place = key if key not in found else (key[0], -len(found) - 1)
        found[place] = Execution(
            *(key[0], said["attempt"], key[1], said["process"], said["due_at"], at), schedule=said["schedule"]
        )
    else:
        execution = found[key]
        execution.ended_at, execution.returned = at, said["returned"]
        execution.told_at = at if said["told"] else None
