"""The four command lines that the stand-in plays, each with the arguments and the events that it documents.

stand_in_agent.py says what they do.
"""

from __future__ import annotations

import json
import os
import re
import sys
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, NoReturn

__all__ = ["CLIS", "HOME", "Played", "refuse"]

HOME = Path(sys.argv[0]).resolve().parent


def limit_ends() -> datetime:
    """When the limit of `rate-limited` ends: an hour after the run was due."""
    return datetime.fromisoformat(os.environ["OSTINATO_DUE_AT"]) + timedelta(hours=1)


def refuse(text: str, status: int = 1) -> NoReturn:
    sys.stderr.write(f"error: {text}\n")
    raise SystemExit(status)


def read_options(arguments: list[str], takes: dict[str, str], alone: tuple[str, ...] = ()) -> dict[str, str]:
    """As strictly as can be: an argument, an unknown flag or a wrong value ends it. `--a=b` is a flag with `=`."""
    found: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        flag = rest.pop(0)
        name, equals, value = flag.partition("=")
        if flag in alone:
            value = "yes"
        elif equals and f"{name}=" in takes and re.fullmatch(takes[f"{name}="], value):
            flag = name
        elif flag in takes and rest:
            value = rest.pop(0)
            if not re.fullmatch(takes[flag], value):
                refuse(f"option '{flag}' cannot be {value!r}")
        else:
            refuse(f"unknown option or argument {flag!r}")
        if flag in found:
            refuse(f"option '{flag}' was given twice")
        found[flag] = value
    return found


