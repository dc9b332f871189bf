"""Check-ins: a ping finds its schedule by the hash of its key, and starts or ends the run that waits for it.

Whoever pings locks the schedule first, so that of two pings at once the second sees what the first did. Neighbours:
models/check_in.py decides, finishes.py and ends.py write the ends.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Generic, TypeVar

from ostinato.clock import Micros
from ostinato.errors import InvalidInput, NotLoadable
from ostinato.logs import get_logger
from ostinato.models.check_in import (
    AwaitedRun,
    CheckInSchedule,
    KeyPurpose,
    Ping,
    PingSignal,
    ended,
    finish_of,
    unasked_run,
)
from ostinato.models.ids import ScheduleId
from ostinato.models.policy import load_policy
from ostinato.models.run import Finish
from ostinato.models.states import RunState, Trigger
from ostinato.models.work import CheckIn
from ostinato.stores.check_ins import CheckedIn, LateCheckIns
from ostinato.stores.runs import Told
from ostinato.stores.schedules import Late
from ostinato.stores.sql.connection import Connection, Database
from ostinato.stores.sql.ends import end_queued
from ostinato.stores.sql.finishes import finish_all
from ostinato.stores.sql.parts import Parts
from ostinato.stores.sql.telling import tell

__all__ = ["CheckIns"]

_ANSWERED = """
SELECT 1 FROM runs WHERE schedule_id = :id AND due_at = :due_at AND trigger IN ('schedule', 'catch_up')
"""
log = get_logger("ostinato.stores")

C = TypeVar("C", bound=Connection)

_KIND = f"'{CheckIn.kind}'"
# What is to stay is replaced by nothing but itself: the same hash is the same call, whose commit got no answer.
_PUT_KEY = """
INSERT INTO schedule_keys AS k (hash, schedule_id, purpose, created_at)
SELECT :hash, id, :purpose, :now::bigint FROM schedules WHERE id = :id
ON CONFLICT (schedule_id, purpose) DO UPDATE SET hash = excluded.hash, created_at = excluded.created_at
WHERE :replace::boolean OR k.hash = excluded.hash RETURNING hash
"""
_OWNER = "SELECT schedule_id FROM schedule_keys WHERE hash = :hash AND purpose = :purpose"
_NAME = """
SELECT s.name FROM schedule_keys k JOIN schedules s ON s.id = k.schedule_id
WHERE k.hash = :hash AND k.purpose = :purpose
"""
_LOCK = "SELECT id, name, kind, work, policy, project, next_at FROM schedules WHERE id = :id FOR NO KEY UPDATE"
_AWAITED = f"""
SELECT r.id, r.token, r.state, r.attempt, r.due_at, CASE WHEN r.state = 'running' THEN r.started_at END, r.work,
       r.policy, r.project, r.schedule_id, s.name, s.zone
