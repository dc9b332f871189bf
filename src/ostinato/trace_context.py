"""W3C trace context as text: what a run's row keeps of the trace that it belongs to, and how it is handed on.

A trace is `traceparent`, or `traceparent tracestate`. A row may have several, one on each line: the first is that of
the run, the others are of the messages that were joined to it. Nothing here needs OpenTelemetry; tracing.py, above,
makes the spans.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

__all__ = [
    "carried",
    "carrying",
    "current_trace",
    "opentelemetry",
    "own_trace",
    "read_trace",
    "span_context_text",
    "trace_environment",
    "trace_headers",
    "trace_id_of",
]

# A version that nobody knows may have more parts; of those, W3C says, the first four are read.
_TRACEPARENT = re.compile(
    r"(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]*)?"
)
_KNOWN_FLAGS = 0x03
"""Sampled, and random: what others mean in a version that nobody knows is not handed on."""
_TRACESTATE = re.compile(r"[\x20-\x7e]{1,512}")
_LONGEST = 200
"""Of a traceparent: those of today have 55 characters."""

carried: ContextVar[str | None] = ContextVar("ostinato_trace", default=None)
"""The trace that this code is part of, as somebody told it who has no span: a request, an environment, a row."""


def read_trace(traceparent: str | None, tracestate: str | None = None) -> str | None:
    """A trace as it is kept; None if there is none, or it is not one. A tracestate that is none is left out."""
    parent = (traceparent or "").strip()
    if len(parent) > _LONGEST or not (found := _TRACEPARENT.fullmatch(parent)):
        return None
    version, ids, flags, more = found.groups()
    if version != "00":  # W3C: what is handed on has the version that is known here
        parent = f"00-{ids}-{int(flags, 16) & _KNOWN_FLAGS:02x}"
    elif more is not None:
        return None
    state = (tracestate or "").strip()
    return f"{parent} {state}" if _TRACESTATE.fullmatch(state) else parent


@lru_cache(maxsize=256)
def own_trace(kept: str | None) -> str | None:
    """The first trace of a row; None if it has none, or somebody wrote there what is none."""
    if kept is None:
        return None
    parent, _, state = kept.partition("\n")[0].partition(" ")
    return read_trace(parent, state)


def trace_id_of(kept: str | None) -> str | None:
    """The id of a row's trace: 32 hexadecimal digits."""
    return None if kept is None or (own := own_trace(kept)) is None else own[3:35]


def trace_headers(trace: str | None) -> dict[str, str]:
    """As headers of a request."""
    if trace is None:
        return {}
    parent, _, state = trace.partition(" ")
    return {"traceparent": parent, "tracestate": state} if state else {"traceparent": parent}


def trace_environment(trace: str | None) -> dict[str, str]:
    """As variables of a process."""
    return {name.upper(): value for name, value in trace_headers(trace).items()}


@contextmanager
def carrying(names: Mapping[str, str]) -> Iterator[None]:
    """What is enqueued in here belongs to the trace that these headers or variables name, if they do."""
    given = {name.lower(): value for name, value in names.items() if name.lower() in ("traceparent", "tracestate")}
    before = carried.set(read_trace(given.get("traceparent"), given.get("tracestate")))
    try:
        yield
    finally:
        carried.reset(before)


def opentelemetry() -> Any:
    """The module `opentelemetry.trace`, if somebody has imported it. Who has not has no span and no SDK either."""
    module = sys.modules.get("opentelemetry.trace")
    # Another thread may be importing it just now.
    return module if module is not None and hasattr(module, "get_tracer_provider") else None


def current_trace() -> str | None:
    """The trace of the calling code: that of its current span, or what it carries."""
    if (api := opentelemetry()) is not None:
        context = api.get_current_span().get_span_context()
        if (current := span_context_text(context)) is not None:
            return current
    return carried.get()


def span_context_text(context: Any) -> str | None:
    """A span's context as a trace; None if it has no ids, as with an SDK that is disabled."""
    if not context.is_valid:
        return None
    parent = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
    state = context.trace_state.to_header() if context.trace_state else ""
    return f"{parent} {state}" if _TRACESTATE.fullmatch(state) else parent
