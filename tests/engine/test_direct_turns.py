"""Executing takes the turn: what is executed here waits in its session with all others, and ends with who asked."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ostinato import Agent, Function, Ostinato, Run, RunState, Shell
from ostinato.clock import to_micros
from ostinato.engine.node import Engine
from ostinato.errors import Conflict
from ostinato.models.states import Cause
from ostinato.testing import FakeClock
from tests.conftest import tuned
from tests.engine import process_tasks
from tests.engine.conftest import Beside, Gate, MakeApp, engine_of, eventually, on_shared
from tests.engine.stand_in import StandIn
from tests.processes import lives

PATIENCE = 60
DEAF = [
    sys.executable,
    "-c",
    "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "open('pid.part', 'w').write(str(os.getpid())); os.rename('pid.part', 'pid'); time.sleep(600)",
]
"""It says which process it is, and does not end when it is told to."""


@pytest.fixture
def db() -> str:
    return "sqlite://:memory:"


def in_session(app: Ostinato, session: str = "q") -> list[Run]:
    """The runs of a session, the oldest first."""
    return list(app.runs.list(session=session))[::-1]


@on_shared
def test_what_is_executed_waits_for_its_turn_like_everything_else(
    shared_db: str, make_app: MakeApp, gate: Gate, beside: Beside
) -> None:
    app = make_app(shared_db)
    order: list[str] = []

    @app.task("job")
    def job(name: str) -> str:
        order.append(name)
        if name == "first":
            gate.wait()
        return name

    app.start()
    app.enqueue(Function("job", ["first"]), session="q")
    gate.entered()
    executed = beside(lambda: app.execute(Function("job", ["second"]), session="q"))
    eventually(lambda: len(in_session(app)) == 2)
    third = app.enqueue(Function("job", ["third"]), session="q")
    assert not executed.done()
    assert order == ["first"]
    gate.open()
    assert executed.result(PATIENCE).result == "second"
    assert third.wait(timeout="60s").result == "third"
    assert order == ["first", "second", "third"]


@on_shared
def test_two_processes_that_only_execute_take_turns(
    shared_db: str, make_app: MakeApp, gate: Gate, beside: Beside
) -> None:
    apps = [make_app(shared_db, name=name) for name in ("one", "two")]
    for app in apps:
        app.task("job")(lambda: gate.passed("done"))
    executed = [beside(partial(app.execute, "job", session="q")) for app in apps]
    gate.entered()
    eventually(lambda: len(in_session(apps[0])) == 2)
    gate.open()
    assert [each.result(PATIENCE).result for each in executed] == ["done", "done"]
    assert gate.most == 1


def test_a_conversation_is_continued_by_one_execution_at_a_time(
    tmp_path: Path, make_app: MakeApp, beside: Beside
) -> None:
    claude = StandIn(tmp_path / "claude")
    app = make_app("sqlite://:memory:", agents={"claude": claude.cli})
    app.projects.add("blog", tmp_path)
    ask = Agent("Hi play:wait", context="session:q")
    first = beside(lambda: app.execute(ask, project="blog"))
    eventually((tmp_path / "waiting").exists)
    second = beside(lambda: app.execute(ask, project="blog"))
    eventually(lambda: len(in_session(app)) == 2)
    assert len(claude.calls) == 1
    (tmp_path / "go").touch()
    answers = [each.result(PATIENCE).result for each in (first, second)]
    assert [answer["text"] for answer in answers] == ["message 1: Hi play:wait", "message 2: Hi play:wait"]
    assert answers[0]["session_id"] == answers[1]["session_id"]


def test_what_must_not_wait_is_told_who_is_before_it_and_leaves_no_row(app: Ostinato) -> None:
    waiting = app.enqueue(Agent("Hi", context="session:chat"))
    assert waiting.get().session == "chat"
    with pytest.raises(Conflict, match=f"session 'chat' is busy: run {waiting.id} has its turn"):
        app.execute(Agent("Hi", context="session:chat"), wait=False)
    assert len(in_session(app, "chat")) == 1


@pytest.mark.parametrize(
    ("end", "state", "cause"),
    [
        (lambda app, id: app.runs.cancel(id), RunState.CANCELLED, Cause.CANCELLED),
        (lambda app, _: app.sessions.stop_all("q"), RunState.CANCELLED, Cause.SESSION_STOPPED),
        (lambda app, _: app.lanes.clear("main"), RunState.CANCELLED, Cause.LANE_CLEARED),
    ],
)
def test_whoever_ends_it_while_it_waits_is_what_is_answered(
    app: Ostinato, beside: Beside, end: Callable[[Ostinato, int], Any], state: RunState, cause: Cause
) -> None:
    app.enqueue(Shell("true"), session="q")
    executed = beside(lambda: app.execute(Shell("true"), session="q"))
    eventually(lambda: len(in_session(app)) == 2)
    end(app, in_session(app)[-1].id)
    run = executed.result(PATIENCE)
    assert (run.state, run.cause, run.attempts) == (state, cause, ())


def test_it_waits_no_longer_than_its_max_age(app: Ostinato, fake_clock: FakeClock, beside: Beside) -> None:
    app.enqueue(Shell("true"), session="q")
    executed = beside(lambda: app.execute(Shell("true"), session="q", max_age="5m"))
    eventually(lambda: len(in_session(app)) == 2)
    fake_clock.advance("5m")
    assert executed.result(PATIENCE).state is RunState.EXPIRED


async def test_a_call_that_is_cancelled_cancels_its_run(app: Ostinato, tmp_path: Path) -> None:
    async with app:
        waiting = await app.aio.enqueue(Shell("sleep 600"), session="q")
        calls = [asyncio.create_task(app.aio.execute(Shell("sleep 600"), session=session)) for session in ("q", "r")]
        await asyncio.to_thread(eventually, lambda: len(app.runs.list(state=["queued", "running"])) == 3)
        for call in calls:
            call.cancel()
        assert [type(each) for each in await asyncio.gather(*calls, return_exceptions=True)] == [
            asyncio.CancelledError
        ] * 2
        for session in ("q", "r"):
            run = await app.aio.runs.wait((await app.aio.runs.list(session=session))[0].id, timeout="60s")
            assert (run.state, run.reason) == (RunState.CANCELLED, "whoever waited for it was cancelled")
        await app.aio.runs.cancel(waiting)


def test_a_process_that_stops_ends_what_waits_in_it(tmp_path: Path, make_app: MakeApp, beside: Beside) -> None:
    db = f"sqlite:///{tmp_path / 'jobs.db'}"
    app, other = make_app(db), make_app(db, name="other")
    app.start()
    other.lanes.pause("main")
    other.enqueue(Shell("true"), session="q")
    executed = beside(lambda: app.execute(Shell("true"), session="q"))
    eventually(lambda: len(in_session(other)) == 2)
    app.stop(grace=0)
    with_end = executed.exception(PATIENCE)
    run = in_session(other)[-1]
    assert (run.state, run.reason) == (RunState.CANCELLED, "its process was stopped before its turn came")
    assert with_end is None or "stopped" in str(with_end)


# Inside of a run.


@on_shared
def test_a_run_that_has_the_turn_shares_it_with_what_it_executes(shared_db: str, make_app: MakeApp) -> None:
    app = make_app(shared_db)

    @app.task("inner")
    def inner() -> str:
        return f"deeper {app.execute(Shell('exit 0'), session='q').state}"

    @app.task("outer")
    def outer() -> list[Any]:
        through = app.execute("middle")  # in no session itself
        return [app.execute("inner", session="q").result, through.result]

    @app.task("middle")
    def middle() -> str:
        return str(app.execute(Shell("exit 0"), session="q").state)

    app.start()
    ended = app.enqueue("outer", session="q").wait(timeout="60s")
    assert (ended.state, ended.result) == (RunState.SUCCEEDED, ["deeper succeeded", "succeeded"])
    assert [run.id for run in in_session(app)] == [ended.id]


def test_what_shares_one_turn_goes_one_after_the_other(app: Ostinato, gate: Gate) -> None:
    app.task("inner")(lambda: gate.passed("done"))

    @app.task("outer")
    async def outer() -> list[str]:
        both = await asyncio.gather(*(app.aio.execute("inner", session="q") for _ in range(3)))
        return [run.result for run in both]

    app.start()
    run = app.enqueue("outer", session="q")
    gate.entered()
    eventually(lambda: len(app.runs.list(task="inner")) == 3)
    gate.open()
    assert run.wait(timeout="60s").result == ["done"] * 3
    assert gate.most == 1


def test_another_session_is_not_shared(app: Ostinato) -> None:
    @app.task("outer")
    def outer() -> str:
        with pytest.raises(Conflict, match="session 'other' is busy"):
            app.execute(Shell("true"), session="other", wait=False)
        return "refused"

    app.lanes.pause("cron")
    app.enqueue(Shell("true"), session="other", lane="cron")
    app.start()
    assert app.enqueue("outer", session="q").wait(timeout="60s").result == "refused"


def outer_tasks(app: Ostinato) -> dict[str, Any]:
    """Tasks that execute a command which does not end by itself, each in its way."""
    deaf = Shell(DEAF)

    @app.task("thread", retry=0)
    def thread() -> None:
        app.execute(deaf, project="here")

    @app.task("loop", retry=0)
    async def loop() -> None:
        await app.aio.execute(deaf, project="here")

    @app.task("left", retry=0)
    async def left() -> None:
        left.waiting = asyncio.create_task(app.aio.execute(deaf, project="here"))  # type: ignore[attr-defined]
        await asyncio.Event().wait()

    return {"thread": thread, "loop": loop, "left": left}


@tuned(command_kill_seconds=0.3)
@pytest.mark.parametrize("how", ["thread", "loop", "left"])
def test_what_a_run_executes_ends_before_it_and_leaves_no_process(app: Ostinato, tmp_path: Path, how: str) -> None:
    app.projects.add("here", tmp_path)
    outer_tasks(app)
    seen: list[bool] = []
    app.task("next")(lambda: seen.append(lives(int((tmp_path / "pid").read_text()))))
    app.start()
    outer = app.enqueue(how, session="q")
    behind = app.enqueue("next", session="q")
    eventually((tmp_path / "pid").exists)
    app.sessions.stop("q")
    ended = outer.wait(timeout="60s")
    assert (ended.state, ended.cause) == (RunState.CANCELLED, Cause.SESSION_STOPPED)
    assert "may still be running" not in str(ended.reason)
    (inner,) = app.runs.list(project="here")
    assert (inner.state, inner.reason) == (
        RunState.CANCELLED,
        f"run {outer.id}, which executed it, was told to stop",
    )
    assert inner.finished_at is not None
    behind.wait(timeout="60s")
    assert seen == [False], "the next in the session starts when all is gone"


@tuned(command_kill_seconds=0.3)
def test_what_nobody_waits_for_ends_with_the_run_that_executes_it(app: Ostinato, tmp_path: Path) -> None:
    app.projects.add("here", tmp_path)
    kept: list[Any] = []

    @app.task("outer")
    async def outer() -> str:
        kept.append(asyncio.create_task(app.aio.execute(Shell(DEAF), project="here")))
        await asyncio.to_thread(eventually, (tmp_path / "pid").exists)
        return "returned"

    app.start()
    ended = app.enqueue("outer").wait(timeout="60s")
    assert (ended.state, ended.result) == (RunState.SUCCEEDED, "returned")
    (inner,) = app.runs.list(project="here")
    assert (inner.state, inner.reason) == (RunState.CANCELLED, f"run {ended.id}, which executed it, has ended")
    assert not lives(int((tmp_path / "pid").read_text()))


def test_what_waits_inside_of_a_run_ends_with_it(app: Ostinato) -> None:
    app.task("outer")(lambda: app.execute(Shell("true"), session="q").state)
    app.lanes.pause("cron")
    app.enqueue(Shell("true"), session="q", lane="cron")
    app.start()
    outer = app.enqueue("outer")
    eventually(lambda: len(in_session(app)) == 2)
    outer.cancel()
    assert outer.wait(timeout="60s").ended
    inner = in_session(app)[-1]
    assert (inner.state, inner.reason) == (
        RunState.CANCELLED,
        f"run {outer.id}, which executed it, was told to stop",
    )


def test_a_process_of_its_own_shares_the_turn_of_its_run(tmp_path: Path, make_app: MakeApp) -> None:
    db = f"sqlite:///{tmp_path / 'jobs.db'}"
    app = make_app(db)
    outer = app.task("outer", isolation="process", session="q")(process_tasks.execute)
    app.start()
    assert outer.enqueue(db, ["true"], "q").wait(timeout="60s").result == "succeeded"


@tuned(command_kill_seconds=0.3)
def test_what_a_process_of_its_own_executes_is_gone_with_it(
    tmp_path: Path, make_app: MakeApp, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    db = f"sqlite:///{tmp_path / 'jobs.db'}"
    app = make_app(db)
    outer = app.task("outer", isolation="process", retry=0)(process_tasks.execute)
    app.start()
    run = outer.enqueue(db, DEAF)
    eventually((tmp_path / "pid").exists)
    run.cancel()
    assert run.wait(timeout="60s").state is RunState.CANCELLED
    eventually(lambda: not lives(int((tmp_path / "pid").read_text())))
    (inner,) = [each for each in app.runs.list() if each.id != run.id]

    def ended() -> bool:
        fake_clock.advance("5s")
        return app.runs.get(inner.id).ended

    eventually(ended)
    assert (app.runs.get(inner.id).state, app.runs.get(inner.id).cause) == (RunState.FAILED, Cause.NODE_LOST)


def test_a_process_that_lost_its_lease_gives_up_what_waits_under_its_old_name(
    tmp_path: Path, make_app: MakeApp, beside: Beside
) -> None:
    app = make_app(f"sqlite:///{tmp_path / 'jobs.db'}")
    app.lanes.pause("cron")
    app.start()
    app.enqueue(Shell("true"), session="q", lane="cron")
    executed = beside(lambda: app.execute(Shell("true"), session="q"))
    eventually(lambda: len(in_session(app)) == 2)

    async def lose(engine: Engine) -> None:
        (node,) = await engine.store.nodes.list_nodes(engine.clock.now())
        await engine.store.runs.stale_runs([(engine.id, to_micros(node.seen_at))], engine.clock.now())
        await engine.lease.renew()

    before = engine_of(app).id
    app.with_engine(lose)
    assert engine_of(app).id != before
    run = executed.result(PATIENCE)
    assert (run.state, run.cause, run.attempts) == (RunState.FAILED, Cause.NODE_LOST, ())
