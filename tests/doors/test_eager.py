"""`rehearse(app, eager=True)`: what is enqueued is executed at once, in the caller's thread and transaction."""

from __future__ import annotations

import asyncio
import contextvars
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ostinato import (
    Function,
    InvalidInput,
    NotExecuted,
    Ostinato,
    OstinatoError,
    RunContext,
    RunFailed,
    RunState,
    Snooze,
    current_run,
)
from ostinato.testing import FakeClock, drain, rehearse


@pytest.fixture
def app() -> Iterator[Ostinato]:
    app = Ostinato("sqlite://:memory:")
    with rehearse(app, eager=True):
        yield app


def test_a_task_has_ended_when_enqueue_returns(app: Ostinato) -> None:
    threads: list[int] = []

    @app.task
    def double(run: RunContext, number: int) -> int:
        threads.append(threading.get_ident())
        run.log(f"{number} of {current_run().id}")
        return 2 * number

    handle = double.enqueue(21)
    assert threads == [threading.get_ident()]
    assert handle.get().state is RunState.SUCCEEDED
    assert handle.result() == 42
    assert app.runs.output(handle.id) == f"21 of {handle.id}\n"
    later = double.using(delay="1h").enqueue_many([(1,), double.call(2)])
    assert [each.result() for each in later] == [2, 4]
    assert app.enqueue(Function("double", [4]), key="four").result() == 8


def test_it_sees_the_transaction_of_its_caller(app: Ostinato) -> None:
    shop = sqlite3.connect(":memory:")  # which refuses any other thread
    shop.execute("CREATE TABLE orders (name TEXT)")
    shop.commit()

    @app.task
    def count() -> int:
        (found,) = shop.execute("SELECT count(*) FROM orders").fetchone()
        shop.execute("INSERT INTO orders VALUES ('of the task')")
        return int(found)

    shop.execute("INSERT INTO orders VALUES ('not committed')")
    assert count.enqueue().result() == 1
    shop.rollback()
    assert shop.execute("SELECT count(*) FROM orders").fetchone() == (0,)


def test_arguments_go_through_json_as_in_life(app: Ostinato) -> None:
    @app.task
    def take(value: Any) -> str:
        return type(value).__name__

    assert take.enqueue((1, 2)).result() == "list"
    with pytest.raises(InvalidInput, match="is a datetime, which is not JSON"):
        take.enqueue(datetime.now(UTC))


def test_what_fails_fails_at_once_and_its_result_raises(app: Ostinato) -> None:
    @app.task(retry=3)
    def fail() -> None:
        raise ValueError("no")

    handle = fail.enqueue()
    assert (handle.get().state, handle.get().attempt) == (RunState.FAILED, 1)
    with pytest.raises(RunFailed, match="ValueError: no"):
        handle.result()


@pytest.mark.parametrize("is_async", [False, True])
def test_tasks_enqueue_others_inside(app: Ostinato, is_async: bool) -> None:
    @app.task
    def inner(number: int) -> int:
        numbers.append(current_run().id)
        return number + 1

    def outer() -> int:
        numbers.append(current_run().id)
        answer = inner.enqueue(1).result()
        numbers.append(current_run().id)
        return answer + 1

    async def outer_async() -> int:
        numbers.append(current_run().id)
        answer = await inner.aio.result(await inner.aio.enqueue(1))
        numbers.append(current_run().id)
        return answer + 1

    numbers: list[int] = []
    assert app.task("outer")(outer_async if is_async else outer).enqueue().result() == 3
    assert numbers[0] == numbers[2] != numbers[1]


def test_coroutines_run_on_the_loop_of_their_caller(app: Ostinato) -> None:
    seen: contextvars.ContextVar[str] = contextvars.ContextVar("seen")
    loops: list[asyncio.AbstractEventLoop] = []

    @app.task
    async def answer() -> str:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return seen.get()

    async def caller() -> str:
        seen.set("of the caller")
        found = await answer.aio.result(await answer.aio.enqueue())
        assert loops == [asyncio.get_running_loop()]
        assert answer.enqueue().result() == found, "a thread beside, where the loop is busy with the call"
        return found

    assert asyncio.run(caller()) == "of the caller"
    seen.set("of the thread")
    assert answer.enqueue().result() == "of the thread"


