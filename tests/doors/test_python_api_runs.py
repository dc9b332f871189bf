"""The Python API of runs, as its users call it: trigger, list, cancel, retry, wait."""

from __future__ import annotations

import threading

import pytest

from ostinato import Abort, Cause, Function, Ostinato, Overlap, RunState, Shell, Snooze, Trigger
from ostinato.errors import AlreadyActive, Conflict, InvalidInput, NotFound, WaitTimeout
from ostinato.testing import drain, simulate
from tests.doors.conftest import at

# Triggers.


def test_a_trigger_runs_it_now(app: Ostinato) -> None:
    app.task("job")(lambda: "by hand")
    app.schedules.add("job", "every 1h", "job")
    run = app.schedules.trigger("job")
    assert (run.trigger, run.schedule, run.state) == (Trigger.MANUAL, "job", RunState.QUEUED)
    drain(app)
    assert app.runs.get(run.id).result == "by hand"
    assert app.schedules.get("job").next_run_at == at(1), "the schedule goes on as before"


def test_a_disabled_schedule_can_be_triggered(app: Ostinato) -> None:
    app.task("job")(lambda: None)
    app.schedules.add("job", "every 1h", "job", enabled=False)
    run = app.schedules.trigger("job")
    drain(app)
    assert app.runs.get(run.id).state is RunState.SUCCEEDED


def test_a_trigger_while_a_run_is_active_is_refused_unless_forced(app: Ostinato) -> None:
    app.schedules.add("job", "every 1h", "job")
    app.schedules.trigger("job")
    with pytest.raises(AlreadyActive, match="overlap policy is skip"):
        app.schedules.trigger("job")
    with pytest.raises(Conflict):
        app.schedules.trigger("job")
    app.schedules.trigger("job", force=True)
    assert len(app.runs.list()) == 2


@pytest.mark.parametrize(("overlap", "accepted"), [(Overlap.QUEUE_ONE, 2), (Overlap.QUEUE_ALL, 5), (Overlap.ALLOW, 5)])
def test_a_trigger_obeys_the_overlap_policy(app: Ostinato, overlap: Overlap, accepted: int) -> None:
    app.task("job")(lambda: None)
    app.schedules.add("job", "every 1h", "job", overlap=overlap)
    made = 0
    for _ in range(5):
        try:
            app.schedules.trigger("job")
            made += 1
        except AlreadyActive:
            pass
    assert made == accepted
    assert drain(app) == accepted


def test_a_trigger_under_cancel_running_replaces_the_active_run(app: Ostinato) -> None:
    app.task("job")(lambda: None)
    app.schedules.add("job", "every 1h", "job", overlap="cancel_running")
    first, second = app.schedules.trigger("job"), app.schedules.trigger("job")
    drain(app)
    assert app.runs.get(first.id).state is RunState.CANCELLED
    assert app.runs.get(second.id).state is RunState.SUCCEEDED


# Runs.


def test_runs_are_listed_newest_first_and_filtered(app: Ostinato) -> None:
    good = app.task("good")(lambda: None)

    @app.task("bad", retry=0)
    def bad() -> None:
        raise ValueError

    app.schedules.add("hourly", "every 1h", good)
    runs = [good.enqueue(), bad.enqueue(), good.enqueue()]
    simulate(app, lasting="1h")
    newest = app.runs.list()
    assert [run.id for run in newest] == sorted((run.id for run in newest), reverse=True)
    assert [run.id for run in app.runs.list(state="failed")] == [runs[1].id]
    assert [run.id for run in app.runs.list(state=RunState.FAILED)] == [runs[1].id]
    assert len(app.runs.list(state=["failed", "succeeded"])) == 4
    assert len(app.runs.list(task="good")) == 3
    assert [run.schedule for run in app.runs.list(schedule="hourly")] == ["hourly"]
    assert [run.id for run in app.runs.list(before=runs[1].id)] == [runs[0].id]
    assert len(app.runs.list(limit=2)) == 2
    with pytest.raises(InvalidInput, match=r"there is no state 'happy'.*queued"):
        app.runs.list(state="happy")
    with pytest.raises(InvalidInput, match="limit cannot be 0"):
        app.runs.list(limit=0)


def test_an_unknown_run_is_not_found(app: Ostinato) -> None:
    for verb in (app.runs.get, app.runs.cancel, app.runs.retry, app.runs.output, app.runs.wait):
        with pytest.raises(NotFound, match="there is no run 99"):
            verb(99)


