"""The ledger: runs put in, reported, cancelled and read. How they are claimed and finished is in each store's runs.py.

Whoever puts runs into a session, or ends some of one, names it to the writer, which locks it first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any, Generic, TypeVar

from ostinato.clock import Micros
from ostinato.models.chain import ChainStep
from ostinato.models.ids import NodeId, RunId, RunIds
from ostinato.models.run import ClaimedRun, Ending, NewRun, OuterRun, Report, Run
from ostinato.models.states import Cause
from ostinato.stores.base import Bound, Cancelled, Claimed, Stale
from ostinato.stores.rows import CLAIM_COLUMNS, load_claimed
from ostinato.stores.sql import changes, given_up, output, overview, run_relations, slots, tasks, timeline
from ostinato.stores.sql.arrivals import let_in
from ostinato.stores.sql.bound import LOST, queue_bound, start_bound
from ostinato.stores.sql.cancels import cancel_now
from ostinato.stores.sql.chains import any_overdue, insert_chain, link_ended, settle_parked
from ostinato.stores.sql.connection import Connection, Database, Dialect, reading
from ostinato.stores.sql.ends import wait_for_finish
from ostinato.stores.sql.first_active import first_active
from ostinato.stores.sql.given_up import COUNT_GIVEN_UP, forget_given_up
from ostinato.stores.sql.parts import Parts

__all__ = ["Runs"]

C = TypeVar("C", bound=Connection)

_CLAIM = f"SELECT {CLAIM_COLUMNS} FROM runs r LEFT JOIN schedules s ON s.id = r.schedule_id"
_START = """
UPDATE runs SET state = 'running', token = 1, attempt = 1, node = :node, started_at = :now WHERE id = :id
"""
# In a user session it waits its turn again.
_REPEAT = """
INSERT INTO runs (schedule_id, kind, task, work, policy, lane, priority, state, trigger, due_at, ready_at, project,
                  session, mode, waiting, retry_of, trace, started_by)
SELECT schedule_id, kind, task, work, policy, lane, priority, 'queued', 'manual', :now::bigint, :now::bigint, project,
       t.turn, CASE WHEN t.turn IS NOT NULL THEN 'queue' END, t.turn IS NOT NULL, id, :trace::text,
       :by::text
FROM runs, (
    SELECT CASE WHEN mode IS NOT NULL THEN session ELSE :turn::text END AS turn FROM runs WHERE id = :id
) t
WHERE id = :id RETURNING id, session, schedule_id
"""
_REPORT = """
UPDATE runs AS r SET progress = coalesce(f.progress, r.progress), totals = coalesce(f.totals, r.totals)
FROM unnest(:ids::bigint[], :tokens::bigint[], :progress::text[], :totals::text[])
     f (run_id, run_token, progress, totals)
WHERE r.id = f.run_id AND r.token = f.run_token AND r.state || '' = 'running' RETURNING id, token
"""
_LOCK_SCHEDULE = "SELECT id FROM schedules WHERE id = :id FOR NO KEY UPDATE"
_COUNT_ACTIVE = "SELECT count(*) FROM runs WHERE schedule_id = :id AND state IN ('queued', 'running')"
_SESSIONS = "SELECT DISTINCT session FROM runs WHERE id = ANY (:ids::bigint[]) AND session IS NOT NULL"
_STALE = f"""
{_CLAIM} LEFT JOIN nodes n ON n.id = r.node
WHERE r.state = 'running' AND (n.id IS NULL OR n.lost_at IS NOT NULL) AND r.kind <> 'check_in'
"""
_TASKS: dict[Dialect, str] = {
    "sqlite": "json_each(n.tasks) t",
    "postgres": "json_array_elements_text(n.tasks::json) t (value)",
}
_UNCLAIMABLE = f"""
{_CLAIM}
WHERE r.state = 'queued' AND r.waiting = FALSE AND r.ready_at < :ready_before AND r.task IS NOT NULL
  AND r.node IS NULL AND r.task NOT IN (SELECT t.value FROM nodes n, {{}} WHERE n.lost_at IS NULL)
LIMIT 1000
"""
_EXPLAIN = """
UPDATE runs SET cause = :cause, reason = :reason
WHERE id = ANY (:ids::bigint[]) AND state = 'queued' AND reason IS DISTINCT FROM :reason
"""
# What is aside queues up like a run whose time comes later.
_ASIDE = """
UPDATE runs SET waiting = TRUE, later = TRUE, burst = FALSE, ready_at = :back_at, cause = :cause, reason = :reason
WHERE session = ANY (:sessions::text[]) AND task = :task AND state = 'queued' AND mode IS NOT NULL AND node IS NULL
  AND NOT later AND ready_at < :ready_before RETURNING id
