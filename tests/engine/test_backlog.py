"""Far more is due at once than a node can run, as after a long outage: it is taken in batches, a node holds what it has
slots for, and whoever asks meanwhile is answered. Batches are small here, so that a small backlog is many of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ostinato import Ostinato, RunState
from ostinato.clock import SECOND
from ostinato.engine.node import Engine
from ostinato.engine.ticker import Ticker
from ostinato.testing import FakeClock
from ostinato.testing.store_suite.builders import draft
from tests.conftest import tuned
from tests.engine.conftest import Gate, MakeApp, eventually

SCHEDULES = 300
BATCH = 10
SLOTS = 4


def fall_due(app: Ostinato, clock: FakeClock) -> None:
    """Schedules that were all due during an outage of a day."""
    job = {"work": '{"kind":"function","task":"job"}', "task": "job", "timing": "every 1d", "policy": '{"retry":0}'}
    times = {"anchor_at": clock.now(), "next_at": clock.now() + 86_400 * SECOND}
    drafts = [draft(f"s{number}", **job, **times) for number in range(SCHEDULES)]

    async def put(engine: Engine) -> None:
        await engine.store.schedules.put_schedules(drafts, clock.now())

    app.with_engine(put)
    clock.advance("25h")


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many schedules were planned at once, each time."""
    sizes: list[int] = []
    count = Ticker._count

    def counted(self: Ticker, due: Sequence[Any], *rest: Any) -> None:
        sizes.append(len(due))
        count(self, due, *rest)

    monkeypatch.setattr(Ticker, "_count", counted)
    return sizes


@tuned(due_batch=BATCH)
def test_a_backlog_is_taken_in_batches_a_node_holds_what_it_has_slots_for_and_whoever_asks_is_answered(
    db: str, make_app: MakeApp, fake_clock: FakeClock, gate: Gate, batches: list[int]
) -> None:
    app = make_app(db, slots=SLOTS)
    executed: list[int] = []

    @app.task("job", retry=0)
    def job() -> None:
        gate.wait()
        executed.append(1)

    fall_due(app, fake_clock)
    app.start()
    gate.entered(SLOTS)
    eventually(lambda: sum(batches) == SCHEDULES)
    health = app.health()
    assert health["ok"]
    assert health["running"] + health["held"] <= SLOTS
    assert len(app.schedules.list(limit=20)) == 20
    assert len(app.runs.list(state=RunState.QUEUED, limit=20)) == 20
    assert "is queued" in app.why(f"s{SCHEDULES - 1}").answer
    assert gate.inside == SLOTS, "all of that was answered while the backlog waited"
    gate.open()
    eventually(lambda: len(executed) == SCHEDULES and not app.health()["running"])
    assert max(batches) == BATCH
    assert gate.most == SLOTS
    eventually(lambda: not app.runs.list(state=RunState.QUEUED, limit=1) and not app.health()["unwritten"])
    assert {run.count for run in app.runs.list(state=RunState.SUCCEEDED, limit=1000)} == {1}
    assert len(app.runs.list(state=RunState.SUCCEEDED, limit=1000)) == SCHEDULES
