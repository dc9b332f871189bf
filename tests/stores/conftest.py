"""The databases of the store suite and of what only SQL can see: every test runs on SQLite and on PostgreSQL.

A coroutine test runs on the loop of its fixture `runner`, on which its stores were opened, and within a bound.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ostinato.stores.postgres.store import PostgresStore
from ostinato.testing.store_suite.fixtures import NewStore, first, run_bounded, runner, second, store
from ostinato.tuning import Tuning
from tests.databases import EACH, SHARED, sqlite_file
from tests.stores.places import PostgresPlace, SqlitePlace, StorePlace

__all__ = ["first", "runner", "second", "store"]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test to its end on the loop of its fixtures."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    runner = pyfuncitem.funcargs["runner"]
    assert isinstance(runner, asyncio.Runner)
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}
    run_bounded(runner, pyfuncitem.obj(**arguments))
    return True


@pytest.fixture
def postgres_place(postgres_url: str) -> PostgresPlace:
    """The schema that a test has for itself."""
    return PostgresPlace(postgres_url, "ostinato")


@pytest.fixture
def postgres_store(postgres_url: str, runner: asyncio.Runner, tuning: Tuning) -> Iterator[PostgresStore]:
    """An open store with a database of its own, whose connections a test may end."""
    store = PostgresStore(postgres_url, tuning=tuning)
    runner.run(store.open())
    runner.run(store.lanes.ensure_lanes({"main": 30, "cron": 30}, []))
    yield store
    runner.run(store.close())


@pytest.fixture
def admin(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection of one's own to that database."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


@pytest.fixture(params=EACH)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> StorePlace:
    """Where the database of this test is: any store."""
    return _place(request, tmp_path)


@pytest.fixture(params=SHARED)
def shared_place(request: pytest.FixtureRequest, tmp_path: Path) -> StorePlace:
    """A database that several processes can open: memory is not one."""
    return _place(request, tmp_path)


def _place(request: pytest.FixtureRequest, tmp_path: Path) -> StorePlace:
    match request.param:
        case "sqlite":
            return SqlitePlace(str(sqlite_file(request, tmp_path)))
        case "memory":
            return SqlitePlace(":memory:")
        case _:
            place: StorePlace = request.getfixturevalue("postgres_place")
            return place


@pytest.fixture
def new_store(place: StorePlace) -> NewStore:
    """What the suite asks of a database."""
    return place.store


@pytest.fixture
def new_shared_store(shared_place: StorePlace) -> NewStore:
    """The same of one that two can open."""
    return shared_place.store
