"""What makes no spans, or cannot: processors that raise, traces that are not sampled, an SDK that is disabled, none at
all. Every run does its work all the same, and keeps the trace that it came with."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from ostinato import Ostinato, RunState, Shell
from ostinato.engine.node import Engine
from ostinato.errors import InvalidInput
from ostinato.testing import FakeClock, drain, simulate
from ostinato.trace_context import carrying
from tests.engine.chat import Chat
from tests.engine.conftest import engine_of
from tests.spans import Spans, id_of, spans
from tests.stores.places import raw

__all__ = ["spans"]

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class _Raising(SpanProcessor):
    """At the start of a span, or at its end."""

    def __init__(self, *, at_end: bool) -> None:
        self._at_end = at_end

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        if not self._at_end:
            raise ValueError("a processor of the user's")

    def on_end(self, span: Any) -> None:
        if self._at_end:
            raise ValueError("a processor of the user's")


@pytest.mark.parametrize("at_end", [False, True], ids=["on_start", "on_end"])
def test_a_processor_that_raises_keeps_no_run_from_its_work(
    memory_app: Ostinato, spans: Spans, fake_clock: FakeClock, caplog: pytest.LogCaptureFixture, at_end: bool
) -> None:
    job = memory_app.task("job")(lambda: "done")
    memory_app.schedules.add("report", "every 5m", job)
    memory_app.schedules.add("mail", "every 5m", job)
    spans.provider.add_span_processor(_Raising(at_end=at_end))
    run = job.enqueue()
    simulate(memory_app, lasting="5m")
    assert [one.result for one in memory_app.runs.list()] == ["done"] * 3
    assert run.get().state is RunState.SUCCEEDED
    assert "a span could not be made" in caplog.text
    if at_end:
        ended = [span.name for span in spans.all]  # by the processor before it
        assert sorted(name for name in ended if name.startswith("fire ")) == ["fire mail", "fire report"]


def test_an_enqueue_that_is_refused_says_why_even_if_its_span_cannot_end(memory_app: Ostinato, spans: Spans) -> None:
    spans.provider.add_span_processor(_Raising(at_end=True))
    with pytest.raises(InvalidInput, match="key"):
        memory_app.task("job")(lambda: None).using(key="k").enqueue_many([(), ()])


def _disabled(monkeypatch: pytest.MonkeyPatch) -> TracerProvider:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    return TracerProvider(shutdown_on_exit=False)


class _NoSpans(TracerProvider):
    """Its tracers are of its own, and their spans are none."""

    def get_tracer(self, *given: Any, **named: Any) -> Any:
        return _NoSpan()


class _NoSpan(trace.Tracer):
    def start_span(self, *given: Any, **named: Any) -> trace.Span:
        return trace.INVALID_SPAN

    def start_as_current_span(self, *given: Any, **named: Any) -> Any:
        return trace.use_span(trace.INVALID_SPAN)


@pytest.mark.parametrize("make", [_disabled, lambda _: _NoSpans(shutdown_on_exit=False)], ids=["disabled", "custom"])
def test_an_sdk_that_is_disabled_gives_no_run_a_trace_and_takes_none_away(
    memory_app: Ostinato,
    monkeypatch: pytest.MonkeyPatch,
    fake_clock: FakeClock,
    make: Callable[[pytest.MonkeyPatch], TracerProvider],
) -> None:
    app = memory_app
    chat = Chat(app)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", make(monkeypatch))
    app.schedules.add("report", "every 5m", app.task("report")(lambda: None))
    untraced = app.enqueue(Shell('echo "[$TRACEPARENT]"'))
    app.sessions.send("dm:1", 1, task=chat.task)
    with carrying({"traceparent": PARENT}):
        traced = app.enqueue(Shell("echo $TRACEPARENT"))
        joined = app.sessions.send("dm:1", 2, task=chat.task)
    simulate(app, lasting="5m")
    assert app.runs.output(untraced.id) == "[]\n"
    assert app.runs.output(traced.id) == f"{PARENT}\n"
    assert joined.get().trace_id == traced.get().trace_id == PARENT[3:35]
    done = {run.schedule or run.id: run.trace_id for run in app.runs.list() if run.state is RunState.SUCCEEDED}
    assert {name for name, trace_id in done.items() if trace_id is None} == {untraced.id, "report"}

    async def rows(engine: Engine) -> list[tuple[Any, ...]]:
        return await raw(engine.store, "SELECT DISTINCT trace FROM runs ORDER BY trace")

    assert app.with_engine(rows) == [(None,), (PARENT,)]


def test_a_trace_that_is_not_sampled_is_carried_and_exports_nothing(
    app: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsampled = Spans(sampled=False)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", unsampled.provider)
    with unsampled.begin() as request:
        run = app.enqueue(Shell("echo $TRACEPARENT"))
    drain(app)
    assert run.get().trace_id == id_of(request)
    assert app.runs.output(run.id)[3:35] == id_of(request)
    assert app.runs.output(run.id).strip().endswith("-00") or app.runs.output(run.id).strip().endswith("-02")
    assert unsampled.all == []


def test_without_an_sdk_a_run_has_no_trace(app: Ostinato) -> None:
    job = app.task("job")(os.getpid)
    app.schedules.add("report", "every 5m", job)
    run = job.enqueue()
    simulate(app, lasting="5m")
    assert run.get().trace_id is None
    assert {one.trace_id for one in app.runs.list()} == {None}
    app.start()
    assert engine_of(app).runner.tracer is None
