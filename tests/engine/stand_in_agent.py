"""A stand-in for the command lines of agents: it speaks their contracts, refuses what they refuse, and costs nothing.

stand_in.py puts an executable that calls it into a folder of the test; beside that it keeps its conversations, and
notes how it was called. The name of the executable says whom it plays: `claude`, `codex`, `gemini` or `opencode`;
stand_in_clis.py knows how each of them speaks. It uses nothing but the standard library.

What it plays is said in the prompt, `play:wait`, and a number may follow: `play:slow=200`. Without one it is `success`.

==================  ==================================================================================================
success             says something, uses a tool, and answers with the number of the message in its conversation
full                the same, with 150,000 of 200,000 tokens in its context (`claude`)
error               speaks, then fails: an agent that had begun
logged-out          fails before it has begun, as do the next three
rate-limited        … and says when its limit ends, as far as it can
overloaded          …
no-network          …
refused             exits at once, with an error on stderr and no event
cut-off             dies in the middle of a line
broken              prints broken lines, unknown events and invalid UTF-8 among its events, and answers
no-result           ends well without a result
dies                is killed in mid-stream
slow                says a line every 20 ms, 50 or as many as the number says, and answers
hang                writes its pid and that of a child to the file `pids`, and sleeps for 10 minutes
deaf                the same, and neither listens to SIGTERM
fork                leaves a child in a session of its own behind, its pid in the file `pids`, and answers
wait                adds its conversation to the file `waiting`, and answers when there is a file `go`
report, counts, …   see PLAYS
==================  ==================================================================================================

A file `on-stderr` beside it: `claude` says on stderr that a conversation has vanished.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

from tests.engine.stand_in_clis import CLIS, HOME, Played, refuse

MESSAGES = {
    "logged-out": "Not logged in · Please run /login",
    "rate-limited": "You've hit your session limit · resets 3pm",
    "overloaded": "API Error: 529 overloaded",
    "no-network": "API Error: Unable to connect to API (ENOTFOUND)",
}


def success(call: Played) -> None:
    before = len(call.kept.read_text().splitlines())
    call.say("Let me look.\nThere is much to see.")
    call.use("Bash", {"description": "look", "command": "ls -la\n  /srv"}, "total 0")
    call.end(f"message {before}: {asked(call)}")


def asked(call: Played) -> str:
    """The first line of the prompt itself, behind the system prompt of those that have no other place for it."""
    lines = call.prompt.splitlines()
    return lines[lines.index("") + 1] if call.system == call.prompt and "" in lines else lines[0]


def renamed(call: Played) -> None:
    name = str(uuid.uuid4())
    call.kept.rename(call.kept.with_name(name))
    call.id = name
    success(call)


def error(call: Played) -> None:
    call.say("API Error: 500 overloaded")
    call.fail("error", "API Error: 500 overloaded")


def failing(call: Played) -> None:
    call.fail(call.play, MESSAGES[call.play])


def refused(call: Played) -> None:
    refuse("unknown option '--of-tomorrow'", 2)


def cut_off(call: Played) -> None:
    call.say("I begin.")
    sys.stdout.write('{"type": "resu')
    sys.stdout.flush()
    raise SystemExit(1)


def broken(call: Played) -> None:
    call.say("I begin.")
    sys.stdout.flush()
    sys.stdout.buffer.write(b'{"type": "res\n\xff\xfe caf\xe9\n[1, 2]\nnull\n{"type": "of.tomorrow", "result": 7}\n\n')
    sys.stdout.buffer.flush()
    success(call)


def no_result(call: Played) -> None:
    call.say("I begin.")


def dies(call: Played) -> None:
    call.say("I begin.")
    os.kill(os.getpid(), signal.SIGKILL)


def slow(call: Played) -> None:
    for line in range(1, (call.number or 50) + 1):
        call.say(f"line {line}")
        time.sleep(0.02)
    success(call)


def note_pids(*pids: int) -> None:
    Path("pids.part").write_text(" ".join(map(str, pids)))
    Path("pids.part").rename("pids")


def hang(call: Played) -> None:
    call.say("I wait.")
    child = subprocess.Popen(["sleep", "600"])
    note_pids(os.getpid(), child.pid)
    time.sleep(600)


def deaf(call: Played) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 600; :"])
    hang(call)


def fork(call: Played) -> None:
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    note_pids(child.pid)
    success(call)


def wait(call: Played) -> None:
    """Until the test says so."""
    call.say("I wait.")
    with Path("waiting").open("a") as file:
        file.write(f"{call.id}\n")
    deadline = time.monotonic() + 30
    while not Path("go").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    success(call)


def report(call: Played) -> None:
    call.report_path().write_bytes(b"# Done\n\ncaf\xe9 is open\n")
    success(call)


def report_of_failure(call: Played) -> None:
    call.report_path().write_text("it went wrong")
    error(call)


def counts(call: Played) -> None:
    with open(os.environ["OSTINATO_REPORT"], "w") as channel:
        channel.write('{"totals": {"copied": 5}}\n')
    success(call)


def environment(call: Played) -> None:
    call.end(f"the token is {os.environ['TOKEN']}")


def late(call: Played) -> None:
    """It works, and fails with words that are usual for something else."""
    call.say("I have sent the mails.")
    call.fail("error", "No conversation found with session ID: 7")


PLAYS = {
    "success": success,
    "full": success,
    "renamed": renamed,
    "error": error,
    **dict.fromkeys(MESSAGES, failing),
    "refused": refused,
    "cut-off": cut_off,
    "broken": broken,
    "no-result": no_result,
    "dies": dies,
    "slow": slow,
    "hang": hang,
    "deaf": deaf,
    "fork": fork,
    "wait": wait,
    "report": report,
    "report-of-failure": report_of_failure,
    "counts": counts,
    "environment": environment,
    "late": late,
}


def main() -> None:
    prompt = sys.stdin.read()
    call = CLIS[Path(sys.argv[0]).name](sys.argv[1:], prompt)
    said = {name: value for name, value in os.environ.items() if name.startswith(("OSTINATO_", "CLAUDE", "TRACE"))}
    note = {"argv": sys.argv[1:], "prompt": prompt, "folder": os.getcwd(), "environment": said, "pid": os.getpid()}
    with (HOME / "calls").open("a") as calls:
        calls.write(json.dumps(note) + "\n")
    if not prompt.strip():
        refuse("Input must be provided either through stdin or as a prompt argument when using --print")
    if call.play == "refused":
        refused(call)
    call.begin()
    PLAYS[call.play](call)
