"""Where the core lives: one loop, whoever calls."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ostinato.errors import OstinatoError, StoreError
from ostinato.event_loop_host import EventLoopHost


class Container:
    """Knows the loop that it was built on, and whether it was closed."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.closed = False


Host = EventLoopHost[Container]
Built = list[Container]


@pytest.fixture
def built() -> Built:
    """Every container that the host has built."""
    return []


def host_of(built: Built, **options: float) -> Host:
    async def build() -> Container:
        await asyncio.sleep(0)
        built.append(Container())
        return built[-1]

    return EventLoopHost(build, **options)


@pytest.fixture
def home(built: Built) -> Iterator[Host]:
    home = host_of(built)
    yield home
    home.leave(drain, close)


async def drain(container: Container) -> None:
    """Nothing to wait for."""


async def close(container: Container) -> None:
    container.closed = True


async def where(container: Container) -> tuple[Container, asyncio.AbstractEventLoop]:
    return container, asyncio.get_running_loop()


def test_threads_share_one_container_on_one_loop(home: Host, built: Built) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: home.run(where), range(40)))
    assert len(built) == 1
    assert {id(loop) for _, loop in answers} == {id(built[0].loop)}


async def test_a_coroutine_on_another_loop_is_served_by_the_home_loop(home: Host, built: Built) -> None:
    container, loop = await home.arun(where)
    assert loop is not asyncio.get_running_loop()
    assert container is built[0]


def test_errors_come_back_to_whoever_called(home: Host) -> None:
    async def fail(container: Container) -> None:
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        home.run(fail)


def test_a_sync_call_from_the_home_loop_itself_is_refused_with_the_fix(home: Host) -> None:
    async def from_inside(container: Container) -> None:
        with pytest.raises(OstinatoError, match=r"await the same verb under 'app\.aio'"):
            home.run(where)
        with pytest.raises(OstinatoError, match=r"await app\.aio\.stop"):
            home.leave(drain, close)

    home.run(from_inside)


async def test_an_adopted_loop_is_the_home_and_other_threads_may_use_it(home: Host, built: Built) -> None:
    await home.adopt()
    assert (await home.arun(where))[1] is asyncio.get_running_loop()
    _, seen = await asyncio.to_thread(home.run, where)
    assert seen is asyncio.get_running_loop()
    await home.aleave(drain, close)
    assert [container.closed for container in built] == [True]


def test_it_opens_anew_after_it_was_left(home: Host, built: Built) -> None:
    others = set(threading.enumerate())
    home.run(where)
    home.leave(drain, close)
    home.leave(drain, close)
    assert home.container is None
    home.run(where)
    assert [container.closed for container in built] == [True, False]
    home.leave(drain, close)
    assert not [thread for thread in set(threading.enumerate()) - others if thread.name == "ostinato-home"]


def test_it_opens_anew_after_its_adopted_loop_was_closed(home: Host, built: Built) -> None:
    async def main() -> None:
        await home.adopt()
        await home.arun(where)

    asyncio.run(main())
    assert home.run(where)[0] is built[1]


def test_a_container_that_cannot_be_opened_is_tried_again_at_the_next_use() -> None:
    tries: list[int] = []

    async def build() -> Container:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("not yet")
        return Container()

    home = EventLoopHost(build)
    with pytest.raises(OSError, match="not yet"):
        home.run(where)
    home.run(where)
    home.leave(drain, close)
    assert len(tries) == 2


def test_a_callback_reaches_an_open_container_only(home: Host, built: Built) -> None:
    seen: list[Any] = []
    home.call_soon(seen.append)
    home.run(where)
    assert seen == []
    called = threading.Event()

    def called_back(container: Container) -> None:
        seen.append(container)
        called.set()

    home.call_soon(called_back)
    assert called.wait(10)
    assert seen == built


