"""Who goes when: limits of lanes, slots, priorities, keys, delays and batches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ostinato import Ostinato, RunState
from ostinato.errors import InvalidInput
from ostinato.testing import FakeClock, drain, settle, simulate
from tests.engine.conftest import Gate, MakeApp, eventually, on_shared

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)


def counts(app: Ostinato) -> dict[str, int]:
    runs = app.runs.list(limit=1000)
    return {state: sum(run.state == state for run in runs) for state in ("queued", "running", "succeeded")}


def test_a_lane_never_runs_more_than_its_limit_at_once(db: str, make_app: MakeApp, gate: Gate) -> None:
    app = make_app(db, lanes={"narrow": 3})
    job = app.task("job", lane="narrow")(gate.wait)
    app.start()
    job.enqueue_many([()] * 10)
    gate.entered(3)
    settle(app)
    assert counts(app) == {"queued": 7, "running": 3, "succeeded": 0}
    gate.open()
    drain(app)
    assert counts(app) == {"queued": 0, "running": 0, "succeeded": 10}
    assert gate.most <= 3


@on_shared
def test_the_limit_holds_across_nodes(shared_db: str, make_app: MakeApp, gate: Gate) -> None:
    nodes = [make_app(shared_db, lanes={"narrow": 3}) for _ in range(2)]
    tasks = [node.task("job", lane="narrow")(gate.wait) for node in nodes]
    for node in nodes:
        node.start()
    tasks[0].enqueue_many([()] * 10)
    gate.entered(3)
    for node in nodes:
        settle(node)
    assert counts(nodes[0]) == {"queued": 7, "running": 3, "succeeded": 0}
    gate.open()
    for node in nodes:
        drain(node)
    eventually(lambda: counts(nodes[0])["succeeded"] == 10)
    assert gate.most <= 3


def test_a_full_lane_does_not_hold_up_another(db: str, make_app: MakeApp, gate: Gate) -> None:
    app = make_app(db, lanes={"narrow": 1})
    job = app.task("job", lane="narrow")(gate.wait)
    quick = app.task("quick")(lambda: "quick")
    app.start()
    job.enqueue_many([()] * 5)
    gate.entered()
    assert quick.enqueue().wait(timeout=60).result == "quick"


def test_a_node_runs_no_more_than_its_slots(db: str, make_app: MakeApp, gate: Gate) -> None:
    app = make_app(db, slots=2)
    job = app.task("job")(gate.wait)
    app.start()
    job.enqueue_many([()] * 6)
    gate.entered(2)
    settle(app)
    assert counts(app)["running"] == 2
    gate.open()
    drain(app)
    assert gate.most == 2
    assert counts(app)["succeeded"] == 6


def test_the_highest_priority_goes_first_then_what_waits_longest(db: str, make_app: MakeApp) -> None:
    app = make_app(db, slots=1)
    order: list[str] = []
    job = app.task("job")(order.append)
    for name, priority in [("a", 0), ("b", 5), ("c", -5), ("d", 5), ("e", 0)]:
        job.using(priority=priority).enqueue(name)
    drain(app)
    assert order == ["b", "d", "a", "e", "c"]


def test_an_unknown_lane_falls_back_to_main_with_one_warning(app: Ostinato, caplog: pytest.LogCaptureFixture) -> None:
    job = app.task("job", lane="fast")(lambda: None)
    assert [job.enqueue().get().lane, job.enqueue().get().lane] == ["main", "main"]
    warnings = [record.getMessage() for record in caplog.records if "no lane" in record.getMessage()]
    assert len(warnings) == 1
    assert "OSTINATO_LANE_FAST" in warnings[0]
    drain(app)
    assert counts(app)["succeeded"] == 2


def test_schedules_go_to_cron_and_enqueued_runs_to_main(app: Ostinato) -> None:
    job = app.task("job")(lambda: None)
    app.schedules.add("job", "every 1h", job)
    job.enqueue()
    simulate(app, lasting="1h")
    assert [run.lane for run in app.runs.list()] == ["cron", "main"]


# Keys, delays, batches.


def test_a_key_is_unique_while_its_run_is_active(app: Ostinato) -> None:
    job = app.task("job")(lambda n: n)
    first = job.using(key="order-7").enqueue(1)
    again = job.using(key="order-7").enqueue(2)
    assert again.id == first.id
    drain(app)
    assert first.get().result == 1
    third = job.using(key="order-7").enqueue(3)
    assert third.id != first.id
    drain(app)
    assert third.get().result == 3
    assert third.get().key == "order-7"


def test_a_run_that_will_be_retried_still_holds_its_key(app: Ostinato) -> None:
    @app.task("job", retry=3)
    def job() -> None:
        raise ValueError

    first = job.using(key="k").enqueue()
    drain(app)
    assert job.using(key="k").enqueue().id == first.id


def test_one_key_cannot_serve_many_calls(app: Ostinato) -> None:
    job = app.task("job")(lambda n: n)
    with pytest.raises(InvalidInput, match="one key 'k' cannot serve 2 runs"):
        job.using(key="k").enqueue_many([(1,), (2,)])
    assert app.runs.list() == []


def test_a_delayed_run_starts_when_its_time_has_come(app: Ostinato, fake_clock: FakeClock) -> None:
    job = app.task("job")(lambda: fake_clock.now_utc().isoformat())
    run = job.using(delay="90s").enqueue()
    assert run.get().ready_at == MIDNIGHT + timedelta(seconds=90)
    fake_clock.advance("89s")
    assert drain(app) == 0
    fake_clock.advance("1s")
    assert drain(app) == 1
    assert run.get().result == "2026-01-01T00:01:30+00:00"


def test_a_run_for_a_moment_starts_at_that_moment_on_a_started_engine(app: Ostinato, fake_clock: FakeClock) -> None:
    job = app.task("job")(lambda: None)
    app.start()
    run = job.using(at=MIDNIGHT + timedelta(hours=2)).enqueue()
    fake_clock.advance("1h")
    settle(app)
    assert run.get().state is RunState.QUEUED
    fake_clock.advance("1h")
    assert run.wait(timeout=60).started_at == MIDNIGHT + timedelta(hours=2)


def test_a_batch_is_all_or_nothing(app: Ostinato) -> None:
    job = app.task("job")(lambda n: n)
    with pytest.raises(InvalidInput, match="not JSON"):
        job.enqueue_many([(1,), (object(),)])
    assert app.runs.list() == []


def test_a_batch_takes_tuples_and_mappings(app: Ostinato) -> None:
    job = app.task("job")(lambda a, b=0: a + b)
    runs = job.enqueue_many([(1,), (1, 2), {"a": 5, "b": 5}])
    drain(app)
    assert [run.get().result for run in runs] == [1, 3, 10]


def test_a_thousand_runs_in_one_batch_all_end(app: Ostinato) -> None:
    @app.task("job")
    async def job(n: int) -> int:
        return n

    runs = job.enqueue_many([(n,) for n in range(1000)])
    assert len({run.id for run in runs}) == 1000
    assert drain(app) == 1000
    assert [runs[0].get().result, runs[999].get().result] == [0, 999]
