"""Schedules that the code declares: owner code, orphaned when the code drops them; of each field what the code changed
is obeyed, and what a person changed stays until the code changes it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from ostinato import InvalidInput, Ostinato
from ostinato.errors import Conflict
from ostinato.testing import FakeClock, drain, rehearse, simulate
from tests.engine.conftest import MakeApp, on_shared


def deploy(make_app: MakeApp, db: str, timing: str | None = "every 1h", **options: Any) -> Ostinato:
    """A process of the app that declares the schedule `job` (or, with timing None, does not)."""
    app = make_app(db, name="shop")
    app.task("job", schedule=timing, **options)(lambda: None)
    return app.start()


def test_a_declared_schedule_belongs_to_the_code(app: Ostinato) -> None:
    app.task("job", schedule="every 1h", priority=3)(lambda: None)
    app.start()
    schedule = app.schedules.get("job")
    assert (schedule.owner, schedule.enabled, schedule.policy.priority) == ("code", True, 3)


def test_a_schedule_can_be_declared_switched_off(app: Ostinato) -> None:
    app.task("job", schedule="every 1h", enabled=False)(lambda: None)
    assert simulate(app, lasting="5h") == 0
    assert app.schedules.get("job").enabled is False


def test_under_rehearse_declarations_follow_the_clock_of_the_rehearsal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The app was made with the clock of the machine, which is years ahead; and the log has what was just declared."""
    app = Ostinato(f"sqlite:///{tmp_path}/real.db", tz="Europe/Berlin", name="shop")
    app.task("job", schedule="every 1h", enabled=False)(lambda: None)
    gone = Ostinato(f"sqlite:///{tmp_path}/real.db", tz="Europe/Berlin", name="shop")
    gone.task("gone", schedule="every 1h")(lambda: None)
    db = f"sqlite:///{tmp_path}/rehearsal.db"
    with rehearse(gone, FakeClock("2019-12-31T12:00:00Z"), db=db):
        drain(gone)
    with caplog.at_level(logging.INFO, "ostinato"), rehearse(app, FakeClock("2020-01-01T12:00:00Z"), db=db):
        drain(app)
        assert "schedule job: switched off by code on 2020-01-01 13:00" in caplog.text
        orphan = app.schedules.get("gone")
        assert orphan.orphaned
        assert orphan.updated_at.year == 2020


@on_shared
def test_one_that_disappears_from_the_code_is_orphaned_and_not_deleted(
    shared_db: str, make_app: MakeApp, fake_clock: FakeClock
) -> None:
    deploy(make_app, shared_db).stop()
    app = deploy(make_app, shared_db, None)
    schedule = app.schedules.get("job")
    assert schedule.orphaned
    assert schedule.next_run_at is None
    assert schedule.next_run_reason == "orphaned: the code no longer declares it"
    fake_clock.advance("5h")
    drain(app)
    assert app.runs.list() == []


def test_a_task_declared_after_the_start_is_executed(app: Ostinato) -> None:
    app.start()
    job = app.task("late")(lambda: "better than never")
    assert job.enqueue().wait(timeout=60).result == "better than never"


def test_a_schedule_declared_after_the_start_is_made_too(app: Ostinato, fake_clock: FakeClock) -> None:
    app.start()
    app.task("late", schedule="every 1h")(lambda: None)
    fake_clock.advance("1h")
    drain(app)
    fake_clock.advance("1h")
    drain(app)
    assert app.runs.list(schedule="late")


