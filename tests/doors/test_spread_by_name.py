"""`H` in cron is chosen by the schedule's name: the same everywhere and always, and an error where there is none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ostinato import Cron, DailyAt, Every, Ostinato, Shell, Timing, TimingError, parse_timing
from tests.doors.command_line import CommandLine
from tests.doors.web import Web

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
NAMES = [f"backup-{number}" for number in range(900)]


def _named(text: str, name: str) -> Timing:
    return parse_timing(text, "UTC", name=name)


def test_a_name_always_has_the_same_times_and_names_are_spread() -> None:
    # Written down, since they must be the same in every process and release.
    assert _named("H H * * *", "backup").next_after(NOW) == datetime(2026, 11, 16, 0, 41, tzinfo=UTC)
    times = [_named("H H * * *", name).next_after(NOW) for name in NAMES]
    assert len(set(times)) > 200
    assert len({time.hour for time in times if time is not None}) == 24


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("H * * * *", 0, 59), ("H(10-19) * * * *", 10, 19), ("H(10-19)/3 * * * *", 10, 19), ("H/15 * * * *", 0, 59)],
)
def test_every_value_of_the_range_is_chosen_by_some_name(text: str, low: int, high: int) -> None:
    minutes = set()
    for name in NAMES:
        timing, due = _named(text, name), NOW
        for _ in range(4):
            following = timing.next_after(due)
            assert following is not None
            minutes.add(following.minute)
            due = following
    assert minutes == set(range(low, high + 1))


def test_a_step_begins_where_the_name_says() -> None:
    timing = _named("H/15 * * * *", "backup")
    assert timing.count_between(NOW, NOW + timedelta(hours=5)) == 20
    assert timing.explain() == "Every 15th minute from 11 through 59 of every hour (UTC)."


def test_a_day_of_the_month_is_one_that_every_month_has() -> None:
    for name in NAMES[:60]:
        assert _named("0 0 H * *", name).count_between(NOW, NOW + timedelta(days=365)) == 12


def test_the_text_keeps_the_h_and_the_sentence_says_what_it_stands_for() -> None:
    timing = _named("H H * * *", "backup")
    assert timing.text == "H H * * *"
    assert timing.explain() == "At 00:41 every day (UTC)."
    unnamed = parse_timing("H H(1-5) * * *", "UTC")
    assert unnamed.explain() == (
        "At minute H past hour H (from 1 through 5) every day, with H chosen by the schedule's name (UTC)."
    )
    assert (unnamed.wants_name, timing.wants_name) == (True, False)
    assert timing.named("another") == timing != unnamed


def test_a_combination_hands_the_name_on() -> None:
    parsed = parse_timing("(H 3 * * * or H 15 * * *) except 0 0 H * *", "UTC")
    assert parsed.wants_name
    assert parsed.named("backup").next_after(NOW) is not None
    assert parsed.named("backup") == (Cron("H 3 * * *", "UTC") | Cron("H 15 * * *", "UTC")).named("backup") - Cron(
        "0 0 H * *", "UTC"
    ).named("backup")
    plain = DailyAt(9) | Every(hours=1)
    assert plain.named("backup") is plain


def test_without_a_name_it_has_no_times_and_says_why() -> None:
    for ask in (parse_timing("0 H * * *").next_after, Cron("0 H * * *").previous):
        with pytest.raises(TimingError, match="is chosen by the name of a schedule"):
            ask(NOW)


@pytest.mark.parametrize("text", ["H(5-1) * * * *", "H(0-60) * * * *", "H/0 * * * *", "H(0-9)/11 * * * *", "H H H"])
def test_a_wrong_h_is_refused_with_a_form_that_parses_or_none(text: str) -> None:
    with pytest.raises(TimingError) as caught:
        parse_timing(text)
    if caught.value.hint:
        parse_timing(caught.value.hint)


def test_a_schedule_is_stored_with_its_h_and_due_when_its_name_says(app: Ostinato) -> None:
    first = app.schedules.add("backup", "H H * * *", Shell("true"), tz="UTC")
    second = app.schedules.add("report", Cron("H H * * *"), Shell("true"), tz="UTC")
    assert (first.timing, first.sentence) == ("H H * * *", "At 00:41 every day (UTC).")
    assert first.next_run_at is not None
    assert f"{first.next_run_at:%H:%M}" == "00:41"
    assert second.next_run_at is not None
    assert f"{second.next_run_at:%H:%M}" != "00:41"
    app.schedules.disable("backup")
    again = app.schedules.enable("backup")
    assert again.next_run_at == first.next_run_at
    with pytest.raises(TimingError, match="chosen by the schedule's name"):
        app.schedules.add("other", Cron("H H * * *", name="backup"), Shell("true"))


def test_the_command_line_asks_for_the_name(cli: CommandLine) -> None:
    refused = cli("timing", "H H * * *", "--json")
    assert refused.code == 2
    assert "name of the schedule" in refused.error["error"]
    answer = cli.ok("timing", "H H * * *", "--name", "backup", "--tz", "UTC", "--json").json
    assert (answer["text"], answer["sentence"]) == ("H H * * *", "At 00:41 every day (UTC).")


def test_the_preview_asks_for_the_name(web: Web) -> None:
    viewer = web.script("viewer")
    query = {"text": "0 H * * *", "zone": "UTC"}
    refused = viewer.get("/api/timings/preview", params=query)
    assert refused.status_code == 422
    assert "name of the schedule" in refused.text
    assert viewer.get("/api/timings/preview", params={**query, "name": "backup"}).json()["sentence"].startswith("At 00")
