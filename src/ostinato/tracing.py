"""OpenTelemetry spans around fires, claims, runs and what enqueues them, if this process has an SDK set up.

`find_tracer` is asked once for a batch or a call; without an SDK it answers None, and nothing is made. It imports
nothing by itself: who sets an SDK up has imported the API. Names and attributes follow the semantic conventions for
messaging; docs/decisions/0028 says why. Below: trace_context.py, what a row keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ostinato.clock import Micros
from ostinato.logs import get_logger
from ostinato.models.ids import ScheduleId
from ostinato.models.run import ClaimedRun, Finish, NewRun
from ostinato.models.schedule import DueSchedule, FirePlan
from ostinato.models.states import Cause, RunState
from ostinato.models.work_kinds import counted_as, is_task
from ostinato.trace_context import carried, opentelemetry, read_trace, span_context_text

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, SpanContext

__all__ = ["FireSpans", "RunSpan", "Tracer", "enter_trace", "find_tracer", "sending"]

_SYSTEM = {"messaging.system": "ostinato"}
_NOTHING: AbstractContextManager[None] = nullcontext()
_MOST_LINKS = 128
"""Of a claim: what an SDK keeps by default."""
_found: Tracer | None = None

log = get_logger("ostinato")

P = ParamSpec("P")
T = TypeVar("T")


def _harmless(method: Callable[P, T]) -> Callable[P, T | None]:
    """What a sampler, a processor or an exporter of the user's raises is logged: no run waits for its span."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T | None:
        try:
            return method(*args, **kwargs)
        except Exception:
            log.exception("a span could not be made")
            return None

    return call


def find_tracer() -> Tracer | None:
    """Makes spans here; None if nobody has set an SDK up, or it is disabled (`OTEL_SDK_DISABLED`)."""
    if (api := opentelemetry()) is None:
        return None
    provider = api.get_tracer_provider()
    if isinstance(provider, api.ProxyTracerProvider | api.NoOpTracerProvider):
        return None
    global _found  # noqa: PLW0603  # made once, and anew if a test sets up another
    if _found is None or _found.provider is not provider:
        _found = Tracer(provider)
    return _found if _found.makes_spans else None


def sending(operation: str, name: str, count: int = 1) -> AbstractContextManager[None]:
    """A span around what enqueues runs of this name: they belong to it. Nothing, if nobody traces."""
    tracer = find_tracer()
    return _NOTHING if tracer is None else tracer.send(operation, name, count)


def enter_trace(trace: str) -> None:
    """From here on, this context (a task's or a thread's own) is part of the trace: what it enqueues, and its spans."""
    carried.set(trace)
    if opentelemetry() is not None and (context := _context_of(trace)) is not None:
        from opentelemetry.context import attach

        attach(context)


