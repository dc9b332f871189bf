"""One is one, and all else are many."""

from __future__ import annotations

import pytest

from ostinato.plurals import counted


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
    ],
)
def test_a_number_goes_with_its_noun(number: float, noun: str, plural: str | None, said: str) -> None:
    assert counted(number, noun, plural) == said
