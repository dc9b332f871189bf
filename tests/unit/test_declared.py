"""Whose word counts for a schedule that code declares: the stores' pure rules against a small model, field by field."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.models.declared import SOMEBODY, declared_fields, field_changes, load_declared, load_overrides
from ostinato.models.policy import make_policy, policy_text
from ostinato.models.schedule import ScheduleDraft
from ostinato.stores.drafts import StoredSchedule, merged, new_schedule, resolved
from ostinato.testing.store_suite.builders import HOUR, NOW, draft

CHOICES: dict[str, list[Any]] = {
    "timing": [["every 1h", "UTC"], ["every 2h", "UTC"], ["every 1h", "Asia/Tokyo"]],
    "work": ['{"kind":"function","task":"a"}', '{"kind":"function","task":"b"}'],
    "project": [None, "blog"],
    "timeout": [None, "5m", "9m"],
    "priority": [0, 3],
}
"""The values that each field takes; the first of a policy is its default."""
VALUES = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in CHOICES.items()})


def policy_of(values: dict[str, Any]) -> str:
    return policy_text(make_policy({name: values[name] for name in ("timeout", "priority")}))


def drafted(
    values: dict[str, Any], enabled: bool, now: int, origin: str | None = "shop", by: str = "ada"
) -> ScheduleDraft:
    timing, zone = values["timing"]
    return draft(
        "job",
        timing=timing,
        zone=zone,
        work=values["work"],
        task=values["work"][-3],
        policy=policy_of(values),
        project=values["project"],
        enabled=enabled,
        owner="code",
        origin=origin,
        anchor_at=now,
        next_at=now + HOUR,
        by=by,
    )


def stored(made: ScheduleDraft) -> StoredSchedule:
    own = {one.name: getattr(made, one.name) for one in fields(made)}
    return StoredSchedule(**own, id=1, broken=None, orphaned=False, failures=0, paused_since=None, off_by=None)


def put(known: StoredSchedule, change: ScheduleDraft, now: int) -> StoredSchedule:
    """As the stores do it."""
    return merged(known, resolved(known, change, now)) or known


def values_of(known: StoredSchedule) -> dict[str, Any]:
    policy = msgspec.json.decode(known.policy)
    return {
        "timing": [known.timing, known.zone],
        "work": known.work,
        "project": known.project,
        "timeout": policy.get("timeout"),
        "priority": policy.get("priority", 0),
    }


@dataclass
class Model:
    """The rule in its own words: the code's last word, and beside it what people changed since."""

    code: dict[str, Any]
    people: dict[str, Any] = field(default_factory=dict)

    def declare(self, values: dict[str, Any]) -> None:
        self.people = {name: value for name, value in self.people.items() if values[name] == self.code[name]}
        self.code = values

    def edit(self, values: dict[str, Any]) -> None:
        self.people = {name: value for name, value in values.items() if value != self.code[name]}

    @property
    def holds(self) -> dict[str, Any]:
        return {**self.code, **self.people}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("declare"), VALUES),
        st.tuples(st.just("restart"), st.none()),
        st.tuples(
            st.just("edit"),
            st.sampled_from(sorted(CHOICES)).flatmap(
                lambda name: st.tuples(st.just(name), st.sampled_from(CHOICES[name]))
            ),
        ),
    ),
    max_size=12,
)


@given(VALUES, STEPS)
def test_each_field_is_the_codes_last_change_or_what_a_person_made_of_it_since(
    first: dict[str, Any], steps: list[tuple[str, Any]]
) -> None:
    known = stored(new_schedule(drafted(first, True, NOW), NOW))
    model = Model(first)
    for step, (verb, change) in enumerate(steps, 1):
        now = NOW + step * HOUR
        if verb == "edit":
            name, value = change
            values = {**values_of(known), name: value}
            known = put(known, drafted(values, True, now, None), now)
            model.edit(values)
        else:
            values = model.code if verb == "restart" else change
            before = known
            known = put(known, drafted(values, True, now), now)
            assert verb != "restart" or known == before, "a restart of the same code writes nothing"
            model.declare(values)
        assert values_of(known) == model.holds
        assert load_overrides(known.overrides).keys() == model.people.keys()
        assert {
            name: said.value for name, said in (load_declared(known.declared) or {}).items() if name == "timing"
        } == {"timing": model.code["timing"]}
        assert known.next_at is not None


SAYS: dict[str, Any] = {name: values[0] for name, values in CHOICES.items()}


def declared(enabled: bool = True) -> StoredSchedule:
    return stored(new_schedule(drafted(SAYS, enabled, NOW), NOW))


def sentences(known: StoredSchedule) -> list[str]:
    now = declared_fields(
        known.timing, known.zone, known.work, known.policy, known.project, enabled=bool(known.enabled)
    )
    return [
        one.sentence("UTC")
        for one in field_changes(load_declared(known.declared), load_overrides(known.overrides), now)
    ]


def test_what_the_code_switches_off_is_off_and_not_due() -> None:
    off = put(declared(), drafted(SAYS, False, NOW + HOUR), NOW + HOUR)
    assert (off.enabled, off.next_at) == (False, None)
    assert sentences(off) == ["switched off by code on 2027-01-15 09:00:00 UTC"]


