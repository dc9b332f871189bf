"""`ostinato session chat`: at a real terminal and in a pipe, with an agent's stand-in and with a task."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from collections.abc import Callable

import pytest

from ostinato.cli.open_database import os_user
from ostinato.cli.session.typed_lines import TerminalLines
from tests.conftest import tuned
from tests.doors.command_line import Answer, CommandLine, eventually, use
from tests.doors.terminal import Terminal
from tests.engine.stand_in import StandIn
from tests.processes import lives

Piped = Callable[..., Answer]


@pytest.fixture
def piped(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Piped:
    """A chat whose lines come from a pipe."""

    def chat(lines: str, *flags: str) -> Answer:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
        return cli("session", "chat", "desk", *flags)

    return chat


def _states(cli: CommandLine) -> list[str]:
    """Of all runs, the oldest first."""
    return [run["state"] for run in cli.ok("run", "ls", "--json").json][::-1]


def test_each_line_of_a_pipe_is_answered_before_the_next_is_sent(piped: Piped, agents: StandIn) -> None:
    told = piped("Hello\nAnd again\n", "--agent", "--model", "opus")
    assert told.code == 0, told
    assert [line for line in told.out.splitlines() if line.startswith("message")] == [
        "message 1: Hello",
        "message 2: And again",
    ]
    assert "→ Bash: ls -la /srv" in told.out
    assert told.err == "session 'desk' with agent claude, model opus; /help lists the commands\n"
    assert [call["prompt"] for call in agents.calls] == ["Hello", "And again"]


def test_a_line_that_ends_with_a_backslash_goes_on_in_the_next(piped: Piped, agents: StandIn) -> None:
    assert piped("one\\\ntwo\n\n  \nthree\\\n").code == 0
    assert [call["prompt"] for call in agents.calls] == ["one\ntwo", "three\n"]


def test_an_answer_that_was_said_already_is_not_printed_twice(piped: Piped, agents: StandIn) -> None:
    told = piped("Hello\n", "--agent", "--cli", "plain", "--context", "isolated")
    assert (told.code, told.out) == (0, "I know\nnothing\n")


def test_a_failure_is_told_and_is_the_exit_code_of_a_pipe(piped: Piped, agents: StandIn) -> None:
    told = piped("play:error\nHello\n", "--retry", "0")
    assert told.code == 1
    assert "run 1 failed: API Error: 500 overloaded" in told.err
    assert "message 2: Hello" in told.out


def test_an_answer_with_errors_is_printed_and_they_are_told(piped: Piped, agents: StandIn) -> None:
    told = piped("Hello\n", "--task", "stumble")
    assert (told.code, told.out) == (0, '["Hello"]\n')
    assert told.err.splitlines()[-1] == "run 1 succeeded: 1 error"


def test_a_message_that_is_refused_does_not_end_the_chat(piped: Piped, agents: StandIn) -> None:
    told = piped("Hello\n/stpo\n /srv is full\n/help\n/cost\n/quit\nnever sent\n", "--project", "nowhere")
    assert told.code == 1
    assert "error: there is no project 'nowhere'" in told.err
    assert "there is no /stpo: /help lists the commands; begin with a space to send it" in told.err
    assert "/stop-all  stop it, and drop everything that waits in this session" in told.err
    assert "error: there is no session 'desk'" in told.err
    assert agents.calls == []


def test_cost_tells_what_the_session_has_used(cli: CommandLine, piped: Piped) -> None:
    cli.ok("session", "send", "desk", "Hello", "--agent")
    assert "this session has used nothing so far" in piped("/cost\n").err
    use(cli.folder, "desk", cost=1_250_000, tokens_in=4_000, tokens_out=50, turns=1)
    assert "$1.25, 4,000 tokens in, 50 out, 1 turn\n" in piped("/cost\n").err
    use(cli.folder, "desk", context_used=134_000, context_window=200_000)
    assert piped("/cost\n").err.endswith("context: 134,000 of 200,000 tokens, 67%\n")


def test_without_a_name_it_talks_with_whoever_got_the_last_message(
    cli: CommandLine, piped: Piped, agents: StandIn
) -> None:
    (cli.folder / "blog").mkdir()
    cli.ok("project", "add", "blog", "blog")
    flags = ("--agent", "--model", "opus", "--system", "Be brief.", "--project", "blog")
    cli.ok("session", "send", "desk", "Hello", *flags, "--wait", "--timeout", "60s")
    told = piped("And again\n")
    assert told.err == "session 'desk' with agent claude, model opus, project blog; /help lists the commands\n"
    assert told.out.endswith("message 2: And again\n")
    first, second = agents.calls
    assert second["folder"] == first["folder"] == str(cli.folder / "blog")
    assert second["argv"][second["argv"].index("--model") + 1] == "opus"
    assert "Be brief." in second["argv"][second["argv"].index("--append-system-prompt") + 1]
    assert piped("hi\n", "--task", "echo").out == '["hi"]\n'
    assert "session 'desk' with task 'echo'; /help" in piped("", "--project", "none").err


def test_json_is_a_line_for_each_line_and_then_the_run(piped: Piped, agents: StandIn) -> None:
    *lines, run = [json.loads(line) for line in piped("Hello\n", "--json").out.splitlines()]
    assert lines[1]["line"] == "Let me look."
    assert (run["state"], run["result"]["text"]) == ("succeeded", "message 1: Hello")


def test_it_warns_if_no_engine_is_running(piped: Piped) -> None:
    assert "warning: no engine is running on this database" in piped("").err


def test_a_person_talks_with_an_agent_and_leaves_by_ctrl_d(cli: CommandLine, agents: StandIn) -> None:
    with Terminal(cli.folder, "session", "chat", "desk", "--agent") as chat:
        chat.enter("Hello")
        chat.shows("\nLet me look.\nThere is much to see.\n→ Bash: ls -la /srv\nmessage 1: Hello\n")
        chat.enter("And \\")
        chat.shows("...> ")
        chat.type("again\r")
        chat.shows("\nmessage 2: And\n")
        chat.shows("you> ")
        chat.type("\x04")
        assert chat.wait() == 0
    assert [call["prompt"] for call in agents.calls] == ["Hello", "And \nagain"]
    assert _states(cli) == ["succeeded", "succeeded"]


def test_ctrl_c_stops_the_answer_and_stays_in_the_chat(cli: CommandLine, agents: StandIn) -> None:
    with Terminal(cli.folder, "session", "chat", "desk") as chat:
        chat.enter("play:hang")
        chat.shows("I wait.\n")
        eventually((cli.folder / "pids").exists, "the agent works")
        chat.type("\x03")
        chat.shows("stopped: session 'desk', 1 cancelled, 0 dropped\n")
        chat.shows("run 1 cancelled: its session was stopped\n")
        assert not any(lives(int(pid)) for pid in (cli.folder / "pids").read_text().split())
        chat.enter("Hello")
        chat.shows(": Hello\n")
    assert _states(cli) == ["cancelled", "succeeded"]


def test_ctrl_c_while_a_message_waits_for_its_turn_takes_back_that_message_alone(
    cli: CommandLine, agents: StandIn
) -> None:
    cli.ok("session", "send", "desk", "play:hang", "--agent", "--debounce", "0s")
    eventually((cli.folder / "pids").exists, "the agent works for somebody else")
    with Terminal(cli.folder, "session", "chat", "desk") as chat:
        chat.enter("Hello")
        eventually(lambda: _states(cli) == ["running", "queued"], "the message was sent")
        chat.type("\x03")
        chat.shows(f"run 2 cancelled: cancelled by {os_user()}\n")
        chat.shows("you> ")
    assert _states(cli) == ["running", "cancelled"]


def test_ctrl_c_at_the_prompt_takes_back_what_is_typed_and_leaves_if_nothing_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Not at a real terminal: readline overlooks a signal that comes in the moment before it waits for keys.
    keys = iter([("one\\", "\n"), ("", "\x03"), ("half a thought", "\x03"), ("two", "\n"), ("", "\x03")])

    def typed(prompt: str) -> str:
        text, pressed = next(keys)
        if pressed == "\n":
            return text
        monkeypatch.setattr("readline.get_line_buffer", lambda: text)
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", typed)
    lines = TerminalLines()
    assert [lines.message(), lines.message()] == ["two", None]


def test_what_is_typed_while_the_agent_works_interrupts_it(cli: CommandLine, agents: StandIn) -> None:
    with Terminal(cli.folder, "session", "chat", "desk") as chat:
        chat.enter("play:hang")
        chat.shows("I wait.\n")
        chat.type("Stop that\r")
        chat.shows("run 1 superseded: interrupted by a newer message of its session\n")
        chat.shows(": Stop that\n")
        chat.enter("/quit")
        assert chat.wait() == 0
    assert _states(cli) == ["superseded", "succeeded"]


def test_with_a_debounce_lines_become_one_prompt(cli: CommandLine) -> None:
    with Terminal(cli.folder, "session", "chat", "desk", "--debounce", "1h") as chat:
        chat.enter("one")
        eventually(lambda: _states(cli) == ["queued"], "the first was sent")
        chat.type("two\r")
        eventually(lambda: _states(cli) == ["queued", "skipped"], "the second has joined it")
    assert cli.ok("run", "show", "1", "--json").json["work"]["prompt"] == "one\n\ntwo"


def test_in_mode_queue_what_is_typed_meanwhile_follows(cli: CommandLine, agents: StandIn) -> None:
    with Terminal(cli.folder, "session", "chat", "desk", "--mode", "queue") as chat:
        chat.enter("play:wait")
        chat.shows("I wait.\n")
        chat.type("and then\r/cost\r")
        chat.shows("this session has used nothing so far")
        (cli.folder / "go").touch()
        chat.shows("\nmessage 1: play:wait\n")
        chat.shows("\nmessage 2: and then\n")
    assert _states(cli) == ["succeeded", "succeeded"]


def test_what_is_half_typed_when_the_answer_comes_stands_at_the_next_prompt(cli: CommandLine, agents: StandIn) -> None:
    with Terminal(cli.folder, "session", "chat", "desk") as chat:
        chat.enter("play:wait")
        chat.shows("I wait.\n")
        chat.type("And ag")
        chat.shows("And ag")
        (cli.folder / "go").touch()
        chat.shows("message 1: play:wait\n")
        chat.shows("you> And ag")
        chat.type("ain\r")
        chat.shows("message 2: And again\n")


@pytest.mark.parametrize("leave", ["\x04", "/quit\r"], ids=["ctrl-d", "quit"])
def test_whoever_leaves_leaves_the_run_alone(cli: CommandLine, agents: StandIn, leave: str) -> None:
    with Terminal(cli.folder, "session", "chat", "desk", "--run-timeout", "1h") as chat:
        chat.enter("play:hang")
        chat.shows("I wait.\n")
        chat.type(leave)
        chat.shows("run 1 goes on; 'ostinato run logs 1 -f' follows it\n")
        assert chat.wait() == 0
    assert _states(cli) == ["running"]


@tuned(command_kill_seconds=600)
def test_a_second_ctrl_c_leaves_an_agent_that_does_not_stop(cli: CommandLine, agents: StandIn) -> None:
    with Terminal(cli.folder, "session", "chat", "desk") as chat:
        chat.enter("play:deaf")
        eventually((cli.folder / "pids").exists, "the agent works")
        chat.type("\x03")
        chat.shows("1 cancelled")
        chat.type("\x03")
        chat.shows("run 1 goes on")
        assert chat.wait() == 0
    assert _states(cli) == ["running"]
    os.killpg(int((cli.folder / "pids").read_text().split()[0]), signal.SIGKILL)


def test_what_an_agent_says_does_not_command_the_terminal(cli: CommandLine, agents: StandIn) -> None:
    with Terminal(cli.folder, "session", "chat", "desk") as chat:
        chat.enter("a\x16\x1b]0;title\x16\x07b")
        chat.shows("message 1: ab\n")