class Played:
    """One call. What the command lines have in common; each of them is a class below."""

    new_id: Callable[[], str] = staticmethod(lambda: str(uuid.uuid4()))
    gone = "No conversation found with session ID: {id}"
    gone_status = 1

    def __init__(self, arguments: list[str], prompt: str) -> None:
        self.prompt = prompt
        self.system = ""
        self.resumed: str | None = None
        self.read_arguments(arguments)
        self.id = self.resumed or self.new_id()
        play = re.search(r"play:([\w-]+)(?:=(\d+))?", prompt)
        self.play = play[1] if play else "success"
        self.number = int(play[2]) if play and play[2] else None

    @property
    def kept(self) -> Path:
        return HOME / "conversations" / self.id

    def read_arguments(self, arguments: list[str]) -> None:
        raise NotImplementedError

    def write(self, event: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()

    def begin(self) -> None:
        if self.resumed and not self.kept.exists():
            self.vanish(self.gone.format(id=self.id))
        self.kept.parent.mkdir(exist_ok=True)
        with self.kept.open("a") as file:
            file.write(json.dumps(self.prompt) + "\n")
        self.begun()

    def vanish(self, text: str) -> NoReturn:
        refuse(text, self.gone_status)

    def begun(self) -> None:
        """Its first event."""

    def say(self, text: str) -> None:
        raise NotImplementedError

    def use(self, tool: str, given: dict[str, Any], answer: str) -> None:
        raise NotImplementedError

    def end(self, text: str) -> None:
        """Its answer, and its last event."""
        raise NotImplementedError

    def fail(self, kind: str, text: str) -> NoReturn:
        """An error of this kind: a key of MESSAGES, or `error`."""
        raise NotImplementedError

    def report_path(self) -> Path:
        found = re.search(r"\S+-report\.md", self.system)
        if found is None:
            refuse("no report is wanted")
        return Path(found[0])


class Claude(Played):
    """claude -p --output-format stream-json --verbose"""

    TAKES: ClassVar[dict[str, str]] = {
        "--session-id=": r".+",
        "--resume=": r".+",
        "--output-format": r"stream-json|json|text",
        "--append-system-prompt": r"(?s).+",
        "--permission-mode": r"default|acceptEdits|plan|bypassPermissions|dontAsk",
        "--allowedTools": r"[^\s,][^,]*(,[^\s,][^,]*)*",
        "--max-budget-usd": r"\d+(\.\d+)?",
        "--mcp-config": r"[^-].*",
        "--model": r"[^-].*",
    }
    USAGE: ClassVar[dict[str, int]] = {
        "input_tokens": 4,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": 1000,
        "output_tokens": 50,
    }
    ERRORS: ClassVar[dict[str, tuple[str, int | None]]] = {
        "logged-out": ("authentication_failed", 401),
        "rate-limited": ("rate_limit", 429),
        "overloaded": ("overloaded", 529),
        "no-network": ("unknown", None),
    }

    def read_arguments(self, arguments: list[str]) -> None:
        found = read_options(arguments, self.TAKES, ("-p", "--verbose"))
        if "-p" not in found:
            refuse("this would be interactive: -p is missing")
        if found.get("--output-format") == "stream-json" and "--verbose" not in found:
            refuse("When using --print, --output-format=stream-json requires --verbose")
        if "--session-id" in found and "--resume" in found:
            refuse("--session-id can only be used with --resume if --fork-session is also specified")
        self.resumed = found.get("--resume")
        self.system = found.get("--append-system-prompt", "")
        self.model = found.get("--model", "claude-stand-in")
        if own := found.get("--session-id"):
            self.new_id = lambda: str(uuid.UUID(own))
            if (HOME / "conversations" / own).exists():
                refuse(f"Session ID {own} is already in use.")

    def event(self, **fields: Any) -> None:
        self.write({**fields, "session_id": self.id, "uuid": str(uuid.uuid4())})

    def begun(self) -> None:
        self.event(
            type="system", subtype="init", cwd=os.getcwd(), model=self.model, tools=["Bash"], apiKeySource="none"
        )

    def vanish(self, text: str) -> NoReturn:
        if (HOME / "on-stderr").exists():
            refuse(text)
        self.id = str(uuid.uuid4())
        fields = {"errors": [text], "num_turns": 0, "total_cost_usd": 0}
        self.result(None, is_error=True, subtype="error_during_execution", **fields)
        raise SystemExit(1)

    def say(self, text: str, **fields: Any) -> None:
        usage = {**self.USAGE, "cache_read_input_tokens": 149_846} if self.play == "full" else self.USAGE
        content = [{"type": "text", "text": text}]
        message = {"role": "assistant", "model": self.model, "content": content, "usage": usage}
        self.event(**{"type": "assistant", "message": message, "parent_tool_use_id": None, **fields})

    def use(self, tool: str, given: dict[str, Any], answer: str) -> None:
        block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": given}
        self.event(type="assistant", message={"role": "assistant", "content": [block]})
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": answer}
        self.event(type="user", message={"role": "user", "content": [result]})

    def result(self, text: str | None, *, is_error: bool = False, subtype: str = "success", **fields: Any) -> None:
        shape: dict[str, Any] = {
            "type": "result",
            "subtype": subtype,
            "is_error": is_error,
            "duration_ms": 12,
            "num_turns": 2,
            "total_cost_usd": 0.25,
            "usage": self.USAGE,
            "modelUsage": {self.model: {"costUSD": 0.25, "contextWindow": 200_000, "maxOutputTokens": 32_000}},
        }
        if text is not None:
            shape["result"] = text
        self.event(**{**shape, **fields})

    def end(self, text: str) -> None:
        self.result(text)

    def fail(self, kind: str, text: str) -> NoReturn:
        if kind == "error":
            self.result(text, is_error=True, api_error_status=500)
            raise SystemExit(1)
        error, status = self.ERRORS[kind]
        if kind == "rate-limited":
            info = {"status": "rejected", "resetsAt": round(limit_ends().timestamp()), "rateLimitType": "five_hour"}
            self.event(type="rate_limit_event", rate_limit_info=info)
        elif kind == "overloaded":
            retry = {"attempt": 1, "max_retries": 10, "retry_delay_ms": 600, "error_status": status, "error": error}
            self.event(type="system", subtype="api_retry", **retry)
        message = {"role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": text}]}
        self.event(type="assistant", message=message, parent_tool_use_id=None, error=error)
        nothing = {"input_tokens": 0, "output_tokens": 0}
        self.result(text, is_error=True, api_error_status=status, num_turns=1, total_cost_usd=0, usage=nothing)
        raise SystemExit(1)


