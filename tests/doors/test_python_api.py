"""The Python API, as its users call it: sync and async forms, and errors that have a type."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Sequence
from datetime import datetime
from typing import Any, assert_type

import pytest

from ostinato import (
    At,
    Cron,
    Every,
    Function,
    Ostinato,
    Run,
    RunContext,
    RunState,
    Schedule,
    ScheduleSpec,
    Shell,
    TimingError,
    current_run,
)
from ostinato.errors import Conflict, InvalidInput, NotFound, OstinatoError
from ostinato.models.ids import RunId
from ostinato.models.lane import Lane
from ostinato.run_handles import MessageHandle
from ostinato.testing import FakeClock, adrain, asettle, asimulate, drain, simulate
from tests.doors.conftest import at
from tests.doors.prometheus_text import read_metrics

# Tasks.


def test_a_task_is_still_a_plain_function(app: Ostinato) -> None:
    @app.task
    def add(a: int, b: int = 1) -> int:
        """Adds."""
        return a + b

    assert add(2) == 3
    assert (add.name, add.__name__, add.__doc__) == ("add", "add", "Adds.")
    assert app.runs.list() == []


def test_a_task_may_be_named_and_may_be_a_coroutine(app: Ostinato) -> None:
    @app.task("mail.send", priority=5)
    async def send(to: str) -> str:
        return f"sent to {to}"

    assert asyncio.run(send("ann")) == "sent to ann"
    run = send.enqueue("ann")
    drain(app)
    assert (run.get().task, run.get().result, run.get().priority) == ("mail.send", "sent to ann", 5)


def test_a_task_gets_its_context_by_annotation_or_by_asking(app: Ostinato) -> None:
    @app.task
    def by_annotation(n: int, run: RunContext) -> int:
        return run.id * 10 + n

    @app.task
    async def by_asking() -> int:
        return current_run().id

    first, second = by_annotation.enqueue(7), by_asking.enqueue()  # type: ignore[call-arg]
    drain(app)
    assert (first.get().result, second.get().result) == (first.id * 10 + 7, second.id)


def test_a_wrong_policy_is_told_where_the_task_is_declared(app: Ostinato) -> None:
    with pytest.raises(InvalidInput, match="there is no policy 'retrys'"):
        app.task("job", retrys=3)(lambda: None)  # type: ignore[call-overload]


def test_two_functions_cannot_have_one_name(app: Ostinato) -> None:
    app.task("job")(test_a_task_is_still_a_plain_function)
    with pytest.raises(InvalidInput, match="another name"):
        app.task("job")(test_two_functions_cannot_have_one_name)


def test_a_call_of_enqueue_many_that_is_neither_tuple_nor_mapping_is_refused(app: Ostinato) -> None:
    job = app.task("job")(lambda n: n)
    with pytest.raises(InvalidInput, match="a tuple of arguments"):
        job.enqueue_many([1, 2])  # type: ignore[list-item]


def test_delay_and_at_exclude_each_other_and_at_needs_a_zone(app: Ostinato) -> None:
    job = app.task("job")(lambda: None)
    with pytest.raises(InvalidInput, match="either at or delay"):
        job.using(delay="1m", at=at(1)).enqueue()
    with pytest.raises(InvalidInput, match="has no zone"):
        job.using(at=datetime(2026, 1, 1)).enqueue()


@pytest.mark.parametrize("moment", ["2026-12-24T18:00:00Z", 5])
def test_a_time_that_is_no_datetime_is_refused_by_its_name_with_a_right_example(app: Ostinato, moment: Any) -> None:
    def refused(field: str) -> Any:
        return pytest.raises(InvalidInput, match=rf"{field} cannot be {moment!r}; .* datetime\(2026, 12, 24, .*=UTC\)")

    job = app.task("job")(lambda: None)
    app.schedules.add("job", "every 1h", job)
    with refused("at"):
        job.using(at=moment).enqueue()
    with refused("at"):
        app.why("job", at=moment)
    with refused("since"):
        app.runs.list(since=moment)
    with refused("until"):
        app.schedules.backfill("job", at(0), moment)


# Schedules.


def test_adding_again_keeps_a_persons_pause_and_the_due_time(app: Ostinato, clock: FakeClock) -> None:
    app.schedules.add("job", "every 1h", "job")
    app.schedules.disable("job", note="holiday")
    clock.advance("10m")
    again = app.schedules.add("job", "every 1h", "job", priority=9)
    assert (again.enabled, again.off_note, again.policy.priority) == (False, "holiday", 9)
    enabled = app.schedules.enable("job")
    assert enabled.next_run_at == at(1, 10)
    clock.advance("10m")
    assert app.schedules.add("job", "every 1h", "job", priority=1).next_run_at == at(1, 10)


def test_timings_and_work_come_in_every_form(app: Ostinato) -> None:
    job = app.task("job", priority=4)(lambda n=0: n)
    assert app.schedules.add("a", Every(minutes=5), job).policy.priority == 4
    assert app.schedules.add("b", "30 9 * * 1-5", "job").timing == "30 9 * * 1-5"
    assert app.schedules.add("c", Cron("@daily"), Function("job", [3])).work == Function("job", [3])
    assert app.schedules.add("d", "tomorrow 15:00", job).next_run_at == at(15, day=2)
    assert app.schedules.add("e", "daily 03:00", job, tz="Asia/Tokyo").next_run_at == at(18)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (("", "every 5m", "job"), InvalidInput, "cannot be called ''"),
        ((" job", "every 5m", "job"), InvalidInput, "without spaces before or after it"),
        (("job\x00", "every 5m", "job"), InvalidInput, "cannot be printed"),
        (("job", "every banana", "job"), TimingError, "banana"),
        (("job", 5, "job"), InvalidInput, "a timing cannot be 5"),
        (("job", "every 5m", 7), InvalidInput, "work cannot be 7"),
        (("job", "every 5m", Function("job", [object()])), InvalidInput, "not JSON"),
        (("job", At("2020-01-01T00:00Z"), "job"), TimingError, "would never run"),
    ],
)
def test_a_wrong_schedule_is_refused_with_the_reason(
    app: Ostinato, arguments: tuple[str, str, str], error: type[OstinatoError], says: str
) -> None:
    with pytest.raises(error, match=says):
        app.schedules.add(*arguments)
    assert app.schedules.list() == []


def test_many_are_added_at_once(app: Ostinato) -> None:
    specs = [ScheduleSpec(f"job {n}", "every 1h", "job") for n in range(2500)]
    assert app.schedules.add_many(specs) == 2500
    assert len(app.schedules.list()) == 2500


def test_get_of_an_unknown_name_is_not_found(app: Ostinato) -> None:
    for verb in (app.schedules.get, app.schedules.enable, app.schedules.disable, app.schedules.trigger):
        with pytest.raises(NotFound, match="there is no schedule 'nobody'"):
            verb("nobody")
    for other in (app.schedules.remove, app.schedules.next, app.why):
        with pytest.raises(NotFound, match="there is no schedule 'nobody'"):
            other("nobody")
    with pytest.raises(LookupError):
        app.runs.list(schedule="nobody")


def test_the_list_is_soonest_first_and_can_be_filtered(app: Ostinato) -> None:
    app.schedules.add("later", "every 2h", "job")
    app.schedules.add("sooner", "every 1h", "job")
    app.schedules.add("off", "every 1m", "job", enabled=False)
    app.schedules.add("theirs", "every 3h", "job", owner="agent")

    def names(**wanted: Any) -> list[str]:
        return [schedule.name for schedule in app.schedules.list(**wanted)]

    assert names() == ["sooner", "later", "theirs", "off"]
    assert names(search="ER") == ["sooner", "later"]
    assert names(enabled=False) == ["off"]
    assert names(owner="agent") == ["theirs"]
    assert names(limit=1) == ["sooner"]


def test_edit_changes_only_what_is_given(app: Ostinato) -> None:
    app.schedules.add("job", "every 1h", Function("job", [1]), priority=3, note="why")
    edited = app.schedules.edit("job", priority=4)
    assert (edited.timing, edited.work, edited.note) == ("every 1h", Function("job", [1]), "why")
    assert edited.policy.priority == 4
    assert edited.next_run_at == at(1)
    assert app.schedules.edit("job", timing="every 2h").policy.priority == 4


def test_disable_says_why_and_enable_forgets_it(app: Ostinato) -> None:
    app.schedules.add("job", "every 1h", "job", note="owner: ada")
    off = app.schedules.disable("job", note="broken printer")
    assert (off.note, off.off_note) == ("owner: ada", "broken printer")
    assert (off.enabled, off.next_run_at, off.next_run_reason) == (False, None, "disabled: broken printer")
    on = app.schedules.enable("job")
    assert (on.enabled, on.note, on.off_note, on.next_run_reason) == (True, "owner: ada", None, None)
    assert app.schedules.enable("job").version == on.version


def test_enabling_what_is_finished_is_a_conflict(app: Ostinato) -> None:
    app.task("job")(lambda: None)
    app.schedules.add("job", At(at(1)), "job")
    simulate(app, lasting="2h")
    app.schedules.disable("job")
    with pytest.raises(Conflict, match="finished"):
        app.schedules.enable("job")


def test_next_shows_the_coming_times(app: Ostinato) -> None:
    app.schedules.add("job", "every 90m", "job")
    assert app.schedules.next("job", 3) == [at(1, 30), at(3), at(4, 30)]
    assert len(app.schedules.next("job")) == 5
    app.schedules.disable("job")
    assert app.schedules.next("job") == []
    app.schedules.add("once", At(at(6)), "job")
    assert app.schedules.next("once", 9) == [at(6)]
    with pytest.raises(InvalidInput, match="n cannot be 0"):
        app.schedules.next("once", 0)


def test_next_after_finish_knows_only_one(app: Ostinato) -> None:
    app.schedules.add("job", "every 1h after finish", "job")
    assert app.schedules.next("job", 5) == [at(1)]


# Starting and stopping.


def test_start_and_stop_may_be_called_twice(app: Ostinato) -> None:
    app.stop()
    assert app.start() is app.start()
    assert len(app.nodes.list()) == 1
    app.stop()
    app.stop()
    assert app.health()["ok"] is False


def test_an_app_gives_its_metrics_with_what_its_engine_has_counted_by_now(app: Ostinato) -> None:
    app.task("job")(lambda: None).enqueue()
    assert "scheduler_task_runs_total" not in app.metrics()
    app.start()
    drain(app)
    runs = read_metrics(app.metrics())["scheduler_task_runs_total"]
    assert sorted(
        (dict(labels)["task"], dict(labels)["status"], value) for (_, labels), value in runs.samples.items()
    ) == [("job", "failure", 0), ("job", "success", 1)]


async def test_async_with_runs_the_engine_on_the_running_loop(app: Ostinato) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    @app.task
    async def job() -> str:
        loops.append(asyncio.get_running_loop())
        return "here"

    async with app as entered:
        assert entered is app
        id = await job.aio.enqueue()
        assert (await app.aio.runs.wait(id, timeout=60)).result == "here"
        assert loops == [asyncio.get_running_loop()]
        assert (await app.aio.health())["ok"]
        assert "scheduler_nodes" in await app.aio.metrics()
        with pytest.raises(OstinatoError, match="would block the event loop"):
            app.runs.list()
    assert (await app.aio.health())["ok"] is False
    await app.aio.stop()


async def test_the_async_forms_answer_the_same_as_the_sync_ones(app: Ostinato, clock: FakeClock) -> None:
    job = app.task("job", retry=0)(lambda n: n)
    aio = app.aio
    await aio.schedules.add("job", "every 1h", Function("job", [1]))
    assert (await aio.schedules.get("job")).name == "job"
    assert await aio.schedules.next("job", 1) == [at(1)]
    await aio.schedules.edit("job", priority=2)
    await aio.schedules.disable("job", note="x")
    await aio.schedules.enable("job")
    await aio.schedules.add_many([ScheduleSpec("other", "every 2h", Function("job", [2]))])
    assert len(await aio.schedules.list()) == 2
    run = await aio.schedules.trigger("job")
    ids = await job.aio.enqueue_many([(1,), (2,)])
    assert await adrain(app) == 3
    assert (await aio.runs.get(ids[1])).result == 2
    assert (await aio.runs.retry(ids[1])).state is RunState.QUEUED
    assert await aio.runs.output(run.id) == ""
    id = await job.using(delay="1d").aio.enqueue(1)
    assert (await aio.runs.cancel(id)).state is RunState.CANCELLED
    assert len(await aio.runs.list()) == 5
    await adrain(app)
    await aio.wait_idle(timeout=60)
    assert "not due" in (await aio.why("other")).answer
    assert await asimulate(app, lasting="1h") == 1
    assert await aio.nodes.list() == []
    await aio.start()
    assert len(await aio.nodes.list()) == 1
    assert await asettle(app) == 0
    await aio.schedules.remove("other")
    await aio.stop()
    assert clock.now_utc() == at(1)


def test_the_app_has_every_verb_as_a_coroutine_too() -> None:
    app = Ostinato("sqlite://:memory:")
    verbs = {name for name, _ in inspect.getmembers(app, inspect.ismethod) if not name.startswith("_")}
    found = {name: verb for name, verb in inspect.getmembers(app.aio, inspect.ismethod) if not name.startswith("_")}
    declaring = {"task", "check", "on", "outbox", "add_outbox", "lifespan", "asgi", "init_flask"}
    assert verbs - declaring == set(found), "the others touch no database: there is nothing to wait for"
    assert all(map(inspect.iscoroutinefunction, found.values()))


async def test_work_without_a_schedule_has_its_coroutines(app: Ostinato) -> None:
    lines: list[str] = []
    run = await app.aio.execute(Shell("echo here"), printed=lambda line: lines.append(line.text), timeout="1m")
    assert (run.state, run.trigger, lines) == ("succeeded", "manual", ["here"])
    id = await app.aio.enqueue(Shell("echo soon"), key="soon", priority=3)
    assert await app.aio.enqueue(Shell("echo soon"), key="soon") == id
    await app.aio.force()  # nothing drains: it changes nothing
    assert (await app.aio.runs.get(id)).priority == 3
    await app.aio.stop()


@pytest.mark.parametrize("noun", ["schedules", "runs", "projects", "lanes", "sessions", "nodes"])
def test_every_sync_verb_has_its_coroutine(app: Ostinato, noun: str) -> None:
    sync, aio = getattr(app, noun), getattr(app.aio, noun)
    assert type(sync) is type(aio), "one definition for both"
    for name in (name for name in vars(type(sync)) if not name.startswith("_") and name != "throttle"):
        assert not asyncio.iscoroutinefunction(getattr(sync, name))
        assert asyncio.iscoroutinefunction(getattr(aio, name))
        assert inspect.signature(getattr(sync, name)) == inspect.signature(getattr(aio, name))
        assert "self" not in inspect.signature(getattr(sync, name)).parameters
        assert getattr(sync, name).__doc__


async def test_both_forms_of_a_verb_are_typed(app: Ostinato) -> None:
    """`make lint` judges the types; here it is seen that they are true."""

    @app.task("job")
    def job(payloads: list[Any]) -> None:
        """Takes messages."""

    assert_type(app.schedules.add("s", "every 1h", "https://example.org/x"), Schedule)
    assert_type(app.runs.list(limit=3), Sequence[Run])
    assert_type(app.lanes.get("main"), Lane)
    sent = app.sessions.send("chat", "hello", task="job")
    assert_type(sent, MessageHandle)
    assert isinstance(sent, MessageHandle)
    with pytest.raises(TypeError):
        app.runs.list(limits=3)  # type: ignore[call-arg]
    assert_type(await app.aio.schedules.get("s"), Schedule)
    runs = await app.aio.runs.list(limit=3)
    assert_type(runs, Sequence[Run])
    assert runs
    assert_type(await app.aio.sessions.send("chat", "again", task="job"), RunId)
    with pytest.raises(TypeError):
        await app.aio.runs.list(limits=3)  # type: ignore[call-arg]


def test_many_threads_may_use_one_app(app: Ostinato) -> None:
    job = app.task("job")(lambda n: n)
    app.start()
    results: list[object] = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(job.enqueue(n).wait(timeout=60).result)) for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, results)) == sorted(map(str, range(20)))
