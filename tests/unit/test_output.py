"""Captured text with a cap, and the lines that are read of it."""

from __future__ import annotations

import hashlib
import threading
import time
import tracemalloc
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.clock import to_micros
from ostinato.execution.output import CappedText, readable, storable
from ostinato.execution.secrets import Mask
from ostinato.models.output import STAMP_LENGTH, OutputPart, output_lines, output_text

NINE = datetime(2026, 3, 1, 9, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


class Captured:
    """What a reader has: the parts that stay, and the tail that the next one replaces."""

    def __init__(self, cap: int, mask: Mask | None = None) -> None:
        self.now = NINE
        self.text = CappedText(cap, lambda: to_micros(self.now))
        if mask is not None:
            self.text.mask = mask
        self.kept: list[OutputPart] = []
        self.tail: list[OutputPart] = []

    def add(self, text: str | bytes, *, later: int = 0) -> None:
        self.now += later * MILLISECOND
        self.text.add(text)

    def take(self) -> list[OutputPart]:
        """All that can be read while the work runs."""
        for part in self.text.take():
            if part.is_tail:
                self.tail = [part] if part.text else []
            else:
                self.kept.append(part)
        return self.kept + self.tail

    def take_all(self) -> list[OutputPart]:
        """All that there is after its end."""
        self.kept += self.text.take_all()
        return self.kept


def texts(parts: Sequence[OutputPart]) -> list[str]:
    return [line.text for line in output_lines(parts)]


def test_nothing_is_no_part() -> None:
    assert CappedText().take() == []
    assert CappedText().take_all() == []


def test_every_line_has_the_instant_at_which_it_began() -> None:
    captured = Captured(10_000)
    captured.add("one\ntw")
    captured.add("o\nthree\n", later=5)
    captured.add("four\n", later=1)
    lines = list(output_lines(captured.take_all()))
    assert [(line.number, line.text) for line in lines] == [(1, "one"), (2, "two"), (3, "three"), (4, "four")]
    assert [line.at for line in lines] == [NINE, NINE, NINE + 5 * MILLISECOND, NINE + 6 * MILLISECOND]
    assert output_text(captured.kept, stamps=True).startswith("2026-03-01T09:00:00.000Z one\n2026-")


def test_a_line_that_looks_as_if_it_had_a_stamp_stays_as_it_came() -> None:
    printed = "2020-01-01T00:00:00.000Z began\n 2020-01-01T00:00:00.000Z indented\n\n  two\n"
    captured = Captured(10_000)
    captured.add(printed)
    assert output_text(captured.take_all()) == printed
    assert {line.at for line in output_lines(captured.kept)} == {NINE}


def test_the_head_and_the_tail_are_kept_and_a_line_says_what_was_cut() -> None:
    captured = Captured(200)
    for number in range(1_000):
        captured.add(f"line {number}\n")
    lines = list(output_lines(captured.take_all()))
    cut = next(position for position, line in enumerate(lines) if line.number is None)
    assert [line.text for line in lines[:cut]] == [f"line {number}" for number in range(cut)]
    assert [line.text for line in lines[cut + 1 :]] == [
        f"line {number}" for number in range(1000 - len(lines) + cut + 1, 1000)
    ]
    assert lines[cut].text == f"… {sum(part.cut for part in captured.kept):,} bytes cut …"
    assert all(line.text == f"line {line.number - 1}" for line in lines if line.number is not None)
    assert len(lines) > 10


def test_a_line_without_end_is_broken_at_the_cut() -> None:
    captured = Captured(100_000)
    captured.add("begin")
    for _ in range(100):
        captured.add("x" * 10_000)
    captured.add("end")
    head, cut, tail = list(output_lines(captured.take_all()))
    assert head.text.startswith("beginx")
    assert cut.number is None
    assert tail.text.endswith("xend")
    assert (head.number, tail.number) == (1, 1), "it is all one line"
    assert len(head.text) + len(tail.text) > 99_000


def test_a_long_line_that_fits_is_not_broken_though_it_is_read_while_it_comes() -> None:
    captured = Captured(100_000)
    captured.add("first\n" + "x" * 40_000)
    captured.take()
    captured.add("y" * 40_000 + "\nlast\n")
    captured.take()
    assert output_text(captured.take_all()) == "first\n" + "x" * 40_000 + "y" * 40_000 + "\nlast\n"


def test_an_unfinished_line_can_be_read_while_the_work_runs() -> None:
    captured = Captured(1_000)
    captured.add("begun")
    assert texts(captured.take()) == ["begun"]
    captured.add(" and ended\nnext")
    assert texts(captured.take()) == ["begun and ended", "next"]
    captured.add("\n")
    assert texts(captured.take()) == ["begun and ended", "next"]
    assert captured.tail == []
    assert texts(captured.take_all()) == ["begun and ended", "next"]


def test_the_last_lines_can_be_read_while_the_work_runs() -> None:
    captured = Captured(1_000)
    for number in range(1_000):
        captured.add(f"line {number}\n")
        assert texts(captured.take())[-1] == f"line {number}"
    assert len(captured.kept) < 1_000


LINES = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), max_size=60)


