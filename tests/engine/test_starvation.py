"""A node that has no descriptor, thread or process left: its runs wait, are no attempts, and break nothing."""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ostinato import Agent, Http, Ostinato, RunState, Shell
from ostinato.config import AgentCli
from ostinato.execution.executors import group
from ostinato.execution.executors.http.line import Line
from ostinato.execution.resources import is_exhausted
from ostinato.models.work import Work
from ostinato.testing import FakeClock, drain
from tests.engine.conftest import MakeApp


class Want:
    """Whether the node lacks something just now."""

    def __init__(self) -> None:
        self.is_there = True

    def before(self, real: Callable[..., Any], error: Exception) -> Callable[..., Any]:
        def starting(*given: Any, **named: Any) -> Any:
            if self.is_there:
                raise error
            return real(*given, **named)

        return starting


@pytest.fixture
def want(monkeypatch: pytest.MonkeyPatch) -> Want:
    """No process and no thread of a worker can be started."""
    made = Want()
    full = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    monkeypatch.setattr(group, "_spawn", made.before(group._spawn, full))
    start = threading.Thread.start

    def starting(thread: threading.Thread) -> None:
        if made.is_there and thread.name.startswith(("ostinato-worker", "ostinato-check")):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", starting)
    return made


def apart() -> None:
    """In a process of its own, which imports it from here."""


def _app(make_app: MakeApp) -> Ostinato:
    app = make_app("sqlite://:memory:", agents={"echo": AgentCli(("echo", "{prompt}"))}, http_allow=("private",))

    @app.task("sync")
    def sync() -> None: ...

    app.task("apart", isolation="process")(apart)

    @app.check("fine")
    def fine() -> bool:
        return True

    return app


WAYS: dict[str, tuple[Work | str, dict[str, Any]]] = {
    "shell": (Shell("true"), {}),
    "agent": (Agent("hello", cli="echo"), {}),
    "http": (Http("GET", "http://localhost:9/"), {}),
    "thread": ("sync", {}),
    "process": ("apart", {}),
    "gate": (Shell("true"), {"gate": """echo '{"wake": true}'"""}),
    "check": (Shell("true"), {"checks": ["fine"]}),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_cannot_be_started_waits_and_breaks_nothing(
    make_app: MakeApp, fake_clock: FakeClock, want: Want, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = _app(make_app)
    work, policy = WAYS[way]
    want.is_there = False  # its checks pass when it is added
    app.schedules.add("s", "every 1h", work, retry=0, break_after=1, **policy)
    want.is_there = True
    with caplog.at_level(logging.ERROR, "ostinato.execution"):
        fake_clock.advance("1h")
        drain(app)
    (run,) = app.runs.list(schedule="s")
    assert (run.state, run.attempt, run.attempts) == (RunState.QUEUED, 0, ())
    assert "this node had no room to start it" in (run.reason or "")
    assert app.schedules.get("s").broken is None
    assert any("goes back to the queue" in record.message for record in caplog.records)
    if way == "http":
        return  # nobody listens there
    want.is_there = False
    fake_clock.advance("6s")
    drain(app)
    (run,) = app.runs.list(schedule="s")
    assert (run.state, run.attempt) == (RunState.SUCCEEDED, 1), run.reason


def test_a_secret_that_no_descriptor_is_left_for_is_no_wrong_secret(
    make_app: MakeApp, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("hush")
    app, real, is_full = make_app("sqlite://:memory:"), os.open, True

    def opening(path: Any, *given: Any, **named: Any) -> int:
        if is_full and str(path).endswith("secret"):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return real(path, *given, **named)

    monkeypatch.setattr(os, "open", opening)
    run = app.enqueue(Shell("true", env={"KEY": f"file:{tmp_path / 'secret'}"}), retry=0)
    drain(app)
    assert (run.get().state, run.get().attempt) == (RunState.QUEUED, 0)
    is_full = False
    fake_clock.advance("6s")
    drain(app)
    assert run.get().state is RunState.SUCCEEDED


def test_a_request_that_no_socket_is_left_for_was_not_sent(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(Line, "_connect", connect)
    app = _app(make_app)
    run = app.enqueue(Http("POST", "http://127.0.0.1:9/"), retry=0)
    drain(app)
    assert (run.get().state, run.get().attempt) == (RunState.QUEUED, 0)


def test_health_counts_what_was_put_back(make_app: MakeApp, want: Want) -> None:
    app = _app(make_app)
    app.start()
    runs = [app.enqueue(Shell("true")) for _ in range(3)]
    drain(app)
    assert app.health()["starved"] == 3
    assert {run.get().state for run in runs} == {RunState.QUEUED}


@pytest.mark.parametrize(
    ("error", "is_so"),
    [
        (OSError(errno.EMFILE, "x"), True),
        (OSError(errno.ENFILE, "x"), True),
        (OSError(errno.ENOMEM, "x"), True),
        (BlockingIOError(errno.EAGAIN, "x"), True),
        (MemoryError(), True),
        (RuntimeError("can't start new thread"), True),
        (RuntimeError("boom"), False),
        (OSError(errno.ENOENT, "x"), False),
        (ValueError("x"), False),
    ],
)
def test_only_want_of_the_node_is_that(error: Exception, is_so: bool) -> None:
    assert is_exhausted(error) is is_so


def test_work_that_runs_out_of_descriptors_itself_has_failed(memory_app: Ostinato) -> None:
    @memory_app.task("greedy", retry=0)
    async def greedy() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    run = greedy.enqueue()
    drain(memory_app)
    assert run.get().state is RunState.FAILED
