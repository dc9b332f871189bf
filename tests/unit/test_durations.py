"""Durations as people write them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.durations import duration_text, parse_duration
from ostinato.errors import InvalidInput


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("500ms", timedelta(milliseconds=500)),
        ("90s", timedelta(seconds=90)),
        ("5m", timedelta(minutes=5)),
        ("1h30m", timedelta(minutes=90)),
        ("1h 30m", timedelta(minutes=90)),
        ("2d", timedelta(days=2)),
        ("1w", timedelta(weeks=1)),
        ("1.5h", timedelta(minutes=90)),
        (" 10S ", timedelta(seconds=10)),
        (90, timedelta(seconds=90)),
        (0.5, timedelta(milliseconds=500)),
        (timedelta(days=1), timedelta(days=1)),
        ("0s", timedelta(0)),
    ],
)
def test_each_form_is_understood(written: Any, expected: timedelta) -> None:
    assert parse_duration(written) == expected


@pytest.mark.parametrize("wrong", ["", "soon", "5x", "m5", "5m!", "-5m", -1, timedelta(seconds=-1), True, None])
def test_a_wrong_one_names_its_field_and_shows_a_right_one(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="1h30m") as raised:
        parse_duration(wrong, field="timeout")
    assert raised.value.field == "timeout"


@pytest.mark.parametrize(("bare", "right"), [("5", "5s"), ("1.5", "1.5m")])
def test_a_number_without_a_unit_is_told_how_to_write_it(bare: str, right: str) -> None:
    with pytest.raises(InvalidInput, match=f"has no unit; write .*{right}"):
        parse_duration(bare)


@pytest.mark.parametrize("endless", [float("inf"), float("nan"), 1e300, "99999999999999w"])
def test_a_number_that_is_no_length_of_time_is_wrong_too(endless: Any) -> None:
    with pytest.raises(InvalidInput):
        parse_duration(endless)


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(minutes=90), "1h30m"),
        (timedelta(milliseconds=500), "500ms"),
        (timedelta(days=400), "400d"),
        (timedelta(microseconds=7), "7us"),
    ],
)
def test_the_text_is_the_shortest(duration: timedelta, text: str) -> None:
    assert duration_text(duration) == text


@given(st.timedeltas(timedelta(0), timedelta(days=100_000)))
def test_a_duration_survives_its_text(duration: timedelta) -> None:
    assert parse_duration(duration_text(duration)) == duration
