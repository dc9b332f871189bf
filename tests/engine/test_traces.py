"""Spans of fires, claims and runs, with a real SDK; and the trace of whoever asks, carried to all that follows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from ostinato import Abort, Agent, Http, Ostinato, Retry, RunContext, RunState, Shell
from ostinato.engine.node import Engine
from ostinato.testing import FakeClock, drain, simulate
from ostinato.trace_context import carrying
from tests.engine import process_tasks
from tests.engine.chat import Chat
from tests.engine.conftest import Gate, MakeApp, on_shared
from tests.engine.http_server import Server, answer, serving
from tests.engine.stand_in import StandIn
from tests.spans import Spans, id_of, spans, text_of

__all__ = ["spans"]

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
MESSAGING = {"messaging.system": "ostinato"}


def current() -> str:
    """The span of the calling code."""
    return text_of(trace.get_current_span())


# From whoever asks to the run.


def test_a_run_is_a_child_of_what_enqueued_it_and_its_row_has_the_trace(app: Ostinato, spans: Spans) -> None:
    @app.task("job")
    def job() -> str:
        return current()

    with spans.begin() as request:
        run = job.enqueue()
    drain(app)
    ended = run.get()
    assert ended.trace_id == id_of(request)
    assert spans.is_child("enqueue job", "request")
    assert spans.is_child("run job", "enqueue job")
    sent, ran = spans.one("enqueue job"), spans.one("run job")
    assert (sent.kind, ran.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert sent.attributes == {
        **MESSAGING,
        "messaging.operation.name": "enqueue",
        "messaging.operation.type": "send",
        "messaging.destination.name": "job",
    }
    assert ran.attributes == {
        **MESSAGING,
        "messaging.operation.name": "run",
        "messaging.operation.type": "process",
        "messaging.destination.name": "job",
        "messaging.message.id": str(run.id),
        "ostinato.run": run.id,
        "ostinato.attempt": 1,
        "ostinato.kind": "function",
        "ostinato.trigger": "api",
        "ostinato.task": "job",
        "ostinato.node": ended.node,
        "ostinato.state": "succeeded",
    }
    assert ran.status.status_code is StatusCode.UNSET
    assert ended.result == text_of(ran), "in a task, the current span is that of its run"
    assert "messaging.batch.message_count" not in (spans.one("claim").attributes or {}), "one run is no batch"


def test_a_claim_is_one_span_with_a_link_to_each_trace_and_each_run_links_to_it(app: Ostinato, spans: Spans) -> None:
    job = app.task("job")(lambda: None)
    with spans.begin():
        job.enqueue_many([()] * 3)
    job.enqueue()
    drain(app)
    many, one = spans.named("enqueue job")
    assert many.attributes is not None
    assert many.attributes["messaging.batch.message_count"] == 3
    claim = spans.one("claim")
    assert (claim.kind, claim.parent) == (SpanKind.CLIENT, None)
    assert claim.attributes is not None
    assert claim.attributes["messaging.operation.type"] == "receive"
    assert claim.attributes["messaging.batch.message_count"] == 4
    assert [link.context.span_id for link in claim.links] == [
        span.context.span_id for span in (many, many, many, one) if span.context is not None
    ]
    for run in spans.named("run job"):
        assert [link.context for link in run.links] == [claim.context]


@pytest.mark.parametrize("kind", ["thread", "async"])
def test_what_a_task_does_belongs_to_its_run_and_so_does_what_it_enqueues(
    memory_app: Ostinato, spans: Spans, kind: str
) -> None:
    app = memory_app
    inner = app.task("inner")(lambda: None)

    def in_thread() -> None:
        with spans.begin("query"):
            inner.enqueue()

    async def on_loop() -> None:
        with spans.begin("query"):
            await asyncio.sleep(0)
            await inner.aio.enqueue()

    functions: dict[str, Callable[[], Any]] = {"thread": in_thread, "async": on_loop}
    app.task("outer")(functions[kind]).enqueue()
    drain(app)
    assert spans.is_child("query", "run outer")
    assert spans.is_child("enqueue inner", "query")
    assert spans.is_child("run inner", "enqueue inner")
    assert current() == text_of(trace.INVALID_SPAN), "it stays inside"


def test_a_process_of_its_own_gets_the_span_of_its_run(memory_app: Ostinato, spans: Spans) -> None:
    run = memory_app.task("job", isolation="process")(process_tasks.current_span).enqueue()
    drain(memory_app)
    assert run.get().result == [text_of(spans.one("run job")), text_of(spans.one("run job"))]


def test_by_hand_in_sessions_and_again_a_run_belongs_to_whoever_asks(app: Ostinato, spans: Spans) -> None:
    chat = Chat(app)
    app.schedules.add("report", "every 1h", app.task("report")(lambda: None))
    with spans.begin() as request:
        triggered = app.schedules.trigger("report")
        drain(app)
        again = app.runs.retry(triggered.id)
        drain(app)
        sent = app.sessions.send("dm:1", "hello", task=chat.task, debounce=0)
        executed = app.execute(Shell("true"))
    drain(app)
    ids = [triggered.id, again.id, sent.id, executed.id]
    assert {app.runs.get(id).trace_id for id in ids} == {id_of(request)}
    asked = [span.name for span in spans.all if span.kind is SpanKind.PRODUCER]
    assert asked == ["trigger report", "retry report", "send reply"]
    assert spans.is_child("run reply", "send reply")
    assert spans.is_child("run shell", "request")


def test_what_a_burst_gathers_links_to_the_traces_of_its_messages(
    memory_app: Ostinato, spans: Spans, fake_clock: FakeClock
) -> None:
    chat = Chat(memory_app)
    with spans.begin() as first:
        memory_app.sessions.send("dm:1", 1, task=chat.task)
    with spans.begin() as second:
        memory_app.sessions.send("dm:1", 2, task=chat.task)
    fake_clock.advance("1s")
    drain(memory_app)
    assert chat.heard == [[1, 2]]
    run = spans.one("run reply")
    assert id_of(run) == id_of(first)
    assert [link.context.trace_id for link in run.links][:-1] == [second.get_span_context().trace_id]


# How attempts end.


def test_each_attempt_is_a_span_of_the_same_trace_and_says_what_was_raised(
    app: Ostinato, spans: Spans, fake_clock: FakeClock
) -> None:
    @app.task("job", retry=Retry(1, base="10s", spread=0))
    def job(run: RunContext) -> None:
        if run.attempt == 1:
            raise ValueError("the disk is full")
        raise Abort("no use")

    with spans.begin() as request:
        run = job.enqueue()
    simulate(app, lasting="1m")
    assert run.get().state is RunState.FAILED
    first, second = spans.named("run job")
    assert [id_of(first), id_of(second)] == [id_of(request)] * 2
    assert first.parent == second.parent
    assert [span.attributes and span.attributes["ostinato.attempt"] for span in (first, second)] == [1, 2]
    assert (first.status.status_code, first.status.description) == (StatusCode.ERROR, "ValueError: the disk is full")
    assert first.attributes is not None
    assert (first.attributes["ostinato.state"], first.attributes["ostinato.cause"]) == ("queued", "raised")
    assert first.attributes["error.type"] == "ValueError"
    (event,) = first.events
    assert event.name == "exception"
    assert event.attributes is not None
    assert event.attributes["exception.type"] == "ValueError"
    assert str(event.attributes["exception.stacktrace"]).rstrip().endswith("ValueError: the disk is full")
    assert (second.status.status_code, second.status.description) == (StatusCode.ERROR, "no use")
    assert second.attributes is not None
    assert (second.attributes["ostinato.state"], second.attributes["ostinato.cause"]) == ("failed", "aborted")


def test_a_trace_that_begins_with_a_run_is_that_of_all_its_attempts(
    app: Ostinato, spans: Spans, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task("job", retry=Retry(1, base="10s", spread=0))
    def job() -> None:
        raise ValueError("boom")

    with monkeypatch.context() as untraced:
        untraced.setattr(trace, "_TRACER_PROVIDER", None)
        run = job.enqueue()
    assert run.get().trace_id is None
    simulate(app, lasting="1m")
    first, second = spans.named("run job")
    assert first.parent is None
    assert id_of(second) == id_of(first) == run.get().trace_id


def test_secrets_are_hidden_in_a_span_as_they_are_in_the_row(
    memory_app: Ostinato, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_OF_TEST", "correct-horse-battery")
    run = memory_app.enqueue(Shell("echo $T; exit 3", env={"T": "env:TOKEN_OF_TEST"}), retry=0)
    drain(memory_app)
    assert run.get().reason == "exited with status 3: ***"
    span = spans.one("run shell")
    assert span.status.description == "exited with status 3: ***"
    assert span.attributes is not None
    assert span.attributes["error.type"] == "exit_status"
    assert "correct-horse" not in span.to_json()


def test_what_is_cancelled_or_abandoned_has_a_span_that_says_so(
    make_app: MakeApp, spans: Spans, gate: Gate, tmp_path: Path
) -> None:
    app = make_app(f"sqlite:///{tmp_path}/jobs.db")

    @app.task("job", retry=0)
    async def job() -> None:
        await asyncio.Event().wait()

    held = app.task("held", retry=0)(gate.wait)
    app.start()
    run = job.enqueue()
    held.enqueue()
    gate.entered()
    run.cancel()
    assert run.wait(timeout=60).state is RunState.CANCELLED

    async def abandon(engine: Engine) -> None:
        engine.runner.abandon()

    app.with_engine(abandon)
    cancelled, abandoned = spans.one("run job"), spans.one("run held")
    assert cancelled.attributes is not None
    assert (cancelled.attributes["ostinato.state"], cancelled.status.status_code) == ("cancelled", StatusCode.UNSET)
    assert abandoned.attributes is not None
    assert (abandoned.attributes["ostinato.cause"], abandoned.status.status_code) == ("node_lost", StatusCode.ERROR)


# Schedules.


def test_a_fire_begins_a_trace_of_its_own_and_its_run_belongs_to_it(
    app: Ostinato, spans: Spans, fake_clock: FakeClock
) -> None:
    for name in ("report", "mail"):
        app.schedules.add(name, "every 5m", app.task(name)(lambda: None))
    with spans.begin():  # whoever drives the engine has nothing to do with it
        simulate(app, lasting="5m")
    traces = []
    for name in ("report", "mail"):
        fire = spans.one(f"fire {name}")
        assert (fire.parent, fire.kind) == (None, SpanKind.PRODUCER)
        assert fire.attributes is not None
        assert fire.attributes["ostinato.schedule"] == name
        assert "messaging.batch.message_count" not in fire.attributes, "one run is no batch"
        assert spans.is_child(f"run {name}", f"fire {name}")
        traces.append(id_of(fire))
    assert len(set(traces)) == 2
    assert sorted(run.trace_id or "" for run in app.runs.list()) == sorted(traces)


def test_a_due_time_that_is_left_out_is_told_in_the_span_of_its_fire(
    memory_app: Ostinato, spans: Spans, fake_clock: FakeClock
) -> None:
    app = memory_app
    app.schedules.add("report", "every 5m", app.task("report")(lambda: None), catch_up="none")
    fake_clock.advance("1h")
    drain(app)
    fire = spans.one("fire report")
    assert fire.attributes is not None
    assert fire.attributes["ostinato.cause"] == "downtime"
    assert [event.name for event in fire.events][:1] == ["missed"]
    (event, *_) = fire.events
    assert event.attributes is not None
    assert "catch_up is none" in str(event.attributes["ostinato.reason"])
    missed = [run for run in app.runs.list() if run.state is RunState.MISSED]
    assert [run.trace_id for run in missed] == [id_of(fire)]


@on_shared
def test_a_due_time_that_two_nodes_saw_has_one_fire(
    shared_db: str, make_app: MakeApp, spans: Spans, fake_clock: FakeClock
) -> None:
    first, second = make_app(shared_db), make_app(shared_db)
    for app in (first, second):
        app.task("report")(lambda: None)
    first.schedules.add("report", "every 5m", "report")
    fake_clock.advance("5m")

    async def tick_late(engine: Engine) -> None:
        """As one that has planned, and is overtaken."""
        store = engine.ticker._schedules
        record = store.record_fires

        async def overtaken(*given: Any) -> Any:
            await asyncio.to_thread(drain, first)
            return await record(*given)

        engine.ticker._schedules = _Overtaken(store, overtaken)
        try:
            await engine.ticker.tick()
        finally:
            engine.ticker._schedules = store

    second.with_engine(tick_late)
    drain(second)
    assert len(first.runs.list()) == 1
    assert spans.is_child("run report", "fire report")


class _Overtaken:
    """A store of schedules in which somebody else is faster."""

    def __init__(self, store: Any, record_fires: Callable[..., Any]) -> None:
        self._store = store
        self.record_fires = record_fires

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


# To whatever a run starts.


def test_commands_and_gates_have_the_trace_in_their_environment_and_nobody_elses(
    make_app: MakeApp, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", PARENT)
    monkeypatch.setenv("TRACESTATE", "of=engine")
    app = make_app("sqlite://:memory:")
    gate = '''printf '{"wake": true, "data": "%s"}' "$TRACEPARENT"'''
    seen = app.enqueue(Shell('echo "$TRACEPARENT|$TRACESTATE|$OSTINATO_GATE"'), gate=gate)
    own = app.enqueue(Shell("echo $TRACEPARENT", env={"TRACEPARENT": PARENT}))
    drain(app)
    span = text_of(next(one for one in spans.named("run shell") if (one.attributes or {})["ostinato.run"] == seen.id))
    assert app.runs.output(seen.id) == f'{span}||"{span}"\n'
    assert app.runs.output(own.id) == f"{PARENT}\n", "what its work says itself stays"
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    untraced = app.enqueue(Shell('echo "[$TRACEPARENT]"'))
    drain(app)
    assert app.runs.output(untraced.id) == "[]\n"


def test_agents_and_requests_have_it_too(make_app: MakeApp, spans: Spans, tmp_path: Path) -> None:
    stand_in = StandIn(tmp_path / "bin")
    app = make_app("sqlite://:memory:", agents={"claude": stand_in.cli}, http_allow=("127.0.0.0/8",))
    app.enqueue(Agent("look"))
    with serving() as server:
        _request(app, server)
        drain(app)
        given, own = [received.headers for received in server.received]
    assert stand_in.calls[0]["environment"]["TRACEPARENT"] == text_of(spans.one("run agent"))
    assert given["traceparent"] == text_of(spans.named("run http")[0])
    assert own["traceparent"] == PARENT, "what its work says itself stays"


def _request(app: Ostinato, server: Server) -> None:
    url = server.on("/hook", answer(body=b"ok"))
    app.enqueue(Http("GET", url))
    drain(app)
    app.enqueue(Http("GET", url, headers={"Traceparent": PARENT}))


def test_without_an_sdk_a_trace_is_handed_on_as_it_came(
    app: Ostinato, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    inner = app.task("inner")(lambda: None)

    @app.task("outer")
    async def outer() -> int:
        return await inner.aio.enqueue()

    with carrying({"traceparent": PARENT, "tracestate": "a=b"}):
        shell = app.enqueue(Shell("echo $TRACEPARENT $TRACESTATE"))
        run = outer.enqueue()
    with caplog.at_level(logging.INFO, "ostinato.runs"):
        drain(app)
    assert app.runs.output(shell.id) == f"{PARENT} a=b\n"
    id = PARENT[3:35]
    assert [one.trace_id for one in (shell.get(), run.get(), app.runs.get(run.get().result))] == [id] * 3
    assert {getattr(record, "trace_id", None) for record in caplog.records} == {id}
