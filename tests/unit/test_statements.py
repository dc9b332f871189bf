"""Statements of stores.sql in the words of each database: translated once, and the values as each one takes them."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

from ostinato.models.access import AuditFilter
from ostinato.stores import sql as stores_sql
from ostinato.stores.migrate import load_migrations
from ostinato.stores.postgres.query import _Numbered
from ostinato.stores.sql.connection import given, where
from ostinato.stores.sqlite.query import Connection, _Translated, drive

STATEMENT = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b(?=.*\b(FROM|INTO|SET)\b)[^{}]*", re.DOTALL)
"""Whole: no part of one, and with nothing left to fill in."""
OF_POSTGRES = {"schedule_pages._RECENT_OF_EACH", "upkeep._TRIM"}


@pytest.mark.parametrize(
    ("statement", "sqlite"),
    [
        ("id = ANY (:ids::bigint[])", "id IN (SELECT value FROM json_each(:ids))"),
        ("id <> ALL (:ids::bigint[])", "id NOT IN (SELECT value FROM json_each(:ids))"),
        ("id = ANY (ARRAY(SELECT max(id) FROM a)) AND b", "id IN (SELECT max(id) FROM a) AND b"),
        ("waiting = FALSE AND burst = TRUE", "waiting = 0 AND burst = 1"),
        (
            "r.state = 'queued' AND r.waiting = TRUE",
            "r.session IS NOT NULL AND r.waiting = 1 AND r.state IN ('queued', 'running')",
        ),
        ("later = TRUE AND waiting = TRUE AND state = 'queued'", "later = 1 AND waiting = 1 AND state = 'queued'"),
        ("coalesce(:name::text, sum(a)::bigint)", "coalesce(:name, sum(a))"),
        ("SELECT a FROM b FOR NO KEY UPDATE", "SELECT a FROM b "),
        (
            "FROM unnest(:ids::bigint[], :names::text[]) WITH ORDINALITY k (id, name, place)",
            "FROM (SELECT value ->> 0 AS id, value ->> 1 AS name, key AS place FROM json_each(:ids__names)) k",
        ),
    ],
)
def test_a_statement_is_said_in_the_words_of_sqlite(statement: str, sqlite: str) -> None:
    assert _Translated(statement).text == sqlite


def test_lists_and_rows_are_given_to_sqlite_as_json() -> None:
    rows = _Translated("unnest(:ids::bigint[], :names::text[]) k (id, name) WHERE id = ANY (:wanted::bigint[])")
    values = rows.values({"ids": [1, 2], "names": ["a", None], "wanted": (2,)})
    assert values["ids__names"] == '[[1,"a"],[2,null]]'
    assert values["wanted"] == "[2]"


def test_values_have_one_number_each_in_postgres_and_are_written_by_their_kind() -> None:
    numbered = _Numbered("a = :a AND b = ANY (:b::text[]) OR c = :a::text AND d = ANY (:d::bigint[])")
    assert numbered._text == b"a = $1 AND b = ANY ($2::text[]) OR c = $1::text AND d = ANY ($3::bigint[])"
    written = [
        write(value) for write, value in zip(numbered._values.values(), ("x\0y", ["p", "q"], (1, 2)), strict=True)
    ]
    assert written == ["x\ufffdy", '{"p","q"}', "{1,2}"]


def test_only_what_is_given_is_asked_for() -> None:
    conditions = {"who": "a = :who", "door": "b >= :door AND c", "since": "d < :since AND e IS NULL"}
    assert given(AuditFilter(who="x", since=0), conditions) == (
        ["a = :who", "d < :since AND e IS NULL"],
        {"who": "x", "since": 0},
    )
    assert where(["a", "b OR c"]) == "WHERE a AND b OR c"
    assert where([]) == ""


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT a::float8 / 2",
        "SELECT a::jsonb",
        "SELECT :a::numeric[]",
        "a = ANY (SELECT b)",
        "a > ALL (:a::bigint[])",
        "SELECT ARRAY(SELECT a)",
        "SELECT * FROM unnest(b.list)",
        "SELECT a FROM b FOR SHARE",
        "SELECT a FROM b FOR UPDATE SKIP LOCKED",
        "SELECT a FROM b, LATERAL (SELECT c)",
        "SELECT DISTINCT ON (a) b",
        "a ilike 'b'",
        "a = $1",
    ],
)
def test_what_sqlite_has_no_words_for_is_refused(statement: str) -> None:
    with pytest.raises(ValueError, match="there is no translation to SQLite of") as refused:
        _Translated(statement)
    assert statement in str(refused.value)


def test_what_is_quoted_and_remarks_are_left_alone() -> None:
    quoted = "'[]', 'array', ':a::text', 'it''s = ANY (TRUE', '0', 'FOR UPDATE'"
    assert _Translated(f"SELECT {quoted}, :b::text -- isn't :c TRUE\nFROM d").text == f"SELECT {quoted}, :b \nFROM d"
    numbered = _Numbered(f"SELECT {quoted}, :b -- isn't :c\nFROM d")
    assert numbered._text == f"SELECT {quoted}, $1 -- isn't :c\nFROM d".encode()


def statements() -> Iterator[tuple[str, str]]:
    """The statements that stand whole in the files of stores.sql, each with its name; not those of PostgreSQL alone."""
    for found in pkgutil.iter_modules(stores_sql.__path__):
        module = importlib.import_module(f"{stores_sql.__name__}.{found.name}")
        for name, value in vars(module).items():
            text = value.get("sqlite") if isinstance(value, dict) else value
            if isinstance(text, str) and STATEMENT.fullmatch(text):
                yield f"{found.name}.{name}", text


@pytest.fixture(scope="module")
def schema() -> Iterator[Connection]:
    """An empty database of this version."""
    connection = Connection(":memory:")
    for migration in load_migrations("ostinato.stores.sqlite"):
        connection.execute(migration.sql)
    yield connection
    connection.close()


@pytest.mark.parametrize(("name", "statement"), [pytest.param(*one, id=one[0]) for one in statements()])
def test_every_statement_can_be_prepared_by_sqlite(schema: Connection, name: str, statement: str) -> None:
    if name in OF_POSTGRES:
        with pytest.raises(ValueError, match="there is no translation to SQLite"):
            _Translated(statement)
        return
    text = _Translated(statement).text
    schema.execute(f"EXPLAIN {text}", dict.fromkeys(re.findall(r":(\w+)", text))).fetchall()


def test_a_query_of_sqlite_must_not_wait() -> None:
    async def waits(_: Connection) -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="waits for something"):
        drive(waits)(Connection(":memory:"))


def test_a_query_is_driven_to_its_answer_on_the_thread_that_asks() -> None:
    async def ask(db: Connection) -> Any:
        async with db.snapshot():
            await db.run("CREATE TEMP TABLE t (a)")
            return await db.fetch("INSERT INTO t SELECT * FROM unnest(:a::bigint[]) n (a) RETURNING a", {"a": [1, 2]})

    assert drive(ask)(Connection(":memory:")) == [(1,), (2,)]
