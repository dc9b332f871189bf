"""Where the word of the code, of people and of the engine meet in a schedule that code declares."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from ostinato import InvalidInput, Ostinato, Shell
from ostinato.errors import ChecksFailed, TimingError
from ostinato.testing import FakeClock, drain
from tests.engine.conftest import MakeApp


@pytest.fixture
def file(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/jobs.db"


def deploy(make_app: MakeApp, db: str, timing: str, app: str = "shop", **options: Any) -> Ostinato:
    """A process of the app that declares the schedule `job`."""
    made = make_app(db, name=app)
    made.task("job", schedule=timing, **options)(lambda: None)
    return made.start()


def test_code_whose_only_time_has_passed_starts_and_what_a_person_moved_stays(
    file: str, make_app: MakeApp, fake_clock: FakeClock
) -> None:
    once, later = "at 2026-06-01T10:00", "at 2029-06-01T10:00"
    app = deploy(make_app, file, once)
    app.schedules.edit("job", timing=later)
    app.stop()
    fake_clock.advance("500d")
    app = deploy(make_app, file, once)
    kept = app.schedules.get("job")
    assert (kept.timing, kept.next_run_at is not None) == (later, True)
    with pytest.raises(TimingError, match="would never run"):
        app.schedules.edit("job", timing=once)
    app.stop()
    passed = deploy(make_app, file, "at 2020-01-01T10:00").schedules.get("job")
    assert (passed.timing, passed.next_run_reason) == (
        "at 2020-01-01T10:00",
        "finished: its timing has no further due time",
    )


def test_a_person_who_names_a_channel_that_does_not_exist_is_told_so_of_a_schedule_of_code_too(
    file: str, make_app: MakeApp
) -> None:
    app = deploy(make_app, file, "every 1h", notify=["nobody"])  # code is only warned
    with pytest.raises(InvalidInput, match="nowhere"):
        app.schedules.edit("job", notify=["nowhere"])


def test_to_give_the_work_back_leaves_the_other_fields_alone(file: str, make_app: MakeApp) -> None:
    """Work of another kind comes with that kind's timeout and retry: not where it is the code's again."""
    app = deploy(make_app, file, "every 1h", timeout="5m", retry=7)
    before = app.schedules.get("job").policy
    app.schedules.edit("job", work=Shell("true"))
    back = app.schedules.revert("job")
    assert (back.work.kind, back.policy, back.changes) == ("function", before, ())
    app.schedules.edit("job", work=Shell("true"), timeout="9m")
    assert [change.field for change in app.schedules.revert("job", ["work"]).changes] == ["timeout"]


@pytest.mark.parametrize("change", [{"remaining": 2}, {}, {"timing": "every 2h", "remaining": 1}])
def test_what_ran_as_often_as_it_should_runs_again_when_the_code_asks_for_more(
    change: dict[str, Any], file: str, make_app: MakeApp, fake_clock: FakeClock
) -> None:
    app = deploy(make_app, file, "every 1h", remaining=1)
    fake_clock.advance("1h")
    drain(app)
    assert app.schedules.get("job").enabled is False
    app.stop()
    again = deploy(make_app, file, "every 1h", remaining=1)
    assert again.schedules.get("job").next_run_reason == "finished: it ran as often as it should"
    again.stop()
    more = deploy(make_app, file, **{"timing": "every 1h", **change}).schedules.get("job")
    assert (more.enabled, more.next_run_at is not None, more.remaining) == (True, True, change.get("remaining"))


def test_who_switched_it_on_is_not_said_to_have_switched_it_off(
    file: str, make_app: MakeApp, fake_clock: FakeClock
) -> None:
    app = deploy(make_app, file, "every 1h", enabled=False, remaining=1)
    app.schedules.enable("job")
    assert [change.value for change in app.schedules.get("job").changes] == ["on"]
    fake_clock.advance("1h")
    drain(app)
    finished = app.schedules.get("job")
    assert (finished.enabled, [change.by for change in finished.changes]) == (False, [None])


def test_a_schedule_that_the_code_takes_from_a_person_or_another_app_is_told_in_the_log(
    file: str, make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    person = make_app(file)
    person.schedules.add("job", "every 5h", Shell("true"))
    person.stop()
    with caplog.at_level(logging.WARNING, "ostinato"):
        deploy(make_app, file, "every 1h").stop()
        taken = "schedule job belonged to 'user' until now: app 'shop' declares it"
        assert taken in caplog.text
        caplog.clear()
        deploy(make_app, file, "every 1h").stop()
        assert "until now" not in caplog.text
        deploy(make_app, file, "every 2h", app="billing").stop()
        assert "schedule job belonged to app 'shop' until now: app 'billing' declares it" in caplog.text


def test_an_orphan_does_not_tell_what_its_code_says_until_it_is_declared_again(file: str, make_app: MakeApp) -> None:
    app = deploy(make_app, file, "every 1h")
    app.schedules.edit("job", priority=5)
    app.stop()
    without = make_app(file, name="shop")
    without.task("other")(lambda: None)
    without.start()
    assert (without.schedules.get("job").orphaned, without.schedules.get("job").changes) == (True, ())
    without.stop()
    again = deploy(make_app, file, "every 1h").schedules.get("job")
    assert [(change.field, change.value, change.by) for change in again.changes] == [("priority", "5", "a program")]


def finished(make_app: MakeApp, db: str, clock: FakeClock, **options: Any) -> Ostinato:
    """An app whose schedule `job` has run as often as it should."""
    app = deploy(make_app, db, "daily 03:00", remaining=1, **options)
    clock.advance("1d")
    drain(app)
    assert app.schedules.get("job").next_run_reason == "finished: it ran as often as it should"
    return app


def test_what_is_to_run_more_stays_off_if_that_is_said_too(file: str, make_app: MakeApp, fake_clock: FakeClock) -> None:
    app = finished(make_app, file, fake_clock)
    assert not app.schedules.add("job", "daily 04:00", "job", enabled=False, remaining=1, replace=True).enabled
    app.stop()


@pytest.mark.parametrize("note", ["no more of this", None])
def test_what_has_run_as_often_as_it_should_and_was_then_switched_off_stays_off(
    note: str | None, file: str, make_app: MakeApp, fake_clock: FakeClock
) -> None:
    app = finished(make_app, file, fake_clock)
    app.schedules.disable("job", note=note)
    app.stop()
    kept = deploy(make_app, file, "daily 03:00", remaining=2).schedules.get("job")
    assert (kept.enabled, kept.off_note) == (False, note)


def test_a_node_with_another_zone_runs_nothing_that_has_run_as_often_as_it_should(
    file: str, make_app: MakeApp, fake_clock: FakeClock
) -> None:
    finished(make_app, file, fake_clock).stop()
    there = make_app(file, name="shop", tz="Asia/Tokyo")
    there.task("job", schedule="daily 03:00", remaining=1)(lambda: None)
    there.start()
    assert (there.schedules.get("job").enabled, there.schedules.get("job").remaining) == (False, 0)


def test_what_is_to_run_more_must_pass_its_checks(file: str, make_app: MakeApp, fake_clock: FakeClock) -> None:
    app = make_app(file)
    app.check("disk")(lambda: True)
    app.schedules.add("job", "daily 03:00", Shell("true"), remaining=1, checks=["disk"])
    app.start()
    fake_clock.advance("1d")
    drain(app)
    app.check("disk")(lambda: "it is full")
    app.schedules.edit("job", note="what is to be done once")
    with pytest.raises(ChecksFailed, match="it is full"):
        app.schedules.edit("job", remaining=2)
    assert not app.schedules.get("job").enabled
