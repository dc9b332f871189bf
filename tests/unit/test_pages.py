"""Cursors: they come back as they were given, and what is none is refused, whatever it is."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.errors import InvalidInput
from ostinato.models.run import RunFilter
from ostinato.service.pages import cursor_text, read_cursor

WANTED = RunFilter(task="mail")
KEYS = (int, type(None))


@given(st.one_of(st.none(), st.integers(-(2**63) + 1, 2**63 - 1)), st.text(st.characters(exclude_categories=["Cs"])))
def test_a_cursor_comes_back_as_it_was_given(key: int | None, name: str) -> None:
    text = cursor_text([key, name], WANTED)
    assert text.replace("-", "").replace("_", "").isalnum()
    if "\0" not in name:
        assert read_cursor(text, WANTED, KEYS, str) == [key, name]


def test_a_cursor_of_another_list_is_refused() -> None:
    with pytest.raises(InvalidInput, match="another list"):
        read_cursor(cursor_text([1], RunFilter(task="other")), WANTED, int)


@pytest.mark.parametrize("key", [[], [1, 2], ["1"], [None], [True], [2**70], [1.5], [[1]]])
def test_a_cursor_with_another_key_is_refused(key: list[int | str | None]) -> None:
    with pytest.raises(InvalidInput, match="is not valid"):
        read_cursor(cursor_text(key, WANTED), WANTED, int)


@pytest.mark.parametrize("content", [b"[" * 2_000, b"[" * 100_000, b'{"a":' * 50_000])
def test_what_is_nested_too_deep_is_no_cursor(content: bytes) -> None:
    with pytest.raises(InvalidInput, match="is not valid"):
        read_cursor(urlsafe_b64encode(content).decode(), WANTED, int)


@given(st.text())
def test_text_that_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_cursor(text, WANTED, int)


@given(st.binary())
def test_bytes_that_are_no_cursor_are_refused(content: bytes) -> None:
    with pytest.raises(InvalidInput):
        read_cursor(urlsafe_b64encode(content).decode(), WANTED, int)
