"""A run knows its zone: its schedule's, or that of the settings; and what it adds is meant in that zone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest

from ostinato import Agent, Ostinato, Run, RunContext, RunState, Shell
from ostinato.stores.sentences import sentence_of
from ostinato.testing import FakeClock, drain
from ostinato.timing import text, zones
from tests.engine import process_tasks
from tests.engine.conftest import MakeApp
from tests.engine.stand_in import StandIn
from tests.stores.places import raw

OSTINATO = f"{sys.executable} -c 'import sys; from ostinato.cli.main import run; sys.exit(run())'"
SHOWN = "echo $OSTINATO_TZ $OSTINATO_DUE_AT_LOCAL"


@pytest.fixture
def berlin_app(db: str, make_app: MakeApp) -> Ostinato:
    return make_app(db, tz="Europe/Berlin")


def due(app: Ostinato, clock: FakeClock, name: str) -> Run:
    """The run of a schedule at 9 o'clock in Tokyo, which is midnight in UTC and 1 o'clock in Berlin."""
    clock.move_to("2026-01-02T00:00:00Z")
    drain(app)
    (run,) = app.runs.list(schedule=name)
    assert run.state is RunState.SUCCEEDED, run.reason
    return run


def test_a_command_finds_the_zone_of_its_schedule(berlin_app: Ostinato, fake_clock: FakeClock) -> None:
    berlin_app.schedules.add("a", "daily 09:00", Shell(SHOWN), tz="Asia/Tokyo")
    run = due(berlin_app, fake_clock, "a")
    assert berlin_app.runs.output(run.id) == "Asia/Tokyo 2026-01-02T09:00:00+09:00\n"


def test_without_a_schedule_it_is_the_zone_of_the_settings(berlin_app: Ostinato) -> None:
    run = berlin_app.enqueue(Shell(SHOWN))
    drain(berlin_app)
    assert berlin_app.runs.output(run.id) == "Europe/Berlin 2026-01-01T01:00:00+01:00\n"


def test_a_gate_finds_it_too(berlin_app: Ostinato, fake_clock: FakeClock) -> None:
    gate = f"{SHOWN}; echo '{{\"wake\": true}}'"
    berlin_app.schedules.add("a", "daily 09:00", Shell("true"), tz="Asia/Tokyo", gate=gate)
    run = due(berlin_app, fake_clock, "a")
    assert berlin_app.runs.output(run.id) == "Asia/Tokyo 2026-01-02T09:00:00+09:00\n"


def test_a_task_sees_it_in_its_run(berlin_app: Ostinato, fake_clock: FakeClock) -> None:
    @berlin_app.task("job")
    def job(run: RunContext) -> list[str]:
        return [run.zone, run.due_local.isoformat()]

    berlin_app.schedules.add("a", "daily 09:00", job, tz="Asia/Tokyo")
    assert due(berlin_app, fake_clock, "a").result == ["Asia/Tokyo", "2026-01-02T09:00:00+09:00"]
    enqueued = job.enqueue()
    drain(berlin_app)
    assert enqueued.get().result == ["Europe/Berlin", "2026-01-02T01:00:00+01:00"]


def test_a_task_in_its_own_process_sees_it_too(berlin_app: Ostinato, fake_clock: FakeClock) -> None:
    where = berlin_app.task("where", isolation="process")(process_tasks.where)
    berlin_app.schedules.add("a", "daily 09:00", where, tz="Asia/Tokyo")
    assert due(berlin_app, fake_clock, "a").result == ["Asia/Tokyo", "2026-01-02T09:00:00+09:00"]


def test_a_plain_call_of_a_task_has_a_zone() -> None:
    run = RunContext.detached()
    assert (run.zone, run.due_local.utcoffset()) == ("UTC", timedelta(0))


def test_an_agent_is_told_the_time_as_its_user_has_it(make_app: MakeApp, fake_clock: FakeClock, tmp_path: Path) -> None:
    stand_in = StandIn(tmp_path / "bin")
    app = make_app("sqlite://:memory:", tz="Europe/Berlin", agents={"claude": stand_in.cli})
    app.projects.add("blog", tmp_path)
    app.schedules.add("a", "daily 09:00", Agent("look"), project="blog", tz="Asia/Tokyo")
    fake_clock.move_to("2026-01-02T00:00:04Z")
    drain(app)
    (call,) = stand_in.calls
    system = call["argv"][call["argv"].index("--append-system-prompt") + 1]
    assert "Your schedule is a, and this run of it was due at Friday, 2026-01-02 09:00:00 +09:00" in system
    assert "It is Friday, 2026-01-02 09:00:04 +09:00 now, in the zone Asia/Tokyo:" in system
    assert call["environment"]["OSTINATO_TZ"] == "Asia/Tokyo"


def test_a_prompt_of_ones_own_can_name_the_session_where_there_is_one(make_app: MakeApp, tmp_path: Path) -> None:
    stand_in = StandIn(tmp_path / "bin")
    prompt = "always {zone}\nonly in {session}"
    app = make_app("sqlite://:memory:", agents={"claude": stand_in.cli}, agent_prompt=prompt)
    app.projects.add("blog", tmp_path)
    app.enqueue(Agent("one"), project="blog")
    app.enqueue(Agent("two"), project="blog", session="dm:42")
    drain(app)
    told = {call["prompt"]: call["argv"][call["argv"].index("--append-system-prompt") + 1] for call in stand_in.calls}
    assert told == {"one": "always UTC", "two": "always UTC\nonly in dm:42"}


@pytest.mark.parametrize("app_flag", ["", "--app their_app:app"], ids=["settings", "an app with a zone of its own"])
def test_what_a_run_adds_has_the_zone_of_the_run(
    make_app: MakeApp, fake_clock: FakeClock, tmp_path: Path, app_flag: str
) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    (tmp_path / "their_app.py").write_text(
        f"from ostinato import Ostinato\n\napp = Ostinato({url!r}, tz='America/New_York')\n"
    )
    app = make_app(url, tz="Europe/Berlin")
    command = f"{OSTINATO} schedule add x 'daily 09:00' --shell true {app_flag}"
    env = {"PYTHONPATH": str(tmp_path)}
    app.schedules.add("a", "daily 09:00", Shell(command, folder=str(tmp_path), env=env), tz="Asia/Tokyo", retry=0)
    due(app, fake_clock, "a")
    added = app.schedules.get("x")
    assert added.zone == "Asia/Tokyo"
    assert added.next_run_at is not None
    assert f"{added.next_run_at:%H:%M}" == "00:00"


def test_an_engine_inside_of_a_run_gives_its_own_runs_their_own_zone(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OSTINATO_TZ", "Asia/Tokyo")
    monkeypatch.setenv("OSTINATO_DUE_AT_LOCAL", "2020-01-01T00:00:00+09:00")
    app = make_app("sqlite://:memory:", tz="Europe/Berlin")
    run = app.enqueue(Shell(SHOWN))
    drain(app)
    zone, moment = app.runs.output(run.id).split()
    assert (zone, datetime.fromisoformat(moment)) == ("Europe/Berlin", run.get().due_at)


def gone(name: str) -> ZoneInfo:
    raise ZoneInfoNotFoundError(f"No time zone found with key {name}")


def damaged(name: str) -> ZoneInfo:
    raise ValueError("Invalid TZif file: magic not found")


def locked_up(name: str) -> ZoneInfo:
    raise PermissionError(13, "Permission denied", f"/usr/share/zoneinfo/{name}")


@pytest.mark.parametrize("fault", [gone, damaged, locked_up], ids=lambda fault: fault.__name__)
def test_a_zone_whose_file_is_missing_breaks_its_schedules_and_no_other(
    app: Ostinato, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch, fault: Callable[[str], ZoneInfo]
) -> None:
    app.task("job")(lambda: None)
    for name in ("lost", "fine"):
        app.schedules.add(name, "daily 03:07", "job", tz="Europe/Berlin")
    zone = "Indian/Maldives"
    for kept in (zones.zone_info, zones.check_zone, text._parsed, sentence_of):
        kept.cache_clear()  # a process that has not read it yet
    with monkeypatch.context() as patch:
        patch.setattr(zones, "_read_zone", lambda name: fault(name) if name == zone else ZoneInfo(name))
        app.with_engine(lambda engine: raw(engine.store, f"UPDATE schedules SET zone = '{zone}' WHERE name = 'lost'"))
        for _ in range(2):
            lost = app.schedules.get("lost")
            assert f"zone '{zone}' cannot be read on this machine" in (lost.broken or "")
            assert zone in app.why("lost").answer
            assert {schedule.name for schedule in app.schedules.list()} == {"lost", "fine"}
            fake_clock.advance("1d")
            drain(app)
        assert app.schedules.get("lost").enabled is False
        assert [run.state for run in app.runs.list(schedule="fine")] == [RunState.SUCCEEDED] * 2

    app.schedules.enable("lost")
    fake_clock.advance("1d")
    drain(app)
    assert [run.state for run in app.runs.list(schedule="lost")] == [RunState.SUCCEEDED]
    assert app.schedules.get("lost").zone == zone
