"""What people read: one message from deliveries and what is known of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ostinato.clock import to_micros
from ostinato.models.ids import DeliveryId, IncidentId, RunId, ScheduleId
from ostinato.models.incident import Incident, IncidentState
from ostinato.models.notification import Delivery, DeliveryState, NoticeKind
from ostinato.models.policy import Policy
from ostinato.models.run import Run
from ostinato.models.schedule import Schedule
from ostinato.models.states import Cause, RunState, Trigger
from ostinato.models.work import Agent, Function, Http, Shell, Work
from ostinato.notifications.severity import Severity
from ostinato.notifications.text import Facts, Message, compose, last_lines

AT = datetime(2026, 11, 18, 3, 0, tzinfo=UTC)

DELIVERY = Delivery(
    id=DeliveryId(1),
    key="4f2a9c77",
    at=AT,
    channel="phone",
    kind=NoticeKind.FAILED,
    subject="nightly",
    state=DeliveryState.SENDING,
    ready_at=AT,
    attempts=0,
    run=RunId(42),
    schedule="nightly",
    data={"cause": "exit_status", "reason": "exit status 1", "count": 1},
)
RUN = Run(
    id=RunId(42),
    schedule="nightly",
    task=None,
    state=RunState.FAILED,
    cause=Cause.RAISED,
    reason="exit status 1",
    trigger=Trigger.SCHEDULE,
    due_at=AT,
    last_due_at=None,
    count=1,
    ready_at=AT,
    started_at=AT,
    finished_at=AT + timedelta(seconds=12.34),
    attempt=3,
    attempts=(),
    totals={},
    progress=None,
    result=None,
    error=None,
    lane="cron",
    priority=0,
    session=None,
    key="run-42",
    node=None,
    work=Shell("restic backup /srv"),
)
INCIDENT = Incident(
    id=IncidentId(7),
    subject="nightly",
    cause="exit_status",
    kind=NoticeKind.FAILED,
    state=IncidentState.OPEN,
    opened_at=AT - timedelta(hours=26),
    last_at=AT,
    closed_at=None,
    count=14,
    reopened=0,
    reason="exit status 1",
    first_run=None,
    last_run=None,
    schedule="nightly",
    project=None,
)
SCHEDULE = Schedule(
    id=ScheduleId(1),
    name="nightly",
    timing="daily 03:00",
    zone="Europe/Berlin",
    sentence="at 03:00 every day",
    work=Shell("restic backup /srv"),
    policy=Policy(),
    project=None,
    owner="user",
    made_by=None,
    enabled=True,
    broken=None,
    orphaned=False,
    note=None,
    off_note=None,
    next_run_at=datetime(2026, 11, 19, 2, 0, tzinfo=UTC),
    next_run_reason=None,
    paused_since=None,
    remaining=None,
    failures=0,
    last_run=None,
    version=1,
    created_at=AT,
    updated_at=AT,
    anchor_at=AT,
)


def message(facts: Facts = Facts(), **fields: Any) -> Message:  # noqa: B008  # it is frozen
    delivery = replace(DELIVERY, **fields)
    return compose([delivery], delivery.key, facts)


def test_a_failure_is_told_with_all_that_a_person_needs() -> None:
    lines = last_lines(["", "opening repository", "no space left on device"])
    told = message(Facts(RUN, INCIDENT, SCHEDULE, lines, public_url="https://jobs.example.org"))
    assert told.title == "✗ nightly failed"
    assert told.body.splitlines() == [
        "exit status 1",
        "Command: restic backup /srv",
        "Took 12.3s, attempt 3",
        "14 times since 2026-11-17 02:00 CET",
        "Next run: 2026-11-19 03:00 CET",
        "Last output:",
        "  opening repository",
        "  no space left on device",
        "https://jobs.example.org/runs/42",
        "#4f2a9c77",
    ]
    assert (told.key, told.kind, told.run, told.schedule) == ("4f2a9c77", NoticeKind.FAILED, 42, "nightly")


def test_what_is_gone_meanwhile_leaves_a_message_that_can_be_read() -> None:
    told = message()
    assert (told.title, told.body) == ("✗ nightly failed", "exit status 1\n#4f2a9c77")


def test_names_commands_and_results_are_cut() -> None:
    run = replace(RUN, state=RunState.SUCCEEDED, cause=None, work=Agent("x" * 80), result={"text": "r" * 600})
    told = message(Facts(run), kind=NoticeKind.SUCCEEDED, subject="n" * 80, data={})
    assert told.title == f"✓ {'n' * 49}… succeeded"
    assert f"Command: {'x' * 49}…" in told.body
    assert f"Result: {'r' * 499}…" in told.body


def succeeded(work: Work, result: object, **more: Any) -> list[str]:
    run = replace(RUN, state=RunState.SUCCEEDED, cause=None, attempt=1, work=work, result=result, **more)
    told = message(Facts(run, lines=["3 files", "done"]), kind=NoticeKind.SUCCEEDED, data={})
    return [line for line in told.body.splitlines() if not line.startswith(("Took", "Command", "#"))]


def test_a_success_of_a_command_tells_what_it_printed() -> None:
    printed = ["Last output:", "  3 files", "  done"]
    assert succeeded(Shell("restic backup /srv"), {"exit_code": 0}) == printed
    nothings: list[object] = [None, {}, [], "", True]
    for nothing in nothings:
        assert succeeded(Function("clean"), nothing) == printed
    assert succeeded(Agent("sum up"), {"text": "All is well.", "turns": 3}) == ["Result: All is well."]
    assert succeeded(Function("clean"), {"removed": 3}) == ['Result: {"removed": 3}']
    assert succeeded(Function("clean"), 0) == ["Result: 0"]


def test_a_success_of_a_request_tells_its_answer_and_not_its_address() -> None:
    work = Http("GET", "https://example.org/?key=secret")
    result = {"status": 200, "url": work.url, "content_type": "application/json", "bytes": 9, "json": {"ok": 1}}
    assert succeeded(work, result) == ['Result: HTTP 200, {"ok": 1}']
    assert succeeded(work, result | {"json": None}) == ["Result: HTTP 200"]


def test_what_a_run_counted_is_told() -> None:
    totals = {"copied": 1200.0, "errors": 3.0}
    assert succeeded(Function("copy"), None, totals=totals)[0] == "Totals: copied 1,200, errors 3"
    run = replace(RUN, state=RunState.SUCCEEDED, cause=Cause.ERRORS, reason="3 errors", totals=totals)
    told = message(Facts(run), data={"cause": "errors", "reason": "3 errors", "count": 1})
    assert told.title == "! nightly succeeded with errors"
    assert told.body.splitlines()[:2] == ["3 errors", "Totals: copied 1,200, errors 3"]


def test_control_characters_and_colours_do_not_get_through() -> None:
    assert last_lines(["\x1b[31mred\x1b[0m\x07", "a\rb"]) == ["red", "ab"]
    assert "\x1b" not in message(data={"reason": "\x1b[31mbad\x1b[0m"}).body


def test_only_the_last_lines_are_told() -> None:
    assert last_lines([f"line {n}" for n in range(100)]) == [f"line {n}" for n in range(92, 100)]
    assert len(last_lines(["x" * 1000])[0]) == 160


def test_a_success_with_errors_is_called_what_it_is() -> None:
    told = message(data={"cause": "errors", "reason": "3 errors", "count": 1})
    assert (told.title, told.body.splitlines()[0]) == ("! nightly succeeded with errors", "3 errors")


def test_a_recovery_says_how_long_and_how_many() -> None:
    closed = replace(INCIDENT, state=IncidentState.CLOSED, closed_at=AT)
    data = {"cause": "exit_status", "reason": "exit status 1", "count": 14}
    told = message(Facts(incident=closed), kind=NoticeKind.RECOVERED, data=data)
    assert told.title == "✓ nightly recovered"
    assert told.body.splitlines()[:2] == ["It is well again, after 1d2h, 14 failures.", "It was: exit status 1"]


def test_a_schedule_that_was_switched_off_says_how_it_is_switched_on() -> None:
    broken = replace(SCHEDULE, enabled=False, broken="3 failures in a row", next_run_at=None)
    told = message(Facts(schedule=broken), kind=NoticeKind.BROKEN, data={"reason": "3 failures in a row"})
    assert told.title == "✗ nightly was switched off"
    assert "ostinato schedule enable nightly" in told.body


def test_due_times_that_were_missed_are_counted() -> None:
    assert message(kind=NoticeKind.MISSED, data={"count": 3}).title == "! nightly missed 3 due times"
    assert message(kind=NoticeKind.MISSED, data={"count": 1}).title == "! nightly was missed"


def test_what_was_missed_is_counted_since_the_first_due_time() -> None:
    data = {"due_at": to_micros(AT - timedelta(hours=2)), "count": 9}
    incident = replace(INCIDENT, opened_at=AT, count=9)
    told = message(Facts(incident=incident), kind=NoticeKind.MISSED, data=data)
    assert "9 times since 2026-11-18 01:00 UTC" in told.body.splitlines()
    reopened = message(Facts(incident=INCIDENT), kind=NoticeKind.MISSED, data=data)
    assert "14 times since 2026-11-17 01:00 UTC" in reopened.body.splitlines()


def test_any_end_of_a_run_is_told_by_its_state() -> None:
    skipped = replace(RUN, state=RunState.SKIPPED, started_at=None)
    assert message(Facts(skipped), kind=NoticeKind.RUN).title == "! nightly was skipped"


def test_a_link_to_a_schedule_is_escaped() -> None:
    told = message(Facts(public_url="https://jobs.example.org"), run=None, schedule="a/b c")
    assert "https://jobs.example.org/schedules/a%2Fb%20c" in told.body


def test_many_become_one_message() -> None:
    kinds = [NoticeKind.FAILED] * 20 + [NoticeKind.RECOVERED, NoticeKind.BROKEN]
    many = [replace(DELIVERY, kind=kind, subject=f"job-{n}") for n, kind in enumerate(kinds)]
    told = compose(many, "4f2a9c77", Facts())
    assert told.title == "22 notices: 20 failed, 1 switched off, 1 recovered"
    lines = told.body.splitlines()
    assert lines[0] == "03:00 ✗ job-0 failed: exit status 1"
    assert (len(lines), lines[-3:]) == (23, ["and 2 more", "Times in UTC", "#4f2a9c77"])
    assert (told.run, told.schedule) == (None, None)


def test_each_of_many_has_its_time_in_the_zone_of_the_settings() -> None:
    missed = replace(DELIVERY, kind=NoticeKind.MISSED, data={"due_at": to_micros(AT - timedelta(days=1)), "count": 1})
    told = compose([DELIVERY, missed], "4f2a9c77", Facts(zone="Europe/Berlin"))
    assert told.body.splitlines() == [
        "2026-11-18 04:00 ✗ nightly failed: exit status 1",
        "2026-11-17 04:00 ! nightly was missed",
        "Times in Europe/Berlin",
        "#4f2a9c77",
    ]


def test_a_summary_counts_what_ended() -> None:
    data = {
        "since": to_micros(AT - timedelta(days=1)),
        "states": {"succeeded": 117, "failed": 3},
        "failed": [["nightly", 2], ["poll", 1]],
        "open": 1,
        "zone": "Europe/Berlin",
    }
    told = message(kind=NoticeKind.DIGEST, subject="shop", data=data, run=None)
    assert told.title == "Summary of shop: 120 runs, 3 failed"
    assert told.body.splitlines() == [
        "From 2026-11-17 04:00 CET to 2026-11-18 04:00 CET: 117 succeeded, 3 failed",
        "Failed: nightly (2), poll (1)",
        "1 open incident",
        "#4f2a9c77",
    ]


@pytest.mark.parametrize(
    ("kinds", "severity"),
    [
        ([NoticeKind.RECOVERED, NoticeKind.FAILED, NoticeKind.LATE], Severity.FAILURE),
        ([NoticeKind.SUCCEEDED, NoticeKind.MISSED, NoticeKind.RUN], Severity.WARNING),
        ([NoticeKind.SUCCEEDED, NoticeKind.RUN], Severity.INFO),
        ([NoticeKind.SUCCEEDED, NoticeKind.RECOVERED], Severity.SUCCESS),
        ([NoticeKind.BROKEN], Severity.FAILURE),
        ([NoticeKind.RUN], Severity.INFO),
    ],
)
def test_a_message_is_as_grave_as_the_worst_that_it_tells(kinds: list[NoticeKind], severity: Severity) -> None:
    told = compose([replace(DELIVERY, kind=kind) for kind in kinds], "4f2a9c77", Facts())
    assert told.severity is severity


@pytest.mark.parametrize(
    ("data", "severity"),
    [
        ({"states": {"succeeded": 9, "failed": 1}, "failed": [["nightly", 1]], "open": 0}, Severity.FAILURE),
        ({"states": {"succeeded": 9}, "failed": [["nightly", 1]], "open": 0}, Severity.FAILURE),
        ({"states": {"succeeded": 9, "missed": 1}, "failed": [], "open": 0}, Severity.WARNING),
        ({"states": {"succeeded": 9, "expired": 1}, "failed": [], "open": 0}, Severity.WARNING),
        ({"states": {}, "failed": [], "open": 1}, Severity.WARNING),
        ({"states": {"succeeded": 9, "skipped": 2}, "failed": [], "open": 0}, Severity.SUCCESS),
        ({"states": {}, "failed": [], "open": 0}, Severity.INFO),
    ],
)
def test_a_summary_is_as_grave_as_the_worst_that_it_counts(data: dict[str, Any], severity: Severity) -> None:
    assert message(kind=NoticeKind.DIGEST, subject="shop", data=data, run=None).severity is severity


def test_the_next_run_has_seconds_where_it_is_not_on_the_minute() -> None:
    assert SCHEDULE.next_run_at is not None
    soon = replace(SCHEDULE, next_run_at=SCHEDULE.next_run_at + timedelta(seconds=5))
    assert "Next run: 2026-11-19 03:00:05 CET" in message(Facts(schedule=soon)).body.splitlines()


def test_a_test_says_that_it_is_one() -> None:
    told = message(kind=NoticeKind.TEST, subject="phone", data={}, run=None)
    assert told.title == "Test of the channel phone"


def test_an_answer_is_what_the_run_says_and_nothing_else() -> None:
    said = replace(RUN, state=RunState.SUCCEEDED, work=Agent("hello"), result={"text": "Hello\n\nAda\n"})
    told = message(Facts(said), kind=NoticeKind.ANSWER)
    assert (told.title, told.body) == ("", "Hello\n\nAda")
    returned = replace(said, work=Function("greet"), result={"a": [1, "ä"]})
    assert message(Facts(returned), kind=NoticeKind.ANSWER).body == '{"a": [1, "ä"]}'
    assert message(Facts(replace(returned, result=None)), kind=NoticeKind.ANSWER).body == "Done."


def test_an_answer_that_failed_says_why() -> None:
    assert message(Facts(RUN), kind=NoticeKind.ANSWER).body == "It failed: exit status 1"
    assert message(kind=NoticeKind.ANSWER).body == "exit status 1"
