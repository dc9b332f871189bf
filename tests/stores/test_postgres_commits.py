"""PostgreSQL alone: commits whose answer is lost with their connection."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from ostinato.clock import from_micros
from ostinato.errors import OutcomeUnknown
from ostinato.models.access import Actor, AuditFilter, NewLogin, Role
from ostinato.models.budget import MICRO, Budget, Grant, Reservation, Spending
from ostinato.models.ids import NodeId
from ostinato.models.project import Conversation
from ostinato.models.run import INTERRUPTED, Ending, RunFilter
from ostinato.models.states import Cause, RunState
from ostinato.stores.postgres.store import PostgresStore
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    change,
    claim,
    claim_one,
    finish,
    ids,
    new_run,
    put,
    retry,
    said,
)
from ostinato.testing.store_suite.mailbox import call, events, message, send_all
from tests.lost_answers import lose_answer
from tests.stores.places import raw


@pytest.fixture
def store(postgres_store: PostgresStore) -> PostgresStore:
    return postgres_store


async def test_a_claim_whose_commit_is_unknown_is_taken_back_and_made_again(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    inserted = await store.runs.insert_runs([new_run(), new_run()])
    lose_answer(monkeypatch)
    claimed = (await store.runs.claim_runs(claim())).runs
    assert ids(claimed) == inserted
    assert {(run.attempt, run.token) for run in claimed} == {(1, 2)}
    assert list((await store.runs.finish_runs([finish(run) for run in claimed])).lost) == []


async def test_what_was_cancelled_while_its_claim_was_unknown_ends_and_is_not_claimed_again(
    store: PostgresStore, admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await put(store, after_finish=HOUR)
    stopped, kept = await store.runs.insert_runs([new_run(schedule_id=id), new_run(key="kept")])
    lose_answer(
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
    lose_answer(
        monkeypatch,
        lambda: admin.execute("UPDATE ostinato.runs SET cause = %s, cancel = %s WHERE id = %s", (*INTERRUPTED, old)),
    )
    assert ids((await store.runs.claim_runs(claim())).runs) == [new]
    shown = await store.runs.get_run(old)
    assert shown is not None
    assert (shown.state, shown.cause, shown.reason) == (RunState.SUPERSEDED, *INTERRUPTED)
    told = [(event.kind, event.run) for event in await events(store)]
    assert told == [("enqueued", old), ("enqueued", new), ("finished", old), ("started", new)]


async def test_an_end_whose_commit_is_unknown_is_not_taken_for_lost(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.runs.insert_runs([new_run(), new_run(key="next")])
    run = await claim_one(store, room=1)
    lose_answer(monkeypatch)
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
    lose_answer(monkeypatch, lambda: admin.execute("UPDATE ostinato.conversations SET id = 'newer' WHERE key = 'k'"))
    await store.runs.finish_runs([finish(run, **left) if kind == "end" else retry(run, **left)])
    assert await store.projects.read_spending(id, NOW) == Spending(runs=1, spent=MICRO // 4)
    assert list(await store.runs.read_output(run.id)) == [*said("one\n", "two\n")]
    assert await raw(store, "SELECT id FROM conversations") == [("newer",)]


async def test_an_entry_of_the_audit_log_whose_commit_is_unknown_does_not_stand_there_twice(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_answer(monkeypatch)
    await store.access.note_audit(Actor("ada", "cli"), "schedule.enable", "report", "{}", NOW)
    assert len(await store.access.list_audit(AuditFilter())) == 1


async def test_a_login_whose_commit_is_unknown_is_made_once_and_answered(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.access.put_code(NewLogin("code", "ada", Role.ADMIN, NOW + HOUR), NOW)
    lose_answer(monkeypatch)
    made = await store.access.exchange_code("code", "cookie", "key", NOW + HOUR, NOW)
    assert made is not None
    assert made.who == "ada"
    monkeypatch.undo()
    lose_answer(monkeypatch)
    assert await store.access.put_login(NewLogin("second", "ada", Role.ADMIN, NOW + HOUR), NOW)
    assert len(await store.access.list_logins(NOW, 0)) == 2


async def test_a_commit_of_which_nobody_can_be_asked_stays_unknown(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        lose_answer(patched, stays_away=True)
        with pytest.raises(OutcomeUnknown, match="check whether the change was made"):
            await store.runs.insert_runs([new_run(key="once")])
    assert len(await store.runs.list_runs(RunFilter())) == 1


async def test_a_reservation_whose_commit_is_unknown_is_made_once(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await put(store)
    await store.runs.insert_runs([new_run(schedule_id=id)])
    run = await claim_one(store)
    lose_answer(monkeypatch)
    budget = Budget(per_run_usd=1, per_day_usd=1, per_day_runs=1)
    assert await store.projects.reserve(Reservation(run.id, run.token, id, budget, NOW)) == Grant(MICRO)
    assert await store.projects.read_spending(id, NOW) == Spending(runs=1, reserved=MICRO)


def end_all(admin: psycopg.Connection[Any]) -> None:
    """What was enqueued runs and ends before its enqueue is sent again, so that no active row has its key."""
    admin.execute("UPDATE ostinato.runs SET state = 'succeeded', finished_at = 1, token = 1, attempt = 1")


@pytest.mark.parametrize("key", ["k", None])
async def test_an_enqueue_whose_commit_is_unknown_is_made_once_though_its_run_has_ended_meanwhile(
    store: PostgresStore, admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    lose_answer(monkeypatch, lambda: end_all(admin))
    (id,) = await store.runs.insert_runs([new_run(key=key)])
    assert [run.id for run in await store.runs.list_runs(RunFilter())] == [id]


async def test_enqueues_of_one_group_whose_commit_is_unknown_get_each_its_own_ids(
    store: PostgresStore, admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_answer(monkeypatch, lambda: end_all(admin))
    answers = await asyncio.gather(
        store.runs.insert_runs([new_run(priority=1), new_run(priority=2)]),
        store.runs.insert_runs([new_run(priority=3, key="k")]),
        store.sessions.send([call("a"), call("b"), message("c")], NOW),
        store.runs.insert_runs([new_run(priority=4)]),
    )
    rows = await raw(store, "SELECT id, priority, session FROM runs ORDER BY id")
    priorities = {id: priority for id, priority, session in rows if session is None}
    assert len(rows) == 7
    assert [[priorities[id] for id in answers[place]] for place in (0, 1, 3)] == [[1, 2], [3], [4]]
    assert [sent.id for sent in answers[2]] == [id for id, _, session in rows if session is not None]


async def test_what_was_not_committed_is_done_again(
    store: PostgresStore, admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line broke before the server had the commit."""
    lose_answer(monkeypatch, lambda: admin.execute("DELETE FROM ostinato.commits; DELETE FROM ostinato.runs"))
    (id,) = await store.runs.insert_runs([new_run()])
    assert [run.id for run in await store.runs.list_runs(RunFilter())] == [id]


