"""The store suite: every test runs on SQLite and on PostgreSQL, from one fixture.

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

from ostinato.models.lane import DEFAULT_LANES
from ostinato.stores.base import Store
from ostinato.stores.postgres.store import PostgresStore
from ostinato.tuning import Tuning
from tests.databases import EACH, SHARED
from tests.stores.places import PostgresPlace, SqlitePlace, StorePlace

BOUND_SECONDS = 60


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test to its end on the loop of its fixtures."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    runner = pyfuncitem.funcargs["runner"]
    assert isinstance(runner, asyncio.Runner)
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}
    runner.run(asyncio.wait_for(pyfuncitem.obj(**arguments), BOUND_SECONDS))
    return True


@pytest.fixture(autouse=True)
def runner() -> Iterator[asyncio.Runner]:
    """The event loop of one test."""
    with asyncio.Runner() as runner:
        yield runner


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
            return SqlitePlace(str(tmp_path / "jobs.db"))
        case "memory":
            return SqlitePlace(":memory:")
        case _:
            place: StorePlace = request.getfixturevalue("postgres_place")
            return place


@pytest.fixture
def store(place: StorePlace, runner: asyncio.Runner) -> Iterator[Store]:
    """A store, opened, with the default lanes."""
    yield from _opened(place, runner)


@pytest.fixture
def first(shared_place: StorePlace, runner: asyncio.Runner) -> Iterator[Store]:
    """One of two stores on the same database, as two processes would have them."""
    yield from _opened(shared_place, runner)


@pytest.fixture
def second(first: Store, shared_place: StorePlace, runner: asyncio.Runner) -> Iterator[Store]:
    """The other one."""
    yield from _opened(shared_place, runner)


def _opened(place: StorePlace, runner: asyncio.Runner) -> Iterator[Store]:
    store = place.store()
    runner.run(store.open())
    try:
        runner.run(store.lanes.ensure_lanes(DEFAULT_LANES, []))
        yield store
    finally:
        runner.run(store.close())
