"""`ostinato exec` in a conversation: real processes wait for their turn, answer all, and leave no session blocked."""

from __future__ import annotations

import json
import signal
import sys

import pytest

from tests.doors.command_line import HASTY, PROGRAM, CommandLine, Process, eventually
from tests.processes import lives

AGENT = f"""
import os, pathlib, subprocess, sys, time

prompt = sys.stdin.read().strip().splitlines()[-1]
name = prompt.split()[0]
if "inside" not in os.environ:  # what is called inside of another agent's turn is beside it
    os.mkdir("busy")  # fails while another one is at it
with open("order", "a") as order:
    order.write(name + "\\n")
pathlib.Path(f"pid-{{name}}.part").write_text(str(os.getpid()))
os.rename(f"pid-{{name}}.part", f"pid-{{name}}")
if "asks" in prompt:
    asks = [*{PROGRAM!r}, "exec", "--cli", "mine", "--context", "session:q", "--agent"]
    both = [subprocess.Popen([*asks, name], env=dict(os.environ, inside="1")) for name in ("inner-1", "inner-2")]
    print([each.wait() for each in both])
elif "inner" in prompt:
    os.mkdir("busy-inside")
    time.sleep(0.1)
    os.rmdir("busy-inside")
else:
    deadline = time.monotonic() + 60
    while not os.path.exists(f"go-{{name}}") and time.monotonic() < deadline:
        time.sleep(0.01)
if "inside" not in os.environ:
    os.rmdir("busy")
print("answer of", name)
"""
"""It notes when it begins, fails if another one is at work, and goes on when the test says so."""


@pytest.fixture
def chat(cli: CommandLine) -> CommandLine:
    """The command line, with an agent called `mine`, in processes whose death is soon noticed."""
    (cli.folder / "agent.py").write_text(AGENT)
    command = json.dumps([sys.executable, str(cli.folder / "agent.py")])
    (cli.folder / "ostinato.toml").write_text(f"[agents.mine]\ncommand = {command}\nresume = {command}\n")
    (cli.folder / "hasty.py").write_text("from ostinato import Ostinato\n\napp = Ostinato()\n" + HASTY)
    return cli


def ask(chat: CommandLine, name: str, *flags: str) -> Process:
    """Ask the agent in the conversation `q`; its prompt begins with the name of this call."""
    given = ("--cli", "mine", "--context", "session:q", "--app", "hasty:app", *flags)
    return chat.start("exec", "--agent", name, *given, name=name)


def waits(process: Process, run: int) -> None:
    eventually(lambda: f"run {run}: session 'q' is busy: run " in process.err, "it waits")


def order(chat: CommandLine) -> list[str]:
    return (chat.folder / "order").read_text().split()


def begun(chat: CommandLine, name: str) -> int:
    """Wait until the agent of this call has begun; answers its process."""
    noted = chat.folder / f"pid-{name}"
    eventually(noted.exists, f"{name} begins")
    return int(noted.read_text())


def go(chat: CommandLine, *names: str) -> None:
    for name in names:
        (chat.folder / f"go-{name}").touch()


def states(chat: CommandLine) -> list[tuple[int, str, str | None]]:
    """What became of each run, the oldest first."""
    return [(run["id"], run["state"], run["cause"]) for run in chat.ok("run", "ls", "--json").json[::-1]]


def test_two_at_once_go_one_after_the_other_and_both_answer(chat: CommandLine) -> None:
    with ask(chat, "first") as first:
        begun(chat, "first")
        with ask(chat, "second") as second:
            waits(second, 2)
            assert "session 'q' is busy: run 1 is running since " in second.err
            assert order(chat) == ["first"]
            go(chat, "first", "second")
            assert (first.wait(), second.wait()) == (0, 0)
    assert (first.out, second.out) == ("answer of first\n", "answer of second\n")
    assert order(chat) == ["first", "second"]
    assert second.err.count("session 'q' is busy") == 1
    assert second.err.endswith("run 2 begins\nrun 2 succeeded\n")


def test_no_wait_says_by_whom_the_session_is_busy_and_leaves_no_row(chat: CommandLine) -> None:
    with ask(chat, "first") as first:
        begun(chat, "first")
        refused = chat("exec", "--agent", "no", "--cli", "mine", "--context", "session:q", "--no-wait")
        assert (refused.code, refused.out) == (1, "")
        assert "session 'q' is busy: run 1 has its turn" in refused.err
        assert len(states(chat)) == 1
        go(chat, "first")
        assert first.wait() == 0
    go(chat, "third")
    free = chat("exec", "--agent", "third", "--cli", "mine", "--context", "session:q", "--no-wait")
    assert (free.code, free.out) == (0, "answer of third\n")


def test_an_interrupt_while_it_waits_ends_only_that_one(chat: CommandLine) -> None:
    with ask(chat, "first") as first:
        begun(chat, "first")
        with ask(chat, "second") as second:
            waits(second, 2)
            second.signal(signal.SIGINT)
            assert second.wait() == 130
        go(chat, "first")
        assert first.wait() == 0
    assert states(chat) == [(1, "succeeded", None), (2, "cancelled", "cancelled")]
    assert order(chat) == ["first"]


def test_one_that_is_killed_while_it_waits_does_not_block_the_session(chat: CommandLine) -> None:
    with ask(chat, "first") as first:
        begun(chat, "first")
        with ask(chat, "second") as second:
            waits(second, 2)
            with ask(chat, "third") as third:
                waits(third, 3)
                second.signal(signal.SIGKILL)
                second.wait()
                go(chat, "first", "third")
                assert (first.wait(), third.wait()) == (0, 0)
    assert states(chat) == [(1, "succeeded", None), (2, "failed", "node_lost"), (3, "succeeded", None)]
    assert "it never started" in chat.ok("run", "show", "2", "--json").json["reason"]
    assert order(chat) == ["first", "third"]


def test_one_that_is_killed_while_it_runs_does_not_block_the_session_and_leaves_no_process(chat: CommandLine) -> None:
    with ask(chat, "first") as first:
        agent = begun(chat, "first")
        with ask(chat, "second") as second:
            waits(second, 2)
            first.signal(signal.SIGKILL)
            first.wait()
            eventually(lambda: not lives(agent), "its agent is gone")
            (chat.folder / "busy").rmdir()  # what it could not do itself
            go(chat, "second")
            assert second.wait() == 0
    assert states(chat) == [(1, "failed", "node_lost"), (2, "succeeded", None)]


def test_an_agent_cannot_execute_something_in_the_conversation_that_it_is(chat: CommandLine) -> None:
    with ask(chat, "outer asks") as outer:
        begun(chat, "outer")
        assert outer.wait() == 0, outer.err
    assert "[1, 1]" in outer.out
    assert order(chat) == ["outer"]
    assert states(chat) == [(1, "succeeded", None)]


def test_the_turn_of_another_database_is_not_shared(chat: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    with ask(chat, "first") as first:
        begun(chat, "first")
        monkeypatch.setenv("OSTINATO_RUN_ID", "1")
        monkeypatch.setenv("OSTINATO_NODE", "of-another-database")
        refused = chat("exec", "--agent", "no", "--cli", "mine", "--context", "session:q", "--no-wait")
        assert (refused.code, "is busy" in refused.err) == (1, True)
        go(chat, "first")
        assert first.wait() == 0
