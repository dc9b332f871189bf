"""`ostinato lane`: what each verb does, prints and exits with."""

from __future__ import annotations

import io
import signal
import sys

import pytest

from tests.doors.command_line import CommandLine, eventually

LANE_KEYS = ["name", "limit", "rate", "used", "queued", "oldest_at", "paused", "note", "paused_by", "paused_at"]


class Terminal(io.StringIO):
    """A person at a terminal who types this."""

    def isatty(self) -> bool:
        return True


def _lane(cli: CommandLine, name: str, *flags: str) -> dict[str, object]:
    lanes: list[dict[str, object]] = cli.ok("lane", "ls", "--json", *flags).json
    return next(lane for lane in lanes if lane["name"] == name)


def _row(cli: CommandLine, name: str) -> list[str]:
    lines = [line.split() for line in cli.ok("lane", "ls").out.splitlines()]
    return next(line for line in lines if line[0] == name)


def _queue(cli: CommandLine, *keys: str, lane: str = "main") -> None:
    for key in keys:
        cli.ok("session", "send", key, "hi", "--task", "answer", "--lane", lane)


def test_the_default_lanes_are_listed_with_their_limits(cli: CommandLine) -> None:
    shown = cli.ok("lane", "ls")
    assert shown.out.splitlines()[0].split() == ["NAME", "USED", "RATE", "QUEUED", "OLDEST", "STATE", "NOTE"]
    assert _row(cli, "main") == ["main", "0/30", "-", "0", "-", "on"]
    lanes = cli.ok("lane", "ls", "--json").json
    assert {lane["name"]: lane["limit"] for lane in lanes} == {"cron": 30, "main": 30, "subagent": 50, "team": 100}


def test_json_has_exactly_the_names_that_scripts_rely_on(cli: CommandLine) -> None:
    assert [sorted(lane) for lane in cli.ok("lane", "ls", "--json").json] == [sorted(LANE_KEYS)] * 4
    for verb in (["set", "main", "7"], ["pause", "main"], ["resume", "main"]):
        assert sorted(cli.ok("lane", *verb, "--json").json) == sorted(LANE_KEYS)
    assert cli.ok("lane", "clear", "main", "--yes", "--json").json == {"name": "main", "cleared": 0}


def test_a_lane_is_made_changed_and_rated(cli: CommandLine) -> None:
    assert cli("lane", "set", "mail", "--rate", "10/m").code == 3
    assert cli.ok("lane", "set", "mail", "3").err == "set: lane 'mail', limit 3, no rate\n"
    assert cli.ok("lane", "set", "mail", "--rate", "10/m").err == "set: lane 'mail', limit 3, rate 10/m\n"
    assert cli.ok("lane", "set", "mail", "5", "--rate", "3/10s", "--json").json["rate"] == "3/10s"
    assert _row(cli, "mail") == ["mail", "0/5", "3/10s", "0", "-", "on"]
    cli.ok("lane", "set", "mail", "--rate", "none")
    lane = _lane(cli, "mail")
    assert (lane["limit"], lane["rate"]) == (5, None)


def test_a_lane_says_how_many_wait_and_for_how_long(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello", "--lane", "team")
    cli.ok("schedule", "trigger", "a")
    lane = _lane(cli, "team")
    assert (lane["used"], lane["queued"]) == (0, 1)
    assert str(lane["oldest_at"]).endswith("Z")
    assert _row(cli, "team")[3:5] in (["1", "0s"], ["1", "1s"])


def test_what_is_to_start_later_does_not_count_as_waiting(cli: CommandLine) -> None:
    cli.ok("session", "send", "dm:1", "hi", "--task", "answer", "--debounce", "1h")
    assert _row(cli, "main") == ["main", "0/30", "-", "1", "-", "on"]


def test_a_paused_lane_shows_its_note_until_it_is_resumed(cli: CommandLine) -> None:
    assert (
        "paused: lane 'main' (the relay is down)" in cli.ok("lane", "pause", "main", "--note", "the relay is down").err
    )
    assert _row(cli, "main")[5:] == ["paused", "the", "relay", "is", "down"]
    lane = _lane(cli, "main")
    assert (lane["paused"], lane["note"]) == (True, "the relay is down")
    assert cli.ok("lane", "resume", "main").err == "resumed: lane 'main', 0 runs queued\n"
    lane = _lane(cli, "main")
    assert (lane["paused"], lane["note"]) == (False, None)


def test_clear_ends_what_is_queued_and_says_how_many(cli: CommandLine) -> None:
    _queue(cli, "dm:1", "dm:2")
    _queue(cli, "dm:3", lane="team")
    assert cli.ok("lane", "clear", "main", "--yes").err == "cleared: lane 'main', 2 runs cancelled\n"
    runs = cli.ok("run", "ls", "--json").json
    assert [(run["state"], run["reason"]) for run in runs] == [("queued", None), *[("cancelled", "lane cleared")] * 2]


def test_clear_wants_yes_off_a_terminal(cli: CommandLine) -> None:
    _queue(cli, "dm:1")
    answer = cli("lane", "clear", "main")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "error: clearing lane 'main' ends 1 queued run; pass --yes to do it\n"
    assert _lane(cli, "main")["queued"] == 1


@pytest.mark.parametrize(("typed", "code", "left"), [("y\n", 0, 0), ("n\n", 1, 1), ("\n", 1, 1), ("", 1, 1)])
def test_clear_asks_on_a_terminal(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, typed: str, code: int, left: int
) -> None:
    _queue(cli, "dm:1")
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    answer = cli("lane", "clear", "main")
    assert (answer.code, answer.out) == (code, "")
    assert answer.err.startswith("End 1 queued run of lane 'main' as cancelled? [y/N] ")
    assert _lane(cli, "main")["queued"] == left


def test_a_worker_takes_limits_and_rates_of_lanes(cli: CommandLine) -> None:
    (cli.folder / "mail.py").write_text("from ostinato import Ostinato\napp = Ostinato(rates={'main': '7/s'})\n")
    flags = ("--lane", "mail=2", "--rate", "mail=10/m", "--rate", "cron=5/10s")
    with cli.start("worker", "--app", "mail:app", *flags) as worker:
        eventually(lambda: "started: 0 tasks" in worker.err, "the worker is ready")
        lanes = {lane["name"]: (lane["limit"], lane["rate"]) for lane in cli.ok("lane", "ls", "--json").json}
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
    assert lanes["mail"] == (2, "10/m")
    assert lanes["cron"] == (30, "5/10s")
    assert lanes["main"] == (30, "7/s")


@pytest.mark.parametrize(
    ("pair", "told"),
    [("fast", "write --rate main=10/m"), ("=1/s", "write --rate main=10/m"), ("main=fast", "as in 10/m or 3/10s")],
)
def test_a_wrong_rate_starts_nothing(wrong_folder: CommandLine, pair: str, told: str) -> None:
    answer = wrong_folder("up", "--rate", pair)
    assert (answer.code, answer.out) == (2, "")
    assert told in answer.err
    assert not list(wrong_folder.folder.glob("*.db"))
