"""What each store does in a way of its own and the files beside this one need, inside their transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar

from ostinato.clock import Micros
from ostinato.models.ids import RunId, ScheduleId
from ostinato.models.run import NewRun
from ostinato.models.states import RunState
from ostinato.stores.sql.connection import Connection, Values

__all__ = ["Parts"]

C_contra = TypeVar("C_contra", bound=Connection, contravariant=True)


class Parts(Protocol[C_contra]):
    """Rows into the ledger, and turns in sessions: by the locks of each database."""

    async def insert_fires(self, db: C_contra, runs: Sequence[NewRun], now: Micros) -> None:
        """Insert runs of due times; a due time that has its row already gets no second one."""
        ...

    async def end_queued(
        self, db: C_contra, ids: Sequence[RunId], state: RunState, reason: str, now: Micros
    ) -> list[RunId]:
        """End those of the runs that are still queued, with what follows from it."""
        ...

    async def follow_end(
        self, db: C_contra, id: RunId, schedule_id: ScheduleId | None, session: str | None, now: Micros
    ) -> None:
        """What the end of a run means for its schedule and its session."""
        ...

    async def last_event(self, db: C_contra) -> int:
        """The number of the last event before which all are there."""
        ...

    async def fetch_row(self, db: C_contra, statement: str, values: Values) -> dict[str, Any] | None:
        """One row by the names of its columns, for who is about to change it; what is not UTF-8 of it is readable."""
        ...

    async def give_turns(self, db: C_contra, sessions: Iterable[str]) -> None:
        """In each session that has room, let the runs that wait longest go."""
        ...
