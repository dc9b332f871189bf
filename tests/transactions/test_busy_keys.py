"""A key that somebody's open transaction has: who wants it waits for its end, and nobody else does."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from ostinato import KeyBusy, Ostinato, RunState
from ostinato.tasks import Task
from ostinato.tuning import Tuning

PATIENT = Tuning(key_free_seconds=60)
IMPATIENT = Tuning(key_free_seconds=0)


@pytest.fixture
def url(postgres_url: str) -> str:
    return postgres_url


@pytest.fixture(params=[PATIENT])
def tuning(request: pytest.FixtureRequest) -> Tuning:
    given: Tuning = request.param
    return given


@pytest.mark.parametrize("session", [None, "chat"])
@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_who_wants_the_same_key_waits_for_the_end_of_the_transaction_and_others_do_not(
    app: Ostinato, greet: Task[..., Any], postgres_url: str, session: str | None, ends: str
) -> None:
    app.start()
    with psycopg.connect(postgres_url) as connection, ThreadPoolExecutor(1) as thread:
        taken = greet.using(connection=connection, key="k", delay="1h").enqueue("first")
        second: Future[Any] = thread.submit(greet.using(key="k", session=session, delay="1h").enqueue, "second")
        for name in ("one", "two", "three"):
            assert greet.using(key=name).enqueue(name).wait(timeout="30s").state is RunState.SUCCEEDED
        assert not second.done()
        getattr(connection, ends)()
        is_first = second.result(timeout=60).id == taken.id
    assert is_first is (ends == "commit")


@pytest.mark.parametrize("tuning", [IMPATIENT], indirect=True)
def test_a_transaction_that_stays_open_too_long_is_named(
    app: Ostinato, greet: Task[..., Any], postgres_url: str
) -> None:
    with psycopg.connect(postgres_url) as connection:
        greet.using(connection=connection, key="k").enqueue("first")
        with pytest.raises(KeyBusy, match=r"still open has enqueued with the key 'k'; commit it, or try later"):
            greet.using(key="k").enqueue("second")
        assert greet.using(key="other").enqueue("third").id is not None, "the writer goes on"
        connection.commit()
    assert greet.using(key="k").enqueue("second").get().state is RunState.QUEUED


def test_a_row_of_an_outbox_with_such_a_key_is_tried_again_and_holds_up_no_other(
    app: Ostinato, greet: Task[..., Any], postgres_url: str, tmp_path: Path
) -> None:
    shop = create_engine(f"sqlite:///{tmp_path}/shop.db", poolclass=NullPool)
    outbox = app.outbox(shop)
    outbox.create()
    with shop.begin() as other:
        greet.using(connection=other, key="k").enqueue("second")
        beside = greet.using(connection=other).enqueue("beside")
    rows = outbox.list()
    with psycopg.connect(postgres_url) as connection:
        taken = greet.using(connection=connection, key="k").enqueue("first")
        (refusal,) = app._host.run(lambda container: container.services.transactions.take(rows)).refused
        assert "still open has enqueued with the key 'k'" in refusal.error
        assert beside.get().state is RunState.QUEUED
        connection.commit()
    done = app._host.run(lambda container: container.services.transactions.take(rows)).done
    assert set(done) == {row.id for row in rows}
    assert [run.id for run in app.runs.list() if run.key == "k"] == [taken.id]
    assert len(app.runs.list()) == 2
