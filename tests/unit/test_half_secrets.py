"""Wherever text is cut, no half of a secret shows: one test for every place that cuts."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.agent_clis import CLAUDE, GEMINI, AgentCli
from ostinato.execution.context import RunContext
from ostinato.execution.executors.agent.agent_outcome import agent_outcome
from ostinato.execution.executors.agent.agent_stream import TEXT_CAP, AgentStream
from ostinato.execution.executors.agent.output import StderrTail
from ostinato.execution.executors.agent.readers import reader_for
from ostinato.execution.executors.agent.report import ReportFile
from ostinato.execution.executors.http.body import MOST_JSON, Body
from ostinato.execution.executors.report import ReportChannel
from ostinato.execution.executors.shell import LastLine
from ostinato.execution.gate import _judge
from ostinato.execution.outcome import Outcome, raised
from ostinato.execution.secrets import Mask
from ostinato.models.ids import RunId
from ostinato.models.output import output_text

SECRETS = ["s3cr-é-T0KEN", "p4ss  wörd / Phr4se"]
MASK = Mask(SECRETS)


def context() -> RunContext:
    made = RunContext.detached()
    made.mask = MASK
    return made


def stream(*events: object, cli: AgentCli = CLAUDE) -> tuple[AgentStream, RunContext]:
    heard, run = AgentStream(MASK), context()
    reader = reader_for(cli, heard, run.write)
    for event in events:
        reader.feed(json.dumps(event).encode() + b"\n")
    reader.close()
    return heard, run


def judged(heard: AgentStream) -> Outcome:
    return agent_outcome("claude", heard, 1, now=0, login="log in")


def output(run: RunContext) -> str:
    return output_text(run.take_report(final=True)[2])


def used_tool(text: str) -> str:
    event = {
        "type": "assistant",
        "message": {"content": [{"type": "tool_use", "name": "B", "input": {"command": text}}]},
    }
    return output(stream(event)[1])


def named_model(text: str) -> str:
    return output(stream({"type": "init", "session_id": "s-1", "model": text}, cli=GEMINI)[1])


def said_at_once(text: str) -> str:
    spoken = {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}}
    return stream(spoken, {"type": "result", "is_error": False})[0].text


def said_in_pieces(text: str) -> str:
    pieces = [text[at : at + 7_000] for at in range(0, len(text), 7_000)]
    spoken = [{"type": "message", "role": "assistant", "content": piece, "delta": True} for piece in pieces]
    return stream(*spoken, {"type": "result", "status": "success"}, cli=GEMINI)[0].text


def complained(text: str) -> str:
    heard = AgentStream(MASK)
    complaints = StderrTail(heard, lambda _: None)
    complaints.feed(text.encode())
    complaints.close()
    return f"{heard.last_lines} {shown_of(judged(heard))}"


def failed(text: str) -> str:
    return shown_of(judged(stream({"type": "result", "is_error": True, "result": text})[0]))


def failed_by_name(text: str) -> str:
    return shown_of(judged(stream({"type": "result", "is_error": True, "subtype": text})[0]))


def shown_of(outcome: Outcome) -> str:
    """As the runner shows it, which knows the secrets when the others may not."""
    return f"{MASK.hide_in(outcome.reason)}\n{MASK.hide_in(outcome.error)}"


def raised_with(text: str) -> str:
    return shown_of(raised(ValueError(text)))


def refused_by_gate(text: str) -> str:
    answer = _judge(json.dumps({"wake": False, "reason": text}).encode(), MASK)
    assert isinstance(answer, Outcome)
    nonsense = _judge(text.encode(), MASK)
    assert isinstance(nonsense, Outcome)
    return f"{answer.reason} {nonsense.reason}"


def last_line(text: str) -> str:
    last = LastLine(context())
    last.add(text.encode())
    return last.text


def gist(text: str, content_type: str = "text/plain") -> str:
    body = Body({"content-type": content_type}, lambda _: None, MASK)
    for _ in body.adding(text.encode()):
        pass
    return body.gist


def gist_of_json(text: str) -> str:
    return gist(json.dumps({"error": text}), "application/json")


def gist_of_first_line(text: str) -> str:
    return gist(text.replace("x", "\n"))


def reported(text: str) -> str:
    async def main() -> str:
        run = context()
        with ReportChannel.made(run) as path:
            pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            for line in (text, json.dumps({"progress": text}), json.dumps({"totals": {"a": text}})):
                os.write(pipe, line.encode() + b"\n")
            os.close(pipe)
        return output(run)

    return asyncio.run(main())


PLACES: list[tuple[Callable[[str], str], list[int]]] = [
    (used_tool, [195, 199]),
    (named_model, [180, 199]),
    (said_at_once, [TEXT_CAP // 2]),
    (said_in_pieces, [TEXT_CAP // 2, TEXT_CAP]),
    (complained, [280, 299, 1_000, 15_000]),
    (failed, [299, 8_000, TEXT_CAP // 2]),
    (failed_by_name, [99, 280]),
    (raised_with, [286, 297, 7_950, 8_000]),
    (refused_by_gate, [199]),
    (last_line, [199, 4_096]),
    (gist, [199, 800, MOST_JSON]),
    (gist_of_json, [199]),
    (gist_of_first_line, [MOST_JSON]),
    (reported, [150, 199]),
]


@pytest.mark.parametrize(("place", "cuts"), PLACES, ids=lambda value: getattr(value, "__name__", None))
@given(data=st.data())
def test_no_half_of_a_secret_shows(place: Callable[[str], str], cuts: list[int], data: st.DataObject) -> None:
    secret = data.draw(st.sampled_from(SECRETS))
    before = max(0, data.draw(st.sampled_from(cuts)) - data.draw(st.integers(0, 60)))
    # As much behind it that its own place is the one that is cut: from the front, from the back or in the middle.
    behind = data.draw(st.sampled_from([0, 40, 4_070, 7_990, 60_000, TEXT_CAP - 8, TEXT_CAP])) + data.draw(
        st.integers(0, 40)
    )
    assert_hidden(place("x" * before + secret + "y" * (behind if place is not reported else 40)), secret)


@pytest.mark.parametrize("secret", SECRETS)
def test_no_half_of_a_secret_shows_where_the_beginning_of_a_text_was_dropped(secret: str) -> None:
    for kept in range(1, len(secret)):
        heard = AgentStream(MASK)
        reader = reader_for(AgentCli(("any",)), heard, lambda _: None)
        reader.feed(("x" * 10 + secret[:-kept]).encode())
        reader.feed((secret[-kept:] + "y" * (TEXT_CAP - kept)).encode())
        reader.close()
        assert_hidden(heard.text, secret)


def test_no_half_of_a_secret_shows_in_a_begun_line_though_it_holds_another_secret() -> None:
    run = RunContext.detached()
    run.mask = Mask(["hunter2", "hunter2-secret"])
    run.write("it is hunter2-sec")
    assert output_text(run.take_report()[2]) == "it is ***"


def test_no_half_of_a_secret_shows_where_a_report_is_cut(tmp_path: Path) -> None:
    for cap in range(100, 130):
        report = ReportFile(tmp_path, RunId(1), cap)
        for secret in SECRETS:
            report.path.write_text("x" * 105 + secret + "y" * 50)
            assert_hidden(MASK.hide_in(report.read()) or "", secret)
        report.remove()


def assert_hidden(shown: str, secret: str) -> None:
    for form in (secret, " ".join(secret.split())):
        for begin in range(len(form) - 3):
            assert form[begin : begin + 4] not in shown, "four letters of it in a row"
