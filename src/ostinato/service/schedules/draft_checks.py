"""Drafts of schedules, made ready to be stored: in a project and a lane that exist, due some time, their checks passed.

`drafts.py` makes them of what people give, `service.py` stores them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace

from ostinato.clock import Micros
from ostinato.errors import ChecksFailed, InvalidInput, TimingError
from ostinato.logs import get_logger
from ostinato.models.declared import ENABLED
from ostinato.models.policy import Policy, load_policy, policy_text
from ostinato.models.schedule import Schedule, ScheduleDraft
from ostinato.service.audit import changed_by
from ostinato.service.lanes import LaneService
from ostinato.service.notifications import NotificationService
from ostinato.service.projects import ProjectService
from ostinato.service.schedules.drafts import Code, ScheduleSpec, make_draft, stored_work
from ostinato.stores.base import Store
from ostinato.stores.drafts import counts_anew

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
        code: Code,
    ) -> None:
        self._store = store
        self._zone = zone
        self._lanes = lanes
        self._projects = projects
        self._notifications = notifications
        self._code = code

    async def batches(self, specs: Iterable[ScheduleSpec], now: Micros) -> AsyncIterator[list[ScheduleDraft]]:
        """Drafts, many at a time."""
        batch: list[ScheduleDraft] = []
        projects: set[str] = set()
        for index, spec in enumerate(specs, 1):
            work = await stored_work(spec.work, self._code)
            drafted = make_draft(spec if work is spec.work else replace(spec, work=work), self._zone, now, self._code)
            drafted.by = changed_by()
            if drafted.project is not None and drafted.project not in projects:
                await self._projects.get(drafted.project)
                projects.add(drafted.project)
            draft = await self._checked(drafted, spec)
            if draft is not None:
                batch.append(draft)
            if len(batch) == _BATCH:
                yield batch
                batch = []
            elif index % _BREATH == 0:
                await asyncio.sleep(0)  # an engine on this loop must not start late because of us
        if batch:
            yield batch

    async def _checked(self, draft: ScheduleDraft, spec: ScheduleSpec) -> ScheduleDraft | None:
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
        if draft.next_at is not None and not policy.checks:
            return draft
        known = await self._store.schedules.get_schedule(draft.name)
        is_past, is_codes = draft.next_at is None, spec.origin is not None  # a person may edit it, too
        if is_past and is_codes and known is None:
            # It ran and was deleted after it, or the code is older than its date: no reason not to start.
            log.info("schedule %r is not stored: %r has no due time after now", draft.name, draft.timing)
            return None
        if is_past and not is_codes and (known is None or known.timing != draft.timing):
            raise TimingError(
                f"schedule {draft.name!r} would never run: {draft.timing!r} has no due time after now",
                text=draft.timing,
                hint="give a time in the future",
            )
        if policy.checks and draft.enabled and (known is None or _is_switched_on(known, draft)):
            failures = await self._code.failed_checks(policy.checks)
            if failures and is_codes:
                # Code cannot be asked again: the schedule is there, switched off, and says why.
                listed = "; ".join(f"{check}: {reason}" for check, reason in failures.items())
                draft = replace(draft, enabled=False, off_note=f"checks failed: {listed}")
            elif failures:
                raise ChecksFailed(draft.name, failures)
        return draft

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


def _is_switched_on(known: Schedule, draft: ScheduleDraft) -> bool:
    """Whether its code said off when it was declared last, and now says on; or it has run as often as it should, and
    is to run more."""
    if draft.origin is not None and known.declared is not None and not known.declared[ENABLED].value:
        return True
    is_finished = not known.enabled and known.remaining == 0 and known.broken is None and known.off_note is None
    return is_finished and counts_anew(draft, known.timing, known.zone, known.policy)
