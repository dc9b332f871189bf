"""Statements of stores.sql in the words of each database: translated once, and the values as each one takes them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ostinato.stores.postgres.query import _Numbered
from ostinato.stores.sql.connection import where_given
from ostinato.stores.sqlite.query import Connection, _Translated, drive


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
    wanted: dict[str, Any] = {"a = :a": 1, "b >= :b AND c": None, "d < :d AND e IS NULL": 0}
    assert where_given(wanted) == ("WHERE a = :a AND d < :d AND e IS NULL", {"a": 1, "d": 0})
    assert where_given({"a = :a": None}) == ("", {})


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