@on_shared
def test_what_the_code_switches_off_stays_off_and_says_so(
    shared_db: str, make_app: MakeApp, fake_clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    deploy(make_app, shared_db).stop()
    fake_clock.advance("10m")
    with caplog.at_level(logging.INFO, "ostinato"):
        app = deploy(make_app, shared_db, enabled=False)
    off = app.schedules.get("job")
    (change,) = off.changes
    assert (off.enabled, off.next_run_at, change.by, change.value) == (False, None, None, "off")
    assert change.sentence("UTC") in app.why("job").facts
    assert f"schedule job: {change.sentence('UTC')}\n" in caplog.text
    assert app.why("job").answer == f"It is not due: disabled; {change.sentence('UTC')}."
    fake_clock.advance("5h")
    drain(app)
    assert app.runs.list() == []
    app.stop()
    assert deploy(make_app, shared_db).schedules.get("job").next_run_at is not None


@on_shared
def test_what_a_person_changed_stays_until_the_code_changes_that_field(
    shared_db: str, make_app: MakeApp, fake_clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    app = deploy(make_app, shared_db, timeout="5m")
    app.schedules.edit("job", timing="every 2h", timeout="9m", project=None)
    app.schedules.disable("job")
    app.stop()
    app = deploy(make_app, shared_db, timeout="5m")
    kept = app.schedules.get("job")
    assert (kept.timing, kept.enabled, str(kept.policy.timeout)) == ("every 2h", False, "0:09:00")
    assert "schedule job: timing by a program on" in caplog.text
    assert "code says every 1h" in caplog.text
    assert kept.owner == "code"
    app.stop()
    fake_clock.advance("10m")
    app = deploy(make_app, shared_db, "every 3h", timeout="5m")
    changed = app.schedules.get("job")
    assert (changed.timing, changed.enabled, str(changed.policy.timeout)) == ("every 3h", False, "0:09:00")
    assert {change.field: change.by for change in changed.changes} == {
        "enabled": "a program",
        "timeout": "a program",
        "timing": None,
    }


@on_shared
def test_the_log_of_a_start_says_what_the_code_said_before_and_what_it_says_now(
    shared_db: str, make_app: MakeApp, fake_clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    deploy(make_app, shared_db, retry=4).stop()
    fake_clock.advance("10m")
    with caplog.at_level(logging.INFO, "ostinato"):
        deploy(make_app, shared_db, "every 3h").stop()
    assert ": max 4 before, max 3 now" in caplog.text
    assert ": every 1h (UTC) before, every 3h (UTC) now" in caplog.text


@on_shared
def test_a_node_with_another_zone_does_not_undo_what_a_person_changed(
    shared_db: str, make_app: MakeApp, fake_clock: FakeClock
) -> None:
    def start(zone: str, **options: Any) -> Ostinato:
        app = make_app(shared_db, name="shop", tz=zone)
        app.task("job", schedule="daily 03:00", **options)(lambda: None)
        return app.start()

    start("UTC").stop()
    unchanged = start("Asia/Tokyo")
    assert unchanged.schedules.get("job").zone == "Asia/Tokyo"  # nobody changed it: the zone of the last start
    unchanged.schedules.edit("job", timing="daily 04:00")
    unchanged.stop()
    app = start("Europe/Berlin")
    kept = app.schedules.get("job")
    assert (kept.timing, kept.zone) == ("daily 04:00", "Asia/Tokyo")
    assert [(change.field, change.by) for change in kept.changes] == [("timing", "a program")]
    app.stop()
    fake_clock.advance("10m")
    named = start("UTC", tz="America/New_York").schedules.get("job")  # a zone that the code names is its word
    assert (named.timing, named.zone) == ("daily 03:00", "America/New_York")


@on_shared
def test_a_field_goes_back_to_what_the_code_says(shared_db: str, make_app: MakeApp) -> None:
    app = deploy(make_app, shared_db, timeout="5m")
    app.schedules.edit("job", timing="every 2h", timeout=None, priority=7)
    app.schedules.disable("job")
    assert app.schedules.revert("job", ["timing"]).timing == "every 1h"
    assert {change.field for change in app.schedules.get("job").changes} == {"enabled", "priority", "timeout"}
    back = app.schedules.revert("job")
    assert (back.enabled, str(back.policy.timeout), back.policy.priority, back.changes) == (True, "0:05:00", 0, ())
    assert app.schedules.revert("job").version == back.version
    with pytest.raises(InvalidInput, match="says nothing of 'moon'"):
        app.schedules.revert("job", ["moon"])
    app.schedules.add("mine", "every 1h", "job")
    with pytest.raises(Conflict, match="not declared by code"):
        app.schedules.revert("mine")


@on_shared
def test_one_that_code_declares_is_removed_only_by_force_and_comes_back(shared_db: str, make_app: MakeApp) -> None:
    app = deploy(make_app, shared_db)
    with pytest.raises(Conflict, match=r"declared by the code of app 'shop'.*would come back"):
        app.schedules.remove("job")
    app.schedules.remove("job", force=True)
    assert app.schedules.list() == []
    app.stop()
    app = deploy(make_app, shared_db)
    assert app.schedules.get("job").changes == ()
    app.stop()
    orphans = deploy(make_app, shared_db, None)
    orphans.schedules.remove("job")
    orphans.stop()
    assert deploy(make_app, shared_db, None).schedules.list() == []


@on_shared
def test_code_that_switches_it_on_must_pass_its_checks(shared_db: str, make_app: MakeApp) -> None:
    refused = make_app(shared_db, name="shop")
    refused.check("disk")(lambda: "the disk is full")
    refused.task("job", schedule="every 1h", checks=["disk"], enabled=False)(lambda: None)
    refused.start().stop()
    again = make_app(shared_db, name="shop")
    again.check("disk")(lambda: "the disk is full")
    again.task("job", schedule="every 1h", checks=["disk"])(lambda: None)
    again.start()
    off = again.schedules.get("job")
    assert (off.enabled, off.off_note) == (False, "checks failed: disk: the disk is full")
