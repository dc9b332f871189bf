"""The lines of a followed output: the same as read from the beginning, whoever asks from where, and parsed once."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.clock import SECOND, Micros
from ostinato.models.output import OutputLine, OutputPart, lines_to_tell, output_lines, stamp
from ostinato.service.live.lines import Output

NOON: Micros = 1_800_000_000 * SECOND


@st.composite
def output_parts(draw: st.DrawFn) -> list[OutputPart]:
    parts: list[OutputPart] = []
    for number in range(draw(st.integers(0, 6))):
        marks: list[bool] = draw(st.lists(st.booleans(), max_size=5))
        lines = [
            (stamp(NOON + index * SECOND) if mark else " ") + f"{number}.{index}" for index, mark in enumerate(marks)
        ]
        is_whole = draw(st.booleans())
        text = "\n".join(lines) + ("\n" if lines and is_whole else "")
        cut = draw(st.sampled_from([0, 0, 700]))
        parts.append(OutputPart(text, draw(st.integers(-1, 3)) if cut else 0, cut))
    return parts


def all_of(output: Output, after: int, most: int) -> list[OutputLine]:
    found: list[OutputLine] = []
    while True:
        lines, has_more = output.lines(after, most)
        found += lines
        after = max((line.number for line in lines if line.number is not None), default=after)
        if not has_more:
            return found


@given(parts=output_parts(), more=output_parts(), after=st.integers(0, 20), most=st.integers(1, 5), ended=st.booleans())
def test_in_pieces_and_from_any_line_on_they_are_those_of_the_whole(
    parts: list[OutputPart], more: list[OutputPart], after: int, most: int, ended: bool
) -> None:
    def expected(parts: Sequence[OutputPart]) -> list[OutputLine]:
        return list(lines_to_tell(output_lines(parts, after), ended=ended))

    first = Output(parts, is_over=ended)
    # Where a part goes on with a line, two have one number: then pieces end behind both.
    whole = 100 if any(part.cut_lines < 0 for part in (*parts, *more)) else most
    assert all_of(first, after, whole) == expected(parts)
    for later in (parts + more, more, parts[:-1] + more):
        assert all_of(Output(later, first, is_over=ended), after, whole) == expected(later)


@pytest.mark.parametrize("most", [1, 2, 3, 4, 9])
def test_portions_keep_together_what_is_left_of_a_line_that_was_cut_in_its_middle(most: int) -> None:
    parts = [OutputPart(" a\n b"), OutputPart(" c\n d\n", cut_lines=-1, cut=700)]
    told: list[tuple[int | None, str]] = []
    after, has_more = 0, True
    while has_more:
        # Anew for each portion, as for somebody who asks again.
        lines, has_more = Output(parts, is_over=True).lines(after, most)
        told += [(line.number, line.text) for line in lines]
        after = lines[-1].number or after
    assert told == [(1, "a"), (2, "b"), (None, "… 700 bytes cut …"), (2, "c"), (3, "d")]


def test_the_last_of_many_lines_does_not_wait_for_those_before_it() -> None:
    parts = [OutputPart(stamp(NOON) + "x\n" + " x\n" * 300_000)]
    began = time.thread_time()
    whole = Output(parts, is_over=True).lines(0, 300_001)[0]
    once = time.thread_time() - began
    began = time.thread_time()
    assert Output(parts, is_over=True).lines(300_000, 10)[0] == whole[-1:]
    assert time.thread_time() - began < once / 3, "all that is before it was parsed"


def test_two_who_are_at_the_same_place_share_what_was_parsed() -> None:
    output = Output([OutputPart(" x\n" * 10)], is_over=True)
    assert [line.number for line in output.lines(0, 4)[0]] == [1, 2, 3, 4]
    assert [line.number for line in output.lines(0, 2)[0]] == [1, 2]
    assert [line.number for line in output.lines(4, 4)[0]] == [5, 6, 7, 8]
    assert [line.number for line in output.lines(2, 4)[0]] == [3, 4, 5, 6]
    assert [line.number for line in output.lines(8, 4)[0]] == [9, 10]
    assert output.lines(10, 4) == ([], False)


def test_a_megabyte_of_short_lines_costs_what_it_holds_and_what_is_new_costs_what_is_new() -> None:
    part = OutputPart(" x\n" * 20_000)
    whole = Output([part] * 16, is_over=True)
    began = time.thread_time()
    assert len(all_of(whole, 0, 500)) == 320_000
    once = time.thread_time() - began
    whole.lines(319_900, 1)
    began = time.thread_time()
    for number in range(20):
        whole = Output([*[part] * 16, OutputPart(" y\n" * (number + 1))], whole)
        lines, _ = whole.lines(320_000 + number, 500)
        assert [line.text for line in lines] == ["y"]
    assert time.thread_time() - began < once / 2, "all of it was parsed again for what is new"
