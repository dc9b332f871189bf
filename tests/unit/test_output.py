"""Captured text with a cap."""

from __future__ import annotations

import threading
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.execution.output import CappedText, storable


def test_what_fits_is_kept_whole() -> None:
    text = CappedText(100)
    text.add("hello ")
    text.add("world")
    assert text.take_all() == "hello world"


def test_nothing_is_none() -> None:
    assert CappedText().take() is None
    assert CappedText().take_all() is None


def test_the_head_and_the_tail_are_kept_and_a_line_says_what_was_cut() -> None:
    text = CappedText(20)
    text.add("HEAD......")
    text.add("x" * 1_000_000)
    text.add("......TAIL")
    assert text.take_all() == "HEAD......\n… 1,000,000 characters cut …\n......TAIL"


def test_the_head_is_handed_out_as_it_comes_and_the_tail_at_the_end() -> None:
    text = CappedText(8)
    text.add("abc")
    assert text.take() == "abc"
    text.add("defgh")
    assert text.take() == "d"
    assert text.take() is None
    text.add("ijklm")
    assert text.take_all() == "\n… 5 characters cut …\njklm"


@given(st.lists(st.text(max_size=30)), st.integers(1, 50))
def test_however_it_is_added_at_most_the_cap_is_kept(parts: list[str], cap: int) -> None:
    text = CappedText(cap)
    whole = "".join(parts)
    handed = ""
    for part in parts:
        text.add(part)
        handed += text.take() or ""
    handed += text.take_all() or ""
    if len(whole) <= cap:
        assert handed == whole
    else:
        cut = len(whole) - cap
        tail = whole[len(whole) - (cap - cap // 2) :]
        assert handed == whole[: cap // 2] + f"\n… {cut:,} characters cut …\n" + tail


def test_memory_stays_bounded_whatever_is_added() -> None:
    text = CappedText(10_000)
    line = "y" * 1_000
    tracemalloc.start()
    try:
        for _ in range(20_000):
            text.add(line)
            text.take()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000, "20 MB went in"


def test_threads_may_add_at_once() -> None:
    text = CappedText(10**6)

    def add_many() -> None:
        for _ in range(1_000):
            text.add("x")

    threads = [threading.Thread(target=add_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert text.take_all() == "x" * 4_000


@pytest.mark.parametrize(
    ("text", "stored"),
    [("plain", "plain"), ("grün ✓", "grün ✓"), ("caf\udce9", "caf\\udce9"), ("a\0b", "a\\x00b"), ("", "")],
)
def test_what_no_database_can_hold_is_made_readable(text: str, stored: str) -> None:
    assert storable(text) == stored


@given(st.text(st.characters(exclude_categories=())))
def test_every_text_becomes_storable_and_stays_as_it_then_is(text: str) -> None:
    stored = storable(text)
    assert "\0" not in stored
    assert stored.encode().decode() == stored
    assert storable(stored) == stored
