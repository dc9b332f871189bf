"""Rates of lanes: their text, and the bucket that holds them over any sequence of starts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.clock import SECOND
from ostinato.errors import InvalidInput
from ostinato.models.lane import Bucket, Rate, parse_rate

NOW = 1_800_000_000 * SECOND
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND

rates = st.builds(Rate, st.integers(1, 50), st.integers(1, HOUR))
written_rates = st.builds(Rate, st.integers(1, 100_000), st.integers(1, 60 * 86_400).map(lambda n: n * SECOND))


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("10/m", Rate(10, MINUTE)),
        ("1/s", Rate(1, SECOND)),
        ("500/h", Rate(500, HOUR)),
        ("2/d", Rate(2, DAY)),
        ("3/10s", Rate(3, 10 * SECOND)),
        ("1/500ms", Rate(1, SECOND // 2)),
        ("4/1h30m", Rate(4, HOUR + 30 * MINUTE)),
        (" 7 / m ", Rate(7, MINUTE)),
    ],
)
def test_a_rate_is_so_many_starts_in_so_much_time(text: str, rate: Rate) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "10",
        "/m",
        "1000001/m",
        "10/367d",
        "9" * 5000 + "/m",
        "10/",
        "0/m",
        "-1/m",
        "1.5/m",
        "10/0s",
        "10/x",
        "10/-5s",
        "ten/m",
        "10/m/s",
        "10 m",
        None,
        10,
    ],
)
def test_a_wrong_rate_is_an_error_that_names_its_field_and_shows_a_right_one(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="10/m") as raised:
        parse_rate(wrong, "lanes.mail.rate")
    assert raised.value.field == "lanes.mail.rate"


@pytest.mark.parametrize("text", ["10/m", "1/s", "500/h", "2/d", "3/10s"])
def test_a_rate_is_printed_as_people_write_it(text: str) -> None:
    assert parse_rate(text).text == text


@given(written_rates)
def test_a_printed_rate_is_the_same_rate(rate: Rate) -> None:
    assert parse_rate(rate.text) == rate


@given(rates)
def test_the_interval_is_the_shortest_that_never_gives_too_much(rate: Rate) -> None:
    assert rate.interval * rate.count >= rate.per
    assert (rate.interval - 1) * rate.count < rate.per


def test_before_it_was_empty_a_bucket_holds_nothing_and_the_next_comes_an_interval_later() -> None:
    """The clock went back, or that of another node is behind."""
    bucket = Bucket(Rate(3, MINUTE), 0).without(3, NOW).at(NOW - HOUR)
    assert bucket.holds(NOW - HOUR) == 0
    assert bucket.next_at(NOW - HOUR) == NOW - HOUR + 20 * SECOND


@given(rates, st.lists(st.tuples(st.integers(0, HOUR), st.integers(0, 60)), max_size=40))
def test_never_more_is_taken_than_the_count_and_what_came_back_since(rate: Rate, takes: list[tuple[int, int]]) -> None:
    """Between any two takes, whatever came before."""
    bucket, now = Bucket(rate, 0), NOW
    taken: list[tuple[int, int]] = []
    for wait, wanted in takes:
        now += wait
        count = min(wanted, bucket.holds(now))
        bucket = bucket.without(count, now)
        taken.append((now, count))
    for start in range(len(taken)):
        total = 0
        for at, count in taken[start:]:
            total += count
            assert total <= rate.count + (at - taken[start][0]) // rate.interval


@given(rates, st.lists(st.tuples(st.integers(0, HOUR), st.integers(0, 60)), max_size=20), st.integers(0, HOUR))
def test_who_comes_back_when_told_finds_one_and_a_moment_earlier_none(
    rate: Rate, takes: list[tuple[int, int]], wait: int
) -> None:
    bucket, now = Bucket(rate, 0), NOW
    for pause, wanted in takes:
        now += pause
        bucket = bucket.without(min(wanted, bucket.holds(now)), now)
    now += wait
    next_at = bucket.next_at(now)
    assert bucket.holds(next_at) >= 1
    if next_at > now:
        assert bucket.holds(next_at - 1) == 0


@given(rates, st.integers(0, 20), st.integers(0, HOUR))
def test_tokens_that_come_back_while_one_waits_are_all_there(rate: Rate, left: int, wait: int) -> None:
    """What is not taken is not lost, up to the count."""
    left = min(left, rate.count)
    bucket = Bucket(rate, 0).without(rate.count - left, NOW)
    assert bucket.holds(NOW + wait) == min(rate.count, left + wait // rate.interval)
