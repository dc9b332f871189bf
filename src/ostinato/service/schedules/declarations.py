"""The schedules that the code of an app declares: stored when its engine starts, and told in the log.

`app.py` collects them; whose word counts for each field is decided where they are stored, in `stores/drafts.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from ostinato.clock import Clock, from_micros
from ostinato.logs import get_logger
from ostinato.models.declared import ENABLED, FieldChange, said_text
from ostinato.models.schedule import Schedule, ScheduleFilter
from ostinato.run_log import MOST_SCHEDULES, is_scheduling_logged, log_schedules
from ostinato.service.schedules.drafts import ScheduleSpec
from ostinato.service.schedules.service import ScheduleService
from ostinato.stores.base import Store

__all__ = ["Declarations"]

log = get_logger("ostinato")


class Declarations:
    """What the code of one app declares."""

    def __init__(self, app: str) -> None:
        self._app = app
        self._specs: dict[str, ScheduleSpec] = {}
        self._told: set[str] = set()
        """Those that the log has told of since the start."""

    @property
    def specs(self) -> Mapping[str, ScheduleSpec]:
        """Each by its name."""
        return MappingProxyType(self._specs)

    def add(self, spec: ScheduleSpec) -> None:
        """Declare one, or declare it anew."""
        self._specs[spec.name] = spec

    def begin(self) -> None:
        """An engine starts: the log tells of all of them."""
        self._told.clear()

    async def declare(self, schedules: ScheduleService, store: Store, clock: Clock, zone: str) -> None:
        """Make the schedules that the code declares be so, and mark those that it no longer does.

        The clock and the zone are those of whoever has opened the store: a rehearsal has others than the app was
        made with.
        """
        since = from_micros(clock.now())
        before = await self._stored(store, self._specs)
        await schedules.add_many(self._specs.values())
        orphans = await store.schedules.mark_orphans(self._app, list(self._specs), clock.now())
        if orphans:
            log.warning("schedules %s are no longer declared by app %r: orphaned", ", ".join(orphans), self._app)
        new = [name for name in self._specs if name not in self._told]
        self._told.update(new)
        if new:
            await self._log(store, new, before, since, zone)

    async def _log(
        self, store: Store, names: Sequence[str], before: Mapping[str, Schedule], since: datetime, zone: str
    ) -> None:
        """What people changed of these, what the code has just changed, and when they are due: of many, the first."""
        found = await self._stored(store, names)
        for name, schedule in found.items():
            if (owner := _taken_from(before.get(name), self._app)) is not None:
                text = "schedule %s belonged to %s until now: app %r declares it; to have both, rename one of them"
                log.warning(text, name, owner, self._app)
            for change in schedule.changes:
                if change.by is not None:
                    log.warning("schedule %s: %s", name, change.sentence(zone))
            for change in _changed_by_code(before.get(name), schedule, since):
                log.info("schedule %s: %s", name, change.sentence(zone) + _was(before.get(name), change))
        if is_scheduling_logged():
            shown = set(names[:MOST_SCHEDULES])
            log_schedules([one for one in found.values() if one.name in shown], more=len(names[MOST_SCHEDULES:]))

    async def _stored(self, store: Store, names: Iterable[str]) -> dict[str, Schedule]:
        found = await store.schedules.list_schedules(ScheduleFilter(names=tuple(names)))
        return {schedule.name: schedule for schedule in found}


def _taken_from(before: Schedule | None, app: str) -> str | None:
    """Whose it was, if it was not this app's."""
    if before is None or before.is_declared:
        return None if before is None or before.origin == app else f"app {before.origin!r}"
    return None if before.owner == "code" else repr(before.owner)


def _changed_by_code(before: Schedule | None, schedule: Schedule, since: datetime) -> list[FieldChange]:
    """What the code has just changed: what it says now, and what it says no more, which has its default."""
    found = [change for change in schedule.changes if change.by is None and change.at >= since]
    if before is not None and before.declared is not None and schedule.declared is not None:
        for field in sorted(before.declared.keys() - schedule.declared.keys() - schedule.overrides.keys()):
            default = said_text(schedule.declared, field)
            found.append(FieldChange(field, default, default, None, since))
    return found


def _was(before: Schedule | None, change: FieldChange) -> str:
    """What the code said before, and what it says now; of the switch its line says it."""
    if before is None or before.declared is None or change.field == ENABLED:
        return ""
    return f": {said_text(before.declared, change.field)} before, {change.code} now"
