"""The callbacks of `app.on(…)`: how they are given, called and bounded, and that without them nothing is made."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import threading
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from typing import Any, get_args

import pytest

from ostinato import AppEvent, AppEventKind, AppEventName, Ostinato, RunState, announcer
from ostinato.errors import InvalidInput
from ostinato.listeners import Listeners
from ostinato.testing import drain
from ostinato.tuning import Tuning
from tests.engine.conftest import PATIENCE, Gate, MakeApp


def test_every_name_of_an_event_is_in_both_lists() -> None:
    assert list(get_args(AppEventName)) == list(AppEventKind)


def test_a_callback_can_be_given_or_decorated_and_stays_what_it_is(memory_app: Ostinato) -> None:
    told: list[str] = []

    def given(event: AppEvent) -> None:
        told.append(f"given {event.task}")

    @memory_app.on("run.succeeded")
    def decorated(event: AppEvent) -> None:
        told.append(f"decorated {event.task}")

    assert memory_app.on(AppEventKind.RUN_SUCCEEDED, given) is given
    assert decorated.__name__ == "decorated"
    memory_app.task("job")(lambda: None).enqueue()
    drain(memory_app)
    assert told == ["decorated job", "given job"]


def test_an_unknown_name_is_refused_with_the_list(memory_app: Ostinato) -> None:
    with pytest.raises(InvalidInput, match=r"no event 'run\.faild'.*run\.started, .*run\.failed, .*lane\.paused"):
        memory_app.on("run.faild", print)  # type: ignore[call-overload]


def test_what_cannot_be_called_is_refused(memory_app: Ostinato) -> None:
    with pytest.raises(InvalidInput, match="'mail' cannot be called"):
        memory_app.on("run.failed", "mail")  # type: ignore[call-overload]


def test_an_event_cannot_be_changed(memory_app: Ostinato) -> None:
    told: list[AppEvent] = []
    memory_app.on("lane.paused", told.append)
    memory_app.lanes.pause("main")
    memory_app.stop()
    with pytest.raises(FrozenInstanceError):
        told[0].lane = "other"  # type: ignore[misc]


def test_while_nobody_listens_nothing_is_made(memory_app: Ostinato, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*_: Any, **__: Any) -> None:
        raise AssertionError("an event was made for nobody")

    monkeypatch.setattr(announcer, "AppEvent", made)
    monkeypatch.setattr(Listeners, "tell", made)
    memory_app.schedules.add("hourly", "every 1h", memory_app.task("job")(lambda: None))
    memory_app.schedules.trigger("hourly")
    assert drain(memory_app) == 1
    memory_app.lanes.pause("main")
    listeners = memory_app.registry.listeners
    assert (listeners.wanted, listeners._worker) == (frozenset(), None)


def test_kinds_that_nobody_wants_are_not_told(memory_app: Ostinato) -> None:
    told: list[AppEvent] = []
    memory_app.on("run.failed", told.append)
    memory_app.task("job")(lambda: None).enqueue()
    drain(memory_app)
    assert told == []
    assert memory_app.registry.listeners._worker is None


def test_a_callback_that_raises_fails_no_run_and_is_logged_once(
    memory_app: Ostinato, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[AppEvent] = []

    @memory_app.on("run.succeeded")
    def bad(event: AppEvent) -> None:
        raise SystemExit(f"no mail for run {event.run}")

    memory_app.on("run.succeeded", told.append)
    job = memory_app.task("job")(lambda: None)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            job.enqueue()
        drain(memory_app)
    assert len(told) == 3, "the other callback is told all the same"
    assert [run.state for run in memory_app.runs.list()] == [RunState.SUCCEEDED] * 3
    (record,) = caplog.records
    assert record.message.endswith(".bad of app.on('run.succeeded') raised; this is logged once")


def test_a_callback_that_hangs_holds_up_neither_runs_nor_a_stop(
    make_app: MakeApp, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app("sqlite://:memory:", tuning=Tuning(event_queue=2, event_stop_seconds=0.05))

    @app.on("run.succeeded")
    def hangs(event: AppEvent) -> None:
        gate.wait()

    job = app.task("job")(lambda: None)
    app.start()
    job.enqueue()
    gate.entered()
    handles = [job.enqueue() for _ in range(5)]
    with caplog.at_level(logging.WARNING):
        assert [handle.wait(timeout="60s").state for handle in handles] == [RunState.SUCCEEDED] * 5
        app.stop()
    listeners = app.registry.listeners
    assert listeners.dropped == 5, "three found the queue full, two were left at the stop"
    said = [record.message for record in caplog.records]
    assert said == [
        "callbacks of app.on are too slow, or hang: 1 event dropped so far",
        "a callback of app.on did not end within 0.05 s: it is left alone",
        "callbacks of app.on are too slow, or hang: 5 events dropped so far",
    ]
    gate.open()


def test_a_stop_lets_the_callbacks_have_what_was_told(memory_app: Ostinato) -> None:
    told: list[AppEvent] = []
    memory_app.on("run.succeeded", told.append)
    memory_app.task("job")(lambda: None).enqueue_many([()] * 500)
    memory_app.start()
    memory_app.wait_idle(timeout="60s")
    memory_app.stop()
    assert len(told) == 500


def test_an_app_that_was_stopped_tells_again_after_its_next_start(app: Ostinato) -> None:
    told: list[AppEvent] = []
    app.on("lane.paused", told.append)
    for _ in range(2):
        app.start()
        app.lanes.pause("main")
        app.stop()
    assert len(told) == 2


def test_a_callback_may_call_the_app(app: Ostinato) -> None:
    seen: list[RunState] = []

    @app.on("run.succeeded")
    def look(event: AppEvent) -> None:
        assert event.run is not None
        seen.append(app.runs.get(event.run).state)

    app.task("job")(lambda: None).enqueue()
    app.start()
    app.wait_idle(timeout="60s")
    app.stop()
    assert seen == [RunState.SUCCEEDED], "the row is written before it is told"


def test_callbacks_are_called_in_order_on_a_thread_of_their_own(memory_app: Ostinato) -> None:
    threads: list[str] = []
    told: list[int | None] = []

    @memory_app.on("run.succeeded")
    def note(event: AppEvent) -> None:
        threads.append(threading.current_thread().name)
        told.append(event.run)

    job = memory_app.task("job")(lambda: None)
    ids = [job.enqueue().id for _ in range(20)]
    drain(memory_app)
    assert sorted(i for i in told if i is not None) == ids
    assert set(threads) == {"ostinato-listeners"}


def test_a_coroutine_function_is_awaited_and_may_call_the_app(memory_app: Ostinato) -> None:
    seen: list[RunState] = []

    @memory_app.on("run.succeeded")
    async def look(event: AppEvent) -> None:
        assert event.run is not None
        seen.append((await memory_app.aio.runs.get(event.run)).state)

    job = memory_app.task("job")(lambda: None)

    async def main() -> None:
        async with memory_app:
            await memory_app.aio.runs.wait(await job.aio.enqueue(), timeout="60s")

    asyncio.run(main())
    assert seen == [RunState.SUCCEEDED]


def test_a_coroutine_that_blocks_holds_up_no_run(memory_app: Ostinato, gate: Gate) -> None:
    @memory_app.on("run.succeeded")
    async def blocks(_: AppEvent) -> None:
        gate.wait()

    job = memory_app.task("job")(lambda: None)
    memory_app.start()
    job.enqueue()
    gate.entered()
    assert job.enqueue().wait(timeout="60s").state is RunState.SUCCEEDED
    gate.open()
    memory_app.stop()


def test_after_a_stop_that_did_not_wait_no_other_callback_is_called(make_app: MakeApp, gate: Gate) -> None:
    app = make_app("sqlite://:memory:", tuning=Tuning(event_stop_seconds=0.05))
    told: list[AppEvent] = []
    app.on("lane.paused", lambda _: gate.wait())
    app.on("lane.paused", told.append)
    app.start()
    app.lanes.pause("main")
    gate.entered()
    worker = app.registry.listeners._worker
    assert worker is not None
    app.stop()
    gate.open()
    worker.thread.join(PATIENCE)
    assert told == []
    assert app.registry.listeners.dropped == 0, "the event under way was told, to the first"


def test_a_forked_child_can_tell_although_a_thread_of_the_parent_was_telling() -> None:
    listeners = Listeners()
    told = multiprocessing.get_context("fork").SimpleQueue()
    listeners.add(AppEventKind.LANE_PAUSED, lambda event: told.put(event.lane))

    def child() -> None:
        listeners.tell([AppEvent(AppEventKind.LANE_PAUSED, datetime.now(UTC), lane="main")])
        asyncio.run(listeners.close())

    with listeners._lock:  # as held by a thread that is not in the child
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
    process.join(PATIENCE)
    try:
        assert process.exitcode == 0
        assert told.get() == "main"
    finally:
        process.kill()


def test_a_coroutine_that_hangs_is_cancelled_at_the_stop(make_app: MakeApp) -> None:
    app = make_app("sqlite://:memory:", tuning=Tuning(event_stop_seconds=0.05))
    entered, left = threading.Event(), threading.Event()

    @app.on("lane.paused")
    async def hangs(_: AppEvent) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()

    app.start()
    app.lanes.pause("main")
    assert entered.wait(PATIENCE)
    app.stop()
    assert left.wait(PATIENCE)


def test_a_thread_that_is_not_there_any_more_is_replaced(memory_app: Ostinato) -> None:
    told: list[AppEvent] = []
    memory_app.on("lane.paused", told.append)
    memory_app.lanes.pause("main")
    listeners = memory_app.registry.listeners
    worker = listeners._worker
    assert worker is not None
    worker.queue.put(None)  # as in a forked child, which has the queue and not the thread
    worker.thread.join(PATIENCE)
    memory_app.lanes.pause("cron")
    memory_app.stop()
    assert [event.lane for event in told] == ["main", "cron"]


def test_where_no_thread_can_be_started_events_are_dropped_and_counted(
    memory_app: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_app.on("lane.paused", lambda _: None)
    memory_app.lanes.list()  # the app's own thread is there

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        memory_app.lanes.pause("main")
    assert memory_app.registry.listeners.dropped == 1
