"""Work: the JSON that is stored, and stored work that cannot be read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.errors import InvalidInput, NotLoadable
from ostinato.models.work import (
    PAYLOADS_END,
    Function,
    Unreadable,
    load_work,
    payload_text,
    payload_work,
    read_work,
    work_json,
    work_text,
)

names = st.text(min_size=1, max_size=200).filter(lambda name: bool(name.strip()) and name.isprintable())
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)


def test_a_function_survives_its_stored_text() -> None:
    work = Function("send", ["ann@example.org", 3], {"urgent": True})
    assert read_work(work_text(work)) == work


def test_the_stored_text_is_json_with_the_kind_first() -> None:
    text = work_text(Function("send"))
    assert text.startswith('{"kind":"function"')
    assert msgspec.json.decode(text) == {"kind": "function", "task": "send", "args": [], "kwargs": {}}


def test_arguments_that_are_not_json_are_refused_with_the_fix() -> None:
    with pytest.raises(InvalidInput, match=r"arguments of task 'send' are not JSON.*load other things inside the task"):
        work_text(Function("send", [object()]))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("garbage", "its work is not readable"),
        ('{"task":"send"}', "its work is not readable"),
        ('{"kind":"dance"}', "unknown kind 'dance'.*upgrade Ostinato"),
        ('{"kind":"function"}', "function work is not readable.*task"),
        ('{"kind":"function","task":5}', "function work is not readable"),
    ],
)
def test_work_that_cannot_be_read_says_why_and_keeps_its_text(text: str, says: str) -> None:
    with pytest.raises(NotLoadable, match=says):
        read_work(text)
    loaded = load_work(text)
    assert isinstance(loaded, Unreadable)
    assert loaded.text == text
    assert work_json(loaded)["reason"] == loaded.reason


def test_scripts_see_the_kind_and_the_fields() -> None:
    assert work_json(Function("send", [1])) == {"kind": "function", "task": "send", "args": [1], "kwargs": {}}


@given(names, st.lists(documents, min_size=1, max_size=6))
def test_payloads_that_join_one_by_one_are_a_list_in_their_order(task: str, payloads: list[Any]) -> None:
    text = payload_work(task, payload_text(payloads[0]))
    for payload in payloads[1:]:
        assert text.endswith(PAYLOADS_END)
        text = f"{text[: -len(PAYLOADS_END)]},{payload_text(payload)}{PAYLOADS_END}"
    assert read_work(text) == Function(task, [], {"payloads": payloads})


@given(documents)
def test_a_payload_survives_its_text(payload: Any) -> None:
    assert msgspec.json.decode(payload_text(payload)) == payload


@pytest.mark.parametrize("wrong", [object(), [object()], {"a": 1j}, "\ud800"])
def test_a_payload_that_is_not_json_is_refused_with_the_fix(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match=r"the payload is not JSON.*send text, numbers") as raised:
        payload_text(wrong)
    assert raised.value.field == "payload"
