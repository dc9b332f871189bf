"""Rows that this program cannot read, as a newer version or a rename leaves them: shown, told, never deleted."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato import Ostinato, RunState
from ostinato.clock import SECOND
from ostinato.engine.node import Engine
from ostinato.errors import Conflict
from ostinato.testing import FakeClock, drain
from ostinato.testing.store_suite.builders import draft, new_run

UNREADABLE: list[tuple[dict[str, str], str]] = [
    ({"work": '{"kind":"dance","steps":3}', "kind": "dance"}, "unknown kind 'dance'"),
    ({"work": "garbage"}, "its work is not readable"),
    ({"policy": '{"mood":"good"}'}, "there is no policy 'mood'"),
    ({"timing": "whenever it suits"}, "timing"),
]


def leave(app: Ostinato, clock: FakeClock, columns: dict[str, str]) -> None:
    """Write a schedule as another version would have."""
    job = {"work": '{"kind":"function","task":"job"}', "task": "job", "anchor_at": clock.now()}
    odd = draft("odd", **{**job, "timing": "every 1h", "next_at": clock.now() + 3_600 * SECOND, **columns})

    async def put(engine: Engine) -> None:
        await engine.store.schedules.put_schedules([odd], clock.now())

    app.with_engine(put)


@pytest.mark.parametrize(("columns", "says"), UNREADABLE)
def test_a_schedule_that_cannot_be_read_says_why_and_is_switched_off_when_it_is_due(
    app: Ostinato, fake_clock: FakeClock, columns: dict[str, str], says: str
) -> None:
    app.task("job")(lambda: None)
    app.schedules.add("good", "every 1h", "job")
    leave(app, fake_clock, columns)
    assert says in (app.schedules.get("odd").broken or "")
    assert says in app.why("odd").answer
    fake_clock.advance("1h")
    drain(app)
    odd = app.schedules.get("odd")
    assert odd.enabled is False
    assert says in (odd.broken or "")
    assert [run.state for run in app.runs.list(schedule="good")] == [RunState.SUCCEEDED]
    fake_clock.advance("5h")
    drain(app)
    assert app.schedules.get("odd").broken, "it is still there"


def test_unreadable_work_is_neither_triggered_nor_edited_by_halves(app: Ostinato, fake_clock: FakeClock) -> None:
    leave(app, fake_clock, {"work": "garbage"})
    with pytest.raises(Conflict, match="cannot be triggered"):
        app.schedules.trigger("odd")
    with pytest.raises(Conflict, match="fix that, or give it new work"):
        app.schedules.edit("odd", priority=1)


def insert(app: Ostinato, clock: FakeClock, **columns: Any) -> int:
    job = {"work": '{"kind":"function","task":"job"}', "task": "job", "due_at": clock.now(), "ready_at": clock.now()}

    async def put(engine: Engine) -> int:
        (id,) = await engine.store.runs.insert_runs([new_run(**{**job, **columns})])
        return id

    return app.with_engine(put)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"work": '{"kind":"dance"}', "kind": "dance"}, "unknown kind 'dance'"),
        ({"work": '{"kind":"function","task":"other"}'}, "task 'other' is not registered here"),
        ({"policy": '{"mood":"good"}'}, "there is no policy 'mood'"),
    ],
)
def test_a_run_that_cannot_be_read_fails_with_the_reason_and_others_run(
    app: Ostinato, fake_clock: FakeClock, columns: dict[str, str], says: str
) -> None:
    job = app.task("job")(lambda: None)
    odd = insert(app, fake_clock, **columns)
    good = job.enqueue()
    drain(app)
    run = app.runs.get(odd)
    assert run.state is RunState.FAILED
    assert says in (run.reason or "")
    assert good.get().state is RunState.SUCCEEDED
