"""A soft timeout: a function is asked to end, by an exception in coroutines and by run.cancelled elsewhere."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ostinato import InvalidInput, Ostinato, RunContext, RunState, Shell, SoftTimeout
from ostinato.testing import FakeClock
from tests.engine import process_tasks
from tests.engine.conftest import PATIENCE, eventually


def test_a_coroutine_gets_an_exception_that_it_may_handle(app: Ostinato, fake_clock: FakeClock) -> None:
    began: list[str] = []

    @app.task(soft_timeout="5m", timeout="10m", retry=0)
    async def handles() -> str:
        began.append("handles")
        try:
            await asyncio.wait_for(asyncio.gather(asyncio.sleep(600), asyncio.Event().wait()), None)
        except SoftTimeout as error:
            await asyncio.sleep(0)
            return f"cleaned up: {error}"
        return "not reached"

    @app.task(soft_timeout="5m", retry=0)
    async def does_not() -> None:
        began.append("does not")
        await asyncio.Event().wait()

    app.start()
    first, second = handles.enqueue(), does_not.enqueue()
    eventually(lambda: len(began) == 2)
    fake_clock.advance("5m")
    assert first.result(PATIENCE) == "cleaned up: its soft timeout of 5m is over"
    ended = second.wait(PATIENCE)
    assert (ended.state, ended.cause) == (RunState.FAILED, "timed_out")
    assert "SoftTimeout: its soft timeout of 5m is over" in (ended.reason or "")


def test_a_cancel_is_a_cancel_all_the_same(app: Ostinato, fake_clock: FakeClock) -> None:
    seen: list[str] = []

    @app.task(soft_timeout="5m", retry=0)
    async def waits() -> None:
        try:
            seen.append("began")
            await asyncio.Event().wait()
        except BaseException as error:
            seen.append(type(error).__name__)
            raise

    app.start()
    run = waits.enqueue()
    eventually(lambda: seen == ["began"])
    run.cancel()
    assert run.wait(PATIENCE).state is RunState.CANCELLED
    assert seen == ["began", "CancelledError"]


def test_a_function_in_a_thread_sees_that_it_should_stop(app: Ostinato, fake_clock: FakeClock) -> None:
    began: list[int] = []

    @app.task(soft_timeout="5m", retry=0)
    def looks(run: RunContext) -> str:
        began.append(run.id)
        while not run.cancelled:
            pass
        return "half of it"

    app.start()
    run = looks.enqueue()
    eventually(lambda: bool(began))
    fake_clock.advance("5m")
    ended = run.wait(PATIENCE)
    assert (ended.state, ended.cause) == (RunState.FAILED, "timed_out")
    assert ended.reason == "stopped early: its soft timeout of 5m is over"


def test_what_ends_before_it_or_does_not_look_succeeds(app: Ostinato, fake_clock: FakeClock) -> None:
    go: list[int] = []

    @app.task(soft_timeout="5m", retry=0)
    def deaf() -> str:
        go.append(1)
        while len(go) < 2:
            pass
        return "done"

    app.start()
    run = deaf.enqueue()
    eventually(lambda: bool(go))
    fake_clock.advance("5m")
    go.append(2)
    assert run.result(PATIENCE) == "done"


def test_a_function_in_a_process_sees_it_too(app: Ostinato, fake_clock: FakeClock, tmp_path: Any) -> None:
    task = app.task(isolation="process", soft_timeout="5m", retry=0)(process_tasks.until_cancelled)
    app.start()
    run = task.enqueue(str(tmp_path / "began"))
    eventually((tmp_path / "began").exists)
    fake_clock.advance("5m")
    ended = run.wait(PATIENCE)
    assert (ended.state, ended.cause) == (RunState.FAILED, "timed_out")


def test_work_that_is_no_function_cannot_have_it(app: Ostinato) -> None:
    with pytest.raises(InvalidInput, match="shell work cannot be asked to end early") as refused:
        app.schedules.add("backup", "daily 03:00", Shell("true"), soft_timeout="5m")
    assert refused.value.field == "soft_timeout"