def test_what_the_code_switches_on_again_begins_anew_and_is_mended() -> None:
    off = replace(declared(enabled=False), broken="3 failures", failures=3, off_note="why", remaining=0)
    on = put(off, drafted(SAYS, True, NOW + HOUR), NOW + HOUR)
    assert (on.enabled, on.broken, on.failures, on.off_note, on.remaining) == (True, None, 0, None, None)
    assert (on.anchor_at, on.next_at) == (NOW + HOUR, NOW + 2 * HOUR)


def test_a_persons_switch_stays_until_the_code_changes_its_own() -> None:
    switched = replace(declared(), enabled=False, next_at=None, overrides='{"enabled":{"by":"ada","at":5}}')
    restarted = put(switched, drafted(SAYS, True, NOW + HOUR), NOW + HOUR)
    assert restarted == switched
    off = put(switched, drafted(SAYS, False, NOW + HOUR), NOW + HOUR)
    assert (off.enabled, off.overrides) == (False, None)
    assert put(off, drafted(SAYS, True, NOW + 2 * HOUR), NOW + 2 * HOUR).enabled


def test_what_the_breaker_switched_off_stays_off_when_the_same_code_starts_again() -> None:
    broken = replace(declared(), enabled=False, broken="3 failures", next_at=None)
    assert put(broken, drafted(SAYS, True, NOW + HOUR), NOW + HOUR) == broken
    assert sentences(broken) == []


def test_a_code_that_is_switched_on_while_a_person_has_set_the_timing_is_due_by_that_timing() -> None:
    off = declared(enabled=False)
    edited = put(off, drafted({**SAYS, "timing": ["every 2h", "UTC"]}, False, NOW, None), NOW + 1)
    on = put(edited, drafted(SAYS, True, NOW + HOUR), NOW + HOUR)
    assert (on.timing, on.enabled, on.next_at) == ("every 2h", True, NOW + 3 * HOUR)


def test_without_a_record_all_but_the_switch_is_taken_and_noted_as_what_the_code_says() -> None:
    old = replace(declared(), declared=None, timing="every 9h", enabled=False, next_at=None)
    first = put(old, drafted(SAYS, True, NOW + HOUR), NOW + HOUR)
    assert (first.timing, first.enabled, first.declared is None) == ("every 1h", False, False)
    assert load_overrides(first.overrides)["enabled"].by == SOMEBODY
    same = put(first, drafted(SAYS, True, NOW + 2 * HOUR), NOW + 2 * HOUR)
    assert same == first


@pytest.mark.parametrize("aside", [{"broken": "3 failures"}, {"remaining": 0}], ids=["broken", "finished"])
def test_without_a_record_nobody_is_blamed_for_what_the_engine_switched_off(aside: dict[str, Any]) -> None:
    old = replace(declared(), declared=None, enabled=False, next_at=None, **aside)
    assert put(old, drafted(SAYS, True, NOW + HOUR), NOW + HOUR).overrides is None


def test_what_cannot_be_read_of_the_record_is_as_if_there_were_none() -> None:
    damaged = replace(declared(), declared="{", overrides="[", timing="every 9h")
    assert put(damaged, drafted(SAYS, True, NOW + HOUR), NOW + HOUR).timing == "every 1h"


def test_a_person_who_adds_one_of_this_name_changes_it_and_it_stays_the_codes() -> None:
    added = replace(drafted({**SAYS, "timeout": "9m"}, True, NOW, None), owner="user")
    known = put(declared(), added, NOW + HOUR)
    assert (known.owner, known.origin) == ("code", "shop")
    assert sentences(known) == ["timeout by ada on 2027-01-15 09:00:00 UTC; code says none"]


def test_an_orphan_that_a_person_edits_stays_one_and_who_adds_it_takes_it_over() -> None:
    orphan = replace(declared(), orphaned=True, next_at=None)
    edited = put(orphan, drafted({**SAYS, "timing": ["every 2h", "UTC"]}, True, NOW, None), NOW + HOUR)
    assert (edited.orphaned, edited.next_at, edited.timing) == (True, None, "every 2h")
    taken = put(orphan, replace(drafted(SAYS, True, NOW, None), owner="user"), NOW + HOUR)
    assert (taken.orphaned, taken.owner, taken.declared) == (False, "user", None)
    assert taken.next_at is not None


def test_what_is_declared_again_keeps_what_a_person_changed() -> None:
    edited = put(declared(), drafted({**SAYS, "timing": ["every 2h", "UTC"]}, True, NOW, None), NOW + 1)
    back = put(replace(edited, orphaned=True, next_at=None), drafted(SAYS, True, NOW + HOUR), NOW + HOUR)
    assert (back.orphaned, back.timing, back.next_at) == (False, "every 2h", NOW + 3 * HOUR)


def test_checks_that_fail_leave_it_off_and_the_code_is_still_known_to_say_on() -> None:
    refused = replace(drafted(SAYS, False, NOW + HOUR), off_note="checks failed: disk")
    off = put(declared(enabled=False), refused, NOW + HOUR)
    assert (off.enabled, off.off_note) == (False, "checks failed: disk")
    assert (load_declared(off.declared) or {})["enabled"].value is True
    assert put(off, drafted(SAYS, True, NOW + 2 * HOUR), NOW + 2 * HOUR) == off


def test_a_secret_policy_is_not_shown() -> None:
    known = put(
        declared(), replace(drafted(SAYS, True, NOW, None), policy='{"ping_url":"https://hc.example/secret"}'), NOW + 1
    )
    assert "secret" not in " ".join(sentences(known))
    assert "ping_url by ada" in sentences(known)[0]
