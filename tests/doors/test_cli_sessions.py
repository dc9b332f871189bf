"""`ostinato session`: what each verb does, prints and exits with."""

from __future__ import annotations

import io
import json
import signal
import sys
from typing import Any

import pytest

from ostinato.errors import Draining, MessageStale, OstinatoError
from ostinato.service.sessions import SessionService
from tests.doors.command_line import CommandLine, Process, eventually, use
from tests.engine.stand_in import StandIn

SESSION_KEYS = [
    "key", "running", "queued", "oldest_at", "max_concurrent", "throttled", "stopped_at", "sent_at",
    "cost_usd", "tokens_in", "tokens_out", "turns", "context_used", "context_window",
]  # fmt: skip
EVENT_KEYS = ["id", "at", "kind", "session", "run", "data"]

ANSWERING = """
import asyncio

from ostinato import Ostinato

app = Ostinato()


@app.task("answer", retry=0, lane="team")
async def answer(payloads):
    if payloads == ["wait"]:
        await asyncio.sleep(60)
    return payloads
"""


@pytest.fixture
def answering(cli: CommandLine) -> CommandLine:
    """The command line next to an app, `answering:app`, whose task takes messages."""
    (cli.folder / "answering.py").write_text(ANSWERING, encoding="utf-8")
    return cli


def _send(cli: CommandLine, key: str, payload: str, *flags: str) -> str:
    return cli.ok("session", "send", key, payload, "--task", "answer", "--debounce", "0s", *flags).out.strip()


def _payloads(cli: CommandLine, run: str) -> Any:
    return cli.ok("run", "show", run, "--json").json["work"]["kwargs"]["payloads"]


def _states(cli: CommandLine) -> list[str]:
    """Of all runs, the oldest first."""
    return [run["state"] for run in cli.ok("run", "ls", "--json").json][::-1]


def _up(cli: CommandLine, *flags: str) -> Process:
    up = cli.start("up", "--app", "answering:app", *flags)
    eventually(lambda: "Ctrl-C to stop" in up.err, "up is ready")
    return up


@pytest.mark.parametrize(
    ("typed", "payload"),
    [
        ('{"text": "hi", "n": [1, null]}', {"text": "hi", "n": [1, None]}),
        ("3", 3),
        ("-5", -5),
        ('"quoted"', "quoted"),
        ("hi there", "hi there"),
        ("- an item", "- an item"),
        ("{broken", "{broken"),
        ("NaN", "NaN"),
        ("[" * 100_000, "[" * 100_000),
        ("", ""),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_payload_is_json_where_it_is_json_and_else_text(cli: CommandLine, typed: str, payload: Any) -> None:
    assert _payloads(cli, _send(cli, "dm:1", typed)) == [payload]


def test_any_text_can_be_sent_behind_two_hyphens(cli: CommandLine) -> None:
    cli.ok("session", "send", "dm:1", "--task", "answer", "--", "--wait")
    assert _payloads(cli, "1") == ["--wait"]


def test_a_hyphen_reads_the_payload_from_standard_input(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    for typed in ('{"a": 1}\n', "two\nlines\n"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode())))
        cli.ok("session", "send", "dm:1", "-", "--task", "answer", "--debounce", "0s")
    assert [_payloads(cli, run) for run in ("1", "2")] == [[{"a": 1}], ["two\nlines"]]


def test_standard_input_that_is_not_text_is_wrong_usage(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe")))
    answer = cli("session", "send", "dm:1", "-", "--task", "answer")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: standard input is not text")


def test_send_prints_the_number_of_the_run_and_warns_that_nobody_is_there(cli: CommandLine) -> None:
    sent = cli.ok("session", "send", "dm:42", "hi", "--task", "answer")
    assert sent.out == "1\n"
    assert "warning: no engine is running" in sent.err
    assert "run 1 of session 'dm:42' is queued" in sent.err
    run = cli.ok("session", "send", "dm:43", "hi", "--task", "answer", "--lane", "team", "--json").json
    assert (run["id"], run["trigger"], run["session"], run["lane"]) == (2, "message", "dm:43", "team")


def test_a_burst_goes_into_one_run(cli: CommandLine) -> None:
    flags = ("--task", "answer", "--debounce", "1h", "--debounce-max", "2h")
    assert [cli.ok("session", "send", "dm:1", text, *flags).out for text in ("a", "b", "c")] == ["1\n"] * 3
    assert _payloads(cli, "1") == ["a", "b", "c"]


def test_the_same_message_is_sent_once(cli: CommandLine) -> None:
    assert [_send(cli, "dm:1", "hi", "--message-id", "m1") for _ in range(2)] == ["1", "1"]
    assert _payloads(cli, "1") == ["hi"]
    assert _send(cli, "dm:2", "hi", "--message-id", "m1") == "2"
    cli.ok("session", "stop-all", "dm:1")
    again = cli.ok("session", "send", "dm:1", "hi", "--task", "answer", "--message-id", "m1")
    assert (again.out, again.err.splitlines()[-1]) == ("1\n", "run 1 of session 'dm:1' is cancelled")


def test_a_full_queue_drops_the_oldest_or_refuses_the_new(cli: CommandLine) -> None:
    for text in ("a", "b"):
        _send(cli, "dm:1", text)
    refused = cli("session", "send", "dm:1", "c", "--task", "answer", "--cap", "2", "--drop", "new", "--debounce", "0s")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("error: the queue of session 'dm:1' is full (cap is 2)")
    assert _send(cli, "dm:1", "c", "--cap", "2", "--drop", "old") == "3"
    assert _states(cli) == ["skipped", "queued", "queued"]


def test_an_interrupt_takes_the_place_of_what_waits(cli: CommandLine) -> None:
    _send(cli, "dm:1", "a")
    _send(cli, "dm:1", "b", "--mode", "interrupt", "--max-concurrent", "3")
    assert _states(cli) == ["superseded", "queued"]
    assert cli.ok("session", "show", "dm:1", "--json").json["max_concurrent"] == 3


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--mode", "later"], "later"),
        (["--drop", "both"], "both"),
        (["--cap", "0"], "cap cannot be 0"),
        (["--max-concurrent", "0"], "max_concurrent cannot be 0"),
        (["--debounce", "800"], "has no unit"),
        (["--debounce-max", "soon"], "soon"),
    ],
)
def test_a_wrong_flag_exits_with_2_and_sends_nothing(cli: CommandLine, flags: list[str], told: str) -> None:
    answer = cli("session", "send", "dm:1", "hi", "--task", "answer", *flags)
    assert (answer.code, answer.out) == (2, "")
    assert told in answer.err
    assert "Traceback" not in answer.err
    assert cli.ok("session", "ls", "--json").json == []


