"""Runs that succeeded with errors on the command line: a mark and their totals wherever a run is told."""

from __future__ import annotations

import re
import signal

import pytest

from ostinato import Ostinato, RunContext
from ostinato.testing import FakeClock, simulate
from tests.doors.command_line import CommandLine, eventually, on_a_terminal

REPORT = """printf '{"count": {"copied": 120, "errors": 3}}' > $OSTINATO_REPORT"""


@pytest.fixture
def copied(cli: CommandLine) -> CommandLine:
    """A ledger with two runs, of which the first succeeded with errors."""
    app = Ostinato(f"sqlite:///{cli.folder}/ostinato.db", clock=FakeClock())
    counted = [3, 0, 3]

    @app.task("copy")
    def copy(run: RunContext) -> None:
        run.count("copied", 1200.0)
        run.count("cost_usd", 0.25)
        if errors := counted.pop(0):
            run.count("errors", errors)

    app.schedules.add("copy", "every 1h", copy)
    app.schedules.add("nothing", "every 2h", app.task("nothing")(lambda: None))
    simulate(app, lasting="3h")
    app.stop()
    return cli


def test_run_ls_has_a_mark_and_the_totals(copied: CommandLine) -> None:
    title, *rows = copied.ok("run", "ls", "--task", "copy").out.splitlines()
    assert title.split() == ["ID", "DUE", "STATE", "TOOK", "NAME", "TOTALS"]
    assert ["succeeded, 3 errors" in row for row in rows] == [True, False, True]
    assert all(row.endswith("copied 1,200, cost_usd 0.25") for row in rows)
    assert max(map(len, [title, *rows])) <= 80


@pytest.mark.parametrize("width", [80, 120])
def test_name_state_and_totals_are_whole_at_any_usual_width(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    app = Ostinato(f"sqlite:///{cli.folder}/ostinato.db", clock=FakeClock())

    @app.task("copy", retry=0)
    def copy(run: RunContext) -> None:
        run.count("copied", 1200)
        run.count("skipped", 35)
        run.count("errors", 3)

    @app.task("fail", retry=0)
    def fail() -> None:
        raise ValueError("the disk is full, and so is the one beside it, on every machine that was asked for room")

    app.schedules.add("copy-archive", "every 1h", copy)
    app.schedules.add("nightly-upload", "every 2h", fail)
    simulate(app, lasting="2h")
    app.stop()
    monkeypatch.setenv("COLUMNS", str(width))
    title, *rows = cli.ok("run", "ls").out.splitlines()
    assert max(map(len, [title, *rows])) <= width
    assert title.endswith("NAME            TOTALS, REASON")
    assert width == 80 or all(one in title for one in ("TOOK", "TRY", "TRIGGER"))
    copied, failed = ([row for row in rows if name in row] for name in ("copy-archive", "nightly-upload"))
    assert len(copied) == 2
    for row in copied:
        assert "succeeded, 3 errors" in row
        assert row.endswith("copy-archive    copied 1,200, skipped 35")
    assert "failed" in failed[0]
    assert "ValueError: the" in failed[0]


def test_run_ls_without_totals_has_no_column_for_them(copied: CommandLine) -> None:
    assert "TOTALS" not in copied.ok("run", "ls", "--task", "nothing").out


def test_runs_with_errors_are_listed_by_their_cause_and_whole_numbers_are_whole(copied: CommandLine) -> None:
    found = copied.ok("run", "ls", "--cause", "errors", "--json")
    assert [(run["state"], run["cause"], run["reason"]) for run in found.json] == [
        ("succeeded", "errors", "3 errors")
    ] * 2
    assert '"copied": 1200,' in found.out
    assert '"errors": 3\n' in found.out
    assert '"cost_usd": 0.25' in found.out
    assert (
        copied.ok("schedule", "runs", "copy", "--cause", "errors", "--state", "succeeded", "--json").json == found.json
    )


def test_a_run_and_its_schedule_say_it(copied: CommandLine) -> None:
    shown = copied.ok("run", "show", "1").out
    assert "state: succeeded, 3 errors" in shown
    assert "cause: errors" in shown
    assert "totals: copied 1,200, cost_usd 0.25, errors 3" in shown
    schedule = copied.ok("schedule", "show", "copy").out
    assert ": succeeded, 3 errors\n" in schedule
    assert "totals: copied 1,200, cost_usd 0.25, errors 3" in schedule
    assert "succeeded, 3 errors" in copied.ok("schedule", "ls").out
    why = copied.ok("why", "copy", "--at", "2026-01-01 01:00").out
    assert "succeeded with 3 errors (copied 1,200, cost_usd 0.25, errors 3)" in " ".join(why.split())
    assert "1, succeeded, 3 errors; 'ostinato run show 1'" in why


def test_whoever_waits_for_it_waits_for_a_success(copied: CommandLine) -> None:
    ended = copied.ok("run", "wait", "1")
    assert ended.err.splitlines()[-1] == "run 1 succeeded: 3 errors"


def test_its_colour_is_not_that_of_a_plain_success(copied: CommandLine) -> None:
    shown = on_a_terminal(copied.folder, "run", "ls", "--task", "copy")
    assert "\x1b[33msucceeded, 3 errors" in shown
    assert "\x1b[32msucceeded" in shown


@pytest.mark.parametrize("command", ["up", "worker"])
def test_a_running_engine_tells_the_errors_and_that_they_broke_the_schedule(cli: CommandLine, command: str) -> None:
    cli.ok("schedule", "add", "copy", "every 1s", "--shell", REPORT, "--break-after", "1")
    with cli.start(command) as process:
        eventually(lambda: "broken " in process.out + process.err, "the breaker is told")
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
    if command == "up":
        assert ": with 3 errors (copied 120, errors 3)" in process.out
        assert "copy: a scheduled run failed: it counted 3 errors" in process.out
    else:
        assert re.search(r"WARNING ostinato.runs: run \d+ of 'copy' succeeded in \S+: 3 errors\n", process.err)
        assert "'copy' is broken and disabled: a scheduled run failed: it counted 3 errors" in process.err
