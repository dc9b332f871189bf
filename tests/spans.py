"""Spans as tests see them: a real SDK whose exporter keeps them in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased

__all__ = ["Spans", "id_of", "spans", "text_of"]


def text_of(span: ReadableSpan | trace.Span) -> str:
    """Its context, as W3C writes it."""
    context = span.get_span_context()
    assert context is not None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def id_of(span: ReadableSpan | trace.Span) -> str:
    """The id of its trace."""
    return text_of(span)[3:35]


class Spans:
    """What was exported, and a way to begin a span of the caller's own."""

    def __init__(self, *, sampled: bool = True) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(
            sampler=ParentBased(ALWAYS_ON if sampled else ALWAYS_OFF), shutdown_on_exit=False
        )
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def all(self) -> list[ReadableSpan]:
        """In the order in which they ended."""
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.all if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        """The only one of this name."""
        (span,) = self.named(name)
        return span

    def begin(self, name: str = "request") -> AbstractContextManager[trace.Span]:
        """A span of the caller."""
        return self.provider.get_tracer("test").start_as_current_span(name)

    def is_child(self, child: str, parent: str) -> bool:
        """Whether the one span is the parent of the other."""
        above, below = self.one(parent).get_span_context(), self.one(child).parent
        assert above is not None
        return below is not None and (below.trace_id, below.span_id) == (above.trace_id, above.span_id)


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    """Set up as an application sets its SDK up; and gone after the test, which the API has no way for."""
    made = Spans()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", made.provider)
    yield made
    made.provider.shutdown()
