"""A judge that finds nothing proves nothing: bugs are put into the engine and the stores, and each must be found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import apsw
import pytest

from ostinato.engine import plan
from ostinato.engine.rescuer import Rescuer
from ostinato.models.schedule import FirePlan
from ostinato.stores.sqlite.query import Connection
from ostinato.testing import chaos
from ostinato.testing.chaos.simulated_machine import SharedDatabase

SEEDS = range(4)

Seed = Callable[[pytest.MonkeyPatch], None]


def rewrite(monkeypatch: pytest.MonkeyPatch, *pairs: tuple[str, str]) -> None:
    """Other SQL than the store's; each text must be there to be replaced."""
    seen: set[str] = set()

    def rewritten(text: str) -> str:
        for old, new in pairs:
            if old in text:
                seen.add(old)
                text = text.replace(old, new)
        return text

    def execute(self: Connection, text: str, values: Any = ()) -> apsw.Cursor:
        return apsw.Connection.execute(self, rewritten(text), values)

    def executemany(self: Connection, text: str, values: Any) -> apsw.Cursor:
        return apsw.Connection.executemany(self, rewritten(text), values)

    monkeypatch.setattr(Connection, "execute", execute)
    monkeypatch.setattr(Connection, "executemany", executemany)
    close = SharedDatabase.close

    def closed(self: SharedDatabase) -> None:
        assert seen == {old for old, _ in pairs}, "the SQL of the store has changed: the bug was not seeded"
        close(self)

    monkeypatch.setattr(SharedDatabase, "close", closed)


def plans(monkeypatch: pytest.MonkeyPatch, change: Callable[[FirePlan], FirePlan]) -> None:
    """Other plans than the engine's."""
    plan_fires = plan.plan_fires

    def changed(*args: Any, **options: Any) -> FirePlan | None:
        planned = plan_fires(*args, **options)
        return None if planned is None else change(planned)

    monkeypatch.setattr("ostinato.engine.ticker.plan_fires", changed)


def no_unique_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A due time may be recorded by each node that sees it."""
    rewrite(monkeypatch, ("next_at = ? AND version = ?", "(next_at = ? OR TRUE) AND version = ?"))
    opened = SharedDatabase.__init__

    def unguarded(self: SharedDatabase, *args: Any) -> None:
        opened(self, *args)
        self.connection.execute("DROP INDEX runs_due")

    monkeypatch.setattr(SharedDatabase, "__init__", unguarded)


def no_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finish is written whoever holds the token."""
    rewrite(monkeypatch, (" AND runs.token = f.token AND +runs.state = 'running'", ""))


def no_rescue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of lost nodes stay as they are."""

    async def rescue(self: Rescuer) -> int:
        return 0

    monkeypatch.setattr(Rescuer, "rescue", rescue)


def early_fire(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs may start 300 ms before they are due."""

    def early(planned: FirePlan) -> FirePlan:
        for run in planned.runs:
            run.ready_at -= 300_000
        return planned

    plans(monkeypatch, early)


def drift(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each due time comes 1 ms later than it should."""
    plans(monkeypatch, lambda one: replace(one, next_at=None if one.next_at is None else one.next_at + 1_000))


def no_limit_of_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs in a lane is not counted."""
    counting = "max_running - (SELECT count(*) FROM runs WHERE state = 'running' AND lane = lanes.name)"
    rewrite(monkeypatch, (counting, "max_running"))


def no_turns_in_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for its turn is claimed as well."""
    rewrite(monkeypatch, ("AND r.waiting = 0", ""), ("AND waiting = 0", ""))


def a_forgotten_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was enqueued is acknowledged, and is not there."""
    write = SharedDatabase.changed

    def forget(self: SharedDatabase, by: Any) -> None:
        self.connection.execute("DELETE FROM runs WHERE schedule_id IS NULL AND id % 7 = 0")
        write(self, by)

    monkeypatch.setattr(SharedDatabase, "changed", forget)


@pytest.mark.parametrize(
    ("bug", "rule"),
    [
        (no_unique_key, "due_times_have_one_row_each"),
        (no_fence, "ends_are_final"),
        (no_rescue, "ends_have_a_reason"),
        (early_fire, "nothing_starts_early_or_expired"),
        (drift, "due_times_have_one_row_each"),
        (no_limit_of_lanes, "lanes_hold"),
        (no_turns_in_sessions, "sessions_hold"),
        (a_forgotten_commit, "nothing_was_made_up"),
    ],
)
def test_a_bug_is_found(bug: Seed, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    for seed in SEEDS:
        report = chaos.simulate([seed], hours=0.04)
        if rule in {violation.rule for _, violation in report.violations}:
            with pytest.raises(chaos.PromiseBroken, match=rf"seed {seed}: .*"):
                report.check()
            return
    pytest.fail(f"nobody noticed: {bug.__doc__}")
