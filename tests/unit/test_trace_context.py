"""W3C trace context as text: what is taken for a trace, and how it is handed on."""

from __future__ import annotations

import pytest
from opentelemetry import trace as api
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, TraceState

from ostinato.trace_context import (
    carried,
    carrying,
    current_trace,
    own_trace,
    read_trace,
    span_context_text,
    trace_environment,
    trace_headers,
    trace_id_of,
)

ID, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{ID}-{SPAN}-01"


@pytest.mark.parametrize(
    ("parent", "state", "kept"),
    [
        (PARENT, None, PARENT),
        (f"  {PARENT}\t", " congo=t61, rojo=00f067 ", f"{PARENT} congo=t61, rojo=00f067"),
        (f"cc-{ID}-{SPAN}-01-what", "a=b", f"{PARENT} a=b"),
        (f"01-{ID}-{SPAN}-02", "", f"00-{ID}-{SPAN}-02"),
        (f"01-{ID}-{SPAN}-fd", "", PARENT),
        (f"00-{ID}-{SPAN}-fd", "", f"00-{ID}-{SPAN}-fd"),
        (PARENT, "a=" + "x" * 600, PARENT),
        (PARENT, "a=b\r\nx-evil: 1", PARENT),
        (None, "a=b", None),
        ("", None, None),
        (f"00-{ID}-{SPAN}-01-more", None, None),
        (f"ff-{ID}-{SPAN}-01", None, None),
        (f"00-{'0' * 32}-{SPAN}-01", None, None),
        (f"00-{ID}-{'0' * 16}-01", None, None),
        (PARENT.upper(), None, None),
        (f"{PARENT}\n", None, PARENT),
        (f"01-{ID}-{SPAN}-00-" + "x" * 200, None, None),
        (f"00-{ID}-{SPAN}-0\u0661", None, None),
    ],
)
def test_only_what_w3c_calls_a_trace_is_one(parent: str | None, state: str | None, kept: str | None) -> None:
    assert read_trace(parent, state) == kept


def test_a_row_may_have_several_of_which_the_first_is_its_own() -> None:
    other = PARENT.replace(ID, "1" * 32)
    assert own_trace(f"{PARENT} a=b\n{other}") == f"{PARENT} a=b"
    assert trace_id_of(f"{PARENT}\n{other}") == ID
    assert (own_trace(None), own_trace("?"), trace_id_of(None), trace_id_of("?")) == (None, None, None, None)


def test_what_an_older_version_kept_of_a_later_one_is_handed_on_as_todays() -> None:
    assert own_trace(f"cc-{ID}-{SPAN}-01-what a=b") == f"{PARENT} a=b"


def test_a_span_without_ids_is_no_trace() -> None:
    assert span_context_text(api.INVALID_SPAN_CONTEXT) is None
    assert span_context_text(SpanContext(int(ID, 16), 0, False)) is None


def test_it_is_handed_on_as_headers_and_as_variables() -> None:
    assert trace_headers(f"{PARENT} a=b, c=d") == {"traceparent": PARENT, "tracestate": "a=b, c=d"}
    assert trace_environment(PARENT) == {"TRACEPARENT": PARENT}
    assert (trace_headers(None), trace_environment(None)) == ({}, {})


def test_what_is_carried_counts_where_there_is_no_span() -> None:
    assert current_trace() is None
    with carrying({"TRACEPARENT": PARENT, "TRACESTATE": "a=b", "PATH": "/bin"}):
        assert current_trace() == f"{PARENT} a=b"
        state = TraceState([("v", "1")])
        context = SpanContext(int("2" * 32, 16), int("3" * 16, 16), False, TraceFlags(0), state)
        with api.use_span(NonRecordingSpan(context)):
            assert current_trace() == f"00-{'2' * 32}-{'3' * 16}-00 v=1"
        with carrying({}):
            assert current_trace() is None
    assert carried.get() is None
