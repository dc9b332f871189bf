"""What a type checker knows of tasks. `make lint` checks it: mypy compares the types, and pytest only runs it."""

from __future__ import annotations

from collections.abc import Coroutine
from datetime import datetime
from typing import Any, assert_type

from ostinato import AioChainHandle, ChainHandle, Ostinato, RunContext, RunHandle, Task, TaskCall, group
from ostinato.models.ids import RunId
from ostinato.tasks import Calls

app = Ostinato("sqlite://:memory:")


@app.task
def add(a: int, b: int = 1) -> int:
    return a + b


@app.task("wait", retry=2, timeout="1m")
async def wait(run: RunContext, until: datetime) -> list[str]:
    return [str(until), str(run.id)]


def tasks_keep_their_types() -> None:
    assert_type(add(1), int)
    assert_type(add.enqueue(1, b=2), RunHandle[int])
    assert_type(add.enqueue(1).result(timeout="1m"), int)
    assert_type(add.using(lane="mail", retry=1).enqueue(1).result(), int)
    assert_type(add.call(1, b=2), TaskCall[[int, int], int])  # type: ignore[assert-type]  # it keeps the names too
    assert_type(add.enqueue_many([add.call(1), add.call(1, b=2)]), list[RunHandle[int]])
    assert_type(add.enqueue_many([(1,), {"a": 1}]), list[RunHandle[int]])


def coroutines_too(until: datetime) -> None:
    called: Coroutine[Any, Any, list[str]] = wait(until)
    called.close()
    assert_type(wait.enqueue(until), RunHandle[list[str]])
    assert_type(wait.using(delay=3).enqueue(until).result(), list[str])
    assert_type(wait.enqueue_many([wait.call(until)])[0].result(), list[str])


def chains_have_the_type_of_their_last_step(until: datetime) -> None:
    chain = add.then(wait.call(until))
    assert_type(chain.enqueue(1, b=2), ChainHandle[list[str]])
    assert_type(chain.then(add.call(3)).enqueue(1).result(timeout="1m"), int)
    assert_type(add.using(lane="mail").then(add.call(1)).enqueue(1).result(), int)
    assert_type(add.call(1).then(add.call(2)).enqueue().result(), int)
    assert_type(group([add.call(1), add.call(2)]).enqueue().result(), list[int])
    assert_type(group([wait.call(until)]).then(add.call(1)).enqueue().result(), int)
    assert_type(add.then(group([add.call(1), add.call(2)])).enqueue(1).result(), list[int])
    chain.enqueue("1")  # type: ignore[arg-type]
    add.call(1).then(add).enqueue(2)  # type: ignore[call-arg]
    add.then(7)  # type: ignore[call-overload]
    group([7])  # type: ignore[arg-type]


async def chains_are_awaited(until: datetime) -> None:
    handle = await add.then(wait.call(until)).aio.enqueue(1)
    assert_type(handle, AioChainHandle[list[str]])
    assert_type(await handle.result(), list[str])
    assert_type(await (await group([add.call(1)]).aio.enqueue()).result(), list[int])


async def awaited(until: datetime) -> None:
    assert_type(await add.aio.enqueue(1), RunId)
    assert_type(await add.aio.result(1), int)
    assert_type(await wait.using(lane="mail").aio.result(1, timeout="1m"), list[str])


def what_is_wrong_is_refused(until: datetime) -> None:
    add.enqueue("1")  # type: ignore[arg-type]
    add.enqueue()  # type: ignore[call-arg]
    add.call(c=1)  # type: ignore[call-arg]
    wait.enqueue(7)  # type: ignore[call-overload]
    add.enqueue_many([wait.call(until)])  # type: ignore[list-item]
    add.using(retrys=2)  # type: ignore[call-overload]
    add.using(retry="often")  # type: ignore[call-overload]


def calls_fit_where_they_are_asked_for(task: Task[[int], object], calls: Calls[..., Any]) -> None:
    assert_type(task.enqueue(1), RunHandle[object])
    assert_type(calls.enqueue("anything").result(), Any)


def test_the_tasks_of_this_file_are_declared() -> None:
    assert (add(1), add.name, wait.name) == (2, "add", "wait")
