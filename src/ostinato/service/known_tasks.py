"""Which tasks can be executed at all, as far as that can be known where work is asked for.

In a session a run that nobody can execute would hold up all that are behind it, so that it is refused there.
`sessions.py` and `runs.py` ask.
"""

from __future__ import annotations

from difflib import get_close_matches

from ostinato.clock import Clock
from ostinato.errors import InvalidInput
from ostinato.logs import get_logger
from ostinato.models.work_kinds import is_task, unserved
from ostinato.service.schedules.drafts import Code
from ostinato.stores.base import Store

__all__ = ["KnownTasks"]

log = get_logger("ostinato")

_LISTED = 10
"""So many names are told of those that are known."""


class KnownTasks:
    """The tasks of this process, and of the nodes of the database."""

    def __init__(self, store: Store, clock: Clock, code: Code) -> None:
        self._store = store
        self._clock = clock
        self._code = code
        self._found: set[str] = set()
        """What a node was found to know: it is not asked for again."""

    async def check(self, task: str | None) -> None:
        """InvalidInput for a task that neither this process nor any node knows, if a node is running; while none is,
        nobody can tell, and the log says so."""
        if task is None or task in self._found or self._code.takes_payloads(task) is not None:
            return
        nodes = await self._store.nodes.list_nodes(self._clock.now())
        # One that was lost lately may be on its way back.
        if any(task in node.tasks for node in nodes):
            self._found.add(task)
            return
        running = [node for node in nodes if node.state != "lost"]
        if not running:
            log.warning("no engine is running, and this process does not know %r: it waits for a node that does", task)
            return
        names = {name for node in running for name in node.tasks} | self._code.described_tasks().keys()
        raise InvalidInput(unserved(task), field="task", hint=_hint(task, sorted(filter(is_task, names))))


def _hint(task: str, names: list[str]) -> str:
    if not names:
        return "start the engine of the app that has it"
    if close := get_close_matches(task, names, 1):
        return f"did you mean {close[0]!r}?"
    others = f" and {len(names) - _LISTED} others" if len(names) > _LISTED else ""
    return f"there are {', '.join(names[:_LISTED])}{others}; or start the engine of the app that has it"
