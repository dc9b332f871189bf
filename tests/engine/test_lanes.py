"""Who goes when: limits of lanes, slots, priorities, keys, delays and batches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ostinato import Ostinato, RunState, Shell
from ostinato.errors import InvalidInput
from ostinato.testing import FakeClock, drain, settle, simulate
from tests.engine.conftest import Gate, MakeApp

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


def test_without_its_setting_a_lane_has_its_default_again(db: str, make_app: MakeApp) -> None:
    def limits(**lanes: int) -> dict[str, int]:
        app = make_app(db, lanes=lanes)
        app.start()
        found = {lane.name: lane.limit for lane in app.lanes.list()}
        app.stop()
        return found

    assert limits(cron=9)["cron"] == 9
    assert limits(cron=7)["cron"] == 7
    assert limits()["cron"] == 30


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


def test_one_key_cannot_serve_many_calls(app: Ostinato) -> None:
    job = app.task("job")(lambda n: n)
    with pytest.raises(InvalidInput, match="one key 'k' cannot serve 2 runs"):
        job.using(key="k").enqueue_many([(1,), (2,)])
    assert app.runs.list() == []


def test_the_same_key_of_another_task_is_another_run_and_the_handle_says_whether_it_is_new(app: Ostinato) -> None:
    send_mail = app.task("send_mail")(lambda: "sent")
    sync_profile = app.task("sync_profile")(lambda: "synced")
    sent, synced = send_mail.using(key="user:42").enqueue(), sync_profile.using(key="user:42").enqueue()
    assert (sent.is_new, synced.is_new, sent.id == synced.id) == (True, True, False)
    again = sync_profile.using(key="user:42").enqueue()
    assert (again.id, again.is_new) == (synced.id, False)
    drain(app)
    assert (sent.result(), synced.result()) == ("sent", "synced")
    later = sync_profile.using(key="user:42").enqueue()
    assert (later.is_new, later.id == synced.id) == (True, False), "its run has ended"


@pytest.mark.parametrize("session", [None, "mail"])
def test_a_key_serves_several_tasks_only_in_a_scope_that_they_name(app: Ostinato, session: str | None) -> None:
    one, other = app.task("one")(lambda: None), app.task("other")(lambda: None)
    run = one.using(key="user:42", scope="accounts", session=session).enqueue()
    same = other.using(key="user:42", scope="accounts", session=session).enqueue()
    assert (same.id, same.is_new) == (run.id, False)
    assert other.using(key="user:42", session=session).enqueue().is_new
    shell = app.enqueue(Shell("true"), key="user:42", session=session)
    assert (shell.is_new, app.enqueue(Shell("false"), key="user:42", session=session).is_new) == (True, False)
    with pytest.raises(InvalidInput, match="the scope 'accounts' is of no key"):
        one.using(scope="accounts").enqueue()


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