class Codex(Played):
    """codex exec --json [--model NAME] [resume ID] -"""

    gone = "thread/resume: thread/resume failed: no rollout found for thread id {id}"

    def read_arguments(self, arguments: list[str]) -> None:
        if arguments[:1] != ["exec"] or arguments[-1:] != ["-"]:
            refuse("this would be interactive: exec and - are wanted")
        rest = arguments[1:-1]
        if rest[-2:-1] == ["resume"]:
            self.resumed = rest.pop()
            rest.pop()
        if "--json" not in read_options(rest, {"--model": r"[^-].*"}, ("--json", "--skip-git-repo-check")):
            refuse("--json is missing")
        self.system = self.prompt
        self.items = 0

    def begun(self) -> None:
        self.write({"type": "thread.started", "thread_id": self.id})
        self.write({"type": "turn.started"})

    def item(self, when: str, **item: Any) -> None:
        self.write({"type": f"item.{when}", "item": {"id": f"item_{self.items}", **item}})
        self.items += when == "completed"

    def say(self, text: str) -> None:
        self.item("completed", type="agent_message", text=text)

    def use(self, tool: str, given: dict[str, Any], answer: str) -> None:
        command = {"type": "command_execution", "command": given["command"]}
        self.item("started", **command, aggregated_output="", exit_code=None, status="in_progress")
        self.item("completed", **command, aggregated_output=answer, exit_code=0, status="completed")

    def end(self, text: str) -> None:
        self.say(text)
        turns = len(self.kept.read_text().splitlines())  # it counts over the whole conversation
        usage = {"input_tokens": 1104 * turns, "cached_input_tokens": 1000, "output_tokens": 50 * turns}
        self.write({"type": "turn.completed", "usage": {**usage, "reasoning_output_tokens": 0}})

    def fail(self, kind: str, text: str) -> NoReturn:
        ends = limit_ends().astimezone()
        told = {
            "logged-out": "unexpected status 401 Unauthorized: Missing bearer or basic authentication in header",
            "rate-limited": f"You've hit your usage limit. Try again at {ends:%b} {ends.day}th, {ends:%Y %-I:%M %p}.",
            "overloaded": "Selected model is at capacity. Please try a different model.",
            "no-network": "stream disconnected before completion: error sending request for url",
        }
        message = told.get(kind, text)
        self.write({"type": "error", "message": message})
        self.write({"type": "turn.failed", "error": {"message": message}})
        raise SystemExit(1)


class Gemini(Played):
    """gemini --output-format stream-json [--model NAME] [--resume ID]"""

    gone = 'Error resuming session: Invalid session identifier "{id}".\n  Searched for sessions in here.'
    gone_status = 42

    def read_arguments(self, arguments: list[str]) -> None:
        found = read_options(arguments, {"--output-format": "stream-json", "--model": r"[^-].*", "--resume": r"[^-].*"})
        self.resumed = found.get("--resume")
        self.model = found.get("--model", "gemini-stand-in")
        self.system = self.prompt

    def event(self, type: str, **fields: Any) -> None:
        self.write({"type": type, "timestamp": "2026-01-01T00:00:00.000Z", **fields})

    def begun(self) -> None:
        if self.play == "logged-out":
            refuse("Please set an Auth method in your settings.json or specify GEMINI_API_KEY before running", 41)
        self.event("init", session_id=self.id, model=self.model)
        self.event("message", role="user", content=self.prompt)

    def say(self, text: str) -> None:
        for piece in re.findall(r"\S+\s*|\s+", text):
            self.event("message", role="assistant", content=piece, delta=True)

    def use(self, tool: str, given: dict[str, Any], answer: str) -> None:
        self.event("tool_use", tool_name=tool, tool_id="1", parameters=given)
        self.event("tool_result", tool_id="1", status="success", output=answer)

    def stats(self, tokens_in: int, tokens_out: int) -> dict[str, Any]:
        sums = {"total_tokens": tokens_in + tokens_out, "input_tokens": tokens_in, "output_tokens": tokens_out}
        return {**sums, "cached": 0, "input": tokens_in, "duration_ms": 12, "tool_calls": 1, "models": {}}

    def end(self, text: str) -> None:
        self.say(text)
        self.event("result", status="success", stats=self.stats(1104, 50))

    def fail(self, kind: str, text: str) -> NoReturn:
        told = {
            "rate-limited": ("TerminalQuotaError", "[API Error: You have exhausted your daily quota on this model. "
                             "Please retry in 3600s]"),
            "overloaded": ("Error", "[API Error: The model is overloaded. (Status: UNAVAILABLE)]"),
            "no-network": ("TypeError", "[API Error: fetch failed]"),
        }  # fmt: skip
        name, message = told.get(kind, ("Error", text))
        stats = self.stats(1104, 50) if kind == "error" else self.stats(0, 0)
        self.event("result", status="error", error={"type": name, "message": message}, stats=stats)
        raise SystemExit(1)