class Tracer:
    """The spans of this process."""

    def __init__(self, provider: Any) -> None:
        from opentelemetry import trace
        from opentelemetry.context import Context, attach

        self.provider = provider
        self._tracer = provider.get_tracer("ostinato", _version())
        self.makes_spans = not isinstance(self._tracer, trace.NoOpTracer)
        """An SDK that is disabled has a provider like any other; only its tracers tell."""
        self._nowhere = Context()
        """What begins here is a trace of its own, whoever started the engine."""
        self._kinds = trace.SpanKind
        self._link = trace.Link
        self._make_current = lambda span: attach(trace.set_span_in_context(span))

    @contextmanager
    def send(self, operation: str, name: str, count: int) -> Iterator[None]:
        """Around what enqueues."""
        from opentelemetry.trace import use_span

        span = self._begin_send(operation, name, count)
        if span is None:
            yield
            return
        try:
            with use_span(span):
                yield
        finally:
            _end(span)

    @_harmless
    def _begin_send(self, operation: str, name: str, count: int) -> Span:
        from opentelemetry.trace import get_current_span

        attributes = _named(operation, "send", name)
        attributes.update(_batch(count))
        has_span = get_current_span().get_span_context().is_valid
        context = None if has_span else _context_of(carried.get())
        span: Span = self._tracer.start_span(
            f"{operation} {name}", context=context, kind=self._kinds.PRODUCER, attributes=attributes
        )
        return span

    @_harmless
    def fire(self, due: Sequence[DueSchedule], plans: Sequence[FirePlan]) -> FireSpans:
        """Begin a trace for each plan; its rows belong to it."""
        names = {schedule.id: schedule.name for schedule in due}
        spans: list[tuple[FirePlan, Span]] = []
        for plan in plans:
            name = names[plan.schedule_id]
            attributes = {**_named("fire", "send", name), "ostinato.schedule": name}
            span = self._tracer.start_span(
                f"fire {name}", context=self._nowhere, kind=self._kinds.PRODUCER, attributes=attributes
            )
            trace = span_context_text(span.get_span_context())
            if trace is not None:
                for run in plan.runs:
                    run.trace = trace
            spans.append((plan, span))
        return FireSpans(spans)

    @_harmless
    def claim(self, runs: Sequence[ClaimedRun], began_at: Micros, node: str) -> Link | None:
        """What a claim got: one span that links to all of their traces. Answers the link to it."""
        span = self._tracer.start_span(
            "claim",
            context=self._nowhere,
            kind=self._kinds.CLIENT,
            links=[self._link(parent) for run in runs[:_MOST_LINKS] for parent in _traces(run.trace)[:1]],
            attributes={
                **_SYSTEM,
                "messaging.operation.name": "claim",
                "messaging.operation.type": "receive",
                **_batch(len(runs)),
                "ostinato.node": node,
            },
            start_time=began_at * 1_000,
        )
        _end(span)
        context = span.get_span_context()
        return self._link(context) if context.is_valid else None

    @_harmless
    def run(self, claimed: ClaimedRun, received: Link | None) -> RunSpan | None:
        """Begin an attempt: in the trace of its row, or in a new one, which is then that of the run."""
        name = counted_as(claimed.task, claimed.schedule, claimed.kind)
        attributes: dict[str, Any] = {
            "messaging.system": "ostinato",
            "messaging.operation.name": "run",
            "messaging.operation.type": "process",
            "messaging.destination.name": name,
            "messaging.message.id": str(claimed.id),
            "ostinato.run": claimed.id,
            "ostinato.attempt": claimed.attempt,
            "ostinato.kind": claimed.kind,
            "ostinato.trigger": str(claimed.trigger),
        }
        if claimed.schedule is not None:
            attributes["ostinato.schedule"] = claimed.schedule
        if claimed.task is not None and is_task(claimed.task):
            attributes["ostinato.task"] = claimed.task
        if claimed.session is not None:
            attributes["ostinato.session"] = claimed.session
        if claimed.node is not None:
            attributes["ostinato.node"] = claimed.node
        traces = _traces(claimed.trace)
        links = [self._link(joined) for joined in traces[1:]]
        if received is not None:
            links.append(received)
        span = self._tracer.start_span(
            f"run {name}",
            context=_context_of(claimed.trace) or self._nowhere,
            kind=self._kinds.CONSUMER,
            links=links,
            attributes=attributes,
        )
        if not span.get_span_context().is_valid:  # as if nobody traced: the row is handed on
            return None
        made = RunSpan(span, self._make_current, begins=not traces)
        if made.begins:
            claimed.trace = made.trace
        return made