FROM schedules s JOIN runs r ON r.schedule_id = s.id
WHERE r.kind = {_KIND} AND r.state IN ('queued', 'running')
"""
# What has started goes first; of what waits, the oldest.
_OF_SCHEDULE = f"{_AWAITED} AND s.id = :id ORDER BY CASE WHEN r.state = 'running' THEN 0 ELSE 1 END, r.due_at, r.id"
_ALL = f"{_AWAITED} AND s.kind = {_KIND} ORDER BY r.id"
_START = """
UPDATE runs SET state = 'running', token = token + 1, attempt = attempt + 1, started_at = :now, waiting = FALSE
WHERE id = :id RETURNING token, attempt
"""
_LOCK_LATE = "SELECT id FROM schedules WHERE id = ANY (:ids::bigint[]) ORDER BY id FOR NO KEY UPDATE"


class CheckIns(Generic[C]):
    """Answers stores.check_ins.CheckInStore."""

    def __init__(self, database: Database[C], parts: Parts[C]) -> None:
        self._database = database
        self._parts = parts

    async def put_key(
        self, schedule_id: ScheduleId, purpose: KeyPurpose, hash: str, now: Micros, *, replace: bool
    ) -> bool:
        values = {"hash": hash, "id": schedule_id, "purpose": purpose, "now": now, "replace": replace}
        return bool(await self._database.write(lambda db: db.fetch(_PUT_KEY, values), once=False))

    async def schedule_of_key(self, hash: str, purpose: KeyPurpose) -> str | None:
        values = {"hash": hash, "purpose": purpose}
        rows = await self._database.read(lambda db: db.fetch(_NAME, values))
        return rows[0][0] if rows else None

    async def check_in(self, hash: str, ping: Ping, now: Micros) -> CheckedIn | None:
        # Looked up by a reader, so that a guess costs no write.
        values = {"hash": hash, "purpose": KeyPurpose.PING}
        owner = await self._database.read(lambda db: db.fetch(_OWNER, values))
        if not owner:
            return None
        return await self._database.write(lambda db: self._check_in(db, owner[0][0], ping, now), wakes=True)

    async def end_late(self, now: Micros) -> LateCheckIns:
        awaited = await self._database.read(lambda db: _awaited(db, _ALL))
        if not any(run.deadline <= now for run in awaited):
            return LateCheckIns(Late(), min((run.deadline for run in awaited), default=None))
        late = await self._database.write(lambda db: self._end_late(db, now))
        return LateCheckIns(late, min((run.deadline for run in awaited if run.deadline > now), default=None))

    async def _check_in(self, db: C, id: ScheduleId, ping: Ping, now: Micros) -> CheckedIn | None:
        rows = await db.fetch(_LOCK, {"id": id})
        if not rows or rows[0][2] != CheckIn.kind:
            return None
        schedule = CheckInSchedule(*rows[0])
        run = await self._started(db, schedule, ping, now)
        if ping.signal is PingSignal.START:
            return CheckedIn(schedule.name, run.id)
        finish = finish_of(run, ping, now)
        written = await finish_all(db, self._parts, [finish])
        return CheckedIn(schedule.name, run.id, finish, written.told)

    async def _started(self, db: C, schedule: CheckInSchedule, ping: Ping, now: Micros) -> AwaitedRun:
        """The run that the ping is for, under way. A start begins again what has started."""
        awaited = await _awaited(db, _OF_SCHEDULE, schedule.id)
        if not awaited:
            run = unasked_run(schedule, now)
            if run.trigger is Trigger.SCHEDULE and await db.fetch(_ANSWERED, {"id": schedule.id, "due_at": run.due_at}):
                run = unasked_run(schedule._replace(next_at=None), now)  # that due time has its row already
            await self._parts.insert_new(db, run)
            awaited = await _awaited(db, _OF_SCHEDULE, schedule.id)
        first = awaited[0]
        if first.state is RunState.RUNNING and ping.signal is not PingSignal.START:
            return first
        (begun,) = await db.fetch(_START, {"id": first.id, "now": now})
        return first._replace(token=begun[0], attempt=begun[1], state=RunState.RUNNING, started_at=now)

    async def _end_late(self, db: C, now: Micros) -> Late:
        late = [run for run in await _awaited(db, _ALL) if run.deadline <= now]
        await db.run(_LOCK_LATE, {"ids": sorted({run.schedule_id for run in late})})
        # Once more, now that nobody can check in: who did meanwhile is not late.
        late = [run for run in await _awaited(db, _ALL) if run.deadline <= now]
        waiting = [run for run in late if run.state is RunState.QUEUED]
        for run in waiting:
            await end_queued(db, self._parts, [run.id], run.ending, now)
        notices = [run.notice(now) for run in waiting]
        told = await tell(db, notices, now)
        begun = [_timed_out(run, now) for run in late if run.state is RunState.RUNNING]
        if begun:
            failed = (await finish_all(db, self._parts, begun)).told
            told = Told([*told.incidents, *failed.incidents], told.owed or failed.owed)
        return Late(notices, told, begun)


async def _awaited(db: Connection, statement: str, id: ScheduleId | None = None) -> list[AwaitedRun]:
    rows = await db.fetch(statement, {} if id is None else {"id": id})
    return [run for row in rows if _is_readable(run := AwaitedRun(*row)._replace(state=RunState(row[2])))]


def _is_readable(run: AwaitedRun) -> bool:
    """Whether it is known until when it is awaited; what is not is in nobody's way."""
    try:
        return run.deadline is not None
    except (NotLoadable, InvalidInput) as error:
        log.warning("run %s of %r cannot be awaited: %s", run.id, run.schedule, error)
        return False


def _timed_out(run: AwaitedRun, now: Micros) -> Finish:
    return replace(ended(run, RunState.FAILED, load_policy(run.policy), now), **run.ending._asdict())
