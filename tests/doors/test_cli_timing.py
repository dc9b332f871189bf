"""`ostinato timing`: the contract that scripts rely on, and what people read."""

from __future__ import annotations

from tests.doors.command_line import CommandLine


def test_json_is_exactly_the_documented_shape(cli: CommandLine) -> None:
    answer = cli.ok(
        "timing", "30 9 * * 1-5", "--tz", "Europe/Berlin", "--after", "2026-02-27T12:00Z", "-n", "2", "--json"
    )
    assert answer.json == {
        "text": "30 9 * * 1-5",
        "zone": "Europe/Berlin",
        "sentence": "At 09:30 on Monday through Friday (Europe/Berlin).",
        "next": ["2026-03-02T08:30:00Z", "2026-03-03T08:30:00Z"],
        "remarks": [],
    }
    assert answer.err == ""


def test_people_see_zone_local_and_utc_and_what_the_clock_change_does(cli: CommandLine) -> None:
    out = cli.ok("timing", "daily 02:30", "--tz", "Europe/Berlin", "--after", "2026-03-28 12:00", "-n", "2").out
    lines = out.splitlines()
    assert lines[0] == "At 02:30 every day (Europe/Berlin)."
    assert lines[2].split() == ["Europe/Berlin", "local", "(UTC)", "UTC"]
    assert lines[3] == "Sun 2026-03-29 03:00:00 +02:00  2026-03-29 01:00:00  2026-03-29 01:00:00"
    assert "2026-03-29 02:30 does not exist in Europe/Berlin" in out.replace("\n", " ")


def test_a_wrong_text_points_at_the_place(cli: CommandLine) -> None:
    plain = cli("timing", "daily 25:00")
    assert (plain.code, plain.out) == (2, "")
    lines = plain.err.splitlines()
    assert lines[1:3] == ["  daily 25:00", "        ^"]
    as_json = cli("timing", "daily 25:00", "--json")
    assert (as_json.code, as_json.out) == (2, "")
    assert list(as_json.error) == ["error", "position", "hint"]
    assert as_json.error["position"] == 6


def test_a_timing_in_the_past_has_no_next_time(cli: CommandLine) -> None:
    assert cli.ok("timing", "at 2020-01-01T00:00Z", "--json").json["next"] == []
    assert "It has no due time after" in cli.ok("timing", "at 2020-01-01T00:00Z").out


def test_it_needs_no_database(wrong_folder: CommandLine) -> None:
    wrong_folder.ok("timing", "every 5m")
    assert not list(wrong_folder.folder.glob("*.db*"))


def test_a_count_out_of_range_is_wrong_usage(cli: CommandLine) -> None:
    assert cli("timing", "every 5m", "-n", "0").code == 2
    assert cli("timing", "every 5m", "--after", "yesterday").code == 2