@pytest.mark.parametrize("kind", ["queue", "trigger", "repeat", "start"])
async def test_whatever_makes_a_run_makes_it_once_though_its_commit_is_unknown(
    store: PostgresStore, admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    schedule = await put(store)
    (old,) = await store.runs.insert_runs([new_run()])
    lose_answer(monkeypatch, lambda: end_all(admin))
    match kind:
        case "queue":
            (new,) = await store.runs.queue_runs([new_run()], NOW)
        case "trigger":
            triggered = await store.runs.trigger_run(new_run(schedule_id=schedule), 0)
            assert triggered is not None
            new = triggered
        case "repeat":
            repeated = await store.runs.repeat_run(old, NOW)
            assert repeated is not None
            new = repeated
        case _:
            new = (await store.runs.start_run(new_run(), NodeId("node-9"), NOW)).id
    assert sorted(run.id for run in await store.runs.list_runs(RunFilter())) == [old, new]


async def test_another_try_whose_commit_is_unknown_is_not_taken_for_lost(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.runs.insert_runs([new_run(), new_run(key="next")])
    run = await claim_one(store, room=1)
    lose_answer(monkeypatch)
    done = await store.runs.finish_runs([retry(run)], claim(now=NOW + 1))
    assert list(done.lost) == []
    assert [(one.key, one.attempt) for one in done.claimed.runs] == [("next", 1)]
    assert await raw(store, "SELECT count(*) FROM attempts") == [(1,)]


async def test_a_switch_whose_commit_is_unknown_is_not_taken_for_a_conflict(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await put(store)
    lose_answer(monkeypatch)
    assert await store.schedules.change_schedule(id, 1, change(enabled=False, next_at=None), NOW)
    monkeypatch.undo()
    lose_answer(monkeypatch)
    assert await store.schedules.remove_schedule(id, NOW)


async def test_a_cancel_whose_commit_is_unknown_says_what_it_ended(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await store.runs.insert_runs([new_run()])
    lose_answer(monkeypatch)
    assert list((await store.runs.cancel_runs(ids, Ending(Cause.CANCELLED, "enough"), NOW)).ended) == ids


@pytest.mark.parametrize("meanwhile", ["queued", "claimed", "cancelled"])
async def test_a_try_that_was_written_and_is_written_again_later_is_not_taken_for_lost(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """The server stays away, so that nobody can be asked; whoever keeps the finish sends it again when it is back."""
    id = await put(store)
    await store.runs.insert_runs([new_run(schedule_id=id)])
    run = await claim_one(store)
    await store.projects.reserve(Reservation(run.id, run.token, id, Budget(per_run_usd=1, per_day_usd=5), NOW))
    again = retry(run, cost=MICRO // 4, output=said("one\n"))
    with monkeypatch.context() as patched:
        lose_answer(patched, stays_away=True)
        with pytest.raises(OutcomeUnknown):
            await store.runs.finish_runs([again])
    if meanwhile == "claimed":
        await claim_one(store, now=NOW + HOUR)
    elif meanwhile == "cancelled":
        await store.runs.cancel_runs([run.id], Ending(Cause.CANCELLED, "enough"), NOW)
    assert list((await store.runs.finish_runs([again])).lost) == []
    shown = await store.runs.get_run(run.id)
    assert shown is not None
    assert shown.state == {"queued": "queued", "claimed": "running", "cancelled": "cancelled"}[meanwhile]
    assert len(shown.attempts) == (2 if meanwhile == "claimed" else 1)
    assert list(await store.runs.read_output(run.id)) == [*said("one\n")]
    assert (await store.projects.read_spending(id, NOW)).spent == MICRO // 4


async def test_a_try_that_another_has_rescued_is_lost(store: PostgresStore) -> None:
    await store.runs.insert_runs([new_run()])
    run = await claim_one(store)
    assert list((await store.runs.finish_runs([retry(run, finished_at=NOW + 7, ready_at=NOW + 8)])).lost) == []
    assert list((await store.runs.finish_runs([retry(run)])).lost) == [run.id]
