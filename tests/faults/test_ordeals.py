"""Ordeals of real processes: `chaos.run` as a user calls it, on both databases."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from ostinato import Ostinato
from ostinato.errors import InvalidInput
from ostinato.testing import chaos
from ostinato.testing.chaos import sample
from tests.databases import SHARED, url_of
from tests.faults import orphaning


@pytest.fixture(params=SHARED)
def db(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    """A PostgreSQL, or none: then it is an SQLite file of its own."""
    url = url_of(request, tmp_path)
    return url if url.startswith("postgres") else None


@pytest.mark.timeout(180)
def test_an_app_of_several_processes_keeps_the_promise_under_faults(db: str | None) -> None:
    report = chaos.run(
        sample.app,
        minutes=0.15,
        lease="2s",
        seed=3,
        db=db,
        set_up=lambda app: sample.add_schedules(app, 20),
        load=sample.ask,
    )
    report.check()
    assert report.due_times > 30
    assert report.starts > 10
    assert report.faults.total() > 0
    assert sample.app.settings.db == "sqlite://:memory:", "the app is given back as it was"
    if db is not None:
        with psycopg.connect(db) as connection:
            found = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'ostinato_chaos%'")
            assert found.fetchall() == []


@pytest.mark.timeout(120)
def test_a_process_that_a_task_leaves_behind_is_found_and_ended() -> None:
    report = chaos.run(orphaning.app, minutes=0.05, faults=[], nodes=1)
    assert {violation.rule for _, violation in report.violations} == {"nothing_is_left_over"}
    assert "is still there" in str(report)


def test_an_ordeal_says_what_it_cannot_do() -> None:
    with pytest.raises(InvalidInput, match=r"there is no fault 'fire'") as refused:
        chaos.run(sample.app, faults=["fire"])
    assert refused.value.hint == "use some of kill, pause, drain, database, failpoint"
    with pytest.raises(InvalidInput, match=r"cannot import this app"):
        chaos.run(Ostinato("sqlite://:memory:"))
    with pytest.raises(InvalidInput, match=r"cannot use 'sqlite:///jobs.db'"):
        chaos.run(sample.app, db="sqlite:///jobs.db")
