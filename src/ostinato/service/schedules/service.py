"""Schedules: add, get, list, page, edit, change, enable, disable, revert, trigger, backfill, remove, next, history."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Unpack

from ostinato.announcer import Announcer
from ostinato.clock import Clock, Micros, from_micros, to_micros
from ostinato.errors import Conflict, InvalidInput, NotFound, VersionConflict
from ostinato.listeners import Listeners
from ostinato.models.check_in import KeyPurpose
from ostinato.models.ids import RunId
from ostinato.models.policy import Overlap, PolicyOptions, check_choice, load_policy
from ostinato.models.run import Ending, Run, RunFilter, queued_run, stored_work
from ostinato.models.schedule import (
    Revision,
    Schedule,
    ScheduleChange,
    ScheduleDraft,
    ScheduleFilter,
    ScheduleSort,
    ScheduleState,
)
from ostinato.models.session import in_turn, with_turn
from ostinato.models.states import ACTIVE, Cause, Trigger
from ostinato.models.work import Unreadable, why_not_by_hand
from ostinato.run_log import log_schedules
from ostinato.service.audit import asked_by, audited, changed_by
from ostinato.service.calendars import CalendarService
from ostinato.service.forecast import times_from
from ostinato.service.lanes import LaneService
from ostinato.service.notifications import NotificationService
from ostinato.service.pages import check_limit
from ostinato.service.projects import ProjectService
from ostinato.service.runs import fresh
from ostinato.service.schedules.backfill import Backfill, backfill_runs, due_between
from ostinato.service.schedules.declared import declared_values, still_declared, switch_overrides
from ostinato.service.schedules.draft_checks import DraftChecks
from ostinato.service.schedules.drafts import Code, ScheduleSpec, WorkLike, check_name, first_due, make_draft
from ostinato.service.schedules.edits import edited_spec
from ostinato.service.schedules.gate import check_switching_on
from ostinato.service.schedules.history import History, days_of, first_instant
from ostinato.service.schedules.keys import ScheduleKey, make_key
from ostinato.service.schedules.listing import (
    ListedSchedule,
    ScheduleList,
    find,
    page_of,
    unknown_tasks,
    with_unknown_tasks,
)
from ostinato.service.schedules.refusals import already_active
from ostinato.service.schedules.removal import Removal
from ostinato.service.schedules.replacing import is_version, overtaken
from ostinato.service.schedules.upstreams import Relations, check_upstreams, relations_of
from ostinato.stores.base import Store
from ostinato.timing import Timing, parse_timing
from ostinato.timing.zones import Zone
from ostinato.trace_context import current_trace
from ostinato.tracing import sending

__all__ = ["ScheduleService"]

_TRIES = 5
_MOST_DAYS = 3_660


class ScheduleService:
    """What can be done with schedules. Each verb is one transaction, repeated if another wrote in between."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        zone: str,
        lanes: LaneService,
        projects: ProjectService,
        notifications: NotificationService,
        calendars: CalendarService,
        code: Code,
        removal_seconds: float,
        listeners: Listeners,
    ) -> None:
        self._listeners = listeners
        self._store = store
        self._clock = clock
        self._zone = zone
        self._lanes = lanes
        self._projects = projects
        self._calendars = calendars
        self._code = code
        self._drafts = DraftChecks(store, zone, lanes, projects, notifications, calendars, code)
        self._removal = Removal(store, clock, code, removal_seconds, Announcer(listeners))

    @audited("schedule.add")
    async def add(
        self,
        /,
        name: str,
        timing: Timing | str,
        work: WorkLike,
        *,
        tz: Zone | None = None,
        enabled: bool = True,
        note: str | None = None,
        project: str | None = None,
        owner: str = "user",
        only_new: bool = False,
        if_new: bool = False,
        replace: bool = False,
        version: int | Revision | None = None,
        **policy: Unpack[PolicyOptions],
    ) -> Schedule:
        """Add a schedule, or update the one of this name; doing it twice changes nothing.

        An existing one keeps a person's switch, and its due time when the timing did not change. One that another owner
        or person made is changed only with `replace`. `if_new`: an existing one stays as it is; `only_new`: a
        VersionConflict if it exists; `version`: only if it still has this version, or is this revision.
        """
        spec = ScheduleSpec(
            name, timing, work, tz, enabled=enabled, note=note, project=project, owner=owner, policy=policy
        )
        if only_new and version is not None:
            raise InvalidInput("give either only_new or version, not both", field="version")
        for other, is_given in (("only_new", only_new), ("version", version is not None), ("replace", replace)):
            if if_new and is_given:
                raise InvalidInput(f"give either if_new or {other}, not both", field=other)
        if if_new and await self._store.schedules.get_schedule(check_name(name)) is not None:
            return await self.get(name)
        now = self._clock.now()
        async for (draft,) in self._drafts.batches([spec], now):
            draft.replaces = replace
            if only_new or if_new:
                is_done = await self._store.schedules.insert_schedule(draft, now)
            else:
                is_done = await self._write(draft, version, now)
            if not is_done and not if_new:
                current = await self._store.schedules.get_schedule(name)
                raise overtaken(name, None if current is None else current.version, is_new=only_new)
        return await self._added(name)

    async def _added(self, name: str) -> Schedule:
        schedule = await self.get(name)
        log_schedules([schedule])
        return schedule

    async def _write(self, draft: ScheduleDraft, version: int | Revision | None, now: Micros) -> bool:
        """Add one, or update what is there; with `version`, only what still has that one."""
        if version is None:
            await self._store.schedules.put_schedules([draft], now)
            return True
        found = await self._store.schedules.get_schedule(draft.name)
        if found is None or not is_version(found, version):
            return False
        return await self._store.schedules.edit_schedule(draft, found.id, found.version, now) is not None

    async def add_many(self, specs: Iterable[ScheduleSpec], *, replace: bool = False) -> int:
        """Add many schedules, thousands in one transaction; returns how many. Those that another owner or person made
        are changed only with `replace`."""
        now = self._clock.now()
        count = 0
        writing: asyncio.Future[Any] | None = None
        try:
            async for batch in self._drafts.batches(specs, now):
                count += len(batch)
                for draft in batch:
                    if draft.origin is None:  # what code declares is the code's
                        draft.replaces = replace
                if writing is not None:
                    await writing
                # The next batch is made ready while this one is written.
                writing = asyncio.ensure_future(self._store.schedules.put_schedules(batch, now))
        finally:
            if writing is not None:
                await writing
        return count

    async def get(self, name: str) -> Schedule:
        """The schedule of this name."""
        (schedule,) = await with_unknown_tasks(self._store, [await self._stored(name)], self._clock.now())
        return schedule

    async def _stored(self, name: str, version: int | Revision | None = None) -> Schedule:
        found = await self._store.schedules.get_schedule(name)
        if found is None:
            raise NotFound(f"there is no schedule {name!r}; 'ostinato schedule ls' lists them")
        if version is not None and not is_version(found, version):
            raise overtaken(name, found.version)
        return found

    async def relations(self, name: str) -> Relations:
        """Which schedules it runs after, and which run after it."""
        return await relations_of(self._store, await self._stored(name))

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
        await self._projects.check(project)
        found = await self._store.schedules.list_schedules(
            ScheduleFilter(search=search, owner=owner, project=project, enabled=enabled, limit=limit)
        )
        return await with_unknown_tasks(self._store, found, self._clock.now())

    async def look(self, ref: str) -> ListedSchedule:
        """The schedule of this name, or else of this number, and how many of its runs are active."""
        found = await find(self._store, ref, self._clock.now())
        if found is None:
            raise NotFound(f"there is no schedule {ref!r}; 'ostinato schedule ls' lists them")
        return found

    async def page(
        self,
        *,
        search: str | None = None,
        owner: str | None = None,
        project: str | None = None,
        state: ScheduleState | str | None = None,
        sort: ScheduleSort | str = ScheduleSort.NEXT,
        descending: bool = False,
        cursor: str | None = None,
        limit: int = 50,
        recent: int = 0,
    ) -> ScheduleList:
        """A page of the schedules of this filter, with the last `recent` runs of each."""
        check_limit(limit)
        await self._projects.check(project)
        wanted = ScheduleFilter(
            search=search or None,
            owner=owner,
            project=project,
            state=None if state is None else check_choice(ScheduleState, "state", state),
            sort=check_choice(ScheduleSort, "sort", sort),
            descending=descending,
        )
        return await page_of(self._store, wanted, self._clock.now(), cursor=cursor, limit=limit, recent=recent)

    async def count(self) -> dict[ScheduleState, int]:
        """How many schedules there are, each in one state; of those that are on, how many are paused."""
        return await self._store.schedules.count_schedules(await unknown_tasks(self._store, self._clock.now()))

    async def edit(
        self,
        /,
        name: str,
        *,
        timing: Timing | str | None = None,
        work: WorkLike | None = None,
        tz: Zone | None = None,
        note: str | None = None,
        project: str | None = None,
        version: int | Revision | None = None,
        **policy: Unpack[PolicyOptions],
    ) -> Schedule:
        """Change only what is given; project "none" takes it out of its project, an empty note clears it.

        With `version`, only if it still has that one, or is that revision; without, it is done again when another
        wrote in between.
        """
        return await self._edit(
            name, timing=timing, work=work, tz=tz, note=note, project=project, version=version, **policy
        )

    @audited("schedule.edit")
    async def _edit(
        self,
        /,
        name: str,
        *,
        version: int | Revision | None = None,
        stays_off: bool = False,
        **changes: Any,
    ) -> Schedule:
        """`stays_off`: whoever changes it wants it off, so that nothing of it may switch it on."""
        for _ in range(_TRIES):
            current = await self._stored(name, version)
            spec = replace(edited_spec(current, **changes), enabled=not stays_off)
            now = self._clock.now()
            drafts = [draft async for batch in self._drafts.batches([spec], now) for draft in batch]
            written = None
            if drafts:
                written = await self._store.schedules.edit_schedule(drafts[0], current.id, current.version, now)
            if written is not None:
                # Not the version that was read then: who goes on from this one learns what came in between.
                return replace(await self.get(name), id=current.id, version=written)
        raise overtaken(name, (await self._stored(name)).version)

    async def change(
        self, /, name: str, *, enabled: bool | None = None, version: int | Revision | None = None, **changes: Any
    ) -> None:
        """What `edit` does, and then the switch. What the switch would refuse is looked at first, and then nothing is
        changed. With `version`, each is done only if nobody else changed it, before or in between."""
        following = version
        if changes:
            if enabled:
                await self._check_switch(name, **changes)
            edited = await self._edit(name, version=version, stays_off=enabled is False, **changes)
            following = None if version is None else edited.revision
        if enabled is not None:
            await (self.enable if enabled else self.disable)(name, version=following)
        elif not changes:
            await self._stored(name, version)

    async def _check_switch(self, /, name: str, **changes: Any) -> None:
        """ChecksFailed or Conflict, if `enable` would refuse it with these changes."""
        current = await self._stored(name)
        if current.enabled and current.broken is None and not current.paused:
            return
        spec = edited_spec(current, **changes)
        now = self._clock.now()
        draft = make_draft(await self._drafts.resolved(spec, now), self._zone, now, self._code)
        await check_switching_on(name, load_policy(draft.policy), draft.timing, draft.next_at, self._code)
        await check_upstreams(self._store, name, parse_timing(draft.timing, name=name).follows)

    @audited("schedule.enable")
    async def enable(self, name: str, *, version: int | Revision | None = None) -> Schedule:
        """Switch it on, clear what broke it and end a pause; its checks must pass."""

        async def change(schedule: Schedule, now: Micros) -> ScheduleChange | None:
            if schedule.orphaned:
                raise Conflict(f"schedule {name!r} is orphaned: declare it in the code again, or remove it")
            if schedule.enabled and schedule.broken is None and not schedule.paused:
                return None
            timing = parse_timing(schedule.stored_timing, tz=schedule.zone, name=name, stored=True)
            due = first_due(timing, now)
            await check_switching_on(name, schedule.policy, schedule.timing, due, self._code)
            await check_upstreams(self._store, name, timing.follows)
            overrides = switch_overrides(schedule, changed_by(), now, enabled=True)
            return ScheduleChange(True, None, now, due, schedule.policy.remaining, overrides)

        return await self._change(name, change, version)

    @audited("schedule.disable")
    async def disable(
        self,
        name: str,
        *,
        note: str | None = None,
        keep_retries: bool = False,
        version: int | Revision | None = None,
    ) -> Schedule:
        """Switch it off; the note says why until it is switched on again, and its own stays. What runs goes on; what
        waits for another attempt is cancelled, unless `keep_retries`.

        What broke it is cleared: it is off because somebody wants it off. Its incident keeps the reason.
        """

        async def change(schedule: Schedule, now: Micros) -> ScheduleChange | None:
            is_finished = schedule.remaining == 0 and schedule.off_by is None
            is_off = not schedule.enabled and schedule.broken is None and not is_finished
            if is_off and (note is None or schedule.off_note == note):
                return None
            anchor = to_micros(schedule.anchor_at)
            by, why, left = changed_by(), note or schedule.off_note, schedule.remaining
            overrides = switch_overrides(schedule, by, now, enabled=False)
            return ScheduleChange(False, why, anchor, None, left, overrides, not keep_retries, by, now)

        return await self._change(name, change, version)

    async def revert(
        self, name: str, fields: Sequence[str] | None = None, *, version: int | Revision | None = None
    ) -> Schedule:
        """Give it back what its code says: of these fields, or of all that people changed. See `Schedule.changes`."""
        if fields is None:
            fields = sorted((await self._stored(name, version)).overrides)
        return await self._revert(name, fields, version=version)

    @audited("schedule.revert")
    async def _revert(self, name: str, fields: Sequence[str], *, version: int | Revision | None = None) -> Schedule:
        schedule = await self._stored(name, version)
        changes = declared_values(schedule, fields)
        if changes:
            await self.change(name, version=version, **changes)
        return await self.get(name)

    async def _change(
        self,
        name: str,
        change: Callable[[Schedule, Micros], Awaitable[ScheduleChange | None]],
        version: int | Revision | None,
    ) -> Schedule:
        for _ in range(_TRIES):
            schedule = await self._stored(name, version)
            now = self._clock.now()
            wanted = await change(schedule, now)
            if wanted is None:
                return schedule
            if await self._store.schedules.change_schedule(schedule.id, schedule.version, wanted, now):
                if schedule.broken is not None and wanted.enabled:
                    self._listeners.recovered(schedule.id, name, now)
                return await self.get(name)
        raise VersionConflict(f"schedule {name!r} keeps being changed by others: try again")

    @audited("schedule.trigger", answers="run")
    async def trigger(self, name: str, *, force: bool = False, version: int | Revision | None = None) -> Run:
        """Run it now, by hand. Refused while a run is active, unless its overlap policy allows it or it is forced."""
        schedule = await self._stored(name, version)
        if (why_not := why_not_by_hand(schedule.work)) is not None:
            raise Conflict(f"schedule {name!r} cannot be triggered: {why_not}")
        assert not isinstance(schedule.work, Unreadable)
        overlap = Overlap.ALLOW if force else schedule.policy.overlap
        now = self._clock.now()
        if overlap is Overlap.CANCEL_RUNNING:
            await self._cancel_active(schedule, now)
        allowed = {Overlap.SKIP: 0, Overlap.QUEUE_ONE: 1}.get(overlap)
        policy = await self._lanes.settle(schedule.policy)
        if force:
            policy = replace(policy, overlap=Overlap.ALLOW)  # a claim looks at it, too
        turn = with_turn(policy, schedule.work, schedule.project)
        stored = stored_work(schedule.work, policy)
        run = queued_run(stored, policy, Trigger.MANUAL, now, schedule_id=schedule.id, project=schedule.project)
        if turn.session is not None or overlap in (Overlap.QUEUE_ONE, Overlap.QUEUE_ALL, Overlap.CANCEL_RUNNING):
            run = in_turn(run, name, turn)
        with sending("trigger", name):
            run.trace, run.started_by = current_trace(), asked_by()
            id = await self._store.runs.trigger_run(run, allowed)
        if id is None:
            raise already_active(schedule, await self._store.runs.list_given_up())
        made = await self._store.runs.get_run(id)
        if made is None:
            raise NotFound(f"schedule {name!r} was removed in the meantime")
        return fresh(made)

    async def _cancel_active(self, schedule: Schedule, now: Micros) -> None:
        active = await self._store.runs.list_runs(RunFilter(schedule_id=schedule.id, states=tuple(ACTIVE), limit=1_000))
        ending = Ending(Cause.OVERLAP, "replaced by a manual run (overlap is cancel_running)")
        await self._store.runs.cancel_runs([run.id for run in active], ending, now, asked_by())

    @audited("schedule.backfill", about=lambda given, _: None if given.get("dry_run") else given.pop("name"))
    async def backfill(
        self,
        name: str,
        start: datetime,
        until: datetime,
        *,
        all: bool = False,
        dry_run: bool = False,
        version: int | Revision | None = None,
    ) -> Backfill:
        """Run the due times from `start` to `until` by hand, oldest first, 1,000 at most.

        Those that have a succeeded or active run are left out, unless `all`. They go one after the other, unless its
        overlap policy is allow. With `dry_run` nothing is queued.
        """
        schedule = await self._stored(name, version)
        if (why_not := why_not_by_hand(schedule.work)) is not None:
            raise Conflict(f"schedule {name!r} cannot be backfilled: {why_not}")
        now = self._clock.now()
        due = await due_between(schedule, start, until, from_micros(now))
        answered: set[Micros] = set()
        if due and not all:
            answered = await self._store.runs.answered_due(schedule.id, due[0], due[-1])
        wanted = [one for one in due if one not in answered]
        times = [from_micros(one) for one in wanted]
        if dry_run or not wanted:
            return Backfill(times, (), len(due) - len(wanted))
        policy = await self._lanes.settle(schedule.policy)
        with sending("backfill", name, len(wanted)):
            runs = backfill_runs(schedule, policy, wanted, now)
            return Backfill(times, await self._store.runs.queue_runs(runs, now), len(due) - len(wanted))

    @audited("schedule.ping_key")
    async def ping_key(self, name: str, *, new: bool = False) -> ScheduleKey:
        """Make the key of its ping address, at which its machine checks in; a Conflict if it has one, unless `new`."""
        return await make_key(self._store, await self._stored(name), KeyPurpose.PING, self._clock.now(), new=new)

    @audited("schedule.badge_key")
    async def badge_key(self, name: str, *, new: bool = False) -> ScheduleKey:
        """Make the key of its badge, which can only be looked at; a Conflict if it has one, unless `new`."""
        return await make_key(self._store, await self._stored(name), KeyPurpose.BADGE, self._clock.now(), new=new)

    async def history(self, name: str, days: int = 182) -> History:
        """How its runs of the last days ended, by the day of their due time in its zone."""
        if not 1 <= days <= _MOST_DAYS:
            raise InvalidInput(f"days cannot be {days}", field="days", hint=f"give 1 to {_MOST_DAYS}")
        schedule = await self._stored(name)
        since = first_instant(self._clock.now(), days, schedule.zone)
        return History(
            schedule.zone, days_of(await self._store.schedules.schedule_history(schedule.id, since), schedule.zone)
        )

    @audited("schedule.remove")
    async def remove(self, name: str, *, version: int | Revision | None = None, force: bool = False) -> Sequence[RunId]:
        """Delete it with its runs, attempts and output; with `version`, only if it still has that one.

        Running work is told to stop, and this waits for it: a Conflict if it does not end, and nothing is removed,
        unless forced. So is one that code declares, which comes back when that code starts the next time. Returns the
        runs whose work is still running.
        """
        schedule = await self._stored(name, version)
        if schedule.is_declared and not force:
            raise still_declared(schedule)
        going_on = await self._removal.remove(schedule, is_expected=version is not None, force=force)
        if going_on is None:
            raise overtaken(name, (await self._stored(name)).version)
        return going_on

    async def next(self, name: str, n: int = 5) -> Sequence[datetime]:
        """The next due times, as the engine computes them; empty when it is off, broken or finished."""
        check_limit(n, "n")
        schedule = await self._stored(name)
        if schedule.next_run_at is None:
            return []
        remaining = n if schedule.remaining is None else schedule.remaining
        # In a thread: what people write may take long to look for, and an engine is on this loop.
        return await asyncio.to_thread(times_from, schedule, schedule.next_run_at, min(n, remaining))