class Opencode(Played):
    """opencode run --format json [--model PROVIDER/NAME] [--session ID]"""

    new_id = staticmethod(lambda: f"ses_{uuid.uuid4().hex}")
    gone = "Session not found"

    def read_arguments(self, arguments: list[str]) -> None:
        if arguments[:1] != ["run"]:
            refuse("this would be interactive: run is missing")
        takes = {"--format": "json", "--model": r"[^-/]+/.+", "--session": r"ses_\w+"}
        found = read_options(arguments[1:], takes)
        if "--format" not in found:
            refuse("--format json is missing")
        if os.environ.get("PWD") != os.getcwd():
            refuse(f"it would work in {os.environ.get('PWD')}")
        self.resumed = found.get("--session")
        self.system = self.prompt
        self.is_in_step = False

    def part(self, event: str, **part: Any) -> None:
        shown = {"id": f"prt_{uuid.uuid4().hex}", "sessionID": self.id, "messageID": "msg_1", **part}
        self.write({"type": event, "timestamp": 1_760_000_000_000, "sessionID": self.id, "part": shown})

    def step(self) -> None:
        if not self.is_in_step:
            self.part("step_start", type="step-start")
            self.is_in_step = True

    def finish(self, reason: str, cost: float, **tokens: int) -> None:
        cache = {"read": tokens.pop("read", 0), "write": 0}
        counted = {"reasoning": 0, **tokens, "cache": cache}
        self.part("step_finish", type="step-finish", reason=reason, cost=cost, tokens=counted)
        self.is_in_step = False

    def say(self, text: str) -> None:
        self.step()
        self.part("text", type="text", text=text, time={"start": 1, "end": 2})

    def use(self, tool: str, given: dict[str, Any], answer: str) -> None:
        self.step()
        self.part("tool_use", type="tool", tool=tool, state={"status": "completed", "input": given, "output": answer})
        self.finish("tool-calls", 0.2, input=104, output=30)

    def end(self, text: str) -> None:
        self.say(text)
        self.finish("stop", 0.05, input=0, output=20, read=1000)

    def fail(self, kind: str, text: str) -> NoReturn:
        told: dict[str, tuple[str, dict[str, Any]]] = {
            "logged-out": ("ProviderAuthError", {"providerID": "openai", "message": "the key of openai is missing"}),
            "rate-limited": ("APIError", {"message": "slow down", "statusCode": 429, "isRetryable": True,
                                          "responseHeaders": {"retry-after": "3600"}}),
            "overloaded": ("APIError", {"message": "try later", "statusCode": 529, "isRetryable": True}),
            "no-network": ("UnknownError", {"message": "Unable to connect. Is the computer able to access the url?"}),
        }  # fmt: skip
        name, data = told.get(kind, ("UnknownError", {"message": text}))
        error = {"name": name, "data": data}
        self.write({"type": "error", "timestamp": 1_760_000_000_000, "sessionID": self.id, "error": error})
        raise SystemExit(1)


CLIS: dict[str, type[Played]] = {"claude": Claude, "codex": Codex, "gemini": Gemini, "opencode": Opencode}
