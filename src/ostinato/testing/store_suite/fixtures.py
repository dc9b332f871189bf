"""The event loop of a test, and the stores that are open on it: `store`, or `first` and `second` on one database."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from ostinato.models.lane import DEFAULT_LANES
from ostinato.stores.base import Store

__all__ = ["NewStore", "first", "on_its_loop", "run_bounded", "runner", "second", "store"]

BOUND_SECONDS = 60

NewStore = Callable[[], Store]
"""Answers another store on the database of the test, not yet opened."""


@pytest.fixture(autouse=True)
def runner() -> Iterator[asyncio.Runner]:
    """The event loop of one test."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def store(new_store: NewStore, runner: asyncio.Runner) -> Iterator[Store]:
    """A store, opened, with the default lanes."""
    yield from _opened(new_store, runner)


@pytest.fixture
def first(new_shared_store: NewStore, runner: asyncio.Runner) -> Iterator[Store]:
    """One of two stores on the same database, as two processes would have them."""
    yield from _opened(new_shared_store, runner)


@pytest.fixture
def second(first: Store, new_shared_store: NewStore, runner: asyncio.Runner) -> Iterator[Store]:
    """The other one."""
    yield from _opened(new_shared_store, runner)


def _opened(new_store: NewStore, runner: asyncio.Runner) -> Iterator[Store]:
    store = new_store()
    runner.run(store.open())
    try:
        runner.run(store.lanes.ensure_lanes(DEFAULT_LANES, []))
        yield store
    finally:
        runner.run(store.close())


def run_bounded(runner: asyncio.Runner, test: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine test to its end on the loop of its fixtures, and within a bound."""
    runner.run(asyncio.wait_for(test, BOUND_SECONDS))


def on_its_loop(test: Callable[..., Any]) -> Callable[..., None]:
    """A coroutine test as a plain one, which needs no plugin; a plain one as it is."""
    if not inspect.iscoroutinefunction(test):
        return test

    @functools.wraps(test)
    def plain(runner: asyncio.Runner, **arguments: Any) -> None:
        run_bounded(runner, test(**arguments))

    signature = inspect.signature(test)
    loop = inspect.Parameter("runner", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    plain.__signature__ = signature.replace(parameters=[loop, *signature.parameters.values()])  # type: ignore[attr-defined]
    return plain
