"""The four formats of events that are known from the start, each as its CLI documents it, and JSON by paths."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from ostinato.agent_clis import BUILT_IN, AgentCli
from ostinato.execution.executors.agent.agent_stream import AgentStream
from ostinato.execution.executors.agent.readers import reader_for

Events = list[dict[str, Any]]


def encoded(*events: Any) -> bytes:
    return b"".join(event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n" for event in events)


def heard_of(data: bytes, cli: str | AgentCli) -> tuple[AgentStream, str]:
    shown: list[str] = []
    heard = AgentStream()
    reader = reader_for(BUILT_IN[cli] if isinstance(cli, str) else cli, heard, shown.append)
    reader.feed(data)
    reader.close()
    return heard, "".join(shown)


def part(kind: str, **fields: Any) -> dict[str, Any]:
    """An event of opencode."""
    return {
        "type": kind,
        "timestamp": 1_760_000_000_000,
        "sessionID": "ses_1",
        "part": {"sessionID": "ses_1", **fields},
    }


def step(reason: str, cost: float, **tokens: Any) -> dict[str, Any]:
    cache = {"read": tokens.pop("read", 0), "write": tokens.pop("write", 0)}
    return part("step_finish", type="step-finish", reason=reason, cost=cost, tokens={**tokens, "cache": cache})


def assistant(*blocks: Any, usage: Mapping[str, int] | None = None, **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "model": "opus-5", "content": list(blocks), "usage": usage}
    return {"type": "assistant", "message": message, "parent_tool_use_id": None, **fields}


GOOD: dict[str, Events] = {
    "claude": [
        {"type": "system", "subtype": "init", "session_id": "c-1", "model": "opus-5", "tools": ["Bash"]},
        assistant(
            {"type": "text", "text": "I look."}, {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}
        ),
        {"type": "user", "message": {"content": [{"type": "tool_result", "content": "total 0"}]}},
        {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "session_id": "c-1"}
        | {"num_turns": 2, "total_cost_usd": 0.5, "usage": {"input_tokens": 9, "output_tokens": 2}},
    ],
    "codex": [
        {"type": "thread.started", "thread_id": "c-1"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "item_0", "type": "reasoning", "text": "hm"}},
        {"type": "item.started", "item": {"id": "item_1", "type": "command_execution", "command": "ls"}},
        {"type": "item.completed", "item": {"id": "item_1", "type": "command_execution", "command": "ls"}},
        {"type": "item.completed", "item": {"id": "item_2", "type": "agent_message", "text": "Done."}},
        {"type": "turn.completed", "usage": {"input_tokens": 9, "cached_input_tokens": 4, "output_tokens": 2}},
    ],
    "gemini": [
        {"type": "init", "timestamp": "t", "session_id": "c-1", "model": "gemini"},
        {"type": "message", "timestamp": "t", "role": "user", "content": "look"},
        {"type": "message", "role": "assistant", "content": "I ", "delta": True},
        {"type": "message", "role": "assistant", "content": "look.", "delta": True},
        {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "1", "parameters": {"command": "ls"}},
        {"type": "tool_result", "tool_id": "1", "status": "success", "output": "total 0"},
        {"type": "message", "role": "assistant", "content": "Done.", "delta": True},
        {"type": "result", "status": "success", "stats": {"input_tokens": 9, "output_tokens": 2, "cached": 4}},
    ],
    "opencode": [
        part("step_start", type="step-start"),
        part("text", type="text", text="I look."),
        part("tool_use", type="tool", tool="bash", state={"status": "completed", "input": {"command": "ls"}}),
        step("tool-calls", 0.2, input=3, output=1, reasoning=0),
        part("step_start", type="step-start"),
        part("text", type="text", text="Done."),
        step("stop", 0.3, input=1, output=0, reasoning=1, read=3, write=2),
    ],
}
SHOWN = {
    "claude": "conversation c-1 with opus-5\nI look.\n→ Bash: ls\n",
    "codex": "conversation c-1\n→ command_execution: ls\nDone.\n",
    "gemini": "conversation c-1 with gemini\nI look.\n→ run_shell_command: ls\nDone.\n",
    "opencode": "conversation ses_1\nI look.\n→ bash: ls\nDone.\n",
}
FAILED: dict[str, Events] = {
    "claude": [{"type": "result", "subtype": "error_during_execution", "is_error": True, "errors": ["no more"]}],
    "codex": [{"type": "turn.failed", "error": {"message": "no more"}}],
    "gemini": [{"type": "result", "status": "error", "error": {"type": "Error", "message": "no more"}}],
    "opencode": [{"type": "error", "sessionID": "s", "error": {"name": "APIError", "data": {"message": "no more"}}}],
}
NAMES = sorted(BUILT_IN)


@pytest.mark.parametrize("name", NAMES)
def test_a_whole_conversation_is_understood(name: str) -> None:
    heard, shown = heard_of(encoded(*GOOD[name]), name)
    assert shown == SHOWN[name]
    assert (heard.answered, heard.is_error, heard.text, heard.spoke) == (True, False, "Done.", True)
    assert heard.begun in ("c-1", "ses_1")
    cost = {"claude": {"cost_usd": 0.5, "turns": 2}, "opencode": {"cost_usd": 0.5, "turns": 2}}.get(name, {})
    assert heard.totals == {"tokens_in": 9, "tokens_out": 2, **cost}


@pytest.mark.parametrize("name", NAMES)
def test_a_failure_is_an_error_with_its_text(name: str) -> None:
    heard, _ = heard_of(encoded(*FAILED[name]), name)
    assert (heard.answered, heard.is_error, heard.text, heard.spoke) == (True, True, "no more", False)


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_that_is_cut_anywhere_has_no_result(name: str) -> None:
    whole = encoded(*GOOD[name])
    last = whole.rstrip().rfind(b"\n")
    for cut in (last // 2, last + 1, len(whole) - 5):
        heard, _ = heard_of(whole[:cut], name)
        assert (heard.answered, heard.is_error) == (False, False)
    heard, _ = heard_of(whole[:-5], name)
    assert heard.last_lines[-1] == "its output ends in the middle of an event"


@pytest.mark.parametrize("name", NAMES)
def test_broken_lines_and_unknown_events_among_the_others_do_no_harm(name: str) -> None:
    noise = [b"\xff\xfe\n", b'{"type": "resu\n', b"[]\n", {"type": "of.tomorrow", "result": "x"}, {"type": None}, {}]
    among = [each for event in GOOD[name] for each in (*noise, event)]
    heard, _ = heard_of(encoded(*among), name)
    clean, _ = heard_of(encoded(*GOOD[name]), name)
    assert (heard.answered, heard.text, heard.totals) == (True, "Done.", clean.totals)


def test_a_format_is_not_guessed() -> None:
    for name, other in (("claude", "codex"), ("codex", "gemini"), ("gemini", "opencode"), ("opencode", "claude")):
        heard, _ = heard_of(encoded(*GOOD[other]), name)
        assert not heard.answered


def test_a_warning_of_codex_is_not_the_model_speaking() -> None:
    warning = {"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": "deprecated"}}
    heard, shown = heard_of(encoded(warning, {"type": "error", "message": "Reconnecting... 1/5"}), "codex")
    assert (heard.spoke, heard.answered, shown) == (False, False, "deprecated\nReconnecting... 1/5\n")
    assert heard.last_lines[-1] == "Reconnecting... 1/5"


@pytest.mark.parametrize(
    ("item", "line"),
    [
        ({"type": "file_change", "changes": [{"path": "a.py", "kind": "update"}]}, "→ file_change: a.py"),
        ({"type": "file_change", "changes": []}, "→ file_change"),
        ({"type": "mcp_tool_call", "server": "mail", "tool": "send", "arguments": {"to": "me"}}, "→ mail.send: me"),
        ({"type": "web_search", "query": "weather"}, "→ web_search: weather"),
    ],
)
def test_what_codex_does_is_shown_once(item: dict[str, Any], line: str) -> None:
    started = {"type": "item.started", "item": {"id": "1", **item}}
    completed = {"type": "item.completed", "item": {"id": "1", **item}}
    assert heard_of(encoded(started, completed), "codex")[1] == line + "\n"
    assert heard_of(encoded(completed), "codex")[1] == line + "\n"


def test_a_result_of_gemini_that_says_only_that_it_failed_has_the_error_before_it() -> None:
    heard, shown = heard_of(
        encoded(
            {"type": "error", "severity": "error", "message": "The model gave no text"},
            {"type": "error", "severity": "warning", "message": "Loop detected"},
            {"type": "result", "status": "error", "stats": {}},
        ),
        "gemini",
    )
    assert (heard.is_error, heard.text) == (True, "The model gave no text")
    assert shown == "The model gave no text\nLoop detected\n"


def test_the_answer_of_opencode_is_what_was_said_in_its_last_step() -> None:
    texts = [part("text", text="first"), part("text", text="second")]
    heard, _ = heard_of(encoded(part("step_start"), *texts, step("stop", 0)), "opencode")
    assert heard.text == "first\n\nsecond"


def test_an_error_of_opencode_names_its_status_and_when_to_try_again() -> None:
    data = {"message": "slow down", "statusCode": 429, "isRetryable": True, "responseHeaders": {"retry-after": "30"}}
    error = {"type": "error", "sessionID": "s", "error": {"name": "APIError", "data": data}}
    heard, _ = heard_of(encoded(error), "opencode")
    assert (heard.status, heard.retry_after, heard.codes) == (429, 30, {"APIError"})


def usage(**tokens: int) -> dict[str, int]:
    return {
        "input_tokens": 0,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 0,
    } | tokens


def test_claude_says_how_full_its_context_is() -> None:
    result = {
        "type": "result",
        "is_error": False,
        "result": "ok",
        "modelUsage": {
            "haiku-5": {"contextWindow": 1_000_000, "inputTokens": 5},
            "opus-5[1m]": {"contextWindow": 200_000},
        },
    }
    heard, _ = heard_of(
        encoded(
            assistant(usage=usage(input_tokens=1)),
            assistant(usage=usage(input_tokens=4, cache_creation_input_tokens=996, cache_read_input_tokens=148_000,
                                  output_tokens=1_000)),
            assistant(usage=usage(input_tokens=7), parent_tool_use_id="toolu_1"),
            assistant({"type": "text", "text": "API Error"}, usage=usage(), error="server_error"),
            result,
        ),
        "claude",
    )  # fmt: skip
    assert (heard.context_tokens, heard.context_window) == (150_000, 200_000)


def test_opencode_says_what_its_context_holds_and_the_others_do_not() -> None:
    found = {name: heard_of(encoded(*GOOD[name]), name)[0] for name in NAMES}
    assert {name: (heard.context_tokens, heard.context_window) for name, heard in found.items()} == {
        "claude": (None, None),
        "codex": (None, None),
        "gemini": (None, None),
        "opencode": (7, None),
    }


def test_claude_says_when_its_limit_ends() -> None:
    def limit(**info: Any) -> dict[str, Any]:
        return {"type": "rate_limit_event", "rate_limit_info": info}

    assert heard_of(encoded(limit(status="rejected", resetsAt=1_760_000_000)), "claude")[0].limit_ends == 1_760_000_000
    for info in (
        {"status": "allowed_warning", "resetsAt": 5},
        {"status": "rejected"},
        {"status": "rejected", "resetsAt": "x"},
    ):
        assert heard_of(encoded(limit(**info)), "claude")[0].limit_ends is None


def test_a_retry_of_claude_is_shown_and_forgotten_when_it_goes_on() -> None:
    retry = {"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10, "retry_delay_ms": 600}
    heard, shown = heard_of(encoded({**retry, "error_status": 529, "error": "overloaded"}), "claude")
    assert (heard.retrying, shown) == ("overloaded", "API error 529: overloaded, retry 1 of 10\n")
    heard, _ = heard_of(encoded(retry, assistant({"type": "text", "text": "Hello"})), "claude")
    assert heard.retrying == ""


FIELDS = {
    "answer": ("choices", "0", "text"),
    "conversation": ("meta", "session"),
    "cost": ("usage", "cost_usd"),
    "tokens_in": ("usage", "in"),
    "tokens_out": ("usage", "out"),
    "context_tokens": ("usage", "context"),
    "context_window": ("usage", "window"),
    "error": ("error",),
}
ANSWER = {
    "choices": [{"text": "Paris"}],
    "meta": {"session": "s-7"},
    "usage": {"cost_usd": 0.25, "in": 10, "out": 3, "context": 13, "window": 100},
}


@pytest.mark.parametrize("output", ["json", "stream-json"])
def test_any_json_is_read_by_the_paths_of_the_settings(output: str) -> None:
    cli = AgentCli(("any",), output=output, fields=FIELDS)
    heard, shown = heard_of(b"npm warn\n" + encoded(ANSWER), cli)
    assert (heard.answered, heard.is_error, heard.text, heard.session_id) == (True, False, "Paris", "s-7")
    assert heard.totals == {"cost_usd": 0.25, "tokens_in": 10, "tokens_out": 3}
    assert (heard.context_tokens, heard.context_window) == (13, 100)
    assert shown.endswith("Paris\n")
    for error in ("no more", {"message": "no more"}):
        heard, _ = heard_of(encoded({"error": error}), cli)
        assert (heard.answered, heard.is_error, heard.text, heard.spoke) == (True, True, "no more", False)
    empty: Events = [{}, {"choices": []}, {"choices": [3]}, {"choices": "text"}, {"error": None}, {"error": ""}]
    for nothing in empty:
        assert not heard_of(encoded(nothing), cli)[0].answered


def test_of_many_objects_the_last_counts_and_an_error_stays() -> None:
    cli = AgentCli(("any",), output="stream-json", fields={"answer": ("steps", "-1"), "error": ("error",)})
    heard, shown = heard_of(encoded({"steps": ["a", "b"]}, {"other": 1}, {"steps": ["c", {"x": 1}]}), cli)
    assert (heard.text, shown) == ('{"x": 1}', 'b\n{"x": 1}\n')
    heard, _ = heard_of(encoded({"steps": ["a"]}, {"error": "no"}, {"steps": ["b"]}), cli)
    assert (heard.is_error, heard.text, heard.spoke) == (True, "no", True)
