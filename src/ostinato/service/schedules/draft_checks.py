"""Drafts of schedules, made ready to be stored: in a project and a lane that exist, due some time, their checks passed.

`drafts.py` makes them of what people give, `service.py` stores them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable
from dataclasses import replace

from ostinato.clock import Micros
from ostinato.errors import ChecksFailed, Conflict, InvalidInput, TimingError
from ostinato.logs import get_logger
from ostinato.models.declared import ENABLED
from ostinato.models.policy import Policy, load_policy, policy_text
from ostinato.models.schedule import Schedule, ScheduleDraft
from ostinato.service.audit import changed_by
from ostinato.service.calendars import CalendarService
from ostinato.service.lanes import LaneService
from ostinato.service.notifications import NotificationService
from ostinato.service.projects import ProjectService
from ostinato.service.schedules.drafts import Code, ScheduleSpec, make_draft, stored_work
from ostinato.service.schedules.gate import check_switching_on
from ostinato.service.schedules.upstreams import check_upstreams
from ostinato.stores.base import Store
from ostinato.stores.drafts import counts_anew
from ostinato.timing import Dates
from ostinato.timing.calendar_days import folded
from ostinato.timing.zones import check_zone

__all__ = ["DraftChecks"]

log = get_logger("ostinato")

_BATCH = 500
_BREATH = 50


class DraftChecks:
    """Checks drafts against what there is."""

    def __init__(
        self,
        store: Store,
        zone: str,
        lanes: LaneService,
        projects: ProjectService,
        notifications: NotificationService,
        calendars: CalendarService,
        code: Code,
    ) -> None:
        self._store = store
        self._zone = zone
        self._lanes = lanes
        self._projects = projects
        self._notifications = notifications
        self._calendars = calendars
        self._code = code

    async def batches(self, specs: Iterable[ScheduleSpec], now: Micros) -> AsyncIterator[list[ScheduleDraft]]:
        """Drafts, many at a time."""
        batch: list[ScheduleDraft] = []
        projects: set[str] = set()
        names: set[str] = set()
        calendars: dict[str, Dates] = {}
        for index, spec in enumerate(specs, 1):
            work = await stored_work(spec.work, self._code)
            resolved = await self.resolved(spec if work is spec.work else replace(spec, work=work), now, calendars)
            drafted = make_draft(resolved, self._zone, now, self._code)
            drafted.by = drafted.made_by = changed_by()
            if drafted.project is not None and drafted.project not in projects:
                await self._projects.get(drafted.project)
                projects.add(drafted.project)
            draft = await self._checked(drafted, spec, names)
            names.add(drafted.name)
            if draft is not None:
                batch.append(draft)
            if len(batch) == _BATCH:
                yield batch
                batch = []
            elif index % _BREATH == 0:
                await asyncio.sleep(0)  # an engine on this loop must not start late because of us
        if batch:
            yield batch

    async def resolved(self, spec: ScheduleSpec, now: Micros, known: dict[str, Dates] | None = None) -> ScheduleSpec:
        """The same with the dates of the calendars that its timing names; those that were looked up are `known`."""
        timing = await self._calendars.resolved(spec.timing, check_zone(spec.tz or self._zone), now, known)
        return spec if timing is spec.timing else replace(spec, timing=timing)

    async def _checked(self, draft: ScheduleDraft, spec: ScheduleSpec, before: Collection[str]) -> ScheduleDraft | None:
        """Put the draft into a lane that exists; its channels must exist, and a new one must have a due time, and pass
        its checks.

        None when there is nothing to store: a schedule of the code whose only time has passed.
        """
        policy = load_policy(draft.policy)
        if not self._lanes.knows(policy.lane):
            settled = await self._lanes.settle(policy)
            if settled is not policy:
                draft = replace(draft, policy=policy_text(settled))
        if policy.notify:
            await self._check_notify(draft.name, policy, spec)
        if draft.follows:
            await self._check_upstreams(draft, spec, before)
        if (draft.next_at is not None or draft.follows) and not policy.checks:
            return draft
        known = await self._store.schedules.get_schedule(draft.name)
        is_past = draft.next_at is None and not draft.follows
        is_codes = spec.origin is not None  # a person may edit it, too
        if is_past and is_codes and known is None:
            # It ran and was deleted after it, or the code is older than its date: no reason not to start.
            log.info("schedule %r is not stored: %r has no due time after now", draft.name, folded(draft.timing))
            return None
        if is_past and not is_codes and (known is None or known.stored_timing != draft.timing):
            shown = folded(draft.timing)
            raise TimingError(
                f"schedule {draft.name!r} would never run: {shown!r} has no due time after now; "
                "give a time in the future",
                text=shown,
            )
        if policy.checks:
            # Unasked they have not passed: should it turn out meanwhile that it would be switched on, it stays off.
            draft.may_switch_on = False
            if draft.enabled and not is_past and (known is None or _is_switched_on(known, draft)):
                is_broken = known is not None and known.broken is not None
                await self._ask(draft, policy, is_codes=is_codes, is_broken=is_broken)
        return draft

    async def _ask(self, draft: ScheduleDraft, policy: Policy, *, is_codes: bool, is_broken: bool) -> None:
        """Whether it may be switched on: a person is refused. Code cannot be asked again: its schedule is stored,
        switched off, and says why."""
        try:
            await check_switching_on(draft.name, policy, draft.timing, draft.next_at, self._code)
        except Conflict as refused:
            if not is_codes:
                raise
            if is_broken:
                log.warning("schedule %r stays broken: %s", draft.name, refused)
            else:
                draft.enabled, draft.off_note = False, _reason(refused)
        else:
            draft.may_switch_on = True

    async def _check_upstreams(self, draft: ScheduleDraft, spec: ScheduleSpec, before: Collection[str]) -> None:
        """What it runs after must be there, or come before it in the same call. Code may be the first of several apps:
        it is told in the log."""
        upstreams = [name for name in spec.bound(self._zone).follows if name not in before]
        try:
            await check_upstreams(self._store, draft.name, upstreams)
        except InvalidInput as error:
            if spec.origin is None:
                raise
            log.warning("%s", error)

    async def _check_notify(self, name: str, policy: Policy, spec: ScheduleSpec) -> None:
        """What code declares is stored, whoever is told of it; a person can be asked again."""
        if spec.origin is not None:
            await self._notifications.warn(policy.notify)
            return
        try:
            await self._notifications.check(policy.notify)
        except InvalidInput:
            # Who changes something else of it does not name the channel.
            known = await self._store.schedules.get_schedule(name)
            await self._notifications.check(policy.notify, () if known is None else known.policy.notify)


def _reason(refused: Conflict) -> str:
    """Why it is off, as its note says it."""
    if not isinstance(refused, ChecksFailed):
        return str(refused)
    listed = "; ".join(f"{check}: {reason}" for check, reason in refused.failures.items())
    return f"checks failed: {listed}"


def _is_switched_on(known: Schedule, draft: ScheduleDraft) -> bool:
    """Whether its code said off when it was declared last, and now says on; or the breaker has switched it off, and it
    has another timing; or it has run as often as it should, and is to run more."""
    is_retimed = (draft.timing, draft.zone) != (known.stored_timing, known.zone)
    is_by_person = known.off_by is not None or known.off_note is not None
    if known.broken is not None and not is_by_person and is_retimed:
        return True
    if draft.origin is not None and known.declared is not None and not known.declared[ENABLED].value:
        return True
    is_finished = not known.enabled and known.remaining == 0 and known.broken is None and not is_by_person
    return is_finished and counts_anew(draft, known.stored_timing, known.zone, known.policy)