"""
_BACK = """
UPDATE runs SET ready_at = :now, cause = NULL, reason = NULL
WHERE state = 'queued' AND waiting = TRUE AND later = TRUE AND cause = :cause
  AND task IN (SELECT t.value FROM nodes n, {} WHERE n.lost_at IS NULL) RETURNING id
"""


class Runs(ABC, Generic[C]):
    """Answers stores.base.RunStore, but for claims and finishes."""

    def __init__(self, database: Database[C], parts: Parts[C]) -> None:
        self._database = database
        self._parts = parts

    @abstractmethod
    async def _declare_lost(self, silent: Sequence[tuple[NodeId, Micros]], now: Micros) -> list[NodeId]:
        """Declare nodes lost that gave no sign of life since the given one; answers which."""

    async def queue_runs(self, runs: Sequence[NewRun], now: Micros) -> list[RunId]:
        async def queue(db: C) -> list[RunId]:
            ids = await self._parts.insert_all(db, runs)
            for session in sorted(mailboxes):
                mine = [id for id, run in zip(ids, runs, strict=True) if run.session == session]
                await let_in(db, self._parts, session, mine, now)
            await self._parts.give_turns(db, sessions - mailboxes)
            return ids

        sessions = {run.session for run in runs if run.session is not None}
        mailboxes = {run.session for run in runs if run.session is not None and run.mode is not None}
        return await self._database.write(queue, wakes=True, sessions=sessions)

    async def insert_chain(self, steps: Sequence[ChainStep], now: Micros) -> RunIds:
        sessions = {step.run.session for step in steps if step.run.session is not None}
        return await self._database.write(
            lambda db: insert_chain(db, self._parts, steps, now), wakes=True, sessions=sessions
        )

    async def settle_parked(self, now: Micros) -> int:
        if not await self._database.read(any_overdue):
            return 0  # asked all the time: a look takes no lock
        return await self._database.write(lambda db: settle_parked(db, self._parts, now))

    async def trigger_run(self, run: NewRun, allowed: int | None) -> RunId | None:
        async def trigger(db: C) -> RunId | None:
            if allowed is not None:
                # Locked first: who fires or triggers it at the same time is seen by the count, or sees ours.
                schedule = {"id": run.schedule_id}
                await db.run(_LOCK_SCHEDULE, schedule)
                active = await db.fetch_value(_COUNT_ACTIVE, schedule) + await db.fetch_value(COUNT_GIVEN_UP, schedule)
                if active > allowed:
                    return None
            (id,) = await self._parts.insert_all(db, [run])
            await wait_for_finish(db, run.schedule_id, run.ready_at)
            if run.session is not None and run.mode is not None:
                await let_in(db, self._parts, run.session, [id], run.ready_at)
            else:
                await self._parts.give_turns(db, sessions)
            return id

        sessions = () if run.session is None else (run.session,)
        return await self._database.write(trigger, wakes=True, sessions=sessions)

    async def start_run(self, run: NewRun, node: NodeId, now: Micros) -> ClaimedRun:
        async def start(db: C) -> ClaimedRun:
            id = await self._parts.insert_new(db, run)
            await link_ended(db, id, run.after)
            await db.run(_START, {"id": id, "node": node, "now": now})
            (row,) = await db.fetch(f"{_CLAIM} WHERE r.id = :id", {"id": id})
            return load_claimed(row)

        return await self._database.write(start)

    async def queue_bound(
        self, run: NewRun, node: NodeId, now: Micros, *, wait: bool = True, is_full: bool = False
    ) -> Bound:
        assert run.session is not None
        return await self._database.write(
            lambda db: queue_bound(db, self._parts, run, node, now, wait=wait, is_full=is_full), sessions=[run.session]
        )

    async def start_bound(self, id: RunId, node: NodeId, now: Micros, *, is_full: bool | None = None) -> Claimed:
        sessions = await self._sessions_of([id])
        return await self._database.write(
            lambda db: start_bound(db, self._parts, id, node, now, sessions, is_full),
            wakes=is_full is False,
            once=False,
            sessions=sessions,
        )

    async def repeat_run(
        self,
        id: RunId,
        now: Micros,
        turn: str | None = None,
        trace: str | None = None,
        by: str | None = None,
    ) -> RunId | None:
        async def repeat(db: C) -> RunId | None:
            rows = await db.fetch(_REPEAT, {"id": id, "now": now, "turn": turn, "trace": trace, "by": by})
            if not rows:
                return None
            new, session, schedule_id = rows[0]
            await wait_for_finish(db, schedule_id, now)
            if session is not None:
                await let_in(db, self._parts, session, [RunId(new)], now)
            return RunId(new)

        sessions = await self._sessions_of([id])
        return await self._database.write(repeat, wakes=True, sessions=sessions if turn is None else {*sessions, turn})

    async def forget_given_up(self, ended: Sequence[tuple[RunId, int]]) -> None:
        await self._database.write(lambda db: forget_given_up(db, ended), wakes=True, once=False)

    async def report_runs(self, reports: Sequence[Report]) -> None:
        # The last word of each run counts: one statement updates a row once.
        last: dict[tuple[int, int], tuple[str | None, str | None]] = {}
        for one in reports:
            progress, totals = last.get((one.id, one.token), (None, None))
            last[one.id, one.token] = (one.progress or progress, one.totals or totals)
        if not last:
            return
        values = {
            "ids": [id for id, _ in last],
            "tokens": [token for _, token in last],
            "progress": [progress for progress, _ in last.values()],
            "totals": [totals for _, totals in last.values()],
        }

        async def report(db: C) -> None:
            held = set(await db.fetch(_REPORT, values))
            said = [(one.id, one.token, one.output) for one in reports if (one.id, one.token) in held]
            await self._parts.add_output(db, said)

        await self._database.write(report, once=False)

    async def cancel_runs(self, ids: Sequence[RunId], ending: Ending, now: Micros, by: str | None = None) -> Cancelled:
        return await self._database.write(
            lambda db: cancel_now(db, self._parts, ids, ending, now, by),
            wakes=True,
            sessions=await self._sessions_of(ids),
        )

    async def _sessions_of(self, ids: Sequence[RunId]) -> list[str]:
        """Looked up beforehand, for the writer to lock them in its order."""
        rows = await self._database.read(lambda db: db.fetch(_SESSIONS, {"ids": ids}))
        return [session for (session,) in rows]

    async def stale_runs(self, silent: Sequence[tuple[NodeId, Micros]], now: Micros) -> Stale:
        lost = await self._declare_lost(silent, now) if silent else []
        rows = await self._database.read(lambda db: db.fetch(_STALE))
        bound = await self._database.read(lambda db: db.fetch(LOST))
        return Stale([load_claimed(row) for row in rows], lost, [RunId(id) for (id,) in bound])

    async def unclaimable_runs(self, ready_before: Micros) -> list[ClaimedRun]:
        def query(db: C) -> Any:
            return db.fetch(_UNCLAIMABLE.format(_TASKS[db.dialect]), {"ready_before": ready_before})

        return [load_claimed(row) for row in await self._database.read(query)]

    async def explain_queued(self, ids: Sequence[RunId], cause: Cause, reason: str) -> None:
        values = {"ids": ids, "cause": cause, "reason": reason}
        await self._database.write(lambda db: db.run(_EXPLAIN, values), once=False)

    async def step_aside(
        self, sessions: Collection[str], task: str, ready_before: Micros, back_at: Micros, reason: str
    ) -> int:
        of = {"sessions": sorted(sessions), "task": task, "ready_before": ready_before}
        as_it_is = {"back_at": back_at, "cause": Cause.UNKNOWN_TASK, "reason": reason}

        async def aside(db: C) -> int:
            rows = await db.fetch(_ASIDE, {**of, **as_it_is})
            await self._parts.give_turns(db, sessions)
            return len(rows)

        return await self._database.write(aside, wakes=True, sessions=sessions)

    async def step_back(self, now: Micros) -> int:
        async def back(db: C) -> int:
            of = {"now": now, "cause": Cause.UNKNOWN_TASK}
            return len(await db.fetch(_BACK.format(_TASKS[db.dialect]), of))

        return await self._database.write(back, wakes=True)

    async def lend_slot(self, outer: OuterRun, to: RunId) -> str | None:
        return await self._database.write(lambda db: slots.lend_slot(db, outer, to), wakes=True)

    async def take_back_slot(self, outer: OuterRun, to: RunId) -> None:
        await self._database.write(lambda db: slots.take_back_slot(db, outer, to))

    async def get_run(self, id: RunId) -> Run | None:
        found = await self._database.read(lambda db: overview.find_runs(db, "WHERE r.id = :id", {"id": id}, 1))
        return found[0] if found else None

    list_runs = reading(overview.list_runs)
    runs_between = reading(timeline.runs_between)
    count_runs_between = reading(timeline.count_runs_between)
    count_runs = reading(overview.count_runs)
    count_active = reading(overview.count_active)
    late_runs = reading(overview.late_runs)
    running_tasks = reading(tasks.running_tasks)
    first_active = reading(first_active)
    tally_ended = reading(overview.tally_ended)
    answered_due = reading(overview.answered_due)
    changes_since = reading(changes.changes_since)
    upstreams_of = reading(run_relations.upstreams_of)
    related_runs = reading(run_relations.related_runs)
    read_output = reading(output.read_output)
    output_mark = reading(output.output_mark)
    list_given_up = reading(given_up.list_given_up)
