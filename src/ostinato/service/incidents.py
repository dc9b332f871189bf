"""Incidents: list, get, ack, rerun. They are opened and closed by what is recorded; a person can only see to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ostinato.clock import Clock
from ostinato.errors import Conflict, MessageStale, NotFound
from ostinato.models.ids import IncidentId, RunId
from ostinato.models.incident import Incident, IncidentFilter, IncidentState, RepeatedRun
from ostinato.models.notification import Delivery, DeliveryFilter
from ostinato.models.policy import check_choice
from ostinato.models.work import Unreadable
from ostinato.service.audit import audited
from ostinato.service.delivery_waits import DeliveryWaits
from ostinato.service.pages import Page, check_limit, cursor_text, read_cursor
from ostinato.service.projects import ProjectService
from ostinato.service.runs import RunService
from ostinato.stores.base import Store

__all__ = ["MOST_RERUN", "IncidentDetail", "IncidentService", "Rerun"]

MOST_RERUN = 1_000
"""So many of its runs are run again at once, the newest."""
_TOLD = 100
"""How many deliveries of one incident are shown."""


@dataclass(frozen=True, slots=True)
class IncidentDetail:
    """An incident, what was told of it to whom, and the runs that it stands for."""

    incident: Incident
    deliveries: Sequence[Delivery]
    """The newest first."""
    runs: Sequence[RunId]
    """Those that `rerun` would run again, the newest first."""
    reruns: Sequence[RepeatedRun] = ()
    """What was run again of them, and what became of it, the newest first."""


@dataclass(frozen=True, slots=True)
class Rerun:
    """What was run again."""

    runs: Sequence[RunId]
    """The new runs."""
    left: int
    """How many cannot be: removed or stopped in the meantime, or of work that cannot be read."""


class IncidentService:
    """What can be done with incidents."""

    def __init__(self, store: Store, clock: Clock, projects: ProjectService, runs: RunService) -> None:
        self._store = store
        self._clock = clock
        self._projects = projects
        self._runs = runs
        self._waits = DeliveryWaits(store, clock)

    async def list(
        self,
        *,
        state: IncidentState | str | None = None,
        subject: str | None = None,
        project: str | None = None,
        limit: int = 50,
    ) -> Sequence[Incident]:
        """Incidents: those that are open first, then the newest."""
        return (await self.page(state=state, subject=subject, project=project, limit=limit)).items

    async def page(
        self,
        *,
        state: IncidentState | str | None = None,
        subject: str | None = None,
        project: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[Incident]:
        """The same list, page by page."""
        await self._projects.check(project)
        wanted = IncidentFilter(
            state=None if state is None else check_choice(IncidentState, "state", state),
            subject=subject,
            project=project,
        )
        asked = replace(wanted, limit=check_limit(limit) + 1)
        if cursor is not None:
            is_open, before = read_cursor(cursor, wanted, int, int)
            asked = replace(asked, before_id=IncidentId(before), before_open=bool(is_open))
        found = await self._store.notifications.list_incidents(asked)
        more = None
        if len(found) > limit:
            last = found[limit - 1]
            more = cursor_text([int(last.state is IncidentState.OPEN), last.id], wanted)
        return Page(found[:limit], more)

    async def count_open(self) -> int:
        """How many are open."""
        return sum((await self._store.notifications.counts()).incidents.values())

    async def get(self, id: int) -> Incident:
        """The incident of this number."""
        found = await self._store.notifications.get_incident(IncidentId(id))
        if found is None:
            raise NotFound(f"there is no incident {id}; 'ostinato incident ls --all' lists them")
        return found

    async def look(self, id: int) -> IncidentDetail:
        """The same, with what was told of it and its runs."""
        incident = await self.get(id)
        told = DeliveryFilter(incident=incident.id, limit=_TOLD)
        runs = await self._store.notifications.incident_runs(incident.id, MOST_RERUN)
        return IncidentDetail(
            incident,
            await self._waits.of(await self._store.notifications.list_deliveries(told)),
            runs,
            await self._store.notifications.repeated_runs(runs),
        )

    @audited("incident.ack")
    async def ack(self, id: int, *, who: str = "code", note: str | None = None) -> Incident:
        """Somebody sees to it: nothing more is told of it until it recovers. A Conflict if it is closed."""
        incident = await self.get(id)
        acked = await self._store.notifications.ack_incident(incident.id, who, note, self._clock.now())
        if not acked:
            raise Conflict(f"incident {id} is closed: {incident.closed_reason or 'it recovered'}")
        return await self.get(id)

    @audited("incident.rerun", answers="rerun")
    async def rerun(self, id: int) -> Rerun:
        """Run all its failed runs again, the oldest first, 1,000 at most; the old rows stay as they are."""
        incident = await self.get(id)
        new: list[RunId] = []
        failed = await self._store.notifications.incident_runs(incident.id, MOST_RERUN)
        for run in reversed(failed):
            made = await self._again(run)
            if made is not None:
                new.append(made)
        return Rerun(new, len(failed) - len(new))

    async def _again(self, id: RunId) -> RunId | None:
        try:
            run = await self._runs.get(id)
            return None if isinstance(run.work, Unreadable) else (await self._runs.retry(id)).id
        except (MessageStale, NotFound):
            return None
