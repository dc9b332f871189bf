"""A lost lease, and a database that fails just then: under its new name the node is what it was under the old one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ostinato import Ostinato
from ostinato.engine.node import Engine
from ostinato.errors import StoreUnavailable
from ostinato.models.node import Node, NodeBeat
from ostinato.stores.base import NodeStore, Renewed


class Beats:
    """The nodes of a database, which fail at beats that the test names, or tell it of each."""

    def __init__(self, nodes: NodeStore) -> None:
        self._nodes = nodes
        self.failing: set[int] = set()
        """Which beats of the coming ones do not get through; the next is 1."""
        self.count = 0
        self.written: Callable[[NodeBeat], Awaitable[None]] | None = None
        """Called when a beat is in the database and the engine does not know it yet."""

    async def renew(self, beat: NodeBeat) -> Renewed:
        self.count += 1
        if self.count in self.failing:
            raise StoreUnavailable("the database is away")
        renewed = await self._nodes.renew(beat)
        if self.written is not None:
            await self.written(beat)
        return renewed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._nodes, name)


async def lose(engine: Engine) -> Beats:
    """Others declare the node lost. From now on only the test renews its lease, and only that tells it of a drain."""
    await engine.watchdog.stop("lease", "waker", "rescuer")
    (node,) = await engine.store.nodes.list_nodes(engine.clock.now())
    seen_at = round(node.seen_at.timestamp() * 1_000_000)
    await engine.store.runs.stale_runs([(engine.id, seen_at)], engine.clock.now())
    beats = engine.lease._nodes = Beats(engine.store.nodes)
    return beats


async def drain(engine: Engine) -> None:
    await engine.store.nodes.ask_drain(engine.id, True)
    await engine.lease.renew()
    assert not takes_work(engine)


def takes_work(engine: Engine) -> bool:
    return engine.dispatcher.is_open


async def row_of(engine: Engine) -> Node:
    nodes = await engine.store.nodes.list_nodes(engine.clock.now())
    return next(node for node in nodes if node.id == engine.id)


def test_a_node_whose_first_beat_under_its_new_name_fails_takes_work_after_the_next(app: Ostinato) -> None:
    job = app.task("job")(lambda: "done")
    app.start()

    async def lost(engine: Engine) -> None:
        beats = await lose(engine)
        beats.failing = {2, 3}
        for _ in beats.failing:
            with pytest.raises(StoreUnavailable):
                await engine.lease.renew()
            assert not takes_work(engine), "nobody may claim under a name that is not in the database"
        await engine.lease.renew()

    app.with_engine(lost)
    run = job.enqueue()
    assert app.with_engine(lambda engine: engine.dispatcher.claim()) == 1
    assert run.wait(timeout=60).result == "done"


def test_a_drained_node_whose_first_beat_under_its_new_name_fails_stays_drained(app: Ostinato) -> None:
    app.start()

    async def lost(engine: Engine) -> None:
        await drain(engine)
        beats = await lose(engine)
        beats.failing = {2}
        with pytest.raises(StoreUnavailable):
            await engine.lease.renew()
        for _ in range(2):
            await engine.lease.renew()
            assert engine.is_asked_to_drain
            assert not takes_work(engine)
        assert (await row_of(engine)).drain

    app.with_engine(lost)


def test_whoever_looks_between_the_first_beat_and_its_answer_sees_a_drained_node(app: Ostinato) -> None:
    app.start()

    async def lost(engine: Engine) -> None:
        await drain(engine)
        beats = await lose(engine)
        watch = await engine.store.watch()
        seen: list[bool | None] = []

        async def look(beat: NodeBeat) -> None:
            """As the waker does."""
            wake_hints = await watch.wake_hints(beat.id)
            seen.append(wake_hints.drain)
            if wake_hints.drain is not None:
                engine.ask_drain(wake_hints.drain)
            assert not takes_work(engine)

        beats.written = look
        try:
            await engine.lease.renew()
        finally:
            await watch.close()
        assert seen == [True, True]
        assert not takes_work(engine)

    app.with_engine(lost)


def test_a_word_that_comes_between_two_names_opens_nothing_before_the_new_one_is_written(app: Ostinato) -> None:
    app.start()

    async def lost(engine: Engine) -> None:
        await drain(engine)
        beats = await lose(engine)
        beats.failing = {2}
        with pytest.raises(StoreUnavailable):
            await engine.lease.renew()
        engine.ask_drain(False)
        assert not takes_work(engine)
        await engine.lease.renew()
        assert takes_work(engine)
        assert not (await row_of(engine)).drain

    app.with_engine(lost)
