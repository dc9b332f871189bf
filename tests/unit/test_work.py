"""Work: the JSON that is stored, and stored work that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.errors import InvalidInput, NotLoadable
from ostinato.models.work import (
    Agent,
    Function,
    JoinableWork,
    Unreadable,
    load_work,
    payload_text,
    payloads_work,
    prompt_work,
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
    with pytest.raises(InvalidInput, match=r"argument 1 of task 'send' is not JSON.*load other things inside the task"):
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


def _joined(works: Sequence[JoinableWork]) -> str:
    """The text of the first, which the others join, as a store does it."""
    text = works[0].text
    for work in works[1:]:
        assert text.startswith(work.head)
        text = text.removesuffix(work.end) + work.between + work.payload + work.end
    return text


@given(names, st.lists(documents, min_size=1, max_size=6))
def test_payloads_that_join_one_by_one_are_a_list_in_their_order(task: str, payloads: list[Any]) -> None:
    joined = _joined([payloads_work(task, payload) for payload in payloads])
    assert read_work(joined) == Function(task, [], {"payloads": payloads})


@given(
    st.lists(texts.filter(str.strip), min_size=1, max_size=6),
    st.sampled_from(["", "Be brief."]),
    st.sampled_from([None, "session:a"]),
)
def test_prompts_that_join_one_by_one_are_paragraphs_in_their_order(
    prompts: list[str], own: str, context: str | None
) -> None:
    agent = Agent(own, context=context, system="You are kind.")
    joined = _joined([prompt_work(agent, prompt) for prompt in prompts])
    system = "You are kind.\n\nBe brief." if own else "You are kind."
    assert read_work(joined) == replace(agent, prompt="\n\n".join(prompts), system=system)


def test_what_is_no_text_is_json_in_a_prompt() -> None:
    assert read_work(prompt_work(Agent(), {"issue": 7}).text) == Agent('{"issue":7}')


@pytest.mark.parametrize("nothing", ["", " \n"])
def test_a_message_without_text_is_nothing_for_an_agent(nothing: str) -> None:
    with pytest.raises(InvalidInput, match="a message to an agent needs text"):
        prompt_work(Agent(), nothing)


@given(documents)
def test_a_payload_survives_its_text(payload: Any) -> None:
    assert msgspec.json.decode(payload_text(payload)) == payload


@pytest.mark.parametrize("wrong", [object(), [object()], {"a": 1j}, "\ud800"])
def test_a_payload_that_is_not_json_is_refused_with_the_fix(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match=r"the payload is not JSON.*send text, numbers") as raised:
        payload_text(wrong)
    assert raised.value.field == "payload"
