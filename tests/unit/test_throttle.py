"""The throttle: a session whose window is more than 60 % full goes one at a time."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from ostinato.execution.throttle import FULL_SHARE, Throttle


def throttle(answer: Any) -> Throttle:
    made = Throttle()
    made.usage = lambda key: answer
    return made


def test_nobody_can_tell_until_somebody_said_how() -> None:
    assert Throttle().look("dm:42") is None


@pytest.mark.parametrize(
    ("tokens", "window", "throttled"),
    [(0, 100, False), (60, 100, False), (60.1, 100, True), (61, 100, True), (500, 100, True), (0, 0, False)],
)
def test_above_sixty_percent_a_session_goes_one_at_a_time(tokens: float, window: float, throttled: bool) -> None:
    assert FULL_SHARE == 0.6
    assert throttle((tokens, window)).look("dm:42") is throttled


def test_it_is_asked_for_the_session_in_question() -> None:
    asked: list[str] = []
    made = Throttle()
    made.usage = lambda key: (asked.append(key), (1, 2))[1]  # type: ignore[func-returns-value]
    made.look("dm:42")
    made.look("group:7")
    assert asked == ["dm:42", "group:7"]


def test_it_is_asked_anew_each_time() -> None:
    answers = iter([(90, 100), (10, 100)])
    made = Throttle()
    made.usage = lambda key: next(answers)
    assert [made.look("dm:42"), made.look("dm:42")] == [True, False]


def test_nobody_asks_about_our_own_sessions() -> None:
    assert throttle((90, 100)).look("schedule:report") is None


def test_one_that_raises_changes_nothing_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    made = Throttle()

    def raises(key: str) -> tuple[float, float]:
        raise RuntimeError("no network")

    made.usage = raises
    with caplog.at_level(logging.ERROR):
        assert made.look("dm:42") is None
    assert "dm:42" in caplog.text
    assert "no network" in caplog.text


@pytest.mark.parametrize("nonsense", [None, 5, (1,), (1, 2, 3), ("a", "b"), (1, None)])
def test_an_answer_that_is_no_usage_changes_nothing_and_is_logged(
    nonsense: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        assert throttle(nonsense).look("dm:42") is None
    assert "dm:42" in caplog.text
