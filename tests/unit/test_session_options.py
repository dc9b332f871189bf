"""How messages wait in their sessions: who says what, and whose word counts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ostinato.errors import InvalidInput
from ostinato.models.session import Drop, Mode
from ostinato.models.session_options import (
    BUILT_IN_OPTIONS,
    NO_DEFAULTS,
    SessionOptions,
    read_session_defaults,
    read_session_options,
)


def test_what_nobody_says_is_the_default() -> None:
    assert NO_DEFAULTS.of("dm:42") == BUILT_IN_OPTIONS
    assert BUILT_IN_OPTIONS.debounce_max == timedelta(seconds=8)


def test_the_key_decides_before_the_task_and_the_task_before_all_sessions() -> None:
    defaults = read_session_defaults({"cap": 2, "mode": "followup", "drop": "new", "dm:*": {"mode": "interrupt"}})
    task = SessionOptions(mode=Mode.QUEUE, cap=3)
    assert defaults.of("dm:1", task) == SessionOptions(
        Mode.INTERRUPT, None, 3, Drop.NEW, BUILT_IN_OPTIONS.debounce, BUILT_IN_OPTIONS.debounce_max
    )
    assert defaults.of("doc:1", task).mode is Mode.QUEUE
    assert defaults.of("doc:1").mode is Mode.FOLLOWUP


@pytest.mark.parametrize(
    ("key", "cap"),
    [("dm:1", 2), ("dm:vip:1", 3), ("DM:1", 1), ("adm:1", 1), ("dm:", 2), ("a.b", 4), ("axb", 1), ("x/z\ny", 5)],
)
def test_a_pattern_matches_the_whole_key_and_the_longest_decides(key: str, cap: int) -> None:
    patterns = {"dm:vip:*": {"cap": 3}, "dm:*": {"cap": 2}, "a.b": {"cap": 4}, "x*y": {"cap": 5}}
    assert read_session_defaults({"cap": 1, **patterns}).of(key).cap == cap


def test_a_debounce_brings_its_own_bound() -> None:
    before = read_session_options({"debounce": "1s", "debounce_max": "2s"})
    assert before.then(SessionOptions(debounce=timedelta(seconds=3))).debounce_max == timedelta(seconds=30)
    assert before.then(SessionOptions(debounce_max=timedelta(seconds=3))).debounce == timedelta(seconds=1)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"mode": "often"}, r"sessions\.mode cannot be 'often'.*queue, followup, interrupt"),
        ({"cap": 0}, r"sessions\.cap cannot be 0"),
        ({"cap": "3"}, r"sessions\.cap cannot be '3'"),
        ({"debounce": "2d"}, r"sessions\.debounce cannot be '2d'.*1d is the most"),
        ({"debounce": "soon"}, "debounce"),
        ({"dm:*": {"caps": 3}}, r'sessions\."dm:\*"\.caps is no option of a session.*mode, max_concurrent'),
        ({"dm:*": {"debounce": "2s", "debounce_max": "1s"}}, "is shorter than debounce"),
        (["dm:*"], r"write \[sessions\]"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(given: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        read_session_defaults(given)
