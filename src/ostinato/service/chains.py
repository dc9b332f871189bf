"""Chains: steps that run one after the other and side by side, enqueued and cancelled as a whole.

A step is a run like every other. What it waits for, and what becomes of it then, is in stores/sql/chains.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ostinato.clock import Clock
from ostinato.durations import Duration
from ostinato.errors import Conflict, InvalidInput
from ostinato.listeners import Listeners
from ostinato.models.chain import as_steps
from ostinato.models.ids import RunId, RunIds
from ostinato.models.run import Ending, NewRun, Run, RunFilter
from ostinato.models.states import ACTIVE, Cause
from ostinato.models.work_values import GivenCall
from ostinato.service.audit import asked_by, audited, changed_by
from ostinato.service.busy_keys import when_key_is_free
from ostinato.service.cancelled import tell_cancelled
from ostinato.service.runs import EnqueueSpec, RunService
from ostinato.stores.base import Store
from ostinato.tracing import sending

__all__ = ["ChainCall", "ChainService"]

_MOST_LINKS = 100_000
"""Two groups of a few hundred, each step of the one after each of the other."""


class ChainCall(NamedTuple):
    """One step: a call of a task, and the places of the steps that it runs after, which come before it."""

    spec: EnqueueSpec
    call: GivenCall
    after: Sequence[int] = ()


class ChainService:
    """What can be done with a chain as a whole."""

    def __init__(
        self, store: Store, clock: Clock, runs: RunService, listeners: Listeners, key_free_seconds: float
    ) -> None:
        self._store = store
        self._clock = clock
        self._runs = runs
        self._listeners = listeners
        self._key_free_seconds = key_free_seconds

    @audited("run.enqueue", about=lambda given, _: given["calls"][0].spec.task, answers="runs")
    async def enqueue(self, calls: Sequence[ChainCall]) -> RunIds:
        """All steps in one transaction. A step whose key is active already is that run."""
        _check(calls)
        with sending("enqueue", calls[0].spec.task, len(calls)):
            steps = as_steps(await self._drafts(calls), [one.after for one in calls], self._clock.now())
            return await when_key_is_free(
                lambda: self._store.runs.insert_chain(steps, self._clock.now()), self._key_free_seconds
            )

    async def _drafts(self, calls: Sequence[ChainCall]) -> list[NewRun]:
        """The run of each call, as if it were enqueued alone; calls that are enqueued alike are drafted together, but
        for those with a key, which is of one run."""
        places: dict[tuple[int, int | None], list[int]] = {}
        for place, one in enumerate(calls):
            places.setdefault((id(one.spec), None if one.spec.key is None else place), []).append(place)
        drafts: dict[int, NewRun] = {}
        for alike in places.values():
            runs = await self._runs.draft_calls(calls[alike[0]].spec, [calls[place].call for place in alike])
            drafts.update(zip(alike, runs, strict=True))
        return [drafts[place] for place in range(len(calls))]

    async def get(self, ids: Sequence[RunId]) -> Sequence[Run]:
        """The runs of its steps, as they are now; without those that retention has removed."""
        found = await self._store.runs.list_runs(RunFilter(ids=ids, limit=len(ids)))
        runs = {run.id: run for run in found}
        return [runs[id] for id in ids if id in runs]

    async def wait(
        self, ids: Sequence[RunId], *, last: Sequence[RunId] | None = None, timeout: Duration | None = None
    ) -> Sequence[Run]:
        """Wait until all steps have ended, or these last ones; the runs as they are then. It raises as `runs.wait`."""
        wanted = set(ids if last is None else last)
        of_steps = RunFilter(ids=ids, states=tuple(ACTIVE), limit=len(ids), brief=True)

        async def look() -> Run | None:
            active = {run.id: run for run in await self._store.runs.list_runs(of_steps)}
            # The first in order: a run that waits here lends its slot to what can start.
            return next(active[id] for id in ids if id in active) if wanted & active.keys() else None

        await self._runs.wait_while(look, timeout)
        return await self.get(ids)

    @audited("run.cancel", about=lambda given, _: given["ids"][0])
    async def cancel(self, ids: Sequence[RunId], *, reason: str | None = None) -> Sequence[Run]:
        """End all steps that have not ended, in one transaction, or ask their nodes to; a Conflict if there is none."""
        ending = Ending(Cause.CANCELLED, reason or f"cancelled by {changed_by()}")
        now = self._clock.now()
        cancelled = await self._store.runs.cancel_runs(ids, ending, now, asked_by())
        runs = await self.get(ids)
        if not cancelled.ended and all(run.ended for run in runs):
            raise Conflict(f"all steps of the chain from run {ids[0]} on have ended already")
        for run in runs:
            if run.id in cancelled.ended:
                tell_cancelled(run, self._listeners, now)
        return runs


def _check(calls: Sequence[ChainCall]) -> None:
    for one in calls:
        if one.after and one.spec.at is not None:
            raise InvalidInput(
                f"a step of {one.spec.task!r} that runs after others cannot have a time",
                field="at",
                hint="give it a delay, which counts from the end of those, or give the time to the first step",
            )
    if sum(len(one.after) for one in calls) > _MOST_LINKS:
        raise InvalidInput(
            "too many steps wait for too many others", field="steps", hint="put one step between two large groups"
        )
