"""What a node counts of its work, and that it reaches the others with its beat."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ostinato import Ostinato
from ostinato.clock import SECOND
from ostinato.engine.node import Engine
from ostinato.engine.statistics import BATCH_BOUNDS, DURATION_BOUNDS, MOST_NAMES, OTHER, Histogram, Statistics
from ostinato.models.ids import RunId
from ostinato.models.run import Finish
from ostinato.models.states import Cause, RunState
from ostinato.testing import FakeClock, drain
from tests.engine.conftest import engine_of


def finish(name: str, state: RunState = RunState.SUCCEEDED, took: int = 0, id: int = 1) -> Finish:
    return Finish(RunId(id), 1, state, started_at=SECOND, finished_at=SECOND + took, name=name)


def counted(app: Ostinato) -> dict[str, Any]:
    return engine_of(app).statistics.shape()


def test_a_value_falls_into_the_bucket_whose_bound_it_does_not_pass() -> None:
    histogram = Histogram((10, 20))
    histogram.add((0, 10, 11, 20, 21))
    assert histogram.shape() == {"counts": [2, 2, 1], "sum": 62}
    assert Histogram((10, 20)).shape() == {"counts": [], "sum": 0}


def test_what_a_clock_that_was_set_back_makes_negative_counts_as_nothing() -> None:
    histogram = Histogram((10, 20))
    histogram.add((-5, 5))
    assert histogram.shape() == {"counts": [2], "sum": 5}


def test_ends_are_counted_by_name_and_state_with_their_durations() -> None:
    statistics = Statistics()
    statistics.recorded([finish("mail", took=SECOND), finish("mail", RunState.FAILED), finish("report")])
    shape = statistics.shape()
    assert shape["runs"] == {"mail": {"succeeded": 1, "failed": 1}, "report": {"succeeded": 1}}
    assert sum(shape["durations"]["mail"]["counts"]) == 2
    assert shape["durations"]["mail"]["sum"] == 1.0
    assert shape["batches"] == {"counts": [0, 0, 1], "sum": 3}
    assert len(shape["bounds"]["durations"]) == len(DURATION_BOUNDS)
    assert shape["bounds"]["batches"] == list(BATCH_BOUNDS)


def test_what_succeeded_with_errors_is_counted_apart_too() -> None:
    statistics = Statistics()
    errors = replace(finish("mail", took=SECOND), cause=Cause.ERRORS)
    statistics.recorded([finish("mail"), errors, replace(errors, id=RunId(2)), finish("report")])
    shape = statistics.shape()
    assert shape["runs"] == {"mail": {"succeeded": 3}, "report": {"succeeded": 1}}
    assert shape["with_errors"] == {"mail": 2}
    assert sum(shape["durations"]["mail"]["counts"]) == 3


def test_what_goes_back_to_the_queue_or_belongs_to_others_is_not_counted() -> None:
    statistics = Statistics()
    statistics.recorded([finish("mail", RunState.QUEUED, id=1), finish("mail", id=2), finish("mail", id=3)], [RunId(2)])
    assert statistics.shape()["runs"] == {"mail": {"succeeded": 1}}


def test_names_beyond_the_bound_are_counted_together() -> None:
    statistics = Statistics()
    statistics.ended(finish(f"task-{number}") for number in range(MOST_NAMES + 20))
    runs = statistics.shape()["runs"]
    assert len(runs) == MOST_NAMES + 1
    assert runs[OTHER] == {"succeeded": 20}


def test_a_node_counts_what_it_executes(app: Ostinato) -> None:
    good = app.task("good")(lambda: None)

    @app.task("bad", retry=0)
    def bad() -> None:
        raise ValueError("no good")

    for _ in range(3):
        good.enqueue()
    bad.enqueue()
    app.start()
    drain(app)
    shape = counted(app)
    assert shape["runs"] == {"good": {"succeeded": 3}, "bad": {"failed": 1}}
    assert sum(shape["lateness"]["counts"]) == 4


def test_due_times_that_are_left_out_are_counted_each(app: Ostinato, fake_clock: FakeClock) -> None:
    task = app.task("hourly")(lambda: None)
    app.schedules.add("hourly", "every 1h", task, catch_up="none")
    fake_clock.advance("5h30m")
    app.start()
    drain(app)
    assert counted(app)["skipped"] == {"hourly": {Cause.DOWNTIME: 5}}


def test_a_run_starts_as_late_as_it_was_ready_before(app: Ostinato, fake_clock: FakeClock) -> None:
    app.task("hello")(lambda: None).enqueue()
    fake_clock.advance("7s")
    app.start()
    drain(app)
    assert counted(app)["lateness"]["sum"] == 7.0


def test_the_beat_carries_what_was_counted(app: Ostinato) -> None:
    app.task("hello")(lambda: None).enqueue()
    app.start()
    drain(app)

    async def beat(engine: Engine) -> dict[str, Any]:
        await engine.lease.renew()
        return (await engine.store.nodes.read_statistics())[engine.id]

    assert app.with_engine(beat)["runs"] == {"hello": {"succeeded": 1}}
