"""Calendars through every door: what uses one follows its dates, and what names one that is not there is refused."""

from __future__ import annotations

import datetime as dt
import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ostinato import Calendar, CalendarDays, DailyAt, Holidays, Ostinato, ScheduleSpec
from ostinato.errors import Conflict, InvalidInput, NotFound, TimingError, VersionConflict
from ostinato.models.states import RunState
from ostinato.stores import sentences
from ostinato.testing import FakeClock, drain, simulate
from ostinato.timing import public_holidays, text
from tests.doors.command_line import CommandLine
from tests.doors.web import Client, Web

TIMING = "daily 09:00 except calendar(office)"
TASK = {"kind": "function", "task": "job"}
KEYS = [
    *("name", "dates", "note", "schedules", "past", "replanned"),
    *("version", "made_by", "updated_by", "created_at", "updated_at"),
]


@pytest.fixture
def operator(web: Web) -> Client:
    return web.script("operator")


def day(number: int, hour: int = 9) -> datetime:
    """In January, with which the clock of the tests begins."""
    return datetime(2026, 1, number, hour, tzinfo=UTC)


def without_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package `holidays`, and what it was asked before."""

    def missing() -> None:
        raise TimingError("holidays need a package: pip install 'ostinato[holidays]'")

    monkeypatch.setattr(public_holidays, "_package", missing)
    for cache in (public_holidays._canonical, public_holidays._of_year, text._parsed, sentences.sentence_of):
        cache.cache_clear()


# In Python


def test_a_calendar_is_set_read_and_removed(app: Ostinato) -> None:
    made = app.calendars.set("office", ["2026-12-24", dt.date(2026, 1, 6), "12-31"], note="closed")
    assert isinstance(made, Calendar)
    assert (made.dates, made.note, made.replanned, made.past) == (
        ("12-31", "2026-01-06", "2026-12-24"),
        "closed",
        (),
        False,
    )
    assert (made.made_by, made.schedules) == ("a program", ())
    assert app.calendars.get("office") == made == app.calendars.list()[0]
    assert app.calendars.set("office", made.dates).version == 1, "nothing is changed"
    assert app.calendars.set("office", made.dates, note="").note is None
    app.calendars.remove("office")
    assert app.calendars.list() == []
    with pytest.raises(NotFound, match="there is no calendar 'office'; 'ostinato calendar ls' lists them"):
        app.calendars.get("office")
    with pytest.raises(NotFound):
        app.calendars.remove("office")


def test_a_calendar_is_set_only_if_it_has_the_version_that_was_read(app: Ostinato) -> None:
    with pytest.raises(VersionConflict, match="calendar 'office' was removed by somebody else"):
        app.calendars.set("office", ["12-24"], version=1)
    made = app.calendars.set("office", ["12-24"], version=0)
    with pytest.raises(VersionConflict, match="a calendar 'office' already exists"):
        app.calendars.set("office", ["12-25"], version=0)
    app.calendars.add("office", ["12-25"])
    with pytest.raises(VersionConflict, match="'office' was changed by somebody else: read it again") as overtaken:
        app.calendars.set("office", ["12-26"], version=made.version)
    assert overtaken.value.version == 2
    assert app.calendars.set("office", ["12-26"], version=2).dates == ("12-26",)


def test_adding_to_a_misspelled_calendar_makes_none(app: Ostinato) -> None:
    app.calendars.set("office", ["12-24"])
    with pytest.raises(InvalidInput, match="there is no calendar 'offise': did you mean 'office'"):
        app.calendars.add("offise", ["12-31"])
    assert app.calendars.add("team", ["12-31"]).dates == ("12-31",)
    assert app.calendars.set("offise", ["12-31"]).dates == ("12-31",)


def test_dates_are_added_and_taken_out(app: Ostinato) -> None:
    assert app.calendars.add("office", ["12-24"]).dates == ("12-24",)
    assert app.calendars.add("office", ["12-24", "12-25"]).dates == ("12-24", "12-25")
    left = app.calendars.remove("office", ["12-24"])
    assert left is not None
    assert left.dates == ("12-25",)
    with pytest.raises(InvalidInput, match="calendar 'office' has no date 12-24"):
        app.calendars.remove("office", ["12-24", "12-25"])
    emptied = app.calendars.remove("office", ["12-25"])
    assert emptied is not None
    assert (emptied.dates, emptied.past) == ((), False)
    with pytest.raises(NotFound):
        app.calendars.remove("sales", ["12-25"])


def test_dates_are_given_in_any_way_and_each_once(app: Ostinato) -> None:
    assert app.calendars.set("office", "12-24, 12-25").dates == ("12-24", "12-25")
    assert app.calendars.set("office", (one for one in ["12-26", "12-26"])).dates == ("12-26",)
    assert app.calendars.set("office", dt.date(2026, 1, 6)).dates == ("2026-01-06",)  # type: ignore[arg-type]
    many = [str(dt.date(2026, 1, 1) + dt.timedelta(days=number)) for number in range(1_000)]
    assert len(app.calendars.set("office", many).dates) == 1_000
    assert len(app.calendars.add("office", many).dates) == 1_000
    with pytest.raises(InvalidInput, match="a calendar has 1000 dates at most, not 1001"):
        app.calendars.add("office", ["12-24"])
    for wrong in ([datetime(2026, 1, 6, tzinfo=UTC)], [5], 5, None):
        with pytest.raises(InvalidInput):
            app.calendars.set("office", wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "dates", "field"),
    [("", ["12-24"], "name"), ("..", ["12-24"], "name"), ("office", ["12-34"], "dates"), ("office", ["soon"], "dates")],
)
def test_what_cannot_be_is_refused_at_its_field(app: Ostinato, name: str, dates: list[str], field: str) -> None:
    for verb in (app.calendars.set, app.calendars.add):
        with pytest.raises(InvalidInput) as refused:
            verb(name, dates)
        assert refused.value.field == field
    assert app.calendars.list() == []


def test_a_calendar_whose_dates_have_all_passed_says_so(app: Ostinato) -> None:
    assert app.calendars.set("office", ["2025-12-24", "2025-12-31"]).past
    assert not app.calendars.set("office", ["2025-12-24", "2026-01-01"]).past, "that is today"
    assert not app.calendars.set("office", ["2025-12-24", "12-31"]).past
    assert app.calendars.set("office", ["2025-12-24"]).past


def test_a_schedule_follows_its_calendar_and_shows_only_its_name(app: Ostinato) -> None:
    app.task("job")(lambda: None)
    app.calendars.set("office", ["2026-01-02"])
    for name, timing in (("text", TIMING), ("value", DailyAt(9) - CalendarDays("office"))):
        schedule = app.schedules.add(name, timing, "job")
        assert (schedule.timing, schedule.next_run_at) == (TIMING, day(1))
        assert schedule.sentence == "At 09:00 every day except on the days of calendar 'office' (UTC)."
    assert app.schedules.next("text", 2) == [day(1), day(3)]
    changed = app.calendars.add("office", ["2026-01-01"])
    assert changed.replanned == changed.schedules == ("text", "value")
    assert app.schedules.next("text", 2) == [day(3), day(4)]
    assert app.schedules.get("value").next_run_at == day(3)
    with pytest.raises(Conflict, match="schedules use calendar 'office': text, value; "):
        app.calendars.remove("office")


def test_what_people_see_may_be_sent_back_and_edited(app: Ostinato) -> None:
    app.task("job")(lambda: None)
    app.calendars.set("office", ["2026-01-01"])
    added = app.schedules.add("job", TIMING, "job", note="first")
    same = app.schedules.add("job", added.timing, "job")
    assert same.version == added.version
    assert app.schedules.edit("job", note="second").timing == TIMING
    edited = app.schedules.edit("job", timing="daily 10:00 except calendar(office)")
    assert (edited.timing, edited.next_run_at) == ("daily 10:00 except calendar(office)", day(2, 10))
    stale = app.schedules.edit("job", timing="daily 11:00 except calendar(office: 2026-01-02)")
    assert (stale.timing, stale.next_run_at) == ("daily 11:00 except calendar(office)", day(2, 11))
    assert app.schedules.edit("job", timing="daily 11:00").next_run_at == day(1, 11)
    app.calendars.remove("office")


def test_enabling_takes_the_dates_that_hold(app: Ostinato) -> None:
    app.task("job")(lambda: None)
    app.calendars.set("office", [])
    app.schedules.add("job", TIMING, "job")
    app.schedules.disable("job")
    app.calendars.set("office", ["2026-01-01"])
    assert app.schedules.get("job").state == "off"
    assert app.schedules.enable("job").next_run_at == day(2)


def test_a_calendar_that_is_not_there_is_refused_with_those_that_there_are(app: Ostinato) -> None:
    app.task("job")(lambda: None)
    with pytest.raises(InvalidInput, match="there is no calendar 'office' \\(there are no calendars yet\\)") as refused:
        app.schedules.add("job", TIMING, "job")
    assert refused.value.field == "timing"
    assert "ostinato calendar set office" in refused.value.hint
    assert "before app.start(), with app.calendars.set('office'" in refused.value.hint
    app.calendars.set("offices", [])
    app.schedules.add("job", "daily 09:00", "job")
    for change in (
        lambda: app.schedules.edit("job", timing=TIMING),
        lambda: app.schedules.add_many([ScheduleSpec("other", TIMING, "job")]),
    ):
        with pytest.raises(InvalidInput, match="the calendars are offices\\); did you mean 'offices'"):
            change()


def test_a_timing_that_a_calendar_leaves_nothing_of_is_refused(app: Ostinato) -> None:
    app.task("job")(lambda: None)
    app.calendars.set("office", ["2026-01-24"])
    with pytest.raises(
        TimingError, match=r"would never run: 'at 2026-01-24T18:00 except calendar\(office\)' has no due time"
    ):
        app.schedules.add("job", "at 2026-01-24T18:00 except calendar(office)", "job")


def test_an_engine_runs_it_on_the_other_days(app: Ostinato, clock: FakeClock) -> None:
    app.task("job")(lambda: None)
    app.calendars.set("office", ["2026-01-02", "01-04"])
    app.schedules.add("job", TIMING, "job")
    simulate(app, lasting="5d")
    due = sorted(run.due_at for run in app.runs.list())
    assert due == [day(1), day(3), day(5)]
    why = app.why("job", day(4, 12))
    assert why.facts[-1] == "it leaves out 2026-01-04, a day of calendar 'office'"
    assert why.answer.startswith("It ran: run 2, due 2026-01-03 09:00:00")


def test_why_names_the_holiday(app: Ostinato) -> None:
    app.task("job")(lambda: None)
    app.schedules.add("job", "weekdays 9 except holidays(DE-BY)", "job")
    simulate(app, lasting="7d")
    assert [run.due_at.day for run in app.runs.list()] == [7, 5, 2]
    assert "it leaves out 2026-01-06, a holiday of DE-BY (Epiphany)" in app.why("job", day(6, 12)).facts
    assert not any("leaves out" in fact for fact in app.why("job", day(4, 12)).facts), "it is a Sunday"


def test_backfill_and_downtime_leave_its_days_out(app: Ostinato, clock: FakeClock) -> None:
    app.task("job")(lambda: None)
    app.calendars.set("office", ["2025-12-24"])
    app.schedules.add("job", TIMING, "job", catch_up="all", catch_up_window="30d")
    dry = app.schedules.backfill("job", datetime(2025, 12, 23, tzinfo=UTC), day(1, 0), dry_run=True)
    assert [due.day for due in dry.due] == [23, 25, 26, 27, 28, 29, 30, 31]
    clock.move_to(day(4, 12))
    app.calendars.set("office", ["2026-01-03"])
    drain(app)
    assert sorted(run.due_at for run in app.runs.list() if run.state is RunState.SUCCEEDED) == [day(1), day(2), day(4)]


# Declared by code


def test_code_that_names_a_calendar_which_is_not_there_does_not_start(app: Ostinato) -> None:
    app.task("job", schedule=TIMING)(lambda: None)
    with pytest.raises(InvalidInput, match="there is no calendar 'office'"):
        app.start()
    app.calendars.set("office", ["2026-01-01"])
    app.start()
    assert app.schedules.get("job").next_run_at == day(2)


def test_another_date_is_no_change_of_the_code_and_none_of_a_person(tmp_path: Path) -> None:
    def declared() -> Ostinato:
        app = Ostinato(f"{tmp_path}/jobs.db", tz="UTC", clock=FakeClock(day(1, 0)))
        app.task("job", schedule=DailyAt(9) - CalendarDays("office"))(lambda: None)
        return app

    first, second = declared(), declared()
    first.calendars.set("office", [])
    first.start()
    first.schedules.edit("job", timing="daily 10:00 except calendar(office)")
    first.calendars.set("office", ["2026-01-01"])
    first.stop()
    second.start()
    schedule = second.schedules.get("job")
    assert (schedule.timing, schedule.next_run_at) == ("daily 10:00 except calendar(office)", day(2, 10))
    (change,) = schedule.changes
    assert (change.value, change.code) == ("daily 10:00 except calendar(office) (UTC)", f"{TIMING} (UTC)")
    reverted = second.schedules.revert("job")
    assert (reverted.timing, reverted.changes, reverted.next_run_at) == (TIMING, (), day(2))
    second.stop()


def test_a_wrong_calendar_fails_where_it_is_written(app: Ostinato) -> None:
    with pytest.raises(TimingError, match="the schedule of task 'job' cannot be: which calendar"):
        app.task("job", schedule="daily 9 except calendar()")(lambda: None)


def test_without_the_package_a_schedule_with_holidays_is_broken_and_says_what_to_install(
    app: Ostinato, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app.task("job")(lambda: None)
    app.schedules.add("job", DailyAt(9) - Holidays("FI"), "job")
    without_package(monkeypatch)
    with caplog.at_level(logging.ERROR):
        simulate(app, lasting="2d")
    schedule = app.schedules.get("job")
    assert schedule.state == "broken"
    assert "pip install 'ostinato[holidays]'" in str(schedule.broken)
    assert "pip install 'ostinato[holidays]'" in caplog.text
    assert app.runs.list() == []


# REST


def test_rest_sets_lists_and_removes_calendars(web: Web, operator: Client) -> None:
    made = operator.send("PUT", "/api/calendars/a%2Fb", json={"dates": ["12-31", "2026-12-24"], "note": "closed"})
    assert made.status_code == 200
    body = made.json()
    assert sorted(body) == sorted([*KEYS, "zone"])
    assert (body["name"], body["dates"], body["note"]) == ("a/b", ["12-31", "2026-12-24"], "closed")
    viewer = web.script("viewer")
    assert viewer.get("/api/calendars/a%2Fb").json() == body
    assert viewer.get("/api/calendars").json()["items"] == [{name: body[name] for name in KEYS}]
    assert viewer.send("PUT", "/api/calendars/office", json={"dates": []}).status_code == 403
    assert viewer.send("DELETE", "/api/calendars/a%2Fb").status_code == 403
    assert operator.send("DELETE", "/api/calendars/a%2Fb").status_code == 204
    assert operator.get("/api/calendars/a%2Fb").status_code == 404
    noted = [entry for entry in web.audit() if entry[2].startswith("calendar.")]
    assert [entry[1:3] for entry in noted] == [("api", "calendar.set"), ("api", "calendar.remove")]


def test_rest_says_what_was_planned_anew_and_refuses_to_remove_what_is_used(web: Web, operator: Client) -> None:
    operator.send("PUT", "/api/calendars/office", json={"dates": []})
    added = operator.post("/api/schedules", {"name": "job", "timing": TIMING, "work": TASK})
    assert (added.status_code, added.json()["timing"]) == (201, TIMING)
    assert "resolved_timing" not in added.json()
    changed = operator.send("PUT", "/api/calendars/office", json={"dates": ["12-31"]}).json()
    assert (changed["replanned"], changed["schedules"]) == (["job"], ["job"])
    refused = operator.send("DELETE", "/api/calendars/office")
    assert (refused.status_code, "job" in refused.json()["detail"]) == (409, True)
    patched = operator.send("PATCH", "/api/schedules/job", json={"timing": "daily 10:00 except calendar(office)"})
    assert patched.json()["timing"] == "daily 10:00 except calendar(office)"


def test_rest_changes_only_the_version_that_was_read(operator: Client) -> None:
    path = "/api/calendars/office"
    read = operator.send("PUT", path, json={"dates": ["12-24"], "version": 0}).json()
    assert operator.send("PUT", path, json={"dates": [], "version": 0}).status_code == 409
    assert operator.send("PUT", path, json={"dates": ["12-25"], "version": read["version"]}).status_code == 200
    refused = operator.send("PUT", path, json={"dates": ["12-26"], "version": read["version"]})
    assert (refused.status_code, refused.json()["version"]) == (409, 2)
    assert operator.get(path).json()["dates"] == ["12-25"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"dates": [], "version": -1}, "version"),
        ({"dates": ["12-34"]}, "dates"),
        ({"dates": "12-24"}, "dates"),
        ({}, "dates"),
        ({"dates": [f"{year}-12-24" for year in range(1_001, 2_003)]}, ""),
        ({"dates": [], "name": "x"}, "name"),
    ],
)
def test_rest_refuses_a_wrong_calendar_at_its_field(operator: Client, body: dict[str, object], field: str) -> None:
    refused = operator.send("PUT", "/api/calendars/office", json=body)
    assert refused.status_code == 422
    assert {error["field"].split(".")[0] for error in refused.json()["errors"]} == {field}


def test_rest_names_the_fix_where_a_timing_names_no_calendar(operator: Client) -> None:
    refused = operator.post("/api/schedules", {"name": "job", "timing": TIMING, "work": TASK})
    (error,) = refused.json()["errors"]
    assert (refused.status_code, error["field"]) == (422, "timing")
    assert "there is no calendar 'office'" in error["message"]


@pytest.mark.parametrize("way", ["GET", "POST"])
def test_the_preview_follows_the_calendar(web: Web, operator: Client, way: str) -> None:
    web.clock.move_to("2026-12-23T12:00:00Z")

    def preview(text: str) -> dict[str, Any]:
        asked = {"text": text, "n": 1, "zone": "UTC"}
        path = "/api/timings/preview"
        answer = operator.get(path, params=asked) if way == "GET" else operator.post(path, asked)
        found: dict[str, Any] = answer.json()
        return found

    (error,) = preview(TIMING)["errors"]
    assert error["field"] == "text"
    operator.send("PUT", "/api/calendars/office", json={"dates": ["12-24", "12-25"]})
    found = preview("daily 9 except calendar(office)")
    assert (found["text"], found["next"]) == (TIMING, ["2026-12-26T09:00:00Z"])
    assert found["remarks"] == ["The next days that it leaves out: 2026-12-24, 2026-12-25."]
    assert preview("H 9 * * * except calendar(office)")["errors"]


def test_a_digest_does_not_follow_a_calendar(web: Web) -> None:
    admin = web.script("admin")
    admin.send("PUT", "/api/calendars/office", json={"dates": ["12-24"]})
    for timing in (TIMING, "daily 09:00 except calendar(office: 12-24)"):
        refused = admin.post("/api/channels", {"name": "ops", "url": "json://127.0.0.1:9/hook", "digest": timing})
        assert refused.status_code == 422
        assert "a digest does not follow a calendar" in refused.text
    assert (
        admin.post(
            "/api/channels",
            {"name": "ops", "url": "json://127.0.0.1:9/hook", "digest": "daily 9 except holidays(DE)"},
        ).status_code
        == 201
    )


# The command line


def test_the_command_line_sets_shows_lists_and_removes_calendars(cli: CommandLine) -> None:
    assert "make one with 'ostinato calendar set NAME 2026-12-24 12-31'" in cli.ok("calendar", "ls").err
    assert (
        cli.ok("calendar", "set", "office", "2099-12-24,12-31", "--note", "closed").err
        == "set: calendar 'office', 2 dates\n"
    )
    assert cli.ok("calendar", "ls").out.splitlines()[1].split("  ")[0] == "office"
    assert "12-31, 2099-12-24" in cli.ok("calendar", "ls").out
    (calendar,) = cli.ok("calendar", "ls", "--json").json
    assert sorted(calendar) == sorted(KEYS)
    shown = cli.ok("calendar", "show", "office").out
    assert "closed" in shown
    assert "schedules: none" in shown
    assert calendar == cli.ok("calendar", "show", "office", "--json").json
    assert cli.ok("calendar", "rm", "office", "--json").json == {"name": "office", "removed": True}
    assert cli("calendar", "show", "office").code == 3


def test_the_command_line_says_what_was_planned_anew(cli: CommandLine) -> None:
    cli.ok("calendar", "set", "office", "12-31")
    cli.ok("schedule", "add", "nightly", TIMING, "--shell", "true")
    assert TIMING in cli.ok("schedule", "show", "nightly").out
    told = cli.ok("calendar", "add", "office", "12-24").err
    assert told == "set: calendar 'office', 2 dates; planned anew: nightly\n"
    told = cli.ok("calendar", "rm", "office", "12-31", "12-24").err
    assert told == "set: calendar 'office', 0 dates; planned anew: nightly\n"
    refused = cli("calendar", "rm", "office")
    assert (refused.code, "schedules use calendar 'office': nightly" in refused.err) == (1, True)
    assert cli.ok("calendar", "add", "office", "12-24", "--json").json["replanned"] == ["nightly"]


def test_a_hint_can_be_pasted(cli: CommandLine) -> None:
    refused = cli("calendar", "add", "the office")
    assert (refused.code, "'ostinato calendar add 'the office' 12-24'" in refused.err) == (2, True)


def test_the_doctor_says_that_the_package_for_holidays_is_missing(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.ok("schedule", "add", "nightly", "daily 9 except holidays(FI)", "--shell", "true")
    cli.ok("schedule", "add", "other", "daily 9", "--shell", "true")
    assert "holidays" not in [one["check"] for one in cli.ok("doctor", "--json").json]
    without_package(monkeypatch)
    (found,) = [one for one in cli("doctor", "--json").json if one["check"] == "holidays"]
    assert (found["status"], found["fix"]) == ("warn", "pip install 'ostinato[holidays]', on each node")
    assert "for nightly, is not installed here" in found["text"]


def test_dates_come_from_a_file_too(cli: CommandLine) -> None:
    (cli.folder / "days.txt").write_text("# closed\n2099-12-24, 12-31  # both\n\n2099-12-27 2099-12-28\n", "utf-8")
    (cli.folder / "none.txt").write_text("", "utf-8")
    set_ = cli.ok("calendar", "set", "office", "01-06", "--file", "days.txt", "--json").json
    assert set_["dates"] == ["01-06", "12-31", "2099-12-24", "2099-12-27", "2099-12-28"]
    assert cli.ok("calendar", "set", "office", "--file", "none.txt", "--json").json["dates"] == []
    refused = cli("calendar", "set", "office", "--file", "nowhere.txt")
    assert (refused.code, "nowhere.txt cannot be read" in refused.err) == (2, True)
    assert "give at least one date" in cli("calendar", "set", "office").err
    assert "give at least one date" in cli("calendar", "add", "office").err


def test_the_command_line_warns_of_dates_that_have_passed(cli: CommandLine) -> None:
    told = cli.ok("calendar", "set", "office", "2001-12-24").err
    assert "all dates of calendar 'office' have passed" in told
    assert "all past: 2001-12-24" in cli.ok("calendar", "ls").out
    assert "have passed" in cli.ok("calendar", "show", "office").err


def test_timing_asks_the_database_for_a_calendar_and_for_nothing_else(cli: CommandLine) -> None:
    cli.ok("calendar", "set", "office", "12-24")
    shown = cli.ok("timing", "daily 9 except calendar(office)", "-n", "1", "--after", "2026-12-23T12:00Z", "--json")
    assert (shown.json["text"], shown.json["next"]) == (TIMING, ["2026-12-25T09:00:00Z"])
    refused = cli("timing", "daily 9 except calendar(sales)", "--json")
    assert (refused.code, "the calendars are office" in json.loads(refused.err)["error"]) == (2, True)


def test_timing_says_that_a_calendar_needs_a_database(wrong_folder: CommandLine, tmp_path: Path) -> None:
    refused = wrong_folder("timing", "daily 9 except calendar(office)")
    assert refused.code != 0
    assert "there is no database" in refused.err
    assert wrong_folder.ok("timing", "daily 9 except holidays(DE)", "-n", "1").out.startswith(
        "At 09:00 every day except"
    )
    assert not (tmp_path / "ostinato.db").exists()


def test_a_calendar_that_was_set_by_a_person_names_them(cli: CommandLine) -> None:
    cli.ok("calendar", "set", "office", "12-24")
    (calendar,) = cli.ok("calendar", "ls", "--json").json
    assert calendar["made_by"] == calendar["updated_by"] != "a program"
