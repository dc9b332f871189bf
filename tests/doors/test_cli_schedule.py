"""`ostinato schedule`: what each verb does, prints and exits with."""

from __future__ import annotations

import apsw
import pytest

from tests.doors.command_line import CommandLine

SCHEDULE_KEYS = [
    "id", "name", "timing", "zone", "sentence", "work", "policy", "project", "owner", "state", "enabled", "broken",
    "orphaned", "note", "off_note", "off_by", "off_at", "next_run_at", "next_run_reason", "paused_since",
    "paused_cause", "remaining", "failures", "follows", "waits_until",
    "probe_at", "last_run", "version", "created_at", "updated_at", "fresh_until", "late", "origin", "changes",
]  # fmt: skip


def test_a_schedule_is_added_listed_and_shown(cli: CommandLine) -> None:
    added = cli.ok("schedule", "add", "nightly", "daily 03:00", "--task", "hello", "--tz", "Europe/Berlin")
    assert added.out == ""
    assert "added: 'nightly'. At 03:00 every day (Europe/Berlin). Next at" in added.err
    listed = cli.ok("schedule", "ls").out.splitlines()
    assert listed[0].split() == ["NEXT", "LEFT", "LAST", "PASSED", "STATE", "NAME", "TIMING", "KIND", "WORK"]
    assert listed[1].split()[-6:] == ["on", "nightly", "daily", "03:00", "function", "hello"]
    assert "sentence: At 03:00 every day (Europe/Berlin)." in cli.ok("schedule", "show", "nightly").out


