"""The PostgreSQL store: one schema of a database, behind the contract of stores.base."""

from __future__ import annotations

from ostinato.stores.postgres.database import Database, schema_version
from ostinato.stores.postgres.lanes import PostgresLanes
from ostinato.stores.postgres.nodes import PostgresNodes
from ostinato.stores.postgres.parts import PARTS
from ostinato.stores.postgres.quarantine import PostgresQuarantine
from ostinato.stores.postgres.runs import PostgresRuns
from ostinato.stores.postgres.schedules import PostgresSchedules
from ostinato.stores.postgres.shared_ledger import PostgresSharedLedger, find_place
from ostinato.stores.postgres.upkeep import PostgresUpkeep
from ostinato.stores.postgres.watch import PostgresWatch
from ostinato.stores.sql.access import Access
from ostinato.stores.sql.calendars import Calendars
from ostinato.stores.sql.check_ins import CheckIns
from ostinato.stores.sql.notifications import Notifications
from ostinato.stores.sql.outbox import Outbox
from ostinato.stores.sql.projects import Projects
from ostinato.stores.sql.sessions import Sessions
from ostinato.tuning import DEFAULT_TUNING, Tuning

__all__ = ["PostgresStore"]


class PostgresStore:
    """Answers stores.base.Store. It belongs to the event loop that opened it."""

    def __init__(
        self, url: str, schema: str = "ostinato", lease: float = 15.0, tuning: Tuning = DEFAULT_TUNING
    ) -> None:
        self._database = Database(url, schema, lease, tuning)
        self.schedules = PostgresSchedules(self._database, PARTS)
        self.runs = PostgresRuns(self._database, PARTS)
        self.projects = Projects(self._database)
        self.calendars = Calendars(self._database, PARTS)
        self.lanes = PostgresLanes(self._database, PARTS)
        self.sessions = Sessions(self._database, PARTS)
        self.nodes = PostgresNodes(self._database)
        self.access = Access(self._database)
        self.notifications = Notifications(self._database)
        self.check_ins = CheckIns(self._database, PARTS)
        self.upkeep = PostgresUpkeep(self._database)
        self.quarantine = PostgresQuarantine(self._database, PARTS)
        self.outbox = Outbox(self._database, PARTS)

    @property
    def url(self) -> str:
        return self._database.server.url

    @property
    def fault(self) -> str | None:
        return None

    async def exists(self) -> bool:
        schema = self._database.server.schema
        return bool(await self._database.read(lambda connection: schema_version(connection, schema)))

    async def open(self) -> None:
        await self._database.open()

    async def shared_ledger(self) -> PostgresSharedLedger:
        server = self._database.server
        return PostgresSharedLedger(await self._database.read(find_place), server.schema, server.channel)

    async def watch(self) -> PostgresWatch:
        return await PostgresWatch.start(self._database)

    async def close(self) -> None:
        await self._database.close()
