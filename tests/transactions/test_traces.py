"""What is enqueued in a transaction belongs to the trace of whoever enqueues it, however it gets into the ledger."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from ostinato import Ostinato
from tests.spans import Spans, id_of, spans
from tests.transactions.callers import CALLERS, configure_django

__all__ = ["spans"]


def test_a_row_of_an_outbox_takes_its_trace_along(app: Ostinato, spans: Spans, tmp_path: Path) -> None:
    greet = app.task("greet")(lambda: None)
    shop = create_engine(f"sqlite:///{tmp_path}/shop.db", poolclass=NullPool)
    app.add_outbox(shop).create()
    app.start()
    with spans.begin() as request, Session(shop) as session:
        pending = greet.using(connection=session).enqueue()
        session.commit()
    assert pending.wait(timeout="30s").trace_id == id_of(request)
    app.stop()
    assert spans.is_child("enqueue greet", "request")
    assert spans.is_child("run greet", "enqueue greet")
    shop.dispose()


def test_on_commit_it_is_the_trace_in_which_it_was_asked_for(app: Ostinato, spans: Spans, tmp_path: Path) -> None:
    from django.db import transaction

    greet = app.task("greet")(lambda: None)
    configure_django(f"sqlite:///{tmp_path}/django.db")
    with transaction.atomic(), spans.begin() as request:
        pending = greet.using(on_commit=True).enqueue()
    assert pending.get().trace_id == id_of(request)
    assert spans.is_child("enqueue greet", "request")


@pytest.mark.parametrize("caller", ["psycopg", "psycopg async", "sqlalchemy session"])
def test_a_run_that_is_written_beside_has_the_trace(spans: Spans, postgres_url: str, caller: str) -> None:
    app = Ostinato(postgres_url, tz="UTC")
    try:
        greet = app.task("greet")(lambda: None)
        with spans.begin() as request, CALLERS[caller](postgres_url) as transaction:
            pending = transaction.enqueue(greet)
            transaction.commit()
        assert app.runs.get(pending.id).trace_id == id_of(request)
    finally:
        app.stop(grace=0)