@pytest.mark.parametrize(
    "error", [Draining("it drains"), MessageStale("it was stopped")], ids=lambda e: type(e).__name__
)
def test_a_message_that_is_not_taken_exits_with_1(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, error: OstinatoError
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(SessionService, "send", refuse)
    answer = cli("session", "send", "dm:1", "hi", "--task", "answer", "--json")
    assert (answer.code, answer.out, answer.error) == (1, "", {"error": str(error)})


def test_sessions_are_listed_the_latest_message_first(cli: CommandLine) -> None:
    for key in ("dm:1", "dm:2", "team:1"):
        _send(cli, key, "hi")
    cli.ok("session", "stop-all", "dm:2")
    sessions = cli.ok("session", "ls", "--json").json
    assert [list(session) for session in sessions] == [SESSION_KEYS] * 3
    assert [session["key"] for session in sessions] == ["team:1", "dm:2", "dm:1"]
    assert [one["key"] for one in cli.ok("session", "ls", "--search", "DM", "--json").json] == ["dm:2", "dm:1"]
    assert [one["key"] for one in cli.ok("session", "ls", "--busy", "--json").json] == ["team:1", "dm:1"]
    assert len(cli.ok("session", "ls", "--limit", "1", "--json").json) == 1
    lines = cli.ok("session", "ls").out.splitlines()
    assert lines[0].split() == ["KEY", "RUNNING", "QUEUED", "OLDEST", "SENT", "STOPPED"]
    assert lines[1].split()[:3] == ["team:1", "0/1", "1"]


def test_show_tells_settings_what_waits_and_what_happened(cli: CommandLine) -> None:
    for text in ("first", "second"):
        _send(cli, "dm:1", text, "--max-concurrent", "2")
    _send(cli, "dm:2", "of another")
    shown = cli.ok("session", "show", "dm:1").out
    for told in ("running: 0 of at most 2", "queued: 2, the oldest for ", '["first"]', '["second"]', "enqueued"):
        assert told in shown
    assert "of another" not in shown
    session = cli.ok("session", "show", "dm:1", "--json").json
    assert list(session) == [*SESSION_KEYS, "runs", "events"]
    assert {name: session[name] for name in SESSION_KEYS} == cli.ok("session", "ls", "--json").json[1]
    assert [run["id"] for run in session["runs"]] == [1, 2]
    assert [(list(event), event["kind"], event["run"]) for event in session["events"]] == [
        (EVENT_KEYS, "enqueued", 1),
        (EVENT_KEYS, "enqueued", 2),
    ]


def test_show_tells_the_latest_events_only(cli: CommandLine) -> None:
    for _ in range(12):
        cli.ok("session", "stop-all", "dm:1")
    assert [event["id"] for event in cli.ok("session", "show", "dm:1", "--json").json["events"]] == list(range(3, 13))


def test_stop_and_stop_all_say_how_many_they_cancelled_and_dropped(cli: CommandLine) -> None:
    for text in ("a", "b", "c"):
        _send(cli, "dm:1", text)
    assert cli.ok("session", "stop", "dm:1").err == "stopped: session 'dm:1', 0 cancelled, 1 dropped\n"
    assert cli.ok("session", "stop-all", "dm:1", "--json").json == {"key": "dm:1", "cancelled": 0, "dropped": 2}
    assert cli.ok("session", "stop-all", "dm:1").err == "nothing to stop in session 'dm:1': 0 cancelled, 0 dropped\n"
    assert _states(cli) == ["cancelled"] * 3
    assert "earlier messages do not start" in cli.ok("session", "show", "dm:1").out


def test_events_are_one_object_a_line_after_a_number(cli: CommandLine) -> None:
    _send(cli, "dm:1", "hi")
    _send(cli, "dm:2", "hi")
    cli.ok("session", "stop-all", "dm:1")
    lines = [json.loads(line) for line in cli.ok("session", "events", "--json").out.splitlines()]
    assert [list(line) for line in lines] == [EVENT_KEYS] * 4
    assert [(one["kind"], one["session"], one["run"]) for one in lines] == [
        ("enqueued", "dm:1", 1),
        ("enqueued", "dm:2", 2),
        ("finished", "dm:1", 1),
        ("stopped", "dm:1", None),
    ]
    of_one = cli.ok("session", "events", "dm:1", "--after", "1", "--json").out.splitlines()
    assert [json.loads(line) for line in of_one] == lines[2:]
    shown = cli.ok("session", "events", "dm:1").out.splitlines()
    assert shown[0].split()[2:] == ["enqueued", "dm:1,", "run", "1"]
    assert shown[2].endswith("stopped    dm:1: 0 cancelled, 1 dropped")


def test_events_are_followed_until_an_interrupt(cli: CommandLine) -> None:
    _send(cli, "dm:1", "before")
    with cli.start("session", "events", "dm:1", "-f", "--json") as following:
        eventually(lambda: following.out.count("\n") == 1, "what has happened is told")
        _send(cli, "dm:2", "of another")
        _send(cli, "dm:1", "meanwhile")
        eventually(lambda: following.out.count("\n") == 2, "what happens is told")
        following.signal(signal.SIGINT)
        assert following.wait() == 130
    assert [json.loads(line)["run"] for line in following.out.splitlines()] == [1, 3]
    assert "Traceback" not in following.err


def test_a_waiting_sender_is_told_that_its_message_was_dropped(cli: CommandLine) -> None:
    with cli.start("session", "send", "dm:1", "hi", "--task", "answer", "--debounce", "0s", "--wait") as waiting:
        eventually(lambda: "waiting for run 1" in waiting.err, "the sender waits")
        _send(cli, "dm:1", "newer", "--cap", "1")
        assert waiting.wait() == 1
    assert waiting.out == "1\n"
    assert "error: the message of run 1 was dropped: the queue of session 'dm:1' was full" in waiting.err


def test_a_schedule_can_wait_its_turn_in_a_session(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "a", "every 5m", "--task", "hello", "--session", "dm:1")
    assert cli.ok("schedule", "show", "a", "--json").json["policy"]["session"] == "dm:1"
    _send(cli, "dm:1", "hi")
    cli.ok("schedule", "trigger", "a")
    runs = cli.ok("session", "show", "dm:1", "--json").json["runs"]
    assert [(run["schedule"], run["session"]) for run in runs] == [(None, "dm:1"), ("a", "dm:1")]
    cli.ok("schedule", "edit", "a", "--session", "none")
    assert cli.ok("schedule", "show", "a", "--json").json["policy"]["session"] is None


def test_messages_are_answered_interrupted_and_stopped(answering: CommandLine) -> None:
    _tell_the_story(answering)


def test_the_same_commands_work_on_postgresql(
    answering: CommandLine, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OSTINATO_DB", postgres_url)
    _tell_the_story(answering)


def _tell_the_story(cli: CommandLine) -> None:
    send = ("--task", "answer", "--debounce", "0s")
    with _up(cli, "--rate", "main=100/s") as up:
        done = cli.ok("session", "send", "dm:1", "hi", *send, "--wait", "--timeout", "20s")
        assert (done.out.strip(), done.err.splitlines()[-1]) == ("1", "run 1 succeeded")
        assert "warning" not in done.err
        cli.ok("session", "send", "dm:1", "wait", *send)
        eventually(lambda: cli.ok("session", "show", "dm:1", "--json").json["running"], "the run is under way")
        timed_out = cli("session", "send", "dm:1", "hi", *send, "--wait", "--timeout", "20ms")
        assert timed_out.code == 5
        newer = cli.ok("session", "send", "dm:1", "wait", *send, "--mode", "interrupt").out.strip()
        eventually(
            lambda: (
                [(run["id"], run["state"]) for run in cli.ok("session", "show", "dm:1", "--json").json["runs"]]
                == [(int(newer), "running")]
            ),
            "the newer one is under way",
        )
        assert cli.ok("session", "send", "dm:1", "last", *send).code == 0
        stopped = cli.ok("session", "stop-all", "dm:1", "--json").json
        assert (stopped["cancelled"], stopped["dropped"]) == (1, 1)
        assert cli("run", "wait", newer, "--timeout", "20s").code == 1
        assert [lane["rate"] for lane in cli.ok("lane", "ls", "--json").json if lane["name"] == "main"] == ["100/s"]
        up.signal(signal.SIGTERM)
        assert up.wait() == 0
    states = _states(cli)
    assert states == ["succeeded", "superseded", "superseded", "cancelled", "cancelled"]
    kinds = [json.loads(line)["kind"] for line in cli.ok("session", "events", "dm:1", "--json").out.splitlines()]
    assert (kinds.count("enqueued"), kinds.count("started"), kinds.count("finished")) == (5, 3, 5)
    assert kinds.count("stopped") == 1


def test_the_policy_of_the_task_holds_if_the_app_is_named(answering: CommandLine) -> None:
    _send(answering, "dm:1", "hi", "--app", "answering:app")
    _send(answering, "dm:1", "hi", "--app", "answering:app", "--lane", "cron")
    runs = answering.ok("run", "ls", "--json").json
    assert [run["lane"] for run in runs] == ["cron", "team"]


def test_a_message_can_say_how_often_and_how_soon_it_is_tried(cli: CommandLine) -> None:
    _send(cli, "dm:1", "hi", "--priority", "7", "--retry", "5,base=1s")
    assert cli.ok("run", "show", "1", "--json").json["priority"] == 7
    wrong = cli("session", "send", "dm:1", "hi", "--task", "answer", "--retry", "often")
    assert (wrong.code, "retry cannot be 'often'" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ([], "a message goes to a task or to an agent; give --task NAME or --agent"),
        (["--task", "answer", "--agent"], "not to both; give either --task or --agent"),
        (["--task", "answer", "--allowed-tool", "Read"], "--allowed-tool goes with --agent"),
        (["--model", "opus"], "--model goes with --agent"),
        (["--agent", "--context", "group"], "a message continues the conversation of its session"),
        (["--agent", "--env", "TOKEN"], "--env cannot be 'TOKEN'; write --env NAME=VALUE"),
        (["--agent", "--budget", "much"], "budget cannot be 'much'"),
        (["--agent", "--run-timeout", "long"], "timeout"),
        (["--agent", "--max-age", "old"], "max_age"),
    ],
)
def test_who_gets_a_message_and_how_must_be_clear(cli: CommandLine, flags: list[str], told: str) -> None:
    answer = cli("session", "send", "dm:1", "hi", *flags)
    assert (answer.code, answer.out) == (2, "")
    assert told in answer.err
    assert cli.ok("session", "ls", "--json").json == []


def test_the_text_for_an_agent_is_its_prompt_as_it_is(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    (cli.folder / "blog").mkdir()
    cli.ok("project", "add", "blog", "blog")
    flags = (
        "--model", "opus", "--system", "Be brief.", "--permission-mode", "acceptEdits", "--env", "TOKEN=env:TOKEN",
        "--allowed-tool", "Read", "--allowed-tool", "Bash(git *)", "--folder", "sub", "--max-age", "1h",
        "--run-timeout", "none", "--budget", "per_run_usd=1,per_day_usd=5",
    )  # fmt: skip
    cli.ok("session", "send", "dm:1", '{"not": "json"}', "--agent", *flags)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"two\nlines\n")))
    cli.ok("session", "send", "dm:2", "-", "--agent", "--project", "blog", "--folder", "sub", "--context", "isolated")
    second, first = cli.ok("run", "ls", "--json").json
    work = first["work"]
    assert (work["prompt"], work["context"], work["model"]) == ('{"not": "json"}', "session:dm:1", "opus")
    assert (work["system"], work["permission_mode"]) == ("Be brief.", "acceptEdits")
    assert (work["allowed_tools"], work["env"]) == (["Read", "Bash(git *)"], {"TOKEN": "env:TOKEN"})
    assert (work["folder"], first["project"], first["session"]) == (str(cli.folder / "sub"), None, "dm:1")
    assert (second["work"]["prompt"], second["work"]["context"]) == ("two\nlines", "isolated")
    assert (second["work"]["folder"], second["project"]) == ("sub", "blog")


