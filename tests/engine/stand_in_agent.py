"""A stand-in for the Claude Code CLI: it speaks the same contract, refuses what that refuses, and costs nothing.

What it plays is said in the prompt: `play:wait`. It is copied to a folder of the test as an executable of its own,
so it uses nothing but the standard library; beside itself it keeps its conversations, and notes how it was called.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any, NoReturn

HOME = Path(__file__).resolve().parent
TAKES = {
    "--output-format": r"stream-json|json|text",
    "--append-system-prompt": r"(?s).+",
    "--permission-mode": r"default|acceptEdits|plan|bypassPermissions|dontAsk",
    "--allowedTools": r"[^\s,][^,]*(,[^\s,][^,]*)*",
    "--max-budget-usd": r"\d+(\.\d+)?",
    "--mcp-config": r"[^-].*",
    "--model": r"[^-].*",
}
USAGE = {"input_tokens": 4, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 1000, "output_tokens": 50}


def refuse(text: str) -> NoReturn:
    sys.stderr.write(f"error: {text}\n")
    raise SystemExit(1)


def read_arguments(arguments: list[str]) -> dict[str, str]:
    """As strictly as can be: a prompt, an unknown flag or an id in a token of its own ends it."""
    found: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        flag = rest.pop(0)
        name, equals, value = flag.partition("=")
        if flag in ("-p", "--verbose"):
            value = "yes"
        elif name in ("--session-id", "--resume") and equals and value:
            flag = name
        elif flag in TAKES and rest:
            value = rest.pop(0)
            if not re.fullmatch(TAKES[flag], value):
                refuse(f"option '{flag}' cannot be {value!r}")
        else:
            refuse(f"unknown option or argument {flag!r}")
        if flag in found:
            refuse(f"option '{flag}' was given twice")
        found[flag] = value
    if "-p" not in found:
        refuse("this would be interactive: -p is missing")
    if found.get("--output-format") == "stream-json" and "--verbose" not in found:
        refuse("When using --print, --output-format=stream-json requires --verbose")
    if "--session-id" in found and "--resume" in found:
        refuse("--session-id can only be used with --resume if --fork-session is also specified")
    return found


class Played:
    """One call."""

    def __init__(self, arguments: dict[str, str], prompt: str) -> None:
        self.arguments = arguments
        self.prompt = prompt
        self.id = arguments.get("--resume") or arguments.get("--session-id") or str(uuid.uuid4())
        self.kept = HOME / "conversations" / self.id
        play = re.search(r"play:([\w-]+)", prompt)
        self.play = play[1] if play else "success"

    def event(self, **fields: Any) -> None:
        sys.stdout.write(json.dumps({**fields, "session_id": self.id, "uuid": str(uuid.uuid4())}) + "\n")
        sys.stdout.flush()

    def say(self, text: str, **fields: Any) -> None:
        message = {"role": "assistant", "model": "claude-stand-in", "content": [{"type": "text", "text": text}]}
        self.event(type="assistant", message=message, parent_tool_use_id=None, **fields)

    def use(self, tool: str, given: dict[str, Any], answer: str) -> None:
        block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": given}
        self.event(type="assistant", message={"role": "assistant", "content": [block]})
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": answer}
        self.event(type="user", message={"role": "user", "content": [result]})

    def end(self, text: str | None, *, is_error: bool = False, subtype: str = "success", **fields: Any) -> None:
        shape: dict[str, Any] = {
            "type": "result",
            "subtype": subtype,
            "is_error": is_error,
            "duration_ms": 12,
            "num_turns": 2,
            "total_cost_usd": 0.25,
            "usage": USAGE,
        }
        if text is not None:
            shape["result"] = text
        self.event(**{**shape, **fields})

    def begin(self) -> None:
        if "--resume" in self.arguments and not self.kept.exists():
            gone = f"No conversation found with session ID: {self.id}"
            if (HOME / "on-stderr").exists():
                refuse(gone)
            self.id = str(uuid.uuid4())
            self.end(
                None, is_error=True, subtype="error_during_execution", errors=[gone], num_turns=0, total_cost_usd=0
            )
            raise SystemExit(1)
        if "--session-id" in self.arguments:
            uuid.UUID(self.id)
            if self.kept.exists():
                refuse(f"Session ID {self.id} is already in use.")
        self.kept.parent.mkdir(exist_ok=True)
        with self.kept.open("a") as file:
            file.write(json.dumps(self.prompt) + "\n")
        model = self.arguments.get("--model", "claude-stand-in")
        self.event(type="system", subtype="init", cwd=os.getcwd(), model=model, tools=["Bash"], apiKeySource="none")

    def report_path(self) -> Path:
        found = re.search(r"\S+-report\.md", self.arguments.get("--append-system-prompt", ""))
        if found is None:
            refuse("no report is wanted")
        return Path(found[0])


def success(call: Played) -> None:
    before = len(call.kept.read_text().splitlines())
    call.say("Let me look.\nThere is much to see.")
    call.use("Bash", {"description": "look", "command": "ls -la\n  /srv"}, "total 0")
    call.end(f"message {before}: {call.prompt.splitlines()[0]}")


def renamed(call: Played) -> None:
    call.kept = call.kept.rename(call.kept.with_name(str(uuid.uuid4())))
    call.id = call.kept.name
    success(call)


def error(call: Played) -> None:
    call.say("API Error: 500 overloaded")
    call.end("API Error: 500 overloaded", is_error=True, api_error_status=500)
    raise SystemExit(1)


def logged_out(call: Played) -> None:
    call.say("Not logged in · Please run /login", error="authentication_failed")
    call.end("Not logged in · Please run /login", is_error=True, num_turns=1, total_cost_usd=0)
    raise SystemExit(1)


def hang(call: Played) -> None:
    call.say("I wait.")
    child = subprocess.Popen(["sleep", "600"])
    Path("pids.part").write_text(f"{os.getpid()} {child.pid}")
    Path("pids.part").rename("pids")
    time.sleep(600)


def deaf(call: Played) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 600; :"])
    hang(call)


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
    call.end("No conversation found with session ID: 7", is_error=True)


PLAYS = {
    "success": success,
    "renamed": renamed,
    "error": error,
    "logged-out": logged_out,
    "hang": hang,
    "deaf": deaf,
    "wait": wait,
    "report": report,
    "report-of-failure": report_of_failure,
    "counts": counts,
    "environment": environment,
    "late": late,
}


def main() -> None:
    arguments = read_arguments(sys.argv[1:])
    prompt = sys.stdin.read()
    said = {name: value for name, value in os.environ.items() if name.startswith(("OSTINATO_", "CLAUDE"))}
    note = {"argv": sys.argv[1:], "prompt": prompt, "folder": os.getcwd(), "environment": said}
    with (HOME / "calls").open("a") as calls:
        calls.write(json.dumps(note) + "\n")
    if not prompt.strip():
        refuse("Input must be provided either through stdin or as a prompt argument when using --print")
    call = Played(arguments, prompt)
    call.begin()
    PLAYS[call.play](call)


if __name__ == "__main__":
    main()
