"""PostgreSQL alone: commits whose answer is lost with their connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from ostinato.clock import from_micros
from ostinato.errors import OutcomeUnknown, StoreUnavailable
from ostinato.models.access import Actor, AuditFilter, NewLogin, Role
from ostinato.models.budget import MICRO, Budget, Grant, Reservation, Spending
from ostinato.models.ids import NodeId
from ostinato.models.project import Conversation
from ostinato.models.run import INTERRUPTED, RunFilter
from ostinato.models.states import RunState
from ostinato.stores.postgres.query import Connection
from ostinato.stores.postgres.store import PostgresStore
from ostinato.stores.postgres.writer import Writer, _Job, _Uncertain
from tests.stores.builders import (
    HOUR,
    MINUTE,
    NOW,
    claim,
    claim_one,
    finish,
    ids,
    new_run,
    put,
    retry,
    said,
)
from tests.stores.mailbox import events, send_all
from tests.stores.places import raw


@pytest.fixture
def store(postgres_store: PostgresStore) -> PostgresStore:
    return postgres_store


def uncertain_once(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Let the next transaction commit, and its answer be lost; others do something before it is sent again."""
    transact = Writer._transact
    done = False

    async def commit_and_break(self: Writer, connection: Connection, group: list[_Job]) -> None:
        nonlocal done
        await transact(self, connection, group)
        if not done:
            done = True
            meanwhile()
            raise _Uncertain(psycopg.OperationalError("the line went dead"))

    monkeypatch.setattr(Writer, "_transact", commit_and_break)


