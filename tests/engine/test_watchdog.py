"""What keeps the engine honest: services that die are restarted and reported, writes that fail are kept."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ostinato import Ostinato
from ostinato.engine.watchdog import LoopMonitor, Watchdog
from ostinato.errors import StoreUnavailable
from ostinato.testing import FakeClock, drain
from ostinato.tuning import Tuning
from tests.engine.conftest import Gate, engine_of, eventually

QUICK = Tuning(service_restart_seconds=0.005)


@pytest.fixture
def tuning() -> Tuning:
    return QUICK


def failing(method: Callable[..., Awaitable[Any]], times: int, broken: threading.Event | None = None) -> Any:
    """The method, which first fails so many times as if the database were away."""
    left = [times]

    async def call(*args: Any, **kwargs: Any) -> Any:
        if left[0] > 0:
            left[0] -= 1
            if broken is not None:
                broken.set()
            raise StoreUnavailable("the cable was pulled")
        return await method(*args, **kwargs)

    return call


async def test_a_service_that_dies_is_restarted_and_reported() -> None:
    dog = Watchdog(QUICK.service_restart_seconds)
    deaths = [ValueError("first"), OSError("second")]
    alive = asyncio.Event()

    async def service() -> None:
        if deaths:
            raise deaths.pop(0)
        alive.set()
        await asyncio.Event().wait()

    dog.start("ticker", service)
    await asyncio.wait_for(alive.wait(), 10)
    health = dog.services["ticker"]
    assert (health.up, health.restarts, health.error) == (True, 2, "OSError: second")
    await dog.stop()
    assert not dog.services["ticker"].up


async def test_a_service_is_up_from_its_start_until_it_is_stopped_even_before_its_first_turn() -> None:
    dog = Watchdog(QUICK.service_restart_seconds)
    dog.start("ticker", asyncio.Event().wait)  # type: ignore[arg-type]
    assert dog.services["ticker"].up
    await dog.stop()
    assert not dog.services["ticker"].up


def test_the_first_heartbeat_of_a_started_node_says_that_all_its_services_are_up(memory_app: Ostinato) -> None:
    memory_app.start()
    eventually(lambda: "service_up{" in memory_app.metrics())  # the clock stands: there is no second heartbeat
    lines = [line for line in memory_app.metrics().splitlines() if line.startswith("scheduler_engine_service_up{")]
    assert len(lines) == len(memory_app.health()["services"])
    assert [line for line in lines if not line.endswith(" 1")] == []


async def test_a_service_that_waited_for_what_others_cancelled_is_restarted_too() -> None:
    dog = Watchdog(QUICK.service_restart_seconds)
    given_up: list[asyncio.Future[None]] = [asyncio.get_running_loop().create_future()]
    given_up[0].cancel()
    alive = asyncio.Event()

    async def service() -> None:
        if given_up:
            await given_up.pop()
        alive.set()
        await asyncio.Event().wait()

    dog.start("outbox", service)
    await asyncio.wait_for(alive.wait(), 10)
    health = dog.services["outbox"]
    assert (health.up, health.restarts, health.error) == (True, 1, "CancelledError: ")
    await dog.stop()
    assert not dog.services["outbox"].up


async def test_a_service_that_is_stopped_stays_so_whatever_its_cleanup_raises() -> None:
    dog = Watchdog(QUICK.service_restart_seconds)
    begun: asyncio.Queue[None] = asyncio.Queue()

    async def service() -> None:
        begun.put_nowait(None)
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("cannot schedule new futures after shutdown")

    dog.start("outbox", service)
    await asyncio.wait_for(begun.get(), 10)
    await asyncio.wait_for(dog.stop(), 10)
    assert begun.empty()
    assert (dog.services["outbox"].up, dog.services["outbox"].restarts) == (False, 0)


async def test_a_service_that_ends_without_being_told_is_restarted_too() -> None:
    dog = Watchdog(QUICK.service_restart_seconds)
    rounds = []
    again = asyncio.Event()

    async def service() -> None:
        rounds.append(1)
        if len(rounds) == 2:
            again.set()
            await asyncio.Event().wait()

    dog.start("waker", service)
    await asyncio.wait_for(again.wait(), 10)
    assert dog.services["waker"].error == "it ended without being told to"
    await dog.stop()


@pytest.mark.parametrize("service", ["ticker", "rescuer", "lease"])
def test_the_engine_goes_on_after_a_service_died_and_health_says_so(
    memory_app: Ostinato, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    app = memory_app
    job = app.task("job")(lambda: "done")
    app.start()
    engine = engine_of(app)
    target, method = {
        "ticker": (engine.store.schedules, "due_schedules"),
        "rescuer": (engine.store.runs, "stale_runs"),
        "lease": (engine.store.nodes, "renew"),
    }[service]
    eventually(lambda: app.health()["ok"])
    monkeypatch.setattr(target, method, failing(getattr(target, method), 2))
    app.schedules.add("job", "every 5s", "job")
    eventually(lambda: fake_clock.advance("5s") and app.health()["services"][service]["restarts"])
    assert "the cable was pulled" in app.health()["services"][service]["error"]
    eventually(lambda: app.health()["ok"])
    assert job.enqueue().wait(timeout=60).result == "done"


def test_a_claim_that_failed_is_made_again(memory_app: Ostinato, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else wakes the dispatcher here: it must remember that there was something to claim."""
    app = memory_app
    job = app.task("job")(lambda: "done")
    app.start()
    runs = engine_of(app).store.runs
    failed = threading.Event()
    monkeypatch.setattr(runs, "claim_runs", failing(runs.claim_runs, 1, failed))
    run = job.enqueue()
    assert failed.wait(10)
    assert run.wait(timeout=60).result == "done"


