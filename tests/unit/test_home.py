"""Where the core lives: one loop, whoever calls."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ostinato.errors import OstinatoError
from ostinato.home import Home


class House:
    """Knows the loop that it was built on, and whether it was closed."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.closed = False


def home_and_built() -> tuple[Home[House], list[House]]:
    built: list[House] = []

    async def build() -> House:
        await asyncio.sleep(0)
        built.append(House())
        return built[-1]

    return Home(build), built


async def close(house: House) -> None:
    house.closed = True


async def where(house: House) -> tuple[House, asyncio.AbstractEventLoop]:
    return house, asyncio.get_running_loop()


def test_threads_share_one_house_on_one_loop() -> None:
    home, built = home_and_built()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: home.run(where), range(40)))
    assert len(built) == 1
    assert {id(loop) for _, loop in answers} == {id(built[0].loop)}
    home.leave(close)


def test_a_coroutine_on_another_loop_is_served_by_the_home_loop() -> None:
    home, built = home_and_built()

    async def visit() -> None:
        house, loop = await home.arun(where)
        assert loop is not asyncio.get_running_loop()
        assert house is built[0]

    asyncio.run(visit())
    home.leave(close)


def test_errors_come_back_to_whoever_called() -> None:
    home, _ = home_and_built()

    async def fail(house: House) -> None:
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        home.run(fail)
    home.leave(close)


def test_a_sync_call_from_the_home_loop_itself_is_refused_with_the_fix() -> None:
    home, _ = home_and_built()

    async def from_inside(house: House) -> None:
        with pytest.raises(OstinatoError, match=r"await app\.aio"):
            home.run(where)
        with pytest.raises(OstinatoError, match=r"await app\.aio\.stop"):
            home.leave(close)

    home.run(from_inside)
    home.leave(close)


def test_an_adopted_loop_is_the_home_and_other_threads_may_use_it() -> None:
    home, built = home_and_built()

    async def main() -> None:
        home.adopt()
        assert (await home.arun(where))[1] is asyncio.get_running_loop()
        _, seen = await asyncio.to_thread(home.run, where)
        assert seen is asyncio.get_running_loop()
        await home.aleave(close)

    asyncio.run(main())
    assert [house.closed for house in built] == [True]


def test_it_opens_anew_after_it_was_left() -> None:
    home, built = home_and_built()
    home.run(where)
    home.leave(close)
    home.leave(close)
    assert home.house is None
    home.run(where)
    assert [house.closed for house in built] == [True, False]
    home.leave(close)
    assert not [thread for thread in threading.enumerate() if thread.name == "ostinato-home"]


def test_it_opens_anew_after_its_adopted_loop_was_closed() -> None:
    home, built = home_and_built()

    async def main() -> None:
        home.adopt()
        await home.arun(where)

    asyncio.run(main())
    assert home.run(where)[0] is built[1]
    home.leave(close)


def test_a_house_that_cannot_be_opened_is_tried_again_at_the_next_use() -> None:
    tries: list[int] = []

    async def build() -> House:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("not yet")
        return House()

    home = Home(build)
    with pytest.raises(OSError, match="not yet"):
        home.run(where)
    home.run(where)
    home.leave(close)
    assert len(tries) == 2


def test_a_callback_reaches_an_open_house_only() -> None:
    home, built = home_and_built()
    seen: list[Any] = []
    home.call_soon(seen.append)
    home.run(where)
    assert seen == []
    called = threading.Event()

    def called_back(house: House) -> None:
        seen.append(house)
        called.set()

    home.call_soon(called_back)
    assert called.wait(10)
    assert seen == built
    home.leave(close)


FORKING = """
import os, sys
from ostinato import Ostinato

app = Ostinato(f"sqlite:///{sys.argv[1]}")

@app.task("job")
def job():
    return os.getpid()

app.start()
first = job.enqueue().wait(timeout=20)
assert first.result == os.getpid(), first
child = os.fork()
if child == 0:
    # Nothing of the parent's engine is here; the child opens its own, and may start one.
    assert app.health()["ok"] is False
    app.start()
    handle = job.enqueue()
    assert handle.wait(timeout=20).state == "succeeded"
    app.stop()
    os._exit(0)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0
assert job.enqueue().wait(timeout=20).state == "succeeded"
app.stop()
print("fine")
"""


def test_after_a_fork_the_child_makes_a_home_of_its_own(tmp_path: Any) -> None:
    shown = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING, str(tmp_path / "jobs.db")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert shown.stdout == "fine\n", shown.stderr
