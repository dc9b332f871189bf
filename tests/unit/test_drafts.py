"""A draft against the schedule that has its name: what is written, and what a person or the breaker did stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ostinato.models.schedule import ScheduleDraft
from ostinato.stores import drafts
from ostinato.stores.drafts import StoredSchedule
from ostinato.testing.store_suite.builders import draft

KNOWN = StoredSchedule(
    id=7,
    name="a",
    timing="every 1h",
    zone="UTC",
    work="{}",
    kind="function",
    task="t",
    policy="{}",
    project=None,
    owner="code",
    origin="app",
    enabled=True,
    note="mine",
    anchor_at=10,
    next_at=20,
    after_finish=None,
    remaining=3,
    off_note=None,
    broken=None,
    orphaned=False,
    failures=2,
    paused_since=None,
    off_by=None,
)
SAME = draft(
    "a", timing="every 1h", work="{}", task="t", owner="code", origin="app", anchor_at=100, next_at=200, remaining=9
)


def merged(known: StoredSchedule, change: ScheduleDraft) -> StoredSchedule | None:
    """As the stores do it, but for the record of whose word counts: that is test_declared.py's."""
    return drafts.merged(known, replace(drafts.resolved(known, change, 5), declared=None, overrides=None))


def test_what_does_not_differ_is_not_written() -> None:
    assert merged(KNOWN, SAME) is None
    assert merged(KNOWN, replace(SAME, note="mine", enabled=False, off_note="no", origin=None)) is None


@pytest.mark.parametrize(
    "change",
    [{"work": "{1}"}, {"project": "p"}, {"owner": "me"}, {"note": "other"}, {"origin": "another"}],
    ids=lambda change: next(iter(change)),
)
def test_a_change_of_anything_but_the_timing_leaves_when_it_is_due(change: dict[str, str]) -> None:
    assert merged(KNOWN, replace(SAME, **change)) == replace(KNOWN, **change)  # type: ignore[arg-type]


def test_another_number_of_runs_begins_its_count_anew() -> None:
    nine = '{"remaining":9}'
    assert merged(KNOWN, replace(SAME, policy=nine)) == replace(KNOWN, policy=nine, remaining=9)


@pytest.mark.parametrize("change", [{"timing": "every 2h"}, {"policy": '{"remaining":9}'}])
def test_who_asks_for_more_of_what_ran_as_often_as_it_should_switches_it_on(change: dict[str, str]) -> None:
    finished = replace(KNOWN, enabled=False, remaining=0, next_at=None, owner="user", origin=None)
    more = replace(SAME, owner="user", origin=None, **change)  # type: ignore[arg-type]
    on = merged(finished, more)
    assert on is not None
    assert (on.enabled, on.next_at, on.remaining) == (True, 200, 9)
    off = merged(replace(finished, remaining=1), more)  # switched off by a person
    assert off is not None
    assert (off.enabled, off.next_at) == (False, None)
    orphan = merged(replace(finished, owner="code", origin="app", orphaned=True), replace(more, owner="code"))
    assert orphan is not None
    assert (orphan.enabled, orphan.next_at) == (False, None)


def test_another_policy_leaves_how_many_runs_remain() -> None:
    known = replace(KNOWN, policy='{"remaining":9}')
    slower = '{"remaining":9,"timeout":"5m"}'
    assert merged(known, replace(SAME, policy=slower)) == replace(known, policy=slower)


@pytest.mark.parametrize("change", [{"timing": "every 2h"}, {"zone": "Asia/Tokyo"}], ids=["timing", "zone"])
def test_another_timing_is_due_by_the_draft_and_counts_failures_anew(change: dict[str, str]) -> None:
    expected = replace(KNOWN, anchor_at=100, next_at=200, remaining=9, failures=0, **change)  # type: ignore[arg-type]
    assert merged(KNOWN, replace(SAME, **change)) == expected  # type: ignore[arg-type]


def test_another_timing_mends_what_was_broken_and_enables_it() -> None:
    broken = replace(KNOWN, enabled=False, broken="5 failures", next_at=None)
    found = merged(broken, replace(SAME, timing="every 2h"))
    assert found is not None
    assert (found.enabled, found.broken, found.next_at) == (True, None, 200)


def test_another_timing_leaves_broken_what_the_gate_does_not_let_pass() -> None:
    broken = replace(KNOWN, enabled=False, broken="5 failures", next_at=None)
    found = merged(broken, replace(SAME, timing="every 2h", may_switch_on=False))
    assert found is not None
    assert (found.timing, found.enabled, found.broken, found.next_at) == ("every 2h", False, "5 failures", None)


def test_another_timing_leaves_off_what_broke_and_was_switched_off_by_a_person_before() -> None:
    """As earlier versions left it, which kept both."""
    both = replace(KNOWN, enabled=False, broken="5 failures", off_note="on leave", next_at=None)
    found = merged(both, replace(SAME, timing="every 2h"))
    assert found is not None
    assert (found.enabled, found.broken, found.off_note, found.next_at) == (False, None, "on leave", None)


def test_what_is_broken_and_declared_again_is_not_due() -> None:
    found = merged(replace(KNOWN, orphaned=True, enabled=False, broken="5 failures", next_at=None), SAME)
    assert found is not None
    assert (found.orphaned, found.broken, found.next_at) == (False, "5 failures", None)


def test_another_timing_does_not_switch_on_what_a_person_switched_off() -> None:
    off = replace(KNOWN, enabled=False, off_note="on leave", next_at=None)
    found = merged(off, replace(SAME, timing="every 2h"))
    assert found is not None
    assert (found.enabled, found.off_note, found.next_at) == (False, "on leave", None)


def test_what_is_declared_again_is_due_again_with_its_own_anchor() -> None:
    orphan = replace(KNOWN, orphaned=True, next_at=None)
    found = merged(orphan, SAME)
    assert found is not None
    assert (found.orphaned, found.next_at, found.anchor_at, found.remaining, found.failures) == (False, 200, 10, 3, 2)
    off = merged(replace(orphan, enabled=False), SAME)
    assert off is not None
    assert off.next_at is None