async def test_a_claim_whose_commit_is_unknown_is_taken_back_and_made_again(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    inserted = await store.runs.insert_runs([new_run(), new_run()])
    uncertain_once(monkeypatch)
    claimed = (await store.runs.claim_runs(claim())).runs
    assert ids(claimed) == inserted
    assert {(run.attempt, run.token) for run in claimed} == {(1, 2)}
    assert list((await store.runs.finish_runs([finish(run) for run in claimed])).lost) == []


async def test_what_was_cancelled_while_its_claim_was_unknown_ends_and_is_not_claimed_again(
    store: PostgresStore, admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await put(store, after_finish=HOUR)
    stopped, kept = await store.runs.insert_runs([new_run(schedule_id=id), new_run(key="kept")])
    uncertain_once(
        monkeypatch,
        lambda: admin.execute("UPDATE ostinato.runs SET cancel = 'enough' WHERE id = %s", (stopped,)),
    )
    claimed = (await store.runs.claim_runs(claim(now=NOW + MINUTE))).runs
    assert [(run.id, run.attempt, run.token) for run in claimed] == [(kept, 1, 2)]
    shown = await store.runs.get_run(stopped)
    assert shown is not None
    assert (shown.state, shown.reason, shown.attempt, shown.node) == (RunState.CANCELLED, "enough", 0, None)
    assert shown.finished_at == from_micros(NOW + MINUTE)
    schedule = await store.schedules.get_schedule("report")
    assert schedule is not None
    assert schedule.next_run_at == from_micros(NOW + MINUTE + HOUR)


async def test_what_was_interrupted_while_its_claim_was_unknown_gives_its_turn_to_the_newer(
    store: PostgresStore, admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = await send_all(store, "old", "new")
    uncertain_once(
        monkeypatch, lambda: admin.execute("UPDATE ostinato.runs SET cancel = %s WHERE id = %s", (INTERRUPTED, old))
    )
    assert ids((await store.runs.claim_runs(claim())).runs) == [new]
    shown = await store.runs.get_run(old)
    assert shown is not None
    assert (shown.state, shown.reason) == (RunState.SUPERSEDED, INTERRUPTED)
    told = [(event.kind, event.run) for event in await events(store)]
    assert told == [("enqueued", old), ("enqueued", new), ("finished", old), ("started", new)]


async def test_an_end_whose_commit_is_unknown_is_not_taken_for_lost(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.runs.insert_runs([new_run(), new_run(key="next")])
    run = await claim_one(store, room=1)
    uncertain_once(monkeypatch)
    done = await store.runs.finish_runs([finish(run)], claim(now=NOW + 1))
    assert list(done.lost) == []
    assert [(run.key, run.attempt) for run in done.claimed.runs] == [("next", 1)]


@pytest.mark.parametrize("kind", ["end", "retry"])
async def test_what_an_attempt_leaves_behind_is_written_once_though_its_commit_is_unknown(
    store: PostgresStore, admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    id = await put(store)
    await store.runs.insert_runs([new_run(schedule_id=id)])
    run = await claim_one(store)
    budget = Budget(per_run_usd=1, per_day_usd=5)
    await store.projects.reserve(Reservation(run.id, run.token, id, budget, NOW))
    left: dict[str, Any] = {
        "cost": MICRO // 4,
        "conversation": Conversation("k", "ours"),
        "output": said("one\n", "two\n"),
    }
    uncertain_once(monkeypatch, lambda: admin.execute("UPDATE ostinato.conversations SET id = 'newer' WHERE key = 'k'"))
    await store.runs.finish_runs([finish(run, **left) if kind == "end" else retry(run, **left)])
    assert await store.projects.read_spending(id, NOW) == Spending(runs=1, spent=MICRO // 4)
    assert list(await store.runs.read_output(run.id)) == [*said("one\n", "two\n")]
    assert await raw(store, "SELECT id FROM conversations") == [("newer",)]


async def test_an_entry_of_the_audit_log_whose_commit_is_unknown_does_not_stand_there_twice(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    uncertain_once(monkeypatch)
    with pytest.raises(OutcomeUnknown, match="look whether the change is there"):
        await store.access.note_audit(Actor("ada", "cli"), "schedule.enable", "report", "{}", NOW)
    assert len(await store.access.list_audit(AuditFilter())) == 1


async def test_a_login_whose_commit_is_unknown_is_made_once_and_answered(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.access.put_code(NewLogin("code", "ada", Role.ADMIN, NOW + HOUR), NOW)
    uncertain_once(monkeypatch)
    made = await store.access.exchange_code("code", "cookie", "key", NOW + HOUR, NOW)
    assert made is not None
    assert made.who == "ada"
    monkeypatch.undo()
    uncertain_once(monkeypatch)
    assert await store.access.put_login(NewLogin("second", "ada", Role.ADMIN, NOW + HOUR), NOW)
    assert len(await store.access.list_logins(NOW, 0)) == 2


async def test_what_cannot_be_repeated_after_an_unknown_commit_stays_unknown(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any) -> Connection:
        raise StoreUnavailable("the server stays away")

    with monkeypatch.context() as patched:
        uncertain_once(patched, lambda: patched.setattr(Writer, "_connected", away))
        with pytest.raises(OutcomeUnknown):
            await store.runs.insert_runs([new_run(key="once")])
    assert len(await store.runs.list_runs(RunFilter())) == 1


async def test_a_reservation_whose_commit_is_unknown_is_made_once(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await put(store)
    await store.runs.insert_runs([new_run(schedule_id=id)])
    run = await claim_one(store)
    uncertain_once(monkeypatch)
    budget = Budget(per_run_usd=1, per_day_usd=1, per_day_runs=1)
    assert await store.projects.reserve(Reservation(run.id, run.token, id, budget, NOW)) == Grant(MICRO)
    assert await store.projects.read_spending(id, NOW) == Spending(runs=1, reserved=MICRO)


async def test_a_start_whose_commit_is_unknown_is_not_repeated_in_silence(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    uncertain_once(monkeypatch)
    with pytest.raises(StoreUnavailable, match="look whether"):
        await store.runs.start_run(new_run(), NodeId("node-9"), NOW)
    assert len(await store.runs.list_runs(RunFilter())) == 1


async def test_an_insert_whose_commit_is_unknown_is_not_repeated_in_silence(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    uncertain_once(monkeypatch)
    with pytest.raises(StoreUnavailable, match="look whether"):
        await store.runs.insert_runs([new_run()])
    assert len(await store.runs.list_runs(RunFilter())) == 1
    await store.runs.insert_runs([new_run(key="k")])
    assert len(await store.runs.list_runs(RunFilter())) == 2


async def test_an_insert_with_a_key_is_simply_repeated(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    uncertain_once(monkeypatch)
    (id,) = await store.runs.insert_runs([new_run(key="k")])
    assert [run.id for run in await store.runs.list_runs(RunFilter())] == [id]