def test_json_has_exactly_the_names_that_scripts_rely_on(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello", "--arg", "name=you", "--arg", "n=3", "--args", "[1]")
    (schedule,) = cli.ok("schedule", "ls", "--json").json
    assert sorted(schedule) == sorted(SCHEDULE_KEYS)
    shown = cli.ok("schedule", "show", "a", "--json").json
    assert shown.pop("blocked_by")["cause"] == "no_engine"
    assert schedule == shown
    assert schedule["work"] == {"kind": "function", "task": "hello", "args": [1], "kwargs": {"name": "you", "n": 3}}
    assert schedule["next_run_at"].endswith("Z")
    assert (schedule["enabled"], schedule["broken"], schedule["last_run"]) == (True, None, None)


def test_adding_twice_changes_nothing_and_says_so(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello")
    assert cli.ok("schedule", "add", "a", "every 5m", "--task", "hello").err.splitlines()[-1].startswith("unchanged:")
    assert cli.ok("schedule", "add", "a", "every 6m", "--task", "hello").err.splitlines()[-1].startswith("changed:")
    assert len(cli.ok("schedule", "ls", "--json").json) == 1


def test_every_policy_flag_reaches_the_schedule(cli: CommandLine) -> None:
    for channel in ("ops", "me"):
        cli.ok("notify", "add", channel, "json://hooks.example")
    cli.ok(
        "schedule", "add", "a", "every 5m", "--task", "hello", "--overlap", "queue_one", "--catch-up", "all",
        "--catch-up-window", "2h", "--retry", "5,base=1s,longest=1m,spread=0.5,covers=start", "--timeout", "90s",
        "--silent", "10m", "--soft-timeout", "80s", "--probe", "1h",
        "--max-age", "1h", "--break-after", "7", "--lane", "main", "--priority", "-2", "--session", "dm:42",
        "--check", "disk", "--check", "net", "--keep", "7d,50", "--remaining", "4", "--delete-after-run", "--disabled",
        "--gate", "./new-mail.sh", "--gate-timeout", "10s", "--notify", "ops", "--notify", "me",
        "--budget", "per_run_usd=1,per_day_usd=5.5,per_day_runs=20", "--on-lost-lease", "continue",
        "--fresh", "26h", "--ping-url", "env:HC_URL",
    )  # fmt: skip
    policy = cli.ok("schedule", "show", "a", "--json").json["policy"]
    assert policy == {
        "overlap": "queue_one",
        "catch_up": "all",
        "catch_up_window": "2h",
        "catch_up_cap": 1000,
        "retry": {"max": 5, "base": "1s", "longest": "1m", "spread": 0.5, "covers": "start", "on": [], "never": []},
        "soft_timeout": "1m20s",
        "timeout": "1m30s",
        "silent": "10m",
        "max_age": "1h",
        "break_after": 7,
        "probe": "1h",
        "fresh": "1d2h",
        "lane": "main",
        "priority": -2,
        "session": "dm:42",
        "checks": ["disk", "net"],
        "gate": {"command": "./new-mail.sh", "timeout": "10s"},
        "budget": {"per_run_usd": 1, "per_day_usd": 5.5, "per_day_runs": 20},
        "notify": ["ops", "me"],
        "ping_url": "env:HC_URL",
        "keep": {"age": "7d", "count": 50},
        "remaining": 4,
        "delete_after_run": True,
        "on_lost_lease": "continue",
    }


def test_edit_changes_only_what_is_given(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello", "--timeout", "1m", "--arg", "name=x", "--note", "n")
    before = cli.ok("schedule", "show", "a", "--json").json
    cli.ok("schedule", "edit", "a", "--timeout", "none", "--arg", "more=1")
    after = cli.ok("schedule", "show", "a", "--json").json
    assert after["policy"] == {**before["policy"], "timeout": None}
    assert after["work"]["kwargs"] == {"name": "x", "more": 1}
    kept = ("timing", "note", "next_run_at", "enabled")
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}


def test_a_retry_that_is_asked_for_of_an_agent_covers_every_failure(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--agent", "look")
    assert "retry (max 3, base 2s, longest 30s, spread 0.25, covers start)" in " ".join(
        cli.ok("schedule", "show", "a").out.split()
    )
    cli.ok("schedule", "edit", "a", "--retry", "5")
    retry = cli.ok("schedule", "show", "a", "--json").json["policy"]["retry"]
    assert (retry["max"], retry["covers"]) == (5, "all")


def test_edit_without_anything_to_change_is_wrong_usage(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello")
    answer = cli("schedule", "edit", "a")
    assert (answer.code, answer.out) == (2, "")
    assert "nothing to change was given" in answer.err


def test_disable_says_which_runs_go_on(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 1h", "--shell", "true")
    cli.ok("schedule", "trigger", "a")
    off = cli.ok("schedule", "disable", "a", "--keep-retries")
    assert off.err == "off: 'a'\nrun 1 stays queued; 'ostinato run cancel ID' ends one\n"
    begun = "UPDATE runs SET attempt = 1, cause = 'raised', reason = 'exit 1'"
    apsw.Connection(str(cli.folder / "ostinato.db")).execute(begun)
    cli.ok("schedule", "enable", "a")
    cli.ok("schedule", "trigger", "a", "--force")
    off = cli.ok("schedule", "disable", "a", "--keep-retries")
    assert "run 1 goes on, with the retries that are left; run 2 stays queued; 'ostinato run cancel ID'" in off.err
    assert cli.ok("schedule", "disable", "a", "--json").err == ""


def test_disable_says_why_until_enable_and_its_own_note_stays(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello", "--note", "owner: ada")
    off = cli.ok("schedule", "disable", "a", "--note", "holidays", "--json").json
    assert (off["enabled"], off["off_note"], off["next_run_at"]) == (False, "holidays", None)
    assert off["next_run_reason"] == "disabled: holidays"
    assert " off " in cli.ok("schedule", "ls").out
    assert cli.ok("schedule", "disable", "a").err == "off: 'a' (holidays)\n"
    shown = cli.ok("schedule", "show", "a").out
    assert "disabled: holidays" in shown
    assert "owner: ada" in shown
    on = cli.ok("schedule", "enable", "a", "--json").json
    assert (on["enabled"], on["note"], on["off_note"]) == (True, "owner: ada", None)


def test_a_check_that_fails_refuses_to_enable(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello", "--check", "disk", "--disabled", "--app", "jobs:app")
    answer = cli("schedule", "enable", "a", "--app", "jobs:app")
    assert answer.code == 1
    assert answer.err.splitlines()[-1].endswith("checks failed: disk: the disk is full")


def test_trigger_prints_the_number_of_the_run_and_refuses_a_second_one(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello")
    number = cli.ok("schedule", "trigger", "a").out.strip()
    assert cli.ok("run", "show", number, "--json").json["trigger"] == "manual"
    refused = cli("schedule", "trigger", "a")
    assert (refused.code, refused.out) == (1, "")
    assert "has an active run" in refused.err
    assert cli.ok("schedule", "trigger", "a", "--force").out.strip() != number
    assert [run["state"] for run in cli.ok("schedule", "runs", "a", "--json").json] == ["queued", "queued"]


def test_a_wait_that_times_out_exits_with_5(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello")
    answer = cli("schedule", "trigger", "a", "--wait", "--timeout", "20ms")
    assert answer.code == 5
    assert "still queued after 20ms" in answer.err


def test_rm_wants_yes_off_a_terminal(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello")
    assert cli("schedule", "rm", "a").code == 2
    assert cli.ok("schedule", "rm", "a", "--yes", "--json").json == {
        "name": "a",
        "removed": True,
        "broken": [],
        "still_running": [],
        "comes_back": False,
    }
    assert cli.ok("schedule", "ls", "--json").json == []


def test_an_unknown_task_is_a_warning_and_not_an_error(cli: CommandLine) -> None:
    assert "warning: no engine is running" in cli.ok("schedule", "add", "a", "every 5m", "--task", "nobody").err
    known = cli.ok("schedule", "add", "b", "every 5m", "--task", "hello", "--app", "jobs:app")
    assert "warning" not in known.err


def test_a_finished_schedule_is_listed_with_all(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello")
    cli.ok("schedule", "add", "b", "every 1h", "--task", "hello")
    assert [one["name"] for one in cli.ok("schedule", "ls", "--search", "B", "--json").json] == ["b"]
    assert cli.ok("schedule", "ls", "--all").out.count("\n") == 3


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--arg", "novalue"], "--arg name=value"),
        (["--args", "{}"], "--args"),
        (["--kwargs", "[1"], "--kwargs is not JSON"),
        (["--retry", "many"], "retry cannot be 'many'"),
        (["--catch-up-cap", "none"], "catch_up_cap cannot be 'none'"),
        (["--priority", "none"], "priority cannot be 'none'"),
        (["--timeout", "soon"], "'soon' is not a duration"),
        (["--once", "--remaining", "3"], "--once or --remaining"),
        (["--tz", "Europe/Berln"], "Europe/Berlin"),
        (["--overlap", "maybe"], "maybe"),
    ],
)
def test_a_wrong_flag_exits_with_2_and_adds_nothing(cli: CommandLine, flags: list[str], told: str) -> None:
    answer = cli("schedule", "add", "a", "every 5m", "--task", "hello", *flags)
    assert (answer.code, answer.out) == (2, "")
    assert told in answer.err
    assert "Traceback" not in answer.err
    assert cli.ok("schedule", "ls", "--json").json == []


def test_a_ping_url_is_not_shown(cli: CommandLine) -> None:
    url = "https://hc.example/5f0c8d1e"
    cli.ok("schedule", "add", "job", "every 1h", "--shell", "true", "--ping-url", url)
    cli.ok("schedule", "edit", "job", "--ping-url", "***", "--priority", "3")
    shown = [cli.ok("schedule", *verb).out for verb in (["show", "job"], ["show", "job", "--json"], ["ls", "--json"])]
    assert "ping_url ***" in shown[0]
    assert "5f0c8d1e" not in "".join(shown)
    ((stored,),) = apsw.Connection(str(cli.folder / "ostinato.db")).execute("SELECT policy FROM schedules")
    assert url in str(stored)
    cli.ok("schedule", "edit", "job", "--ping-url", "env:HC_URL")
    assert "ping_url env:HC_URL" in cli.ok("schedule", "show", "job").out
