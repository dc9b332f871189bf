"""`ostinato incident`: what each verb does, prints and exits with."""

from __future__ import annotations

import pytest

from ostinato.cli import incident
from tests.doors.command_line import CommandLine

KEYS = [
    "id",
    "subject",
    "cause",
    "kind",
    "state",
    "opened_at",
    "last_at",
    "closed_at",
    "count",
    "reopened",
    "reason",
    "first_run",
    "last_run",
    "schedule",
    "project",
    "closed_reason",
    "acked_at",
    "acked_by",
    "note",
]


@pytest.fixture
def failing(cli: CommandLine) -> CommandLine:
    """Three failed runs of one cause, and one of another; a channel that was to be told of the first."""
    cli.ok("notify", "add", "ops", "json://127.0.0.1:1/token")
    cli.ok("notify", "rule", "add", "ops", "--all")
    for _ in range(3):
        assert cli("exec", "--shell", "exit 7").code == 7
    assert cli("exec", "--shell", "sleep 60", "--timeout", "10ms").code == 1
    return cli


def test_nothing_is_wrong_at_first(cli: CommandLine) -> None:
    assert cli.ok("incident", "ls", "--json").json == []
    shown = cli.ok("incident", "ls").err
    assert shown == "no open incidents; 'ostinato incident ls --all' lists those before\n"
    assert cli.ok("incident", "ls", "--all").err == "no incidents\n"
    for verb in ("show", "ack", "rerun"):
        assert cli("incident", verb, "7").code == 3


def test_open_incidents_are_listed_and_counted_by_their_cause(failing: CommandLine) -> None:
    listed = failing.ok("incident", "ls", "--json").json
    assert [sorted(one) for one in listed] == [sorted(KEYS)] * 2
    assert [(one["subject"].split()[0], one["cause"], one["count"], one["state"]) for one in listed] == [
        ("shell", "timed_out", 1, "open"),
        ("shell", "exit_status", 3, "open"),
    ]
    rows = [line.split() for line in failing.ok("incident", "ls").out.splitlines()]
    assert rows[0] == ["ID", "STATE", "OPENED", "FOR", "COUNT", "SUBJECT", "CAUSE", "REASON"]
    assert [(row[0], row[1], row[4], row[5]) for row in rows[1:]] == [
        ("2", "open", "1", "shell"),
        ("1", "open", "3", "shell"),
    ]


def test_incidents_are_listed_of_one_project_or_of_none(failing: CommandLine) -> None:
    failing.ok("project", "add", "shop", ".")
    assert len(failing.ok("incident", "ls", "--project", "none", "--json").json) == 2
    assert failing.ok("incident", "ls", "--project", "shop", "--json").json == []
    assert failing("incident", "ls", "--project", "nowhere").code == 3


def test_an_incident_shows_whom_it_was_told_and_its_runs(failing: CommandLine) -> None:
    shown = failing.ok("incident", "show", "1").out
    assert "told: ops: failed, pending" in shown
    assert "runs: 3, 2, 1" in shown
    detail = failing.ok("incident", "show", "1", "--json").json
    assert sorted(detail) == sorted([*KEYS, "deliveries", "runs", "reruns"])
    (told,) = detail["deliveries"]
    assert (told["channel"], told["kind"], told["state"], detail["runs"]) == ("ops", "failed", "pending", [3, 2, 1])
    log = failing.ok("notify", "log", "--json").json
    assert told in log
    assert len(failing.ok("notify", "log", "ops").out.splitlines()) == len(log) + 1


def test_a_success_closes_the_incidents_of_its_subject(failing: CommandLine) -> None:
    command = f"test -e {failing.folder}/well"
    assert failing("exec", "--shell", command).code == 1
    failing.ok("exec", "--shell", "true")
    assert len(failing.ok("incident", "ls", "--json").json) == 3, "another command says nothing of these"
    (failing.folder / "well").touch()
    failing.ok("exec", "--shell", command)
    listed = failing.ok("incident", "ls", "--all", "--json").json
    assert [(one["id"], one["state"]) for one in listed] == [(2, "open"), (1, "open"), (3, "closed")]
    assert "closed" in failing.ok("incident", "show", "3").out
    assert failing("incident", "ack", "3").code == 1


def test_who_sees_to_an_incident_is_kept_with_a_note(failing: CommandLine) -> None:
    said = failing.ok("incident", "ack", "1", "--note", "I am on it").err
    assert said.startswith("acked: incident 1, 'shell ")
    assert said.endswith("' (exit_status)\n")
    acked = failing.ok("incident", "show", "1", "--json").json
    assert (acked["note"], acked["acked_by"]) == (
        "I am on it",
        failing.ok("incident", "ls", "--json").json[1]["acked_by"],
    )
    assert acked["acked_at"] is not None
    assert failing.ok("incident", "ls").out.splitlines()[2].split()[1] == "acked"


def test_all_failed_runs_of_an_incident_are_run_again(failing: CommandLine) -> None:
    made = failing.ok("incident", "rerun", "1", "--json").json
    assert (len(made["runs"]), made["left"]) == (3, 0)
    queued = failing.ok("run", "ls", "--state", "queued", "--json").json
    assert {(run["trigger"], run["work"]["command"]) for run in queued} == {("manual", "exit 7")}
    assert sorted(run["id"] for run in queued) == made["runs"]
    reruns = failing.ok("incident", "show", "1", "--json").json["reruns"]
    assert reruns == [
        {"of": of, "run": run, "state": "queued", "reason": None}
        for of, run in zip((3, 2, 1), reversed(made["runs"]), strict=True)
    ]
    assert f"3 as {made['runs'][-1]}: queued" in failing.ok("incident", "show", "1").out
    assert failing.ok("incident", "rerun", "2").err.startswith("queued 1 run of incident 2: ")


def test_many_runs_are_run_again_only_when_somebody_says_so(
    failing: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incident, "_ASKED_ABOVE", 2)
    refused = failing("incident", "rerun", "1")
    assert refused.code == 2
    assert "this runs 3 failed runs again" in refused.err
    assert failing.ok("run", "ls", "--state", "queued", "--json").json == []
    assert failing.ok("incident", "rerun", "1", "--yes").err.startswith("queued 3 runs of incident 1: ")