@given(LINES, st.integers(0, 400), st.integers(0, 3), st.booleans())
def test_however_it_is_added_a_prefix_and_a_suffix_are_kept(
    pieces: list[str], cap: int, later: int, takes: bool
) -> None:
    captured = Captured(cap)
    for piece in pieces:
        captured.add(piece, later=later)
        if takes:
            captured.take()
    parts = captured.take_all()
    whole = "".join(pieces)
    cuts = [part for part in parts if part.cut]
    if not cuts:
        assert output_text(parts) == whole
        return
    position = parts.index(cuts[0])
    head, tail = output_text(parts[:position]), output_text([OutputPart(part.text) for part in parts[position:]])
    assert len(cuts) == 1
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(head.encode()) + len(tail.encode()) + cuts[0].cut == len(whole.encode())
    lines = whole.split("\n")
    for line in output_lines(parts):
        if line.number is not None:
            full = lines[line.number - 1]
            assert full == line.text or full.startswith(line.text) or full.endswith(line.text)
    stored = sum(len(part.text.encode()) for part in parts)
    assert stored <= cap + (1 + whole.count("\n")) + 3 * STAMP_LENGTH, "stamps count, but for those of broken lines"


@given(st.lists(st.binary(max_size=300), max_size=30), st.integers(0, 400))
def test_whatever_bytes_come_they_are_shown_and_bounded(pieces: list[bytes], cap: int) -> None:
    captured = Captured(cap)
    for piece in pieces:
        captured.add(piece)
        captured.take()
    text = output_text(captured.take_all())
    assert storable(text) == text
    if len(b"".join(pieces)) + 2 * STAMP_LENGTH <= cap // 2:
        assert text == readable(b"".join(pieces))


SECRET = "s3cr-é-T0KEN"


@given(st.data(), st.integers(0, 300))
def test_a_secret_never_shows_however_it_is_split_or_cut(data: st.DataObject, cap: int) -> None:
    filler = st.sampled_from(["x", "word ", "\n", "s3c", SECRET, "y" * 20])
    whole = "".join(data.draw(st.lists(filler, max_size=60))).encode()
    captured = Captured(cap, Mask([SECRET]))
    while whole:
        size = data.draw(st.integers(1, 50))
        captured.add(whole[:size])
        whole = whole[size:]
        assert_hidden(captured.take())
    assert_hidden(captured.take_all())


def assert_hidden(parts: Sequence[OutputPart]) -> None:
    for line in texts(parts):
        for begin in range(len(SECRET) - 3):
            assert SECRET[begin : begin + 4] not in line, "four letters of it in a row"


def test_memory_stays_bounded_whatever_is_added() -> None:
    captured = Captured(10_000)
    line = "y" * 1_000
    tracemalloc.start()
    try:
        for _ in range(20_000):
            captured.add(line)
            captured.text.take()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000, "20 MB went in"


def test_a_flood_of_short_lines_is_stored_with_few_stamps() -> None:
    captured = Captured(100_000)
    for _ in range(100):
        captured.add("y\n" * 32_000, later=1)
    stored = sum(len(part.text) for part in captured.take_all())
    assert stored < 160_000, "one mark for lines that came together"


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
    assert output_text(text.take_all()) == "x" * 4_000


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


