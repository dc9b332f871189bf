"""Pages of schedules: every one exactly once, in every order, direction and filter, as an oracle of the tables says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from ostinato.models.ids import ScheduleId
from ostinato.models.schedule import Pause, ScheduleFilter, ScheduleRow, ScheduleSort, ScheduleState
from ostinato.models.states import Cause, Trigger
from ostinato.stores.base import Store
from ostinato.testing.store_suite.builders import (
    HOUR,
    MINUTE,
    NOW,
    claim,
    claim_one,
    draft,
    finish,
    new_run,
    put,
    put_many,
)
from tests.stores.places import raw

MANY = 30


@dataclass(frozen=True)
class Known:
    """A schedule as the oracle knows it."""

    id: int
    name: str
    task: str | None
    note: str | None
    project: str | None
    owner: str
    next_at: int | None
    enabled: bool
    broken: str | None
    orphaned: bool
    remaining: int | None
    paused_since: int | None
    runs: tuple[tuple[int, str], ...]

    @property
    def active(self) -> int:
        return sum(state in ("queued", "running") for _, state in self.runs)

    @property
    def at_work(self) -> bool:
        """Nothing is wrong with it, and nobody switched it off: what ran as often as it should did so by itself."""
        return self.broken is None and not self.orphaned and (self.enabled or self.remaining == 0)

    @property
    def on(self) -> bool:
        """As people mean it: it will run again, or runs. What is paused will."""
        return self.at_work and not self.finished

    @property
    def finished(self) -> bool:
        return self.at_work and self.next_at is None and not self.active

    @property
    def off(self) -> bool:
        return self.broken is None and not self.orphaned and not self.at_work

    @property
    def last(self) -> int | None:
        return max((id for id, _ in self.runs), default=None)


async def known(store: Store) -> list[Known]:
    """Everything there is, past all filters."""
    runs = await raw(store, "SELECT schedule_id, id, state FROM runs WHERE schedule_id IS NOT NULL")
    rows = await raw(
        store,
        "SELECT id, name, task, note, project, owner, next_at, enabled, broken, orphaned, remaining, paused_since "
        "FROM schedules",
    )
    found = []
    for id, name, task, note, project, owner, next_at, enabled, broken, orphaned, remaining, paused_since in rows:
        ours = tuple((run, state) for schedule_id, run, state in runs if schedule_id == id)
        found.append(
            Known(id, name, task, note, project, owner, next_at, bool(enabled), broken, bool(orphaned), remaining,
                  paused_since, ours)
        )  # fmt: skip
    return found


async def populate(store: Store) -> None:
    """Schedules of every kind, of which many share a due time, and some have none."""
    drafts = [
        draft(
            f"s{number * 7 % MANY:02d}",
            next_at=NOW + (number % 4 + 5) * MINUTE,
            task=("mail", "sync", None)[number % 3],
            project=(None, "shop", "blog")[number % 3 if number % 2 else 0],
            owner=("user", "code", "crontab:box:/etc/crontab")[number % 3],
            origin="app" if number % 3 == 1 else None,
            note=("Every Night", None)[number % 2],
            enabled=number % 9 != 4,
            remaining=3 if number % 5 == 0 else None,
        )
        for number in range(MANY)
    ]
    ids = await put_many(store, drafts)
    await store.runs.insert_runs([new_run(schedule_id=id, trigger=Trigger.MANUAL) for id in (*ids[::4], *ids[::-4])])
    for run in (await store.runs.claim_runs(claim(room=8))).runs[::2]:
        await store.runs.finish_runs([finish(run)])
    for id in (ids[1], ids[6]):
        hold = Pause(
            since=NOW + (ids.index(id) % 4 + 5) * MINUTE, next_at=NOW + HOUR, cause=Cause.BUDGET, reason="over budget"
        )
        assert await store.schedules.pause_schedule(id, 1, hold, NOW)
    for id in ids[3:20:8]:
        await raw(store, f"UPDATE schedules SET enabled = false, broken = 'boom', next_at = NULL WHERE id = {id}")
    await raw(store, f"UPDATE schedules SET next_at = NULL WHERE id IN ({ids[8]}, {ids[9]}, {ids[12]})")
    await raw(store, f"UPDATE schedules SET next_at = NULL, enabled = false, remaining = 0 WHERE id = {ids[10]}")
    declared = [one.name for one in drafts if one.name not in ("s07", "s19")]
    assert await store.schedules.mark_orphans("app", declared, NOW) == ["s07", "s19"]


FILTERS: list[tuple[ScheduleFilter, Callable[[Known], Any]]] = [
    (ScheduleFilter(), lambda one: True),
    (ScheduleFilter(state=ScheduleState.ON), lambda one: one.on),
    (ScheduleFilter(state=ScheduleState.OFF), lambda one: one.off),
    (ScheduleFilter(state=ScheduleState.BROKEN), lambda one: one.broken is not None),
    (ScheduleFilter(state=ScheduleState.RUNNING), lambda one: one.active),
    (ScheduleFilter(state=ScheduleState.PAUSED), lambda one: one.on and one.paused_since is not None),
    (ScheduleFilter(state=ScheduleState.FINISHED), lambda one: one.finished),
    (ScheduleFilter(state=ScheduleState.ORPHANED), lambda one: one.orphaned),
    (ScheduleFilter(project="shop"), lambda one: one.project == "shop"),
    (ScheduleFilter(owner="code"), lambda one: one.owner == "code"),
    (ScheduleFilter(owner="crontab"), lambda one: one.owner.startswith("crontab:")),
    (ScheduleFilter(owner="crontab:box:/etc/crontab"), lambda one: one.owner.startswith("crontab:")),
    (ScheduleFilter(enabled=False), lambda one: not one.enabled),
    (ScheduleFilter(enabled=True), lambda one: one.enabled),
    (ScheduleFilter(names=("s03", "s10", "s29", "nobody")), lambda one: one.name in ("s03", "s10", "s29")),
    (ScheduleFilter(ids=(ScheduleId(2), ScheduleId(9), ScheduleId(999))), lambda one: one.id in (2, 9)),
    (ScheduleFilter(search="MAIL"), lambda one: one.task == "mail"),
    (ScheduleFilter(search="night"), lambda one: one.note is not None),
    (ScheduleFilter(search="S1"), lambda one: "s1" in one.name),
    (ScheduleFilter(search="o"), lambda one: one.project is not None),
    (
        ScheduleFilter(state=ScheduleState.ON, search="sync", project="shop"),
        lambda one: one.on and one.task == "sync" and one.project == "shop",
    ),
    (ScheduleFilter(search="nothing like it"), lambda one: False),
]
KEYS: dict[ScheduleSort, Callable[[Known], int | str | None]] = {
    ScheduleSort.NAME: lambda one: one.name,
    ScheduleSort.CREATED: lambda one: one.id,
    ScheduleSort.NEXT: lambda one: one.next_at,
    ScheduleSort.LAST: lambda one: one.last,
    ScheduleSort.FAILED: lambda one: max((id for id, state in one.runs if state == "failed"), default=None),
}


def in_order(those: list[Known], sort: ScheduleSort, descending: bool) -> list[Known]:
    """What has no key comes last, whatever the direction; ties go by name."""
    key = KEYS[sort]
    having: list[tuple[Any, str, Known]] = [(key(one), one.name, one) for one in those if key(one) is not None]
    rest = [(0, one.name, one) for one in those if key(one) is None]
    return [one for part in (having, rest) for *_, one in sorted(part, key=lambda item: item[:2], reverse=descending)]


async def pages(store: Store, wanted: ScheduleFilter, size: int) -> tuple[list[ScheduleRow], set[int]]:
    """All pages of a list, each from the end of the one before; and the totals that they told."""
    rows: list[ScheduleRow] = []
    totals: set[int] = set()
    after = None
    while True:
        page, total = await store.schedules.page_schedules(replace(wanted, after=after, limit=size))
        rows += page
        totals.add(total)
        assert len(page) <= size
        assert len(rows) <= MANY
        if len(page) < size:
            return rows, totals
        after = page[-1].key


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("sort", list(ScheduleSort))
async def test_pages_hold_every_schedule_exactly_once_in_order(
    store: Store, sort: ScheduleSort, descending: bool
) -> None:
    await populate(store)
    there = await known(store)
    for number, (wanted, holds) in enumerate(FILTERS):
        asked = replace(wanted, sort=sort, descending=descending)
        expected = in_order([one for one in there if holds(one)], sort, descending)
        listed = await store.schedules.list_schedules(asked)
        assert [schedule.name for schedule in listed] == [one.name for one in expected], asked
        for size in (1, 4, 15, 100) if number == 0 else (3,):
            rows, totals = await pages(store, asked, size)
            assert [row.schedule.name for row in rows] == [one.name for one in expected], (asked, size)
            assert totals == {len(expected)}, asked
            assert [row.active for row in rows] == [one.active for one in expected]
            assert [row.key for row in rows] == [(KEYS[sort](one), one.name) for one in expected]


async def test_the_oracle_sees_something_of_every_filter_but_the_last(store: Store) -> None:
    await populate(store)
    there = await known(store)
    found = [sum(bool(holds(one)) for one in there) for _, holds in FILTERS]
    assert min(found[:-1]) > 0
    assert found[-1] == 0
    assert len({one.next_at for one in there}) < len(there) // 2


@pytest.mark.parametrize("unknown", [(), ("sync",), ("mail", "sync", "nobody's")])
async def test_a_state_is_counted_as_its_list_is_long(store: Store, unknown: tuple[str, ...]) -> None:
    await populate(store)
    there = await known(store)
    holds = {wanted.state: of_it for wanted, of_it in FILTERS if wanted.state is not None and wanted.search is None}
    counts = await store.schedules.count_schedules(unknown)
    assert set(counts) == set(ScheduleState) - {ScheduleState.RUNNING, ScheduleState.FAILING}
    for state, count in counts.items():
        unserved = {one.name for one in there if one.task in unknown and one.enabled and not one.orphaned}
        names = {one.name for one in there if holds[state](one)} - unserved
        if state is ScheduleState.BROKEN:
            names |= unserved
        elif state is ScheduleState.ORPHANED:
            # One that is broken too is in the list of those that are orphaned, but is counted once.
            names -= {one.name for one in there if one.broken is not None}
            assert count == len(names)
            continue
        rows, total = await store.schedules.page_schedules(ScheduleFilter(state=state, unknown=unknown, limit=MANY))
        assert {row.schedule.name for row in rows} == names, state
        assert (total, count) == (len(names), len(names)), state
        assert names or unknown, "the oracle sees something of every state"


@pytest.mark.parametrize("unknown", [(), ("sync",)])
async def test_every_schedule_is_counted_once_and_what_is_paused_among_those_that_are_on(
    store: Store, unknown: tuple[str, ...]
) -> None:
    await populate(store)
    counts = await store.schedules.count_schedules(unknown)
    assert sum(counts.values()) - counts[ScheduleState.PAUSED] == MANY


async def test_one_that_ran_as_often_as_it_should_is_on_until_its_last_run_has_ended(store: Store) -> None:
    id = await put(store)
    await store.runs.insert_runs([new_run(schedule_id=id, trigger=Trigger.MANUAL)])
    await raw(store, "UPDATE schedules SET next_at = NULL, remaining = 0, enabled = false")
    assert (await store.schedules.count_schedules(()))[ScheduleState.ON] == 1
    assert len(await store.schedules.list_schedules(ScheduleFilter(state=ScheduleState.ON))) == 1
    await store.runs.finish_runs([finish(await claim_one(store))])
    assert (await store.schedules.count_schedules(()))[ScheduleState.FINISHED] == 1
    assert await store.schedules.list_schedules(ScheduleFilter(state=ScheduleState.ON)) == []


async def test_an_edit_of_the_timing_ends_a_hold_with_a_row_for_what_was_left_out(store: Store) -> None:
    id = await put(store)
    hold = Pause(since=NOW + 5 * MINUTE, next_at=NOW + HOUR, cause=Cause.BUDGET, reason="over budget")
    assert await store.schedules.pause_schedule(id, 1, hold, NOW)
    assert await store.schedules.edit_schedule(draft(timing="every 7m"), id, 1, NOW + 12 * MINUTE)
    edited = await store.schedules.get_schedule("report")
    assert edited is not None
    assert edited.paused_since is None
    assert [(row[0], row[1]) for row in await raw(store, "SELECT state, count FROM runs")] == [("skipped", 2)]
