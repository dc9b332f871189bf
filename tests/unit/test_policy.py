"""Policies: every form that users write, errors that name their field, and the text that is stored."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato import Budget, Gate
from ostinato.errors import InvalidInput, NotLoadable
from ostinato.models.policy import (
    DEFAULT,
    CatchUp,
    Keep,
    OnLostLease,
    Overlap,
    Policy,
    Retry,
    load_policy,
    make_policy,
    policy_json,
    policy_text,
)


@pytest.mark.parametrize(
    ("given_as", "field", "expected"),
    [
        ({"overlap": "queue_one"}, "overlap", Overlap.QUEUE_ONE),
        ({"overlap": Overlap.ALLOW}, "overlap", Overlap.ALLOW),
        ({"catch_up": "all"}, "catch_up", CatchUp.ALL),
        ({"catch_up_window": "90m"}, "catch_up_window", timedelta(minutes=90)),
        ({"catch_up_window": 60}, "catch_up_window", timedelta(minutes=1)),
        ({"retry": 0}, "retry", Retry(0)),
        ({"retry": Retry(5, base="1s")}, "retry", Retry(5, timedelta(seconds=1))),
        ({"retry": {"max": 2, "longest": "1m"}}, "retry", Retry(2, longest=timedelta(minutes=1))),
        ({"retry": {"covers": "start"}}, "retry", Retry(covers="start")),
        ({"timeout": timedelta(seconds=30)}, "timeout", timedelta(seconds=30)),
        ({"timeout": None}, "timeout", None),
        ({"max_age": "1h"}, "max_age", timedelta(hours=1)),
        ({"checks": "disk, network"}, "checks", ("disk", "network")),
        ({"checks": ["disk"]}, "checks", ("disk",)),
        ({"keep": "7d"}, "keep", Keep(age=timedelta(days=7))),
        ({"keep": {"age": None, "count": 5}}, "keep", Keep(None, 5)),
        ({"run_once": True}, "remaining", 1),
        ({"run_once": False}, "remaining", None),
        ({"remaining": 4}, "remaining", 4),
        ({"priority": -3}, "priority", -3),
        ({"delete_after_run": True}, "delete_after_run", True),
        ({"on_lost_lease": "continue"}, "on_lost_lease", OnLostLease.CONTINUE),
    ],
)
def test_each_form_that_users_write(given_as: dict[str, Any], field: str, expected: object) -> None:
    assert getattr(make_policy(given_as), field) == expected


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"overlap": "hug"}, "overlap"),
        ({"overlap": None}, "overlap"),
        ({"catch_up": "some"}, "catch_up"),
        ({"catch_up_window": "soon"}, "catch_up_window"),
        ({"catch_up_window": "-1h"}, "catch_up_window"),
        ({"catch_up_cap": 0}, "catch_up_cap"),
        ({"retry": -1}, "retry"),
        ({"retry": True}, "retry"),
        ({"retry": "many"}, "retry"),
        ({"retry": {"tries": 3}}, "retry"),
        ({"retry": {"covers": "some"}}, "retry.covers"),
        ({"retry": {"max": 1.5}}, "retry"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": -5}, "timeout"),
        ({"max_age": "0s"}, "max_age"),
        ({"break_after": 0}, "break_after"),
        ({"break_after": "3"}, "break_after"),
        ({"lane": ""}, "lane"),
        ({"lane": 3}, "lane"),
        ({"priority": "high"}, "priority"),
        ({"checks": [1]}, "checks"),
        ({"checks": 5}, "checks"),
        ({"keep": {"count": 0}}, "keep"),
        ({"keep": {"size": 1}}, "keep"),
        ({"remaining": 0}, "remaining"),
        ({"run_once": "yes"}, "run_once"),
        ({"delete_after_run": 1}, "delete_after_run"),
        ({"on_lost_lease": "pray"}, "on_lost_lease"),
        ({"overlop": "skip"}, "overlop"),
    ],
)
def test_a_wrong_value_is_an_error_that_names_its_field(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        make_policy(wrong)
    assert raised.value.field.startswith(field)
    assert field in str(raised.value)


def test_a_number_that_is_none_or_out_of_bounds_is_answered_with_both_bounds() -> None:
    for wrong in ("hi", 10**12, -(10**7)):
        with pytest.raises(InvalidInput, match=r"give a whole number from -1000000 to 2147483647$"):
            make_policy({"priority": wrong})


def test_an_unknown_policy_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"there is no policy 'overlop'.*overlap.*run_once"):
        make_policy({"overlop": "skip"})


def test_what_is_given_is_laid_over_a_base() -> None:
    base = make_policy({"lane": "main", "priority": 5})
    assert make_policy({"priority": 1}, base) == make_policy({"lane": "main", "priority": 1})


def test_most_rows_store_nothing() -> None:
    assert policy_text(DEFAULT) == "{}"
    assert policy_text(make_policy({"priority": 2})) == '{"priority":2}'


names = st.text(min_size=1, max_size=200).filter(lambda name: bool(name.strip()) and name.isprintable())
durations = st.timedeltas(timedelta(seconds=1), timedelta(days=400))
policies = st.builds(
    Policy,
    overlap=st.sampled_from(Overlap),
    catch_up=st.sampled_from(CatchUp),
    catch_up_window=durations,
    catch_up_cap=st.integers(1, 10**6),
    retry=st.builds(
        Retry, st.integers(0, 99), durations, durations, st.floats(0, 1), st.sampled_from(["all", "start"])
    ),
    timeout=st.none() | durations,
    max_age=st.none() | durations,
    break_after=st.integers(1, 99),
    lane=names,
    priority=st.integers(-1000, 1000),
    checks=st.lists(names).map(tuple),
    gate=st.none() | st.builds(Gate, names, durations),
    notify=st.lists(names).map(tuple),
    budget=st.none() | st.builds(Budget, st.just(1), st.just(5), st.none() | st.integers(1, 9)),
    keep=st.builds(Keep, st.none() | durations, st.none() | st.integers(1, 10**6)),
    remaining=st.none() | st.integers(1, 99),
    delete_after_run=st.booleans(),
    on_lost_lease=st.sampled_from(OnLostLease),
)


@given(policies)
def test_a_policy_survives_its_stored_text(policy: Policy) -> None:
    assert load_policy(policy_text(policy)) == policy


@given(policies)
def test_a_policy_survives_the_json_that_scripts_see(policy: Policy) -> None:
    plain = policy_json(policy)
    assert make_policy(msgspec.json.decode(msgspec.json.encode(plain))) == policy


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("not json", "policy is not readable"),
        ("[]", "policy is not readable"),
        ('{"overlap":"hug"}', "overlap cannot be 'hug'"),
        ('{"from_the_future":1}', "there is no policy 'from_the_future'"),
    ],
)
def test_a_stored_policy_that_cannot_be_read_says_why(text: str, says: str) -> None:
    with pytest.raises(NotLoadable, match=says):
        load_policy(text)


def test_retry_checks_its_own_fields() -> None:
    with pytest.raises(InvalidInput, match=r"retry\.spread"):
        Retry(spread=1.5)
    with pytest.raises(InvalidInput, match=r"retry\.base"):
        Retry(base="fast")


@pytest.mark.parametrize("given", [5, {"max": 5}, {"max": 5, "covers": "all"}])
def test_a_retry_that_is_asked_for_covers_every_failure(given: Any) -> None:
    careful = Policy(retry=Retry(base="1s", covers="start"))
    assert make_policy({"retry": given}, careful).retry == Retry(5, base="1s", covers="all")
    assert make_policy({"retry": {"max": 5, "covers": "start"}}, careful).retry == Retry(5, base="1s", covers="start")
    assert make_policy({"timeout": "5m"}, careful).retry == careful.retry


def test_a_retry_that_covers_every_failure_is_stored_as_it_always_was() -> None:
    """Another text would count as an edit of every schedule that code declares."""
    stored = '{"retry":{"max":5,"base":"2s","longest":"30s","spread":0.25}}'
    assert policy_text(Policy(retry=Retry(5))) == stored
    assert load_policy(stored).retry.covers == "all"
    careful = policy_text(Policy(retry=Retry(covers="start")))
    assert careful == '{"retry":{"max":3,"base":"2s","longest":"30s","spread":0.25,"covers":"start"}}'
    assert load_policy(careful).retry == Retry(covers="start")
