"""One is one, and all else are many."""

from __future__ import annotations

import pytest

from ostinato.plurals import amount, counted, errors_text, totals_text, whole


@pytest.mark.parametrize(
    ("number", "noun", "plural", "said"),
    [
        (0, "run", None, "0 runs"),
        (1, "run", None, "1 run"),
        (2, "run", None, "2 runs"),
        (1_234_567, "run", None, "1234567 runs"),
        (1, "finish waits", "finishes wait", "1 finish waits"),
        (3, "finish waits", "finishes wait", "3 finishes wait"),
        (1.0, "error", None, "1 error"),
        (2.5, "error", None, "2.5 errors"),
        (1_234_567.0, "error", None, "1234567 errors"),
        (1e300, "error", None, "1e+300 errors"),
    ],
)
def test_a_number_goes_with_its_noun(number: float, noun: str, plural: str | None, said: str) -> None:
    assert counted(number, noun, plural) == said


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "0"),
        (1200, "1,200"),
        (1200.0, "1,200"),
        (-3.0, "-3"),
        (0.25, "0.25"),
        (1234.56789, "1,234.5679"),
        (0.0042, "0.0042"),
        (0.00001, "1e-05"),
        (1e300, "1e+300"),
    ],
)
def test_a_whole_number_is_told_as_one_and_a_fraction_stays(number: float, said: str) -> None:
    assert amount(number) == said


@pytest.mark.parametrize("number", [0.5, 1e300, float("inf"), float("nan"), 2**80])
def test_what_is_not_whole_or_cannot_be_told_exactly_stays_as_it_is(number: float) -> None:
    assert whole(number) is number


def test_totals_are_told_in_the_order_in_which_they_were_counted() -> None:
    assert totals_text({"copied": 120, "errors": 3.0, "cost_usd": 0.25}) == "copied 120, errors 3, cost_usd 0.25"
    assert totals_text({}) == ""


def test_errors_are_told_with_what_else_was_counted_if_there_is_something() -> None:
    assert errors_text("3 errors", {"copied": 120, "errors": 3}) == "with 3 errors (copied 120, errors 3)"
    assert errors_text("3 errors", {"errors": 3}) == "with 3 errors"