def test_a_batch_that_the_store_could_not_take_is_kept_and_written_later(
    memory_app: Ostinato, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = memory_app
    executed: list[int] = []

    @app.task("job", retry=0)
    def job(n: int) -> int:
        gate.wait()
        executed.append(n)
        return n

    app.start()
    runs = engine_of(app).store.runs
    failed = threading.Event()
    monkeypatch.setattr(runs, "finish_runs", failing(runs.finish_runs, 3, failed))
    handles = job.enqueue_many([(n,) for n in range(5)])
    gate.entered(5)
    gate.open()
    assert failed.wait(10)
    assert [handle.wait(timeout=60).result for handle in handles] == [0, 1, 2, 3, 4]
    assert sorted(executed) == [0, 1, 2, 3, 4]
    assert app.health()["services"]["recorder"]["restarts"] == 3
    drain(app)  # the ledger has them a moment before the recorder knows
    assert app.health()["unwritten"] == 0


def test_a_stop_while_the_store_is_away_ends_all_the_same(
    memory_app: Ostinato, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = memory_app
    job = app.task("job")(gate.wait)
    app.start()
    runs = engine_of(app).store.runs
    monkeypatch.setattr(runs, "finish_runs", failing(runs.finish_runs, 10_000))
    job.enqueue()
    gate.entered()
    gate.open()
    app.stop(grace="1s")
    assert app.health()["ok"] is False


def test_a_blocked_event_loop_is_seen_from_a_thread(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> LoopMonitor:
        monitor = LoopMonitor(threshold=0.02)
        monitor.start()
        try:
            block_until(lambda: monitor.blocked_times)
            assert monitor.blocked_for > 0
            await asyncio.sleep(0.01)
        finally:
            monitor.stop()
        return monitor

    monitor = asyncio.run(main())
    assert monitor.blocked_times >= 1
    assert "was blocked for more than" in (monitor.last_block or "")
    assert "block_until" in caplog.text, "the log shows what blocks"


def test_for_how_long_a_loop_stood_is_summed() -> None:
    async def main() -> tuple[float, float, float]:
        monitor = LoopMonitor(threshold=0.04, stands=0.05)
        before = time.monotonic()
        monitor.start()
        try:
            begun = time.monotonic()
            block_until(lambda: time.monotonic() > begun + 0.5)
            at_once, blocked_for = monitor.stood(), time.monotonic() - before
            await asyncio.sleep(0.01)  # the turn is overdue, and comes first
            return at_once, monitor.stood(), blocked_for
        finally:
            monitor.stop()

    at_once, afterwards, blocked_for = asyncio.run(main())
    assert 0.4 < at_once <= blocked_for, "also before it has turned again"
    assert afterwards >= at_once


def block_until(seen: Callable[[], object]) -> None:
    """Block this thread, and with it the loop, until somebody notices."""
    deadline = time.monotonic() + 60
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_without_an_engine_health_says_so(memory_app: Ostinato) -> None:
    assert memory_app.health() == {
        "ok": False,
        "node": None,
        "reason": "no engine is started in this process",
        "tasks": {},
    }


def test_health_names_every_service(memory_app: Ostinato) -> None:
    health = memory_app.start().health()
    assert health["ok"]
    assert set(health["services"]) >= {"ticker", "dispatcher", "recorder", "lease", "rescuer", "waker", "pruner"}
    assert (health["running"], health["held"], health["draining"]) == (0, 0, False)