def test_what_failed_is_the_cause_of_the_error_that_result_raises(app: Ostinato) -> None:
    wrong = ValueError("no")

    def fail() -> None:
        raise wrong

    async def fail_async() -> None:
        raise wrong

    task = app.task("async")(fail_async)
    for handle in (app.task("sync")(fail).enqueue(), task.enqueue()):
        with pytest.raises(RunFailed, match="ValueError: no") as failed:
            handle.result()
        assert failed.value.__cause__ is wrong

    async def caller() -> None:
        await task.aio.result(await task.aio.enqueue())

    with pytest.raises(RunFailed) as failed:
        asyncio.run(caller())
    assert failed.value.__cause__ is wrong


def test_a_task_that_snoozes_has_no_result_and_nobody_waits_for_it(app: Ostinato) -> None:
    ready: list[bool] = []

    @app.task
    def wait_for_it() -> str:
        if not ready:
            raise Snooze("15m", "a till is still open")
        return "closed"

    handle = wait_for_it.enqueue()
    with pytest.raises(NotExecuted, match=r"is queued again: a till is still open; .* drain\(app\)") as refused:
        handle.result()
    assert (refused.value.run, refused.value.state, refused.value.cause) == (handle.id, "queued", "snoozed")
    with pytest.raises(NotExecuted, match="a till is still open"):
        asyncio.run(wait_for_it.aio.result(handle.id))
    ready.append(True)
    assert isinstance(app.clock, FakeClock)
    app.clock.advance("15m")
    drain(app)
    assert handle.result() == "closed"


def test_on_the_loop_of_the_app_the_blocking_form_is_refused_as_in_life(app: Ostinato) -> None:
    task = app.task("job")(lambda: 1)

    async def caller() -> int:
        async with app:
            with pytest.raises(OstinatoError, match="this would block the event loop that Ostinato runs on"):
                task.enqueue()
            return int(await task.aio.result(await task.aio.enqueue()))

    assert asyncio.run(asyncio.wait_for(caller(), 60)) == 1


def test_a_block_inside_of_another_leaves_that_as_it_was(app: Ostinato) -> None:
    threads: list[int] = []
    task = app.task("job")(lambda: threads.append(threading.get_ident()))
    task.enqueue()
    with rehearse(app, eager=True):
        task.enqueue()
    assert task.enqueue().get().state is RunState.SUCCEEDED
    assert threads == [threading.get_ident()] * 3


def test_a_task_may_be_declared_again(app: Ostinato) -> None:
    """As a module that is reloaded does."""

    def job() -> int:
        return threading.get_ident()

    for _ in range(2):
        assert app.task("job")(job).enqueue().result() == threading.get_ident()


def test_of_many_calls_a_wrong_one_refuses_all(app: Ostinato) -> None:
    seen: list[int] = []

    @app.task
    def take(number: int) -> None:
        seen.append(number)

    with pytest.raises(InvalidInput, match="argument 'number' of task 'take' does not fit int"):
        take.enqueue_many([(1,), ("x",)])
    assert seen == []


def test_afterwards_tasks_are_queued_again() -> None:
    app = Ostinato("sqlite://:memory:")
    threads: list[int] = []
    task = app.task("job")(lambda: threads.append(threading.get_ident()))
    with rehearse(app, eager=True):
        task.enqueue()
    with rehearse(app):
        handle = task.enqueue()
        assert handle.get().state is RunState.QUEUED
        drain(app)
    assert threads[0] == threading.get_ident() != threads[1]


DJANGO = """
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"],
)
django.setup()

from django.contrib.auth.models import User
from django.test import TestCase
from django.test.runner import DiscoverRunner

from ostinato import Ostinato
from ostinato.testing import rehearse

app = Ostinato("sqlite://:memory:")


@app.task
def greet(user: int) -> str:
    found = User.objects.get(pk=user)
    found.first_name = "Ada"
    found.save()
    return f"Hello {found.username}"


class GreetTest(TestCase):
    def setUp(self):
        self.enterContext(rehearse(app, eager=True))

    def test_it_greets(self):
        user = User.objects.create(username="ada")
        self.assertEqual(greet.enqueue(user.pk).result(), "Hello ada")
        user.refresh_from_db()
        self.assertEqual(user.first_name, "Ada")

    def test_nothing_is_left(self):
        self.assertEqual(User.objects.count(), 0)


if __name__ == "__main__":
    raise SystemExit(DiscoverRunner(verbosity=0).run_tests(["__main__"]))
"""


def test_a_test_case_of_django_works(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(DJANGO)
    ended = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, timeout=120, check=False, capture_output=True, text=True
    )
    assert (ended.returncode, "Ran 2 tests" in ended.stderr) == (0, True), ended.stderr