class Draining:
    """A drain that a test holds open."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.count = 0

    async def __call__(self, container: Container) -> None:
        self.count += 1
        self.begun.set()
        assert await asyncio.to_thread(self.may_end.wait, 10)


def test_a_second_leave_waits_for_the_first(home: Host, built: Built) -> None:
    home.run(where)
    draining = Draining()
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(home.leave, draining, close)
        assert draining.begun.wait(10)
        others = [pool.submit(home.leave, draining, close) for _ in range(2)]
        others.append(pool.submit(asyncio.run, home.aleave(draining, close)))
        assert not any(other.done() for other in others)
        draining.may_end.set()
        for leaving in (first, *others):
            leaving.result(10)
    assert draining.count == 1
    assert [container.closed for container in built] == [True]


def test_calls_are_served_while_it_drains_and_open_anew_once_it_is_closed(home: Host, built: Built) -> None:
    home.run(where)
    draining = Draining()
    closing, may_close = threading.Event(), threading.Event()

    async def close_slowly(container: Container) -> None:
        closing.set()
        await asyncio.to_thread(may_close.wait, 10)
        container.closed = True

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(home.leave, draining, close_slowly)
        assert draining.begun.wait(10)
        assert pool.submit(home.run, where).result(10)[0] is built[0]
        draining.may_end.set()
        assert closing.wait(10)
        late = [pool.submit(home.run, where), pool.submit(asyncio.run, home.arun(where))]
        assert not any(call.done() for call in late)
        may_close.set()
        first.result(10)
        assert {id(call.result(10)[0]) for call in late} == {id(built[1])}
    assert [container.closed for container in built] == [True, False]


def test_what_starts_something_waits_for_the_end_of_a_drain(home: Host, built: Built) -> None:
    home.run(where)
    draining = Draining()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(home.leave, draining, close)
        assert draining.begun.wait(10)
        starting = pool.submit(home.run, where, alone=True)
        draining.may_end.set()
        first.result(10)
        assert starting.result(10)[0] is built[1]


def test_who_starts_something_is_alone(home: Host) -> None:
    inside: list[int] = []

    async def start(container: Container) -> None:
        inside.append(1)
        await asyncio.sleep(0)
        assert len(inside) == 1
        inside.clear()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: home.run(start, alone=True), range(40)))


def test_a_call_that_goes_on_for_ever_is_ended_when_the_container_is_closed(built: Built) -> None:
    home = host_of(built, last_calls=0.01)
    begun = threading.Event()

    async def wait_for_ever(container: Container) -> None:
        begun.set()
        await asyncio.Event().wait()

    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(home.run, wait_for_ever)
        assert begun.wait(10)
        home.leave(drain, close)
        with pytest.raises(StoreError, match="stopped while this call was under way"):
            call.result(10)
    assert built[0].closed


def test_many_threads_may_use_it_and_leave_it_at_once(home: Host, built: Built) -> None:
    def visit(number: int) -> None:
        if number % 10 == 0:
            home.leave(drain, close)
        else:
            container, loop = home.run(where)
            assert container.loop is loop

    with ThreadPoolExecutor(8) as pool:
        for call in [pool.submit(visit, number) for number in range(400)]:
            call.result(20)
    home.leave(drain, close)
    assert all(container.closed for container in built)


def test_a_container_that_cannot_be_drained_is_closed_all_the_same_and_the_error_is_told(
    home: Host, built: Built
) -> None:
    home.run(where)

    async def fail(container: Container) -> None:
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        home.leave(fail, close)
    assert built[0].closed
    assert home.run(where)[0] is built[1]


def test_what_is_done_beside_the_loop_is_done_once_though_no_thread_can_be_started(
    home: Host,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []

    def refuse(thread: threading.Thread) -> None:
        monkeypatch.undo()
        raise RuntimeError("can't start new thread")

    async def beside(_: Container) -> None:
        monkeypatch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            await asyncio.to_thread(done.append, "first")
        await asyncio.to_thread(done.append, "second")

    home.run(beside)
    home.leave(drain, close)
    assert done == ["first", "second"], "the pool has both, each once"


def test_a_leave_goes_on_when_its_caller_is_cancelled(home: Host, built: Built) -> None:
    draining = Draining()

    async def main() -> None:
        await home.adopt()
        await home.arun(where)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(home.aleave(draining, close), 0.01)
        assert not built[0].closed
        draining.may_end.set()
        await home.aleave(draining, close)
        assert built[0].closed

    asyncio.run(main())
    assert draining.count == 1


FORKING = """
import os, sys
from ostinato import Ostinato
from ostinato.errors import OstinatoError

def in_child(use):
    child = os.fork()
    if child == 0:
        try:
            use()
        except BaseException as error:
            print(type(error), error, flush=True)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0

app = Ostinato(f"sqlite:///{sys.argv[1]}", tz="UTC")
memory = Ostinato("sqlite://:memory:", tz="UTC")

@app.task("job")
def job():
    return os.getpid()

def works():
    assert app.runs.list() is not None
    app.start()
    assert job.enqueue().wait(timeout=60).result == os.getpid()
    app.stop()

def is_refused():
    for use in (app.start, app.health, app.runs.list, Ostinato(f"sqlite:///{sys.argv[1]}").runs.list):
        try:
            use()
        except OstinatoError as error:
            assert "was forked while its parent had the database" in str(error), error
        else:
            raise AssertionError(use)

in_child(works)                  # never opened before the fork
app.runs.list()
memory.runs.list()
in_child(works)                  # open and idle: it was closed for the fork
assert app.runs.list() is not None
in_child(lambda: in_child(works))
app.start()
memory.start()
in_child(is_refused)             # started
in_child(lambda: in_child(is_refused))
in_child(lambda: memory.start().stop())  # not a file: the child has one of its own
assert job.enqueue().wait(timeout=60).result == os.getpid()
app.stop()
in_child(works)                  # closed before the fork
works()
print("fine")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_a_fork_the_child_opens_its_own_unless_the_parent_had_the_sqlite_file_open(tmp_path: Any) -> None:
    shown = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING, str(tmp_path / "jobs.db")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert shown.stdout == "fine\n", shown.stdout + shown.stderr
