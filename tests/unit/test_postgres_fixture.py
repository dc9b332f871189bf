"""The tests' own PostgreSQL: real, recent, and a database for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import psycopg
import pytest

from tests.postgres_databases import KeptDatabase, with_database

Kept = Callable[[], AbstractContextManager[str]]


@pytest.fixture
def kept(postgres_admin: psycopg.Connection[Any], postgres_server: str) -> Iterator[Kept]:
    database = KeptDatabase(postgres_admin, postgres_server)
    yield database.lent
    database.drop()


def rows(url: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True, options="-c search_path=ostinato") as connection:
        return connection.execute(statement.encode()).fetchall()


ADD_LANE = "INSERT INTO lanes (name, max_running) VALUES ('main', 1) RETURNING name"
ADD_EVENTS = "INSERT INTO events (at, kind, session) SELECT 1, 'started', 's' FROM generate_series(1, {}) RETURNING id"
OID = "SELECT oid FROM pg_database WHERE datname = current_database()"


@pytest.mark.parametrize("many", [1, 5_000])
def test_a_kept_database_has_no_row_of_the_last_test_and_counts_from_one(kept: Kept, many: int) -> None:
    found = []
    for _ in range(2):
        with kept() as url:
            assert rows(url, "SELECT count(*) FROM migrations") > [(1,)]
            found.append((rows(url, OID), rows(url, ADD_LANE), rows(url, ADD_EVENTS.format(many))))
    assert found[0] == found[1]
    assert found[0][2][0] == (1,)


@pytest.mark.parametrize(
    "change",
    [
        "CREATE SCHEMA other",
        "CREATE TABLE mine (id bigint)",
        "ALTER TABLE runs DROP CONSTRAINT runs_life",
        "ALTER TABLE runs ADD COLUMN mine bigint",
        "DROP INDEX runs_ready",
        "DROP SCHEMA ostinato CASCADE",
        "INSERT INTO migrations VALUES (999, 'of the future', 0)",
    ],
)
def test_a_kept_database_whose_tables_were_changed_is_made_anew(kept: Kept, change: str) -> None:
    with kept() as url:
        before = rows(url, OID)
        with psycopg.connect(url, autocommit=True, options="-c search_path=ostinato") as connection:
            connection.execute(change.encode())
    with kept() as url:
        assert rows(url, OID) != before
        assert rows(url, ADD_LANE) == [("main",)]


def test_nobody_comes_back_to_a_kept_database(kept: Kept) -> None:
    with kept() as url:
        lingering = psycopg.connect(url)
    with pytest.raises(psycopg.OperationalError):
        lingering.execute("SELECT 1")
    lingering.close()
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(url)


@pytest.mark.parametrize("turn", ["first", "second"])
def test_an_empty_database_has_nothing(empty_postgres_url: str, turn: str) -> None:
    assert rows(empty_postgres_url, "SELECT 1 FROM pg_namespace WHERE nspname = 'ostinato'") == []
    with psycopg.connect(empty_postgres_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA ostinato")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://u:@/postgres?host=/tmp/x", "postgresql://u:@/other?host=/tmp/x"),
        ("postgresql:///postgres?host=/tmp/x", "postgresql:///other?host=/tmp/x"),
        ("postgresql://u:p@db.example:5433/app", "postgresql://u:p@db.example:5433/other"),
        ("postgresql://localhost", "postgresql://localhost/other"),
    ],
)
def test_the_url_of_another_database_differs_only_in_its_name(url: str, expected: str) -> None:
    assert with_database(url, "other") == expected
