"""OpenTelemetry spans around fires, claims, runs and what enqueues them, if this process has an SDK set up.

`find_tracer` is asked once for a batch or a call; without an SDK it answers None, and nothing is made. It imports
nothing by itself: who sets an SDK up has imported the API. Names and attributes follow the semantic conventions for
messaging; docs/decisions/0028 says why. Below: trace_context.py, what a row keeps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from ostinato.clock import Micros
from ostinato.models.ids import ScheduleId
from ostinato.models.run import ClaimedRun, Finish, NewRun
from ostinato.models.schedule import DueSchedule, FirePlan
from ostinato.models.states import Cause, RunState
from ostinato.models.work_kinds import counted_as, is_task
from ostinato.trace_context import carried, opentelemetry, own_trace, read_trace, span_context_text

if TYPE_CHECKING:
    from opentelemetry.trace import Link, Span, SpanContext

__all__ = ["FireSpans", "RunSpan", "Tracer", "enter_trace", "find_tracer", "sending"]

_SYSTEM = {"messaging.system": "ostinato"}
_NOTHING: AbstractContextManager[None] = nullcontext()
_MOST_LINKS = 128
"""Of a claim: what an SDK keeps by default."""


def find_tracer() -> Tracer | None:
    """Makes spans here; None if nobody has set an SDK up."""
    if (api := opentelemetry()) is None:
        return None
    provider = api.get_tracer_provider()
    if isinstance(provider, api.ProxyTracerProvider | api.NoOpTracerProvider):
        return None
    global _found  # noqa: PLW0603  # made once, and anew if a test sets up another
    if _found is None or _found.provider is not provider:
        _found = Tracer(provider)
    return _found


_found: Tracer | None = None


def sending(operation: str, name: str, count: int = 1) -> AbstractContextManager[None]:
    """A span around what enqueues runs of this name: they belong to it. Nothing, if nobody traces."""
    tracer = find_tracer()
    return _NOTHING if tracer is None else tracer.send(operation, name, count)


def enter_trace(trace: str, span: RunSpan | None = None) -> None:
    """From here on, this context (a task's or a thread's own) is part of the trace: what it enqueues, and its spans."""
    carried.set(trace)
    if opentelemetry() is None:
        return
    from opentelemetry import context
    from opentelemetry.trace import NonRecordingSpan, set_span_in_context

    if span is not None:
        context.attach(set_span_in_context(span.span))
    elif (parent := _span_context(trace)) is not None:
        context.attach(set_span_in_context(NonRecordingSpan(parent)))


class Tracer:
    """The spans of this process."""

    def __init__(self, provider: Any) -> None:
        self.provider = provider
        self._tracer = provider.get_tracer("ostinato", _version())

    @contextmanager
    def send(self, operation: str, name: str, count: int) -> Iterator[None]:
        """Around what enqueues."""
        from opentelemetry.trace import SpanKind

        attributes: dict[str, Any] = _named(operation, "send", name)
        if count != 1:
            attributes["messaging.batch.message_count"] = count
        context = _context_of(carried.get()) if not _has_span() else None
        with self._tracer.start_as_current_span(
            f"{operation} {name}", context=context, kind=SpanKind.PRODUCER, attributes=attributes
        ):
            yield

    def fire(self, due: Sequence[DueSchedule], plans: Sequence[FirePlan]) -> FireSpans:
        """Begin a trace for each plan; its rows belong to it."""
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind

        names = {schedule.id: schedule.name for schedule in due}
        spans: list[tuple[FirePlan, Span]] = []
        for plan in plans:
            name = names[plan.schedule_id]
            attributes = {**_named("fire", "send", name), "ostinato.schedule": name}
            # In no context: who started the engine has nothing to do with it.
            span = self._tracer.start_span(
                f"fire {name}", context=Context(), kind=SpanKind.PRODUCER, attributes=attributes
            )
            trace = span_context_text(span.get_span_context())
            for run in plan.runs:
                run.trace = trace
            spans.append((plan, span))
        return FireSpans(spans)

    def claim(self, runs: Sequence[ClaimedRun], began_at: Micros, node: str) -> SpanContext:
        """What a claim got: one span that links to all of their traces."""
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind

        span: Span = self._tracer.start_span(
            "claim",
            context=Context(),
            kind=SpanKind.CLIENT,
            links=[link for run in runs[:_MOST_LINKS] for link in _links(run)[:1]],
            attributes={
                **_SYSTEM,
                "messaging.operation.name": "claim",
                "messaging.operation.type": "receive",
                "messaging.batch.message_count": len(runs),
                "ostinato.node": node,
            },
            start_time=began_at * 1_000,
        )
        span.end()
        return span.get_span_context()

    def run(self, claimed: ClaimedRun, received: SpanContext | None) -> RunSpan:
        """Begin an attempt: in the trace of its row, or in a new one, which is then that of the run."""
        from opentelemetry.context import Context
        from opentelemetry.trace import Link, SpanKind

        name = counted_as(claimed.task, claimed.schedule, claimed.kind)
        trace = own_trace(claimed.trace)
        attributes: dict[str, Any] = {
            **_named("run", "process", name),
            "messaging.message.id": str(claimed.id),
            "ostinato.run": claimed.id,
            "ostinato.attempt": claimed.attempt,
            "ostinato.kind": claimed.kind,
            "ostinato.trigger": str(claimed.trigger),
        }
        for key, value in (
            ("schedule", claimed.schedule),
            ("task", claimed.task if is_task(claimed.task) else None),
            ("session", claimed.session),
            ("node", claimed.node),
        ):
            if value is not None:
                attributes[f"ostinato.{key}"] = value
        links = _links(claimed)[1:]
        if received is not None:
            links.append(Link(received))
        span = self._tracer.start_span(
            f"run {name}",
            context=_context_of(trace) or Context(),
            kind=SpanKind.CONSUMER,
            links=links,
            attributes=attributes,
        )
        made = RunSpan(span, begins=trace is None)
        if made.begins:
            claimed.trace = made.trace
        return made


class RunSpan:
    """One attempt of a run."""

    __slots__ = ("begins", "span", "trace")

    def __init__(self, span: Span, *, begins: bool) -> None:
        self.span = span
        self.trace = span_context_text(span.get_span_context())
        """What its work hands on."""
        self.begins = begins
        """Whether the trace begins with it: the row does not know it yet."""

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

    def end(self, moved: Collection[ScheduleId]) -> None:
        """These schedules were moved on here. What another node was faster to record is never ended, so that no SDK
        exports it: a due time has one trace."""
        won = set(moved)
        for plan, span in self._spans:
            if plan.schedule_id not in won:
                continue
            if span.is_recording():
                span.set_attribute("messaging.batch.message_count", len(plan.runs))
                for run in plan.runs:
                    _tell_left_out(span, run)
                if plan.broken is not None:
                    _fail(span, plan.broken, "broken")
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


def _fail(span: Span, reason: str, type: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_status(Status(StatusCode.ERROR, reason))
    span.set_attribute("error.type", type)


def _has_span() -> bool:
    from opentelemetry.trace import get_current_span

    return get_current_span().get_span_context().is_valid


def _links(claimed: ClaimedRun) -> list[Link]:
    """The traces of a row: its own first, then those of the messages that were joined to it."""
    if claimed.trace is None:
        return []
    from opentelemetry.trace import Link

    found = (_span_context(line) for line in claimed.trace.split("\n"))
    return [Link(context) for context in found if context is not None]


def _context_of(trace: str | None) -> Any:
    """A context whose span is the end of this trace; None if there is none."""
    if trace is None or (parent := _span_context(trace)) is None:
        return None
    from opentelemetry.context import Context
    from opentelemetry.trace import NonRecordingSpan, set_span_in_context

    return set_span_in_context(NonRecordingSpan(parent), Context())


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
