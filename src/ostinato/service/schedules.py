"""Schedules: add, get, list, edit, enable, disable, trigger, remove, next."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from ostinato.clock import Clock, Micros, to_micros
from ostinato.errors import AlreadyActive, ChecksFailed, Conflict, InvalidInput, NotFound, TimingError, VersionConflict
from ostinato.models.policy import Overlap, load_policy, make_policy, policy_json, policy_text
from ostinato.models.run import NewRun, Run, RunFilter
from ostinato.models.schedule import Schedule, ScheduleChange, ScheduleDraft, ScheduleFilter
from ostinato.models.session import in_turn, with_turn
from ostinato.models.states import ACTIVE, Trigger
from ostinato.models.work import Function, Unreadable, default_timeout, work_text
from ostinato.service.drafts import Code, ScheduleSpec, WorkLike, first_due, make_draft
from ostinato.service.lanes import LaneService
from ostinato.service.projects import ProjectService
from ostinato.service.runs import fresh
from ostinato.stores.base import Store
from ostinato.timing import Timing, parse_timing

__all__ = ["ScheduleService"]

log = logging.getLogger("ostinato")

_TRIES = 5
_BATCH = 500
_BREATH = 50


class ScheduleService:
    """What can be done with schedules. Each verb is one transaction, repeated if another wrote in between."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        zone: str,
        lanes: LaneService,
        projects: ProjectService,
        code: Code,
    ) -> None:
        self._store = store
        self._clock = clock
        self._zone = zone
        self._lanes = lanes
        self._projects = projects
        self._code = code

    async def add(
        self,
        /,
        name: str,
        timing: Timing | str,
        work: WorkLike,
        *,
        tz: str | None = None,
        enabled: bool = True,
        note: str | None = None,
        project: str | None = None,
        owner: str = "user",
        **policy: Any,
    ) -> Schedule:
        """Make the schedule of this name be so; doing it twice changes nothing.

        An existing one keeps a person's switch, and its due time when the timing did not change.
        """
        spec = ScheduleSpec(
            name, timing, work, tz, enabled=enabled, note=note, project=project, owner=owner, policy=policy
        )
        await self.add_many([spec])
        return await self.get(name)

    async def add_many(self, specs: Iterable[ScheduleSpec]) -> int:
        """Add many schedules, thousands in one transaction; answers how many."""
        now = self._clock.now()
        count = 0
        writing: asyncio.Future[Any] | None = None
        try:
            async for batch in self._batches(specs, now):
                count += len(batch)
                if writing is not None:
                    await writing
                # The next batch is made ready while this one is written.
                writing = asyncio.ensure_future(self._store.schedules.put_schedules(batch, now))
        finally:
            if writing is not None:
                await writing
        return count

    async def _batches(self, specs: Iterable[ScheduleSpec], now: Micros) -> AsyncIterator[list[ScheduleDraft]]:
        """Checked drafts, many at a time."""
        batch: list[ScheduleDraft] = []
        projects: set[str] = set()
        for index, spec in enumerate(specs, 1):
            drafted = make_draft(spec, self._zone, now, self._code)
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
        """Put the draft into a lane that exists; a new one must have a due time, and pass its checks.

        None when there is nothing to store: a schedule of the code whose only time has passed.
        """
        policy = load_policy(draft.policy)
        if not self._lanes.knows(policy.lane):
            settled = await self._lanes.settle(policy)
            if settled is not policy:
                draft = replace(draft, policy=policy_text(settled))
        if draft.next_at is not None and not policy.checks:
            return draft
        known = await self._store.schedules.get_schedule(draft.name)
        if draft.next_at is None and known is None and spec.owner == "code":
            # It ran and was deleted after it, or the code is older than its date: no reason not to start.
            log.info("schedule %r is not stored: %r has no due time after now", draft.name, draft.timing)
            return None
        if draft.next_at is None and (known is None or known.timing != draft.timing):
            raise TimingError(
                f"schedule {draft.name!r} would never run: {draft.timing!r} has no due time after now",
                text=draft.timing,
                hint="give a time in the future",
            )
        if policy.checks and draft.enabled and known is None:
            failures = await self._code.failed_checks(policy.checks)
            if failures and spec.owner == "code":
                # Code cannot be asked again: the schedule is there, switched off, and says why.
                listed = "; ".join(f"{check}: {reason}" for check, reason in failures.items())
                draft = replace(draft, enabled=False, note=f"checks failed: {listed}")
            elif failures:
                raise ChecksFailed(draft.name, failures)
        return draft

    async def get(self, name: str) -> Schedule:
        """The schedule of this name."""
        (schedule,) = await self._with_unknown_tasks([await self._stored(name)])
        return schedule

    async def _stored(self, name: str) -> Schedule:
        found = await self._store.schedules.get_schedule(name)
        if found is None:
            raise NotFound(f"there is no schedule {name!r}; 'ostinato schedule ls' lists them")
        return found

    async def _with_unknown_tasks(self, schedules: Sequence[Schedule]) -> Sequence[Schedule]:
        """Schedules whose task no running node knows are shown as broken. It is not stored: a node may come."""
        nodes = [node for node in await self._store.nodes.list_nodes(self._clock.now()) if node.state != "lost"]
        known = {task for node in nodes for task in node.tasks}
        if not nodes:
            return schedules
        return [
            replace(schedule, broken=f"task {schedule.work.task!r} is not registered on any running node")
            if schedule.broken is None and isinstance(schedule.work, Function) and schedule.work.task not in known
            else schedule
            for schedule in schedules
        ]

    async def list(
        self,
        *,
        search: str | None = None,
        owner: str | None = None,
        project: str | None = None,
        enabled: bool | None = None,
        limit: int | None = None,
    ) -> Sequence[Schedule]:
        """Schedules, the soonest first."""
        if project is not None:
            await self._projects.get(project)
        found = await self._store.schedules.list_schedules(
            ScheduleFilter(search=search, owner=owner, project=project, enabled=enabled, limit=limit)
        )
        return await self._with_unknown_tasks(found)

    async def edit(
        self,
        /,
        name: str,
        *,
        timing: Timing | str | None = None,
        work: WorkLike | None = None,
        tz: str | None = None,
        note: str | None = None,
        project: str | None = None,
        **policy: Any,
    ) -> Schedule:
        """Change only what is given; project "none" takes it out of its project."""
        current = await self._stored(name)
        if work is None and isinstance(current.work, Unreadable):
            raise Conflict(f"the work of schedule {name!r} cannot be read ({current.work.reason}): give it a new one")
        spec = ScheduleSpec(
            name,
            timing if timing is not None else current.timing,
            work if work is not None else current.work,  # type: ignore[arg-type]  # Unreadable was refused above
            tz or current.zone,
            note=note,
            project=project or current.project,
            owner=current.owner,
            policy=_edited_policy(policy, current, work),
        )
        await self.add_many([spec])
        return await self.get(name)

    async def enable(self, name: str) -> Schedule:
        """Switch it on, clear what broke it and end a pause; its checks must pass."""

        async def change(schedule: Schedule, now: Micros) -> ScheduleChange | None:
            if schedule.orphaned:
                raise Conflict(f"schedule {name!r} is orphaned: declare it in the code again, or remove it")
            if schedule.enabled and schedule.broken is None and not schedule.paused:
                return None
            failures = await self._code.failed_checks(schedule.policy.checks)
            if failures:
                raise ChecksFailed(name, failures)
            timing = parse_timing(schedule.timing, tz=schedule.zone)
            due = first_due(timing, now)
            if due is None:
                raise Conflict(f"schedule {name!r} is finished: {schedule.timing!r} has no further due time; edit it")
            return ScheduleChange(True, None, None, now, due, schedule.policy.remaining)

        return await self._change(name, change)

    async def disable(self, name: str, *, note: str | None = None) -> Schedule:
        """Switch it off, with a note that says why. What runs goes on."""

        async def change(schedule: Schedule, _: Micros) -> ScheduleChange | None:
            if not schedule.enabled and (note is None or schedule.note == note):
                return None
            anchor = to_micros(schedule.anchor_at)
            return ScheduleChange(False, schedule.broken, note or schedule.note, anchor, None, schedule.remaining)

        return await self._change(name, change)

    async def _change(
        self, name: str, change: Callable[[Schedule, Micros], Awaitable[ScheduleChange | None]]
    ) -> Schedule:
        for _ in range(_TRIES):
            schedule = await self._stored(name)
            now = self._clock.now()
            wanted = await change(schedule, now)
            if wanted is None:
                return schedule
            if await self._store.schedules.change_schedule(schedule.id, schedule.version, wanted, now):
                return await self.get(name)
        raise VersionConflict(f"schedule {name!r} keeps being changed by others: try again")

    async def trigger(self, name: str, *, force: bool = False) -> Run:
        """Run it now, by hand. Refused while a run is active, unless its overlap policy allows it or it is forced."""
        schedule = await self._stored(name)
        if isinstance(schedule.work, Unreadable):
            raise Conflict(f"schedule {name!r} cannot be triggered: {schedule.work.reason}")
        overlap = Overlap.ALLOW if force else schedule.policy.overlap
        now = self._clock.now()
        if overlap is Overlap.CANCEL_RUNNING:
            await self._cancel_active(schedule, now)
        allowed = {Overlap.SKIP: 0, Overlap.QUEUE_ONE: 1}.get(overlap)
        policy = await self._lanes.settle(schedule.policy)
        turn = with_turn(policy, schedule.work, schedule.project)
        run = NewRun(
            kind=schedule.work.kind,
            task=schedule.work.task,
            work=work_text(schedule.work),
            policy=policy_text(policy),
            trigger=Trigger.MANUAL,
            due_at=now,
            ready_at=now,
            lane=policy.lane,
            schedule_id=schedule.id,
            priority=policy.priority,
            project=schedule.project,
        )
        if turn.session is not None or overlap in (Overlap.QUEUE_ONE, Overlap.QUEUE_ALL, Overlap.CANCEL_RUNNING):
            run = in_turn(run, name, turn)
        id = await self._store.runs.trigger_run(run, allowed)
        if id is None:
            raise AlreadyActive(
                f"schedule {name!r} has an active run and its overlap policy is {schedule.policy.overlap}: "
                "wait for it, cancel it, or force another one"
            )
        made = await self._store.runs.get_run(id)
        if made is None:
            raise NotFound(f"schedule {name!r} was removed meanwhile")
        return fresh(made)

    async def _cancel_active(self, schedule: Schedule, now: Micros) -> None:
        active = await self._store.runs.list_runs(RunFilter(schedule_id=schedule.id, states=tuple(ACTIVE), limit=1_000))
        reason = "replaced by a manual run (overlap is cancel_running)"
        await self._store.runs.cancel_runs([run.id for run in active], reason, now)

    async def remove(self, name: str) -> None:
        """Delete it with its runs, attempts and output."""
        schedule = await self._stored(name)
        await self._store.schedules.remove_schedule(schedule.id)

    async def next(self, name: str, n: int = 5) -> Sequence[datetime]:
        """The next due times, as the engine computes them; empty when it is off, broken or finished."""
        if n < 1:
            raise InvalidInput(f"n cannot be {n}", field="n", hint="give 1 or more")
        schedule = await self._stored(name)
        if schedule.next_run_at is None:
            return []
        timing = parse_timing(schedule.timing, tz=schedule.zone).anchored(schedule.anchor_at)
        times = [schedule.next_run_at]
        while len(times) < n and timing.after_finish is None:
            following = timing.next_after(times[-1])
            if following is None:
                break
            times.append(following)
        return times


def _edited_policy(given: Mapping[str, Any], current: Schedule, work: WorkLike | None) -> dict[str, Any]:
    """The policy with what was given; work of another kind comes with that kind's timeout."""
    policy = policy_json(make_policy(given, current.policy))
    kind = getattr(work, "kind", Function.kind)
    if work is not None and kind != current.work.kind and "timeout" not in given:
        policy["timeout"] = default_timeout(kind)
    return policy
