"""Check-ins, badges and freshness at the command line, and a real crontab-like machine that calls a real server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.doors.command_line import CommandLine, eventually
from tests.doors.test_server_of_up import Up

PATIENCE = 60.0
# What a crontab would do with curl, which is not on every machine.
CURL = """
import sys, urllib.request
request = urllib.request.Request(sys.argv[1], data=sys.stdin.buffer.read() or None)
print(urllib.request.urlopen(request, timeout=30).read().decode(), end="")
"""


def add(cli: CommandLine, *flags: str) -> None:
    cli.ok("schedule", "add", "backup", "daily 03:00", "--tz", "UTC", "--check-in", *flags)


def test_a_check_in_is_added_shown_and_changed(cli: CommandLine) -> None:
    add(cli)
    shown = json.loads(cli.ok("schedule", "show", "backup", "--json").out)
    assert shown["work"] == {"kind": "check_in", "late_after": "10m"}
    cli.ok("schedule", "edit", "backup", "--late-after", "90m", "--fresh", "26h")
    shown = json.loads(cli.ok("schedule", "show", "backup", "--json").out)
    assert (shown["work"]["late_after"], shown["policy"]["fresh"], shown["late"]) == ("1h30m", "1d2h", False)
    assert "a check-in, late after 1h30m" in cli.ok("schedule", "show", "backup").out
    assert "fresh until" in cli.ok("schedule", "show", "backup").out


def test_its_flags_go_with_it_alone(cli: CommandLine) -> None:
    answer = cli("schedule", "add", "x", "daily 03:00", "--shell", "true", "--late-after", "1m")
    assert (answer.code, "--late-after goes with --check-in" in answer.err) == (2, True)
    answer = cli("schedule", "add", "x", "daily 03:00", "--shell", "true", "--check-in")
    assert (answer.code, "not --shell and --check-in" in answer.err) == (2, True)


def test_a_ping_address_is_printed_once(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    add(cli)
    monkeypatch.setenv("OSTINATO_PORT", "0")
    assert cli("schedule", "ping-key", "backup").code == 2
    monkeypatch.setenv("OSTINATO_PORT", "8321")
    told = cli.ok("schedule", "ping-key", "backup")
    address = told.out.strip()
    assert address.startswith("http://127.0.0.1:8321/ping/")
    assert "no running server is known: this is the address that the settings say" in told.err
    again = cli("schedule", "ping-key", "backup")
    assert (again.code, "--new" in again.err) == (1, True)
    new = json.loads(cli.ok("schedule", "ping-key", "backup", "--new", "--json").out)
    assert (new["purpose"], new["url"] != address, new["url"].endswith(new["path"])) == ("ping", True, True)
    monkeypatch.setenv("OSTINATO_PUBLIC_URL", "https://jobs.example.org/ostinato")
    badge = cli.ok("schedule", "badge", "backup")
    assert badge.out.startswith("https://jobs.example.org/ostinato/badge/")
    assert badge.out.strip().endswith(".svg")
    assert "settings say" not in badge.err


def test_a_check_in_cannot_be_executed_or_enqueued(cli: CommandLine) -> None:
    answer = cli("exec", "--check-in")
    assert (answer.code, "a check-in cannot be run" in answer.err) == (2, True)


@pytest.mark.parametrize(("status", "state"), [("0", "succeeded"), ("3", "failed")])
def test_a_machine_checks_in_at_a_real_server(cli: CommandLine, status: str, state: str) -> None:
    add(cli)
    with Up(cli) as up:
        eventually(
            lambda: "page" in cli.ok("node", "ls", "--json").json[0]["services"], "its node says where", PATIENCE
        )
        made = json.loads(cli.ok("schedule", "ping-key", "backup", "--json").out)
        assert made["url"] == f"{up.address}{made['path']}", "that of the server that runs"
        for said, printed in (("start", ""), (status, "copied 3 files\n")):
            called = call(f"{up.address}{made['path']}/{said}", printed, cli.folder)
            assert called == "OK\n"
        eventually(lambda: runs(cli)[0]["state"] == state, "its end is in the ledger", PATIENCE)
    (run,) = runs(cli)
    assert (run["trigger"], run["schedule"]) == ("check_in", "backup")
    assert cli.ok("run", "logs", str(run["id"])).out == "copied 3 files\n"


def call(url: str, printed: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CURL, url],
        input=printed,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=PATIENCE,
        check=True,
    )
    return done.stdout


def runs(cli: CommandLine) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(cli.ok("run", "ls", "--json").out)
    return found
