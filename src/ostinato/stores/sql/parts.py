"""What each store does in a way of its own and the files beside this one need, inside their transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from ostinato.clock import Micros
from ostinato.models.chain import RunEnd
from ostinato.models.event import EventKind
from ostinato.models.ids import RunId, RunIds, ScheduleId
from ostinato.models.output import OutputPart
from ostinato.models.run import Finish, NewRun
from ostinato.models.upstream import EndedRun
from ostinato.stores.sql.connection import Connection, Values

__all__ = ["NO_ENDS", "EndedRuns", "Inserted", "Parts"]

C_contra = TypeVar("C_contra", bound=Connection, contravariant=True)


class Inserted(Protocol):
    """The ids that a statement inserted, in their order."""

    async def ids(self) -> list[RunId]:
        """Read them, after the commit."""
        ...


class EndedRuns(NamedTuple):
    """What a write of ends did."""

    written: set[RunId]
    """Those whose token held,"""
    followed: Collection[RunId]
    """and those of them for whose end other runs may wait."""


NO_ENDS = EndedRuns(set(), ())


class Parts(Protocol[C_contra]):
    """Rows into the ledger, and turns in sessions: by the locks of each database."""

    async def insert_fires(self, db: C_contra, runs: Sequence[NewRun], now: Micros, /) -> None:
        """Insert runs of due times; a due time that has its row already gets no second one."""
        ...

    async def insert_all(self, db: C_contra, runs: Sequence[NewRun], /) -> RunIds:
        """Insert rows. Where a key is active already in its scope, the answer is that run's id."""
        ...

    async def insert_new(self, db: C_contra, run: NewRun, /) -> RunId:
        """Insert a row; a key that is active already is an error."""
        ...

    async def send_arrivals(self, db: C_contra, runs: Sequence[NewRun], now: Micros, /) -> Inserted:
        """Insert rows without a key into the queues of sessions, and tell it."""
        ...

    async def send_skipped(
        self,
        db: C_contra,
        run: NewRun,
        now: Micros,
        kind: EventKind,
        data: Mapping[str, object],
        result: str | None = None,
    ) -> Inserted:
        """Insert the row of a message that gets no run of its own, and tell it."""
        ...

    async def add_output(self, db: C_contra, said: Sequence[tuple[RunId, int, Sequence[OutputPart]]], /) -> None:
        """Append to the output of runs, each with the token of its attempt, or replace their tails."""
        ...

    async def end_runs(self, db: C_contra, ended: Sequence[Finish], /) -> EndedRuns:
        """Write the ends whose token holds, and tell those of sessions; answers which those are."""
        ...

    async def count_from_finish(self, db: C_contra, finished: Mapping[ScheduleId, Micros], /) -> None:
        """Set the next due time of schedules that count from the end of their last run; the caller has locked them. One
        that has come and was not recorded stays: it is to have its row."""
        ...

    async def note_ends(self, db: C_contra, ended: Sequence[EndedRun], /) -> None:
        """Note ends of runs for the schedules that follow theirs, and make those due; the caller has locked them."""
        ...

    async def follow_ends(self, db: C_contra, ended: Sequence[RunEnd], /) -> None:
        """Note ends of runs for the runs that wait for them, and let these go on or leave them out."""
        ...

    async def wake(self, db: C_contra, /) -> None:
        """Tell the engines, with the commit, that there may be something to do."""
        ...

    async def lock_schedules(self, db: C_contra, finishes: Sequence[Finish], /) -> None:
        """Hold the schedules that these finishes may change."""
        ...

    async def lock_ends(self, db: C_contra, ids: Sequence[RunId], /) -> None:
        """Hold what the end of these runs may change, before the runs themselves."""
        ...

    async def lock_sessions(self, db: C_contra, sessions: Iterable[str], /) -> None:
        """Hold these sessions until the transaction ends."""
        ...

    async def last_event(self, db: C_contra, /) -> int:
        """The number of the last event before which all are there."""
        ...

    async def fetch_row(self, db: C_contra, statement: str, values: Values, /) -> dict[str, Any] | None:
        """One row by the names of its columns, for who is about to change it; what is not UTF-8 of it is readable."""
        ...

    async def give_turns(self, db: C_contra, sessions: Iterable[str], /) -> None:
        """In each session that has room, let the runs that wait longest go; the caller has locked them."""
        ...
