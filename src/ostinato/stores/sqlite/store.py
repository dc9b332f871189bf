"""The SQLite store: one file, or memory, behind the contract of stores.base."""

from __future__ import annotations

from ostinato.stores.sql.access import Access
from ostinato.stores.sql.calendars import Calendars
from ostinato.stores.sql.check_ins import CheckIns
from ostinato.stores.sql.lanes import Lanes
from ostinato.stores.sql.notifications import Notifications
from ostinato.stores.sql.outbox import Outbox
from ostinato.stores.sql.projects import Projects
from ostinato.stores.sql.sessions import Sessions
from ostinato.stores.sqlite.database import Database
from ostinato.stores.sqlite.nodes import SqliteNodes
from ostinato.stores.sqlite.parts import PARTS
from ostinato.stores.sqlite.quarantine import SqliteQuarantine
from ostinato.stores.sqlite.runs import SqliteRuns
from ostinato.stores.sqlite.schedules import SqliteSchedules
from ostinato.stores.sqlite.upkeep import SqliteUpkeep
from ostinato.stores.sqlite.watch import SqliteWatch
from ostinato.tuning import DEFAULT_TUNING, Tuning

__all__ = ["SqliteStore"]


class SqliteStore:
    """Answers stores.base.Store."""

    def __init__(self, path: str, tuning: Tuning = DEFAULT_TUNING, database: Database | None = None) -> None:
        self._database = database or Database(path, tuning)
        self.schedules = SqliteSchedules(self._database, PARTS)
        self.runs = SqliteRuns(self._database, PARTS)
        self.projects = Projects(self._database)
        self.calendars = Calendars(self._database, PARTS)
        self.lanes = Lanes(self._database, PARTS)
        self.sessions = Sessions(self._database, PARTS)
        self.nodes = SqliteNodes(self._database)
        self.access = Access(self._database)
        self.notifications = Notifications(self._database)
        self.check_ins = CheckIns(self._database, PARTS)
        self.upkeep = SqliteUpkeep(self._database)
        self.quarantine = SqliteQuarantine(self._database, PARTS)
        self.outbox = Outbox(self._database, PARTS)

    @property
    def url(self) -> str:
        return self._database.url

    @property
    def fault(self) -> str | None:
        return self._database.fault

    async def exists(self) -> bool:
        return self._database.exists()

    async def open(self) -> None:
        await self._database.open()

    async def shared_ledger(self) -> None:
        return None

    async def watch(self) -> SqliteWatch:
        return await SqliteWatch.open(self._database)

    async def close(self) -> None:
        await self._database.close()