def test_cancel_of_an_ended_run_is_a_conflict_and_twice_is_none(app: Ostinato) -> None:
    job = app.task("job")(lambda: None)
    ended, queued = job.enqueue(), job.using(delay="1h").enqueue()
    drain(app)
    with pytest.raises(Conflict, match="has ended already: succeeded"):
        ended.cancel()
    assert queued.cancel().state is RunState.CANCELLED
    assert queued.cancel().state is RunState.CANCELLED


def test_the_words_of_an_interrupt_do_not_make_one(app: Ostinato) -> None:
    words = "interrupted by a newer message of its session, as one wrote"
    queued = app.task("job")(lambda: None).using(delay="1h").enqueue()
    run = app.runs.cancel(queued.id, reason=words)
    assert (run.state, run.cause, run.reason) == (RunState.CANCELLED, Cause.CANCELLED, words)


def test_each_end_says_its_cause_and_runs_are_listed_by_it(app: Ostinato) -> None:
    app.task("raises", retry=0)(lambda: 1 / 0)
    app.task("odd")(object)

    @app.task("aborts")
    def aborts() -> None:
        raise Abort("no use")

    @app.task("snoozes")
    def snoozes() -> None:
        raise Snooze("1h", "not yet")

    works: dict[str, Function | Shell] = {
        "raised": Function("raises"),
        "aborted": Function("aborts"),
        "exit_status": Shell("exit 3"),
        "not_started": Shell("true", folder="nowhere"),
    }
    runs = {cause: app.enqueue(work, retry=0) for cause, work in works.items()}
    runs["snoozed"] = app.enqueue(Function("snoozes"))
    odd = app.enqueue(Function("odd"))
    good = app.enqueue(Shell("true"))
    drain(app)
    assert {cause: run.get().cause for cause, run in runs.items()} == {cause: cause for cause in runs}
    assert (odd.get().cause, good.get().cause) == (Cause.ABORTED, None)
    assert [run.id for run in app.runs.list(cause="aborted")] == [odd.id, runs["aborted"].id]
    assert [run.id for run in app.runs.list(cause=["raised", Cause.EXIT_STATUS])] == [
        runs["exit_status"].id,
        runs["raised"].id,
    ]
    with pytest.raises(InvalidInput, match="there is no cause 'bad luck'") as refused:
        app.runs.list(cause="bad luck")
    assert refused.value.field == "cause"


def test_retry_runs_the_same_work_again_as_a_new_run(app: Ostinato) -> None:
    fails = [True]

    @app.task("job", retry=0)
    def job(n: int) -> int:
        if fails[-1]:
            raise ValueError
        return n

    run = job.enqueue(5)
    with pytest.raises(Conflict, match="can be retried when it has ended"):
        app.runs.retry(run.id)
    drain(app)
    fails.append(False)
    again = app.runs.retry(run.id)
    drain(app)
    assert again.id != run.id
    assert again.trigger is Trigger.MANUAL
    assert (run.get().state, app.runs.get(again.id).result) == (RunState.FAILED, 5)


def test_retry_keeps_the_policy_that_the_run_had(app: Ostinato) -> None:
    attempts: list[int] = []

    @app.task("job", retry=0)
    def job() -> None:
        attempts.append(1)
        raise ValueError

    run = job.enqueue()
    drain(app)
    app.runs.retry(run.id)
    simulate(app, lasting="10m")
    assert len(attempts) == 2


def test_wait_answers_the_ended_run_and_times_out_otherwise(app: Ostinato, opened: threading.Event) -> None:
    job = app.task("job")(lambda: opened.wait(10))
    app.start()
    run = job.enqueue()
    with pytest.raises(WaitTimeout, match="is still"):
        run.wait(timeout="10ms")
    with pytest.raises(TimeoutError):
        app.runs.wait(run.id, timeout=0)
    opened.set()
    assert run.wait(timeout=60).result is True


def test_wait_idle_waits_for_what_is_ready_and_running_and_not_for_the_future(
    app: Ostinato, opened: threading.Event
) -> None:
    job = app.task("job")(lambda: opened.wait(10))
    app.start()
    job.using(delay="1h").enqueue()
    app.wait_idle(timeout=60)
    job.enqueue()
    with pytest.raises(WaitTimeout, match="1 run is still queued or running"):
        app.wait_idle(timeout="10ms")
    opened.set()
    app.wait_idle(timeout=60)
