"""JSON that is nested too deep is refused before anything is written, wherever it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.errors import InvalidInput, NotLoadable
from ostinato.execution.outcome import OutcomeKind, returned
from ostinato.models.nesting import MOST_DEPTH, is_deeper
from ostinato.models.work import Function, Http, Unreadable, load_work, payload_text, read_work, work_text

_TOO_DEEP = [MOST_DEPTH + 1, 500, 950, 1_000, 100_000]


def _nested(depth: int, inner: Any = 1) -> Any:
    value = inner
    for level in range(depth):
        value = [value] if level % 2 else {"in": value}
    return value


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(_depth, inner), default=0)


_values = st.recursive(
    st.text() | st.integers() | st.sampled_from(["[", "}", '"', '\\"[']),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(_values, st.integers(0, 6))
def test_the_depth_of_a_text_is_that_of_its_value(value: Any, most: int) -> None:
    assert is_deeper(msgspec.json.encode(value), most) == (_depth(value) > most)


@pytest.mark.parametrize("text", [b"[" * 10_000, b"]" * 10_000, b'"' + b"[" * 10_000, b"[}" * 5_000, b'{"a":' * 10_000])
def test_what_is_not_json_is_looked_at_too(text: bytes) -> None:
    is_deeper(text)


def test_what_is_just_deep_enough_is_taken() -> None:
    deep = _nested(MOST_DEPTH - 2)
    assert read_work(work_text(Function("t", [deep]))) == Function("t", [deep])
    assert msgspec.json.decode(payload_text(_nested(MOST_DEPTH))) == _nested(MOST_DEPTH)
    assert returned(_nested(MOST_DEPTH)).kind is OutcomeKind.RETURNED


@pytest.mark.parametrize("depth", _TOO_DEEP)
def test_arguments_bodies_and_payloads_that_are_too_deep_are_refused(depth: int) -> None:
    deep = _nested(depth)
    stores: list[tuple[str, Callable[[], str]]] = [
        ("args", lambda: work_text(Function("t", [deep]))),
        ("args", lambda: work_text(Function("t", kwargs={"deep": deep}))),
        ("json", lambda: work_text(Http("POST", "https://example.com", json=deep))),
        ("payload", lambda: payload_text(deep)),
    ]
    for field, store in stores:
        with pytest.raises(InvalidInput, match="nested more than 100 deep") as refused:
            store()
        assert refused.value.field == field


@pytest.mark.parametrize("depth", _TOO_DEEP)
def test_a_result_that_is_too_deep_is_a_failure_that_no_retry_mends(depth: int) -> None:
    outcome = returned(_nested(depth))
    assert outcome.kind is OutcomeKind.ABORTED
    assert outcome.result is None
    assert outcome.reason == "returned JSON that is nested more than 100 deep; return a flatter value"


def test_what_holds_itself_is_too_deep() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert returned(endless).kind is OutcomeKind.ABORTED
    with pytest.raises(InvalidInput):
        payload_text(endless)


@pytest.mark.parametrize("depth", [400, 950, 100_000])
def test_stored_work_that_nobody_can_show_is_unreadable(depth: int) -> None:
    text = '{"kind":"function","task":"t","args":[' + "[" * depth + "]" * depth + "]}"
    loaded = load_work(text)
    assert isinstance(loaded, Unreadable)
    assert "nested too deep" in loaded.reason


def test_stored_work_that_cannot_be_decoded_is_not_loadable() -> None:
    with pytest.raises(NotLoadable, match="nested too deep"):
        read_work('{"kind":"function","task":"t","args":[' + "[" * 100_000 + "]" * 100_000 + "]}")
