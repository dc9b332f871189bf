"""Circles among schedules that run after others, and what commands are told of an upstream."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from ostinato.execution.upstreams import upstream_environment
from ostinato.models.ids import RunId
from ostinato.models.states import RunState
from ostinato.models.upstream import Upstream, find_circle


@pytest.mark.parametrize(
    ("edges", "names", "circle"),
    [
        ([], ["a"], None),
        ([("a", "a")], ["a"], ["a", "a"]),
        ([("a", "b"), ("b", "c")], ["a", "b", "c"], None),
        ([("a", "b"), ("b", "c"), ("c", "a")], ["a"], ["a", "b", "c", "a"]),
        ([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")], ["d"], None),
        ([("x", "y"), ("y", "x")], ["a"], None),
    ],
)
def test_a_circle_is_told_in_the_order_in_which_it_would_run(
    edges: list[tuple[str, str]], names: list[str], circle: list[str] | None
) -> None:
    assert find_circle(edges, names) == circle


def upstream(result: Any) -> Upstream:
    return Upstream(RunId(7), "import", RunState.SUCCEEDED, datetime(2026, 1, 1, tzinfo=UTC), result)


def test_a_command_reads_the_last_upstream_and_all_of_them_as_json() -> None:
    said = upstream_environment([upstream(1), upstream({"rows": 3})])
    last, both = json.loads(said["OSTINATO_UPSTREAM"]), json.loads(said["OSTINATO_UPSTREAMS"])
    assert last == {
        "run": 7,
        "schedule": "import",
        "state": "succeeded",
        "ended_at": "2026-01-01T00:00:00Z",
        "result": {"rows": 3},
        "error": None,
        "task": None,
    }
    assert [one["result"] for one in both] == [1, {"rows": 3}]


def test_results_that_no_environment_can_hold_are_cut() -> None:
    said = upstream_environment([upstream("x" * 100_000)])
    assert all(len(value) < 1_000 for value in said.values())
    assert json.loads(said["OSTINATO_UPSTREAM"])["cut"] is True


def test_without_an_upstream_nothing_is_said() -> None:
    assert upstream_environment([]) == {}
