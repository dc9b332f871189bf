"""The tests' own PostgreSQL: real, recent, and a database for each test."""

from __future__ import annotations

import subprocess
import sys

import psycopg
import pytest

from tests.postgres_server import fresh_database, with_database


def test_the_server_is_postgresql_16_or_newer(postgres_server: str) -> None:
    with psycopg.connect(postgres_server) as connection:
        assert connection.info.server_version >= 160_000


@pytest.mark.parametrize("turn", ["first", "second"])
def test_no_test_sees_the_tables_of_another(postgres_url: str, turn: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        # Either turn would fail on the other's leftovers.
        connection.execute("CREATE SCHEMA ostinato")
        connection.execute("CREATE TABLE ostinato.runs (turn text PRIMARY KEY)")
        connection.execute("INSERT INTO ostinato.runs VALUES (%s)", [turn])
        assert connection.execute("SELECT turn FROM ostinato.runs").fetchall() == [(turn,)]


def test_another_process_can_connect_with_the_url(postgres_url: str) -> None:
    program = "import sys, psycopg; print(psycopg.connect(sys.argv[1]).info.dbname)"
    printed = subprocess.check_output([sys.executable, "-c", program, postgres_url], text=True)
    assert printed.strip().startswith("ostinato_test_")


def test_a_database_is_dropped_even_when_someone_is_still_connected(
    postgres_admin: psycopg.Connection[tuple[object, ...]], postgres_server: str
) -> None:
    with fresh_database(postgres_admin, postgres_server) as url:
        lingering = psycopg.connect(url)
    with pytest.raises(psycopg.OperationalError):
        lingering.execute("SELECT 1")
    lingering.close()


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
