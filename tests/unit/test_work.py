"""Work: the JSON that is stored, and stored work that cannot be read."""

from __future__ import annotations

import msgspec
import pytest

from ostinato.errors import InvalidInput, NotLoadable
from ostinato.models.work import Function, Unreadable, load_work, read_work, work_json, work_text


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