def test_what_is_not_said_is_as_the_settings_say(cli: CommandLine) -> None:
    (cli.folder / "ostinato.toml").write_text('[sessions]\ndebounce = "1h"\n[sessions."dm:*"]\ncap = 1\ndrop = "new"\n')
    assert [cli.ok("session", "send", "dm:1", text, "--agent").out for text in ("a", "b")] == ["1\n", "1\n"]
    full = cli("session", "send", "dm:1", "c", "--agent", "--debounce", "0s")
    assert (full.code, "is full (cap is 1)" in full.err) == (1, True)


def test_a_waiting_sender_gets_the_answer_of_the_agent_and_nothing_else(cli: CommandLine, agents: StandIn) -> None:
    flags = ("--agent", "--debounce", "0s", "--wait", "--timeout", "60s")
    first = cli.ok("session", "send", "dm:1", "Hello", *flags)
    assert first.out == "message 1: Hello\n"
    assert first.err == "waiting for run 1 to end\nrun 1 succeeded\n"
    assert cli.ok("session", "send", "dm:1", "And again", *flags).out == "message 2: And again\n"
    run = cli.ok("session", "send", "dm:1", "Once more", *flags, "--json").json
    assert (run["state"], run["result"]["text"]) == ("succeeded", "message 3: Once more")
    failed = cli("session", "send", "dm:1", "play:error", *flags, "--retry", "0")
    assert (failed.code, failed.out) == (1, "")
    assert "run 4 failed: API Error: 500 overloaded" in failed.err
    timed_out = cli("session", "send", "dm:1", "play:hang", "--agent", "--wait", "--timeout", "20ms")
    assert (timed_out.code, timed_out.out) == (5, "")


