"""What people write in functions works inside tasks as usual: contextvars, asyncio.timeout, TaskGroup, anyio."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import anyio
import pytest
from anyio import from_thread, to_thread

from ostinato import Ostinato, RunFailed, current_run
from ostinato.testing import drain
from tests.engine.conftest import MakeApp

tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="nobody")


def sync_swap(name: str) -> str:
    before = tenant.get()
    tenant.set(name)
    return f"{before} {tenant.get()}"


async def async_swap(name: str) -> str:
    before = tenant.get()
    tenant.set(name)
    await asyncio.sleep(0)
    return f"{before} {tenant.get()}"


@pytest.mark.parametrize("function", [sync_swap, async_swap])
def test_what_a_run_sets_is_its_own(make_app: MakeApp, function: object) -> None:
    app = make_app("sqlite://:memory:", slots=1)  # one after the other: a worker thread is used again
    task = app.task("swap")(function)  # type: ignore[call-overload]
    handles = task.enqueue_many([("ada",), ("grace",), ("joan",)])
    drain(app)
    assert [handle.result() for handle in handles] == ["nobody ada", "nobody grace", "nobody joan"]


def test_a_context_variable_goes_where_the_task_goes(memory_app: Ostinato) -> None:
    @memory_app.task
    async def spread() -> list[str]:
        tenant.set("ada")

        async def child() -> str:
            return f"{tenant.get()} {current_run().id}"

        async with asyncio.TaskGroup() as group:
            children = [group.create_task(child()) for _ in range(2)]
        beside = await asyncio.to_thread(lambda: f"{tenant.get()} {current_run().id}")
        return [*(each.result() for each in children), beside]

    handle = spread.enqueue()
    drain(memory_app)
    assert handle.result() == [f"ada {handle.id}"] * 3


def test_a_timeout_inside_is_the_tasks_own(memory_app: Ostinato) -> None:
    @memory_app.task(retry=0)
    async def patient() -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            return "went on"
        return "never"

    @memory_app.task(retry=0)
    async def impatient() -> None:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    fine, late = patient.enqueue(), impatient.enqueue()
    drain(memory_app)
    assert fine.result() == "went on"
    with pytest.raises(RunFailed, match="TimeoutError") as failed:
        late.result()
    assert failed.value.cause == "raised"


def test_a_task_group_raises_what_its_children_raised(memory_app: Ostinato) -> None:
    @memory_app.task(retry=0)
    async def several() -> None:
        async def fail() -> None:
            raise ValueError("one of them")

        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            group.create_task(asyncio.sleep(3600))

    handle = several.enqueue()
    drain(memory_app)
    with pytest.raises(RunFailed, match="ExceptionGroup") as failed:
        handle.result()
    assert "ValueError: one of them" in (failed.value.traceback or "")


def test_anyio_works_in_both_kinds_of_task(memory_app: Ostinato) -> None:
    @memory_app.task
    async def on_the_loop() -> list[str]:
        tenant.set("ada")
        seen: list[str] = []

        async def child(name: str) -> None:
            seen.append(f"{name} {tenant.get()}")

        async with anyio.create_task_group() as group:
            group.start_soon(child, "soon")
        with anyio.move_on_after(0) as scope:
            await anyio.sleep_forever()
        seen.append(f"cancelled {scope.cancelled_caught}")
        seen.append(await to_thread.run_sync(lambda: f"thread {tenant.get()} {from_thread.run_sync(tenant.get)}"))
        return seen

    @memory_app.task
    def in_a_thread() -> str:
        async def main() -> str:
            await anyio.lowlevel.checkpoint()
            return f"run {current_run().id} in {threading.current_thread().name.split('-')[0]}"

        return anyio.run(main)

    first, second = on_the_loop.enqueue(), in_a_thread.enqueue()
    drain(memory_app)
    assert first.result() == ["soon ada", "cancelled True", "thread ada ada"]
    assert second.result() == f"run {second.id} in ostinato"
