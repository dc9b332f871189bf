"""The table of policies: everything that is made of it, and the options for type checkers, names the same fields.

mypy --strict reads this file too: an error that it no longer finds makes its `type: ignore` one that is not needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from enum import EnumType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from ostinato import InvalidInput, Ostinato, PolicyOptions, Retry, ScheduleSpec
from ostinato.api.schemas import answer_schemas
from ostinato.api.shapes.policy import NewPolicy
from ostinato.cli.policy import PolicyFlags
from ostinato.models.policy import DEFAULT, make_policy, plain
from ostinato.models.policy_fields import POLICIES, RUN_ONCE, MessageOptions, Policy, PolicyField

OPTIONS = get_type_hints(PolicyOptions)
ROWS = list(POLICIES.values())
TOLD = answer_schemas([Policy])[1]["Policy"]


def name_of(row: PolicyField) -> str:
    return row.name


def test_the_table_has_every_field_of_a_policy_with_its_default() -> None:
    assert list(POLICIES) == [field.name for field in fields(Policy)]
    assert {name: row.default for name, row in POLICIES.items()} == {name: getattr(DEFAULT, name) for name in POLICIES}


def test_the_options_for_type_checkers_are_those_of_the_table() -> None:
    assert set(OPTIONS) == {*POLICIES, RUN_ONCE}
    assert set(get_type_hints(MessageOptions)) == set(OPTIONS) - {"lane", "session"}
    assert PolicyOptions.__required_keys__ == frozenset()


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_an_option_takes_what_the_field_holds(row: PolicyField) -> None:
    taken = get_args(OPTIONS[row.name]) or (OPTIONS[row.name],)
    is_list = row.type == tuple[str, ...]
    assert row.type in taken or (is_list and get_origin(OPTIONS[row.name]) is not None)
    assert (type(None) in taken) is row.is_nullable
    if isinstance(row.type, EnumType):
        (words,) = (one for one in taken if get_origin(one) is Literal)
        assert get_args(words) == tuple(map(str, row.type))


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_every_field_has_words_for_people(row: PolicyField) -> None:
    for one in (row, *row.parts):
        assert one.about.label
        assert one.about.help.endswith(".")
    if isinstance(row.type, EnumType):
        assert list(row.about.choices) == list(row.type)


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_every_door_has_the_field(row: PolicyField) -> None:
    assert (row.about.flag or row.name) in {field.name for field in fields(PolicyFlags)}  # type: ignore[arg-type]
    assert TOLD["properties"][row.name]["description"] == row.about.help
    assert row.name in TOLD["required"]
    asked = NewPolicy.model_fields[row.name]
    assert (asked.description or "").startswith(row.about.help)
    assert asked.get_default(call_default_factory=True) == plain(row.default)


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_a_default_is_read_as_itself(row: PolicyField) -> None:
    assert make_policy({row.name: plain(row.default)}) == DEFAULT
    for part in row.parts:
        if part.default is not inspect.Parameter.empty and row.default is not None:
            assert make_policy({row.name: {part.name: plain(part.default)}}) == DEFAULT


def test_a_policy_that_there_is_not_is_an_error_for_type_checkers_and_at_run_time(tmp_path: Any) -> None:
    app = Ostinato(f"sqlite:///{tmp_path / 'jobs.db'}")

    @app.task("job", retry=Retry(2), overlap="queue_one", timeout="5m", checks=["disk"], gate="true", keep="7d")
    def job(payloads: list[str]) -> None:
        """A task."""

    wrong: list[Callable[[], object]] = [
        lambda: app.task("other", retrys=2)(lambda: None),  # type: ignore[call-overload]
        lambda: app.task("other", overlap="hug")(lambda: None),  # type: ignore[call-overload]
        lambda: app.schedules.add("job", "every 5m", job, retrys=2),  # type: ignore[call-arg]
        lambda: app.schedules.add("job", "every 5m", job, break_after="3"),  # type: ignore[arg-type]
        lambda: app.schedules.add_many([ScheduleSpec("job", "every 5m", job, policy={"retrys": 2})]),  # type: ignore[typeddict-unknown-key]
        lambda: app.enqueue(job, retrys=2),  # type: ignore[call-arg]
        lambda: app.execute(job, retrys=2),  # type: ignore[call-arg]
        lambda: job.using(retrys=2).enqueue([]),  # type: ignore[call-overload]
        lambda: app.sessions.send("dm:42", "hello", task=job, retrys=2),  # type: ignore[call-arg]
        lambda: app.sessions.send("dm:42", "hello", task=job, session="dm:7"),  # type: ignore[call-arg]
    ]
    try:
        for call in wrong:
            with pytest.raises(InvalidInput):
                call()
        assert (app.schedules.list(), app.runs.list()) == ([], [])
    finally:
        app.stop()
