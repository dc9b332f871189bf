"""Timings from the values that Python has for them, and what a wrong one in a decorator says."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone
from importlib.resources import files
from zoneinfo import ZoneInfo

import pytest

from ostinato import At, Cron, DailyAt, Every, InvalidInput, Monthly, Ostinato, TimingError, Weekly, parse_timing
from tests.doors.web import Client

BERLIN = ZoneInfo("Europe/Berlin")


def test_every_zone_may_be_a_zone_info() -> None:
    for timing in (
        DailyAt(3, tz=BERLIN),
        Weekly("mon", 9, tz=BERLIN),
        Monthly(1, tz=BERLIN),
        Cron("30 9 * * *", BERLIN),
        At("2026-12-24T18:00", BERLIN),
        parse_timing("daily 03:00", BERLIN),
        DailyAt(3).in_zone(BERLIN),
        Every(hours=1).except_dates("12-25").in_zone(BERLIN),
    ):
        assert timing.zone == "Europe/Berlin"
    assert DailyAt(3, tz=UTC) == DailyAt(3, tz="UTC")


def test_a_zone_without_a_name_is_refused() -> None:
    with pytest.raises(TimingError, match="IANA name"):
        DailyAt(3, tz=timezone(timedelta(hours=1)))
    with (
        files("tzdata.zoneinfo.Europe").joinpath("Berlin").open("rb") as file,
        pytest.raises(TimingError, match="IANA name"),
    ):
        DailyAt(3, tz=ZoneInfo.from_file(file))


def test_an_interval_is_any_duration() -> None:
    assert Every(timedelta(minutes=5)) == Every("5m") == Every(300) == Every(minutes=5)
    assert Every(timedelta(days=1, microseconds=1)).interval == timedelta(days=1, microseconds=1)
    for wrong in ("soon", timedelta(0), -5, float("nan")):
        with pytest.raises(TimingError, match="interval"):
            Every(wrong)
    with pytest.raises(TimingError, match="either a duration or its parts"):
        Every(timedelta(minutes=5), hours=1)


def test_a_schedule_in_a_zone_info_is_stored_by_its_name(app: Ostinato) -> None:
    assert app.schedules.add("daily", "daily 03:00", "job", tz=BERLIN).zone == "Europe/Berlin"
    assert app.schedules.add("grid", Every(timedelta(hours=1)), "job", tz=BERLIN).zone == "Europe/Berlin"
    assert app.schedules.edit("daily", tz=ZoneInfo("Asia/Tokyo")).zone == "Asia/Tokyo"
    assert Ostinato("sqlite:///unused.db", tz=BERLIN).settings.tz == "Europe/Berlin"


def test_an_unknown_zone_of_a_grid_is_refused_too(app: Ostinato) -> None:
    with pytest.raises(TimingError, match="unknown zone 'Europe/Berln'"):
        app.schedules.add("grid", Every(hours=1), "job", tz="Europe/Berln")


def test_a_wrong_schedule_of_a_task_fails_where_it_is_written_with_its_name(app: Ostinato) -> None:
    with pytest.raises(TimingError, match="the schedule of task 'sync' cannot be: 'nonsense'") as caught:

        @app.task(schedule="nonsense")
        def sync() -> None: ...

    assert (caught.value.text, caught.value.position) == ("nonsense", 0)
    with pytest.raises(TimingError, match=r"'orders\.sync'.*unknown zone"):
        app.task("orders.sync", schedule="daily 03:00", tz="Europe/Berln")(lambda: None)
    with pytest.raises(ValueError, match=r"'orders\.sync'.*a timing cannot be 5"):
        app.task("orders.sync", schedule=5)(lambda: None)  # type: ignore[call-overload]
    with pytest.raises(TimingError, match=r"the schedule of task 'r' cannot be: '' is not the name of a schedule"):
        app.task("r", after="")(lambda: None)
    with pytest.raises(TimingError, match=r"'r'.*5 is not the name of a schedule"):
        app.task("r", after=5)(lambda: None)  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match="the schedule of task 'r' cannot be: give either schedule or after"):
        app.task("r", schedule="every 5m", after="import")(lambda: None)
    assert dict(app.declared) == {}
    assert not app.registry.tasks
    app.task("orders.sync", schedule="in 30m")(lambda: None)
    assert list(app.declared) == ["orders.sync"]


@pytest.mark.parametrize("timing", ["at 2020-01-01T00:00", "0 9 1 1 * 2025", "daily 09:00 until 2020-01-01"])
def test_what_is_past_is_refused_with_advice_and_without_a_hint(app: Ostinato, admin: Client, timing: str) -> None:
    with pytest.raises(TimingError, match=r"would never run: .* give a time in the future") as caught:
        app.schedules.add("z", timing, "job")
    assert caught.value.hint == ""
    answer = admin.post(
        "/api/schedules", {"name": "z", "timing": timing, "work": {"kind": "function", "task": "hello"}}
    )
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["field"], error["hint"]) == (422, "timing", None)
    assert "give a time in the future" in error["message"]
