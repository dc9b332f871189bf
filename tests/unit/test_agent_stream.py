"""What an agent's command line prints, and what is heard of it."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.agent_clis import BUILT_IN, AgentCli
from ostinato.execution.executors.agent.agent_stream import TEXT_CAP, AgentStream
from ostinato.execution.executors.agent.claude_events import ClaudeEvents
from ostinato.execution.executors.agent.gemini_events import GeminiEvents
from ostinato.execution.executors.agent.json_fields import FieldLines
from ostinato.execution.executors.agent.output import Lines, OneJson, PlainText, Reader, StderrTail
from ostinato.execution.executors.agent.readers import reader_for
from ostinato.execution.secrets import Mask

INIT = {"type": "system", "subtype": "init", "session_id": "s-1", "model": "opus", "tools": ["Bash"]}
RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "All is well.",
    "session_id": "s-2",
    "num_turns": 3,
    "total_cost_usd": 0.125,
    "usage": {
        "input_tokens": 10,
        "cache_creation_input_tokens": 200,
        "cache_read_input_tokens": 3000,
        "output_tokens": 7,
        "server_tool_use": {"web_search_requests": 0},
    },
}


def said(*blocks: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"role": "assistant", "content": list(blocks)}, **fields}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def tool(name: Any, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "t", "name": name, "input": given}


def encoded(*events: Any) -> bytes:
    return b"".join(event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n" for event in events)


FIELDS = {"answer": ("result",), "error": ("error",), "cost": ("total_cost_usd",), "context_tokens": ("usage", "x")}
CLIS = {
    **BUILT_IN,
    "json": AgentCli(("any",), output="json"),
    "text": AgentCli(("any",)),
    "fields": AgentCli(("any",), output="stream-json", fields=FIELDS),
    "field object": AgentCli(("any",), output="json", fields=FIELDS),
}


def heard_of(data: bytes, cli: str = "claude") -> tuple[AgentStream, str]:
    shown: list[str] = []
    heard = AgentStream()
    reader = reader_for(CLIS[cli], heard, shown.append)
    reader.feed(data)
    reader.close()
    return heard, "".join(shown)


def test_a_whole_conversation_is_heard() -> None:
    heard, shown = heard_of(
        encoded(
            INIT,
            said({"type": "thinking", "thinking": "hm"}, text("Let me look."), tool("Bash", command="ls\n -la")),
            {"type": "user", "message": {"content": [{"type": "tool_result", "content": "total 0"}]}},
            {"type": "rate_limit_event"},
            said(text("Nothing\nthere.\n")),
            RESULT,
        )
    )
    assert shown == "conversation s-1 with opus\nLet me look.\n→ Bash: ls -la\nNothing\nthere.\n"
    assert (heard.answered, heard.is_error, heard.text) == (True, False, "All is well.")
    assert (heard.begun, heard.session_id, heard.spoke) == ("s-1", "s-2", True)
    assert heard.totals == {"cost_usd": 0.125, "turns": 3, "tokens_in": 3210, "tokens_out": 7}


STREAM = encoded(
    INIT,
    "a text is no event",
    b"npm warn \xff\xc3\xa9\r\n",
    b"\n  \n",
    said(text("käse 🧀"), tool("Read", file_path="/a")),
    {"type": "message", "role": "assistant", "content": "in ", "delta": True},
    {"type": "message", "role": "assistant", "content": "pieces", "delta": True},
    {"type": "user", "message": "x" * 300},
    b"y" * 250 + b"\n",
    RESULT,
    b"no end of line",
)


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_however_the_bytes_are_cut_the_same_is_heard(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[start:end] for start, end in itertools.pairwise(places)]
    for make in (
        lambda heard, show: ClaudeEvents(heard, show, 200),
        lambda heard, show: GeminiEvents(heard, show, 200),
        lambda heard, show: FieldLines(FIELDS, heard, show, 200),
        PlainText,
        StderrTail,
        OneJson,
    ):
        assert _all(make, pieces) == _all(make, [STREAM])


def _all(make: Callable[[AgentStream, Callable[[str], None]], Reader], pieces: list[bytes]) -> tuple[AgentStream, str]:
    shown: list[str] = []
    heard = AgentStream()
    reader = make(heard, shown.append)
    for piece in pieces:
        reader.feed(piece)
    reader.close()
    return heard, "".join(shown)


@given(st.binary(max_size=400))
def test_no_bytes_can_break_a_reader(data: bytes) -> None:
    for cli in CLIS:
        heard_of(data, cli)


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
_JSON = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


@given(
    st.sampled_from(
        [
            *("system", "assistant", "rate_limit_event", "result", "init", "message", "error", "tool_use"),
            *("thread.started", "item.started", "item.completed", "turn.completed", "turn.failed"),
            *("step_start", "text", "step_finish"),
        ]
    ),
    st.dictionaries(
        st.sampled_from(
            [
                *("subtype", "session_id", "model", "message", "error", "errors", "result", "usage", "is_error"),
                *("item", "total_cost_usd", "num_turns", "api_error_status", "content", "role", "delta", "status"),
                *("part", "sessionID", "rate_limit_info", "modelUsage", "parameters"),
            ]
        ),
        _JSON
        | st.fixed_dictionaries({"content": _JSON, "input_tokens": _JSON, "type": _JSON, "id": _JSON})
        | st.fixed_dictionaries({"tokens": _JSON, "cost": _JSON, "state": _JSON, "data": _JSON, "name": _JSON})
        | st.fixed_dictionaries({"status": st.just("rejected"), "resetsAt": _JSON, "changes": _JSON}),
    ),
)
def test_no_shape_of_an_event_can_break_the_reader(kind: str, fields: dict[str, Any]) -> None:
    for cli in CLIS:
        heard, _ = heard_of(encoded({"type": kind, **fields}), cli)
        assert all(value >= 0 for value in heard.totals.values())


def test_lines_that_are_no_json_objects_are_shown_as_they_are() -> None:
    heard, shown = heard_of(b'npm warn\n{"type": "assis\n[1]\n"text"\ncaf\xe9\r\n{"type": 3}\n{"type": "new"}\n{}\n')
    assert shown == 'npm warn\n{"type": "assis\n[1]\n"text"\ncaf\\xe9\n'
    assert heard.last_lines[-1] == "caf\\xe9"
    assert not heard.answered


def test_a_line_nested_too_deep_is_shown_and_does_no_harm() -> None:
    deep = b'{"type": "result", "x": ' + b"[" * 100_000
    heard, shown = heard_of(deep + b"\n" + encoded(RESULT))
    assert shown.startswith('{"type": "result", "x": [[[')
    assert heard.text == "All is well."


def test_half_a_character_in_a_result_does_not_lose_it() -> None:
    heard, _ = heard_of(b'{"type": "result", "is_error": false, "result": "cut \\ud83d", "session_id": "s"}\n')
    assert (heard.answered, heard.text, heard.session_id) == (True, "cut \ud83d", "s")
    heard, _ = heard_of(b'{"type": "result", "is_error": false, "result": "caf\xe9"}\n')
    assert heard.text == "caf\ufffd"


def test_a_line_that_is_too_long_is_told_and_dropped() -> None:
    shown: list[str] = []
    heard = AgentStream()
    reader = ClaudeEvents(heard, shown.append, 1000)
    reader.feed(encoded(said(text("a" * 2000)), said(text("b"))))
    assert shown == ["ostinato: a line of 2,098 bytes was dropped\n", "b\n"]


def test_a_line_without_end_does_not_fill_the_memory() -> None:
    taken: list[bytes] = []
    dropped: list[int] = []
    lines = Lines(taken.append, dropped.append, 1_000_000)
    tracemalloc.start()
    for _ in range(100):
        lines.feed(b"x" * 1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    lines.feed(b"\nafter\n")
    assert peak < 8_000_000
    assert (taken, dropped) == ([b"after"], [100_000_000])


@pytest.mark.parametrize(
    ("block", "line"),
    [
        (tool("Bash", description="list", command="ls  -la\n| wc"), "→ Bash: ls -la | wc"),
        (tool("mcp__mail__send", to="me", body="hi"), "→ mcp__mail__send: me"),
        (tool("TodoWrite", todos=[1, 2]), "→ TodoWrite"),
        (tool(None), "→ tool"),
        (tool("Write", content="c" * 9999, file_path="/a.py"), "→ Write: /a.py"),
    ],
)
def test_the_use_of_a_tool_is_one_short_line(block: dict[str, Any], line: str) -> None:
    assert heard_of(encoded(said(block)))[1] == line + "\n"


def test_a_long_command_is_cut() -> None:
    _, shown = heard_of(encoded(said(tool("Bash", command="word " * 100_000))))
    assert len(shown) == 201
    assert shown.endswith("…\n")


def test_an_error_of_an_assistant_event_is_remembered_by_its_name() -> None:
    heard, _ = heard_of(encoded(said(text("Please log in"), error="authentication_failed")))
    assert heard.codes == {"authentication_failed"}
    assert not heard.spoke


def test_a_result_without_a_text_answers_what_was_said_last() -> None:
    heard, _ = heard_of(encoded(said(text("first")), said(text("last")), {"type": "result", "is_error": False}))
    assert heard.text == "last"


def test_of_a_failure_the_errors_are_the_text() -> None:
    event = {"type": "result", "subtype": "error_during_execution", "is_error": True, "errors": ["a", "b"]}
    assert heard_of(encoded(event))[0].text == "a; b"


def test_an_answer_is_bounded() -> None:
    heard, _ = heard_of(encoded({**RESULT, "result": "a" * 300_000 + "z"}))
    assert len(heard.text) < TEXT_CAP + 100
    assert "200,001 characters cut" in heard.text
    assert heard.text.endswith("z")


@pytest.mark.parametrize("id", ["--print", "", "a b", "x" * 300, 7, None, "a\nb", {"id": 1}])
def test_an_id_that_could_be_read_as_something_else_is_none(id: Any) -> None:
    heard, _ = heard_of(encoded({**INIT, "session_id": id}, {**RESULT, "session_id": id}))
    assert (heard.begun, heard.session_id) == (None, None)


@pytest.mark.parametrize("number", [-1, 1e400, "3", True, None, [1]])
def test_what_is_no_amount_is_no_total(number: Any) -> None:
    event = {**RESULT, "total_cost_usd": number, "num_turns": number, "usage": {"input_tokens": number}}
    assert heard_of(encoded(event))[0].totals == {}


@pytest.mark.parametrize(
    ("answer", "text", "id"),
    [
        (RESULT, "All is well.", "s-2"),
        ({"response": "Paris", "stats": {"models": {}}, "session_id": "g"}, "Paris", "g"),
        ({"text": "Paris", "conversation_id": "c"}, "Paris", "c"),
        ({"message": "Paris", "thread_id": "t", "error": None}, "Paris", "t"),
        ([INIT, said(text("x")), RESULT], "All is well.", "s-2"),
    ],
)
def test_one_object_is_read_whoever_wrote_it(answer: Any, text: str, id: str) -> None:
    heard, shown = heard_of(json.dumps(answer, indent=2).encode(), "json")
    assert (heard.answered, heard.is_error, heard.text, heard.session_id) == (True, False, text, id)
    assert shown == text + "\n"


def test_an_object_with_an_error_is_an_error() -> None:
    for answer in ({"error": {"message": "no", "code": 41}}, {"error": "no"}, {"is_error": True, "result": "no"}):
        heard, _ = heard_of(json.dumps(answer).encode(), "json")
        assert (heard.is_error, heard.text) == (True, "no")


def test_what_was_printed_before_the_object_is_no_hindrance() -> None:
    for data in (b'warn: old\n{"result": "ok"}\n', b'warn: old\n{\n  "result": "ok"\n}\n'):
        assert heard_of(data, "json")[0].text == "ok"


def test_an_answer_that_is_no_object_is_shown_and_is_no_answer() -> None:
    heard, shown = heard_of(b"Segmentation\nfault", "json")
    assert (heard.answered, shown, list(heard.last_lines)) == (False, "Segmentation\nfault\n", ["fault"])


def test_text_is_shown_as_it_comes_and_is_the_answer() -> None:
    shown: list[str] = []
    heard = AgentStream()
    reader = PlainText(heard, shown.append)
    reader.feed(b"caf\xc3")
    reader.feed(b"\xa9 \xff")
    assert "".join(shown) == "café \\xff"
    reader.close()
    assert (heard.is_plain, heard.answered, heard.text) == (True, True, "café \\xff")
    assert shown[-1] == "\n"


def test_of_a_long_text_the_end_is_the_answer() -> None:
    heard, shown = heard_of(b"a" * 500_000 + b"the end\n", "text")
    assert len(shown) == 500_008
    assert len(heard.text) <= TEXT_CAP + 2
    assert heard.text.startswith("… aaa")
    assert heard.text.endswith("the end")


def test_secrets_are_hidden_before_anything_is_cut() -> None:
    heard = AgentStream(Mask(["hunter2"]))
    heard.take_line("a" * 996 + "hunter2")
    assert heard.last_lines[0].endswith("a***")
    heard.take_result({"is_error": True, "result": "b" * 49_997 + "hunter2" + "b" * 60_000})
    assert "hunt" not in heard.text
    text = PlainText(heard, lambda _: None)
    text.feed(b"hunter2" + b"c" * (TEXT_CAP - 4))
    text.close()
    assert "r2" not in heard.text


def test_the_names_of_errors_are_few_and_short() -> None:
    many = [said(error=f"error {number}") for number in range(1_000)]
    heard, _ = heard_of(encoded(said(error="e" * 1_000_000), *many, RESULT))
    assert len(heard.codes) == 20
    assert max(map(len, heard.codes)) < 20
    heard.take_result({"is_error": True, "error": {"type": "t" * 1_000_000, "code": 7}})
    heard.take_result({"is_error": True, "error": "u" * 1_000_000})
    assert max(map(len, heard.codes)) < 20
