"""Values that the tests of stores put in: each with everything in place, so that a test names only what it is about."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from ostinato.clock import SECOND, Micros
from ostinato.models.ids import NodeId, RunId, ScheduleId
from ostinato.models.node import NodeBeat
from ostinato.models.output import OutputPart
from ostinato.models.run import ClaimedRun, Finish, NewRun, Run, RunFilter
from ostinato.models.schedule import FirePlan, ScheduleChange, ScheduleDraft, ScheduleFilter
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.stores.base import Claim, Store

__all__ = [
    "HOUR",
    "MINUTE",
    "NOW",
    "all_runs",
    "beat",
    "change",
    "claim",
    "claim_one",
    "draft",
    "finish",
    "ids",
    "new_run",
    "part",
    "plan",
    "printed",
    "put",
    "put_many",
    "retry",
    "said",
    "scheduled_run",
]

NOW: Micros = 1_800_000_000 * SECOND
MINUTE: Micros = 60 * SECOND
HOUR: Micros = 60 * MINUTE
NODE = NodeId("node-1")
_numbers = itertools.count(1)

_DRAFT = ScheduleDraft(
    name="report",
    timing="every 5m",
    zone="UTC",
    work='{"kind":"function","task":"report","args":[],"kwargs":{}}',
    kind="function",
    task="report",
    policy="{}",
    project=None,
    owner="user",
    origin=None,
    enabled=True,
    note=None,
    anchor_at=NOW,
    next_at=NOW + 5 * MINUTE,
    after_finish=None,
    remaining=None,
)
_RUN = NewRun(
    kind="function",
    task="report",
    work='{"kind":"function","task":"report","args":[1],"kwargs":{}}',
    policy="{}",
    trigger=Trigger.API,
    due_at=NOW,
    ready_at=NOW,
    lane="main",
)


def draft(name: str = "report", **fields: Any) -> ScheduleDraft:
    return replace(_DRAFT, name=name, **fields)


async def put(store: Store, name: str = "report", **fields: Any) -> ScheduleId:
    """Add a schedule; answers its id."""
    (id,) = await put_many(store, [draft(name, **fields)])
    return id


async def put_many(store: Store, drafts: Sequence[ScheduleDraft], now: Micros = NOW) -> list[ScheduleId]:
    """Add schedules in one call; answers their ids in the order of the drafts."""
    await store.schedules.put_schedules(drafts, now)
    listed = await store.schedules.list_schedules(ScheduleFilter(names=tuple(draft.name for draft in drafts)))
    ids = {schedule.name: schedule.id for schedule in listed}
    return [ids[draft.name] for draft in drafts]


def new_run(**fields: Any) -> NewRun:
    return replace(_RUN, **fields)


def scheduled_run(schedule_id: ScheduleId, due_at: Micros = NOW + 5 * MINUTE, **fields: Any) -> NewRun:
    given = {"trigger": Trigger.SCHEDULE, "ready_at": due_at, "lane": "cron", **fields}
    return replace(_RUN, schedule_id=schedule_id, due_at=due_at, **given)


def plan(schedule_id: ScheduleId, **fields: Any) -> FirePlan:
    """The fire of a schedule as `draft` makes it: one run, and on to the next due time."""
    read: Micros = fields.get("read_next_at", NOW + 5 * MINUTE)
    given = {
        "read_next_at": read,
        "version": 1,
        "runs": (scheduled_run(schedule_id, read),),
        "next_at": read + 5 * MINUTE,
        **fields,
    }
    return FirePlan(schedule_id, **given)


def change(**fields: Any) -> ScheduleChange:
    given = {"enabled": True, "off_note": None, "anchor_at": NOW, "next_at": NOW, "remaining": None}
    return ScheduleChange(**{**given, **fields})


def claim(
    *, now: Micros = NOW, room: int = 10, tasks: Sequence[str] = ("report",), node: str = NODE, horizon: Micros = 0
) -> Claim:
    return Claim(NodeId(node), now, horizon or now, room, tasks, msgspec.json.encode(tasks).decode())


async def claim_one(store: Store, **fields: Any) -> ClaimedRun:
    """Claim exactly one run."""
    (run,) = (await store.runs.claim_runs(claim(**fields))).runs
    return run


_CAUSES = {
    RunState.FAILED: Cause.RAISED,
    RunState.CANCELLED: Cause.CANCELLED,
    RunState.SUPERSEDED: Cause.INTERRUPTED,
    RunState.SKIPPED: Cause.GATE,
}


def finish(run: ClaimedRun, state: RunState = RunState.SUCCEEDED, **fields: Any) -> Finish:
    given = {
        "started_at": NOW + SECOND,
        "finished_at": NOW + 2 * SECOND,
        "schedule_id": run.schedule_id,
        "session": run.session,
        "cause": _CAUSES.get(state),
        **fields,
    }
    return Finish(run.id, run.token, state, **given)


def retry(run: ClaimedRun, **fields: Any) -> Finish:
    """Back to the queue after a failed attempt."""
    given = {"ready_at": NOW + MINUTE, "attempt_state": "failed", "error": "boom", **fields}
    return finish(run, RunState.QUEUED, **given)


def beat(node: str = NODE, now: Micros = NOW, tasks: tuple[str, ...] = ("report",), **fields: Any) -> NodeBeat:
    given = NodeBeat(
        id=NodeId(node),
        host="here",
        pid=1,
        slots=10,
        running=0,
        draining=False,
        tasks=tasks,
        started_at=NOW,
        now=now,
        lease_until=now + 15 * SECOND,
        services="{}",
    )
    return replace(given, **fields)


def ids(runs: Sequence[ClaimedRun]) -> list[RunId]:
    """The ids of claimed runs, in their order."""
    return [run.id for run in runs]


async def all_runs(store: Store, **wanted: Any) -> list[Run]:
    """Every run of a filter, the oldest first."""
    return (await store.runs.list_runs(RunFilter(**wanted, limit=1000)))[::-1]


def said(*texts: str) -> tuple[OutputPart, ...]:
    """Output as these parts, with numbers that follow those of every call before."""
    return tuple(map(part, texts))


def part(text: str, cut_lines: int = 0, cut: int = 0) -> OutputPart:
    """A part of a run's output, with the next number."""
    return OutputPart(text, cut_lines, cut, number=next(_numbers))


async def printed(store: Store, id: RunId) -> str:
    """The texts of a run's output, joined as they are."""
    return "".join(part.text for part in await store.runs.read_output(id))
