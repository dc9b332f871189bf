"""A disk without room: nothing is acknowledged that is not in the ledger, nothing more is claimed, and it goes on by
itself once there is room. SQLite is given a limit of pages; PostgreSQL says what it says when it cannot extend a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from ostinato import Ostinato, RunState
from ostinato.engine.node import Engine
from ostinato.errors import StoreUnavailable
from ostinato.stores.base import Store
from ostinato.stores.sqlite.store import SqliteStore
from ostinato.testing import FakeClock
from tests.conftest import tuned
from tests.engine.conftest import Gate, eventually
from tests.stores.places import raw

NO_ROOM = "the disk is full: make room; nothing was written|PostgreSQL has no room: .*; nothing was written"
LARGE = "x" * 50_000
"""More than what is free in the pages that a file has."""
REFUSE = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE 'could not extend file "base/1/2": No space left on device' USING ERRCODE = 'disk_full'; END $$
"""
pytestmark = tuned(service_restart_seconds=0.01)


async def fill(store: Store) -> None:
    """From here on nothing can be written that takes room."""
    if isinstance(store, SqliteStore):
        await raw(store, "PRAGMA max_page_count = 1")  # what is there stays: it is then what the file has
        return
    await raw(store, REFUSE)
    for table in ("runs", "output", "nodes", "schedules"):
        when = "BEFORE INSERT OR UPDATE" if table != "runs" else "BEFORE INSERT OR UPDATE OF result"
        await raw(store, f"CREATE TRIGGER refuse {when} ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()")


async def make_room(store: Store) -> None:
    limited = isinstance(store, SqliteStore)
    await raw(store, "PRAGMA max_page_count = 1000000" if limited else "DROP FUNCTION refuse CASCADE")


@contextmanager
def full_disk(app: Ostinato) -> Iterator[None]:
    async def before(engine: Engine) -> None:
        await fill(engine.store)

    async def after(engine: Engine) -> None:
        await make_room(engine.store)

    app.with_engine(before)
    yield
    app.with_engine(after)


def test_what_finds_no_room_is_refused_and_not_there(app: Ostinato, gate: Gate) -> None:
    job = app.task("job")(lambda text: gate.wait())
    app.start()
    with full_disk(app):
        acknowledged: list[int] = []
        with suppress(StoreUnavailable):  # there may be room for some in the pages that the file has
            acknowledged.extend(job.enqueue(LARGE).id for _ in range(10))
        with pytest.raises(StoreUnavailable, match=NO_ROOM):
            job.enqueue(LARGE)
        assert sorted(run.id for run in app.runs.list()) == acknowledged
    acknowledged.append(job.enqueue(LARGE).id)
    assert sorted(run.id for run in app.runs.list()) == acknowledged


def test_while_ends_find_no_room_nothing_is_claimed_and_health_says_why(
    app: Ostinato, gate: Gate, fake_clock: FakeClock
) -> None:
    executed: list[str] = []

    @app.task("job", retry=0)
    def job(name: str) -> str:
        executed.append(name)
        if name == "first":
            gate.wait()
        return LARGE

    app.start()
    first = job.enqueue("first")
    gate.entered()
    later = [job.using(delay="1s").enqueue(str(number)) for number in range(3)]
    with full_disk(app):
        gate.open()
        eventually(lambda: app.health()["paused"])
        fake_clock.advance("1s")
        tries = app.health()["services"]["recorder"]["restarts"]
        while (health := app.health())["services"]["recorder"]["restarts"] < tries + 4:
            assert not health["ok"], "also while it is just trying again"
            assert re.fullmatch(NO_ROOM, health["paused"])
        assert (health["unwritten"], executed) == (1, ["first"])
        assert {run.get().state for run in later} == {RunState.QUEUED}
    assert [run.wait(timeout=60).result for run in (first, *later)] == [LARGE] * 4
    assert sorted(executed) == ["0", "1", "2", "first"], "each once"
    eventually(lambda: app.health()["ok"] and app.health()["paused"] is None)
