"""`after …`: what it says, how it is written, and what it cannot be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ostinato.errors import TimingError
from ostinato.timing import After, DailyAt, On, parse_timing

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "timing", "sentence"),
    [
        ("after import", After("import"), "After each run of 'import' that succeeded."),
        ("after import on failure", After("import", on="failure"), "After each run of 'import' that failed."),
        ("after import on end", After("import", on=On.END), "After each run of 'import' that ended, however that was."),
        ("after a or b or c", After("a", "b", "c"), "After each run of 'a', 'b' or 'c' that succeeded."),
        (
            "after a and b within 1h on end",
            After("a", "b", all=True, within="1h", on="end"),
            "After a run of each of 'a' and 'b' has ended, however that was, the last within 1 hour of the first.",
        ),
        ('after "nightly import" or "or"', After("nightly import", "or"), None),
        ('after "say \\"hi\\"" or "a,b"', After('say "hi"', "a,b"), None),
        ("after daily", After("daily"), None),
        ('after import or "weekdays"', After("import", "weekdays"), None),
        ("after a jitter 30s stable", After("a", jitter="30s", stable=True), None),
    ],
)
def test_it_is_written_as_it_is_read(text: str, timing: After, sentence: str | None) -> None:
    assert parse_timing(text) == timing
    assert timing.text == text
    assert sentence is None or timing.explain() == sentence


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("after a, b", "after a or b"),
        ("AFTER Import ON Failure", "after Import on failure"),
        ("after a and b", "after a and b within 1d"),
        ("after a on success", "after a"),
    ],
)
def test_other_ways_to_say_it_are_read_too(text: str, canonical: str) -> None:
    assert parse_timing(text).text == canonical


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("after", "after which schedule? As in 'after import'", ""),
        ("after finish", "after which schedule? Its own finish needs an interval, as in 'every 1h after finish'", ""),
        ("after a or", "after which schedule? As in 'after import'", ""),
        ("after a or b and c", "either any of them or all of them", ""),
        ("after a on noon", "on cannot be 'noon': it is success, failure or end", ""),
        ("after a and b within soon", "within 'soon' is not a duration such as 1h", ""),
        ("after a on end on end", "on is given twice", ""),
        ("after 'fail one'", "a name with spaces stands in double quotes", 'after "fail one"'),
        ("after a or 'fail one' on end", "a name with spaces stands in double quotes", 'after a or "fail one" on end'),
        (
            "after import and weekdays",
            "what runs after another begins when that one ends, and 'after' combines with no other timing; "
            'the name of a schedule that is called so stands in quotes: "weekdays"',
            "",
        ),
        (
            "after import 30m",
            "'30m' is not understood here: what runs after another begins when that one ends, and 'after' combines "
            "with no other timing",
            "",
        ),
        ("after a daily", "'daily' is not understood here", ""),
        ("after a or a", "name 1 to 50 schedules, each once", ""),
        ("after a within 1h", "within is for all of several schedules, as in 'after import and export within 1h'", ""),
    ],
)
def test_what_is_wrong_is_told_where_it_stands(text: str, message: str, hint: str) -> None:
    with pytest.raises(TimingError) as caught:
        parse_timing(text)
    assert caught.value.message == message
    assert caught.value.hint == hint


def test_it_has_no_due_times_of_its_own_and_combines_with_nothing() -> None:
    timing = After("import")
    assert (timing.next_after(NOW), timing.previous(NOW), timing.zone) == (None, None, None)
    assert timing.count_between(NOW, NOW + timedelta(days=9)) == 0
    assert (timing.follows, DailyAt(3).follows) == (("import",), ())
    with pytest.raises(TimingError, match="has no due times and cannot be combined"):
        timing | DailyAt(3)


def test_a_stored_text_keeps_the_names_that_were_taken() -> None:
    assert parse_timing("after import or daily", stored=True) == After("import", "daily")
