"""A key that somebody's open transaction has: who wants it waits for its end, and nobody else does."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

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