class RunSpan:
    """One attempt of a run."""

    __slots__ = ("_make_current", "begins", "span")

    def __init__(self, span: Span, make_current: Callable[[Span], object], *, begins: bool) -> None:
        self.span = span
        self._make_current = make_current
        self.begins = begins
        """Whether the trace begins with it: the row does not know it yet."""

    @property
    def trace(self) -> str | None:
        """What its work hands on."""
        return span_context_text(self.span.get_span_context())

    @_harmless
    def enter(self) -> None:
        """From here on, it is the current span of this task or thread."""
        self._make_current(self.span)

    @_harmless
    def end(self, finish: Finish, failed: str | None, exception: str | None) -> None:
        """It ended like this; `failed` says why, if it has, and `exception` what was raised. Without secrets."""
        span = self.span
        if span.is_recording():
            span.set_attribute("ostinato.state", str(finish.state))
            if finish.cause is not None:
                span.set_attribute("ostinato.cause", str(finish.cause))
            if failed is not None:
                _fail(span, failed, exception or str(finish.cause))
                if exception is not None:
                    described = {"exception.type": exception, "exception.message": failed}
                    if finish.error is not None:
                        described["exception.stacktrace"] = finish.error
                    span.add_event("exception", described)
        span.end()

    @_harmless
    def abandon(self, reason: str) -> None:
        """Its node has lost it: what becomes of the run, others say."""
        if self.span.is_recording():
            self.span.set_attribute("ostinato.cause", str(Cause.NODE_LOST))
            _fail(self.span, reason, str(Cause.NODE_LOST))
        self.span.end()


class FireSpans:
    """The spans of what is being recorded."""

    def __init__(self, spans: Sequence[tuple[FirePlan, Span]]) -> None:
        self._spans = spans

    @_harmless
    def end(self, moved: Collection[ScheduleId]) -> None:
        """These schedules were moved on here. What another node was faster to record is never ended, so that no SDK
        exports it: a due time has one trace."""
        won = set(moved)
        for plan, span in self._spans:
            if plan.schedule_id not in won:
                continue
            if span.is_recording():
                span.set_attributes(_batch(len(plan.runs)))
                for run in plan.runs:
                    _tell_left_out(span, run)
                if plan.broken is not None:
                    _fail(span, plan.broken, "broken")
            _end(span)


@_harmless
def _end(span: Span) -> None:
    """By itself: what follows has happened, whatever a processor makes of it."""
    span.end()


def _tell_left_out(span: Span, run: NewRun) -> None:
    """A due time for which nothing is executed."""
    if run.state is RunState.QUEUED:
        return
    span.set_attribute("ostinato.cause", str(run.cause))
    span.add_event(str(run.state), {"ostinato.reason": run.reason or "", "ostinato.due_times": run.count})


def _named(operation: str, type: str, name: str) -> dict[str, Any]:
    return {
        **_SYSTEM,
        "messaging.operation.name": operation,
        "messaging.operation.type": type,
        "messaging.destination.name": name,
    }


def _batch(count: int) -> dict[str, Any]:
    """The conventions want no count on what is about a single message."""
    return {"messaging.batch.message_count": count} if count > 1 else {}


def _fail(span: Span, reason: str, type: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_status(Status(StatusCode.ERROR, reason))
    span.set_attribute("error.type", type)


# What follows is remembered: runs that were enqueued together have the same.


@lru_cache(maxsize=256)
def _context_of(kept: str | None) -> Context | None:
    """A context whose span is the end of this trace; None if there is none."""
    if not (found := _traces(kept)):
        return None
    from opentelemetry.context import Context
    from opentelemetry.trace import NonRecordingSpan, set_span_in_context

    return set_span_in_context(NonRecordingSpan(found[0]), Context())


@lru_cache(maxsize=256)
def _traces(kept: str | None) -> tuple[SpanContext, ...]:
    """The traces of a row: its own first, then those of the messages that were joined to it."""
    if kept is None:
        return ()
    return tuple(found for line in kept.split("\n") if (found := _span_context(line)) is not None)


def _span_context(trace: str) -> SpanContext | None:
    from opentelemetry.trace import SpanContext, TraceFlags, TraceState

    parent, _, state = trace.partition(" ")
    if read_trace(parent) is None:
        return None
    _, trace_id, span_id, flags = parent.split("-")[:4]
    return SpanContext(
        int(trace_id, 16),
        int(span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(int(flags, 16)),
        trace_state=TraceState.from_header([state]) if state else None,
    )


def _version() -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("ostinato")
    except PackageNotFoundError:  # not installed, but on the path
        return None