@given(st.binary())
def test_bytes_are_shown_as_python_shows_them(data: bytes) -> None:
    assert readable(data) == data.decode("utf-8", "backslashreplace").replace("\0", "\\x00")


@pytest.mark.parametrize("after", range(8))
def test_reading_on_after_a_line_gives_the_rest(after: int) -> None:
    parts = [OutputPart("  a\n b\n"), OutputPart("  f\n g\n", cut_lines=3, cut=6)]
    everything = list(output_lines(parts))
    assert [line.number for line in everything] == [1, 2, None, 6, 7]
    rest = list(output_lines(parts, after))
    assert [line.number for line in rest if line.number] == [number for number in (1, 2, 6, 7) if number > after]
    assert any(line.number is None for line in rest) == (after <= 5)


@pytest.mark.parametrize("before", ["", "ok\n" * 10])
def test_of_a_last_line_that_is_longer_than_the_tail_the_end_is_kept(before: str) -> None:
    captured = Captured(10_000)
    captured.add(before)
    captured.add("E" * 7_900 + " the reason\n")
    last = list(output_lines(captured.take_all()))[-1]
    assert last.text.endswith("E the reason")
    assert last.number == before.count("\n") + 1


def test_no_half_of_a_secret_shows_in_the_end_of_a_last_line() -> None:
    for length in range(STAMP_LENGTH, STAMP_LENGTH + 30):
        captured = Captured(2 * length, Mask([SECRET]))
        captured.add("x" * 500 + SECRET + "\n")
        assert_hidden(captured.take_all())


def test_a_number_is_never_that_of_a_line_of_the_attempt_before() -> None:
    first, second = Captured(100_000), Captured(100_000)
    first.add("no line end")
    second.add("j" * 40_000)
    seen = [(line.number, line.text[:2]) for line in output_lines(first.take_all() + second.take())]
    assert seen == [(1, "no"), (None, "… "), (2, "jj")]
    second.add("\n" + "k\n" * 100_000)
    lines = list(output_lines(first.kept + second.take_all()))
    numbers = [line.number for line in lines if line.number is not None]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == 100_002


def test_a_broken_line_keeps_its_number_over_the_attempts() -> None:
    first, second = Captured(100_000), Captured(100_000)
    first.add("no line end")
    second.add("one\n" + "j" * 200_000)
    second.take()
    second.add("\nthree\n")
    lines = [(line.number, line.text[:3]) for line in output_lines(first.take_all() + second.take_all())]
    assert [line for line in lines if line[0] is not None] == [
        (1, "no "),
        (2, "one"),
        (3, "jjj"),
        (3, "jjj"),
        (4, "thr"),
    ]


@pytest.mark.parametrize("lines_of_secret", [0, 1, 1_000])
def test_the_end_of_a_megabyte_of_lines_takes_about_as_long_as_its_coming_at_most(lines_of_secret: int) -> None:
    key = "\n".join(hashlib.sha256(str(number).encode()).hexdigest() for number in range(lines_of_secret))
    mask, coming, ending = Mask([key]), [], []
    for _ in range(3):
        captured = Captured(1_000_000, mask)
        begun = time.thread_time()
        for number in range(20_000):
            captured.add(f"line {number} of the work that goes on and on and on\n", later=1)
        come = time.thread_time()
        parts = captured.take_all()
        coming.append(come - begun)
        ending.append(time.thread_time() - come)
        assert len(list(output_lines(parts))) > 10_000
    assert min(ending) < 2 * min(coming)


@pytest.mark.parametrize("printed", ["one\ntwo\nthree\n", "one\ntwo\nthree"])
def test_lines_that_were_cut_as_a_whole_are_counted(printed: str) -> None:
    first, second = Captured(2), Captured(1_000)
    first.add(printed)
    second.add("four\n")
    lines = list(output_lines(first.take_all() + second.take_all()))
    assert (lines[-1].number, lines[-1].text) == (4, "four")