def test_the_timeout_of_a_run_is_not_that_of_the_wait(cli: CommandLine, agents: StandIn) -> None:
    flags = ("--agent", "--wait", "--timeout", "60s", "--run-timeout", "200ms", "--retry", "0")
    late = cli("session", "send", "dm:1", "play:hang", *flags)
    assert (late.code, late.out) == (1, "")
    assert "timed out after 200ms" in late.err


def test_what_a_session_has_used_is_listed_and_shown(cli: CommandLine) -> None:
    cli.ok("session", "send", "dm:1", "Summarise\nthe news", "--agent")
    _send(cli, "dm:2", "hi")
    assert "used:" not in cli.ok("session", "show", "dm:1").out
    use(cli.folder, "dm:1", cost=1_250_000, tokens_in=4_000, tokens_out=50, turns=3, context_used=90_000)
    shown = cli.ok("session", "show", "dm:1").out
    assert "   used: $1.25, 4,000 tokens in, 50 out, 3 turns\n" in shown
    assert "context: 90,000 tokens\n" in shown
    assert "agent claude  Summarise the news" in shown
    use(cli.folder, "dm:1", cost=1_500, context_window=200_000)
    assert "context: 90,000 of 200,000 tokens, 45%\n" in cli.ok("session", "show", "dm:1").out
    title, *rows = cli.ok("session", "ls").out.splitlines()
    assert title.split()[-2:] == ["STOPPED", "COST"]
    assert [row.split()[-1] for row in rows] == ["-", "$0.0015"]


def test_how_long_to_wait_is_not_how_long_a_run_may_take(cli: CommandLine) -> None:
    refused = cli("session", "send", "dm:42", "hi", "--agent", "--timeout", "3s")
    assert refused.code == 2
    assert "--timeout is how long --wait waits" in refused.err
