"""The four command lines that are known from the start, through the whole engine, against stand-ins of each."""

from __future__ import annotations

import os
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ostinato import Agent, Ostinato, Run, RunState
from ostinato.agent_clis import BUILT_IN, AgentCli
from ostinato.execution.executors.agent.agent_stream import AgentStream
from ostinato.execution.executors.agent.readers import reader_for
from ostinato.testing import drain
from tests.engine.conftest import MakeApp
from tests.engine.stand_in import StandIn
from tests.processes import lives

NAMES = sorted(BUILT_IN)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "blog"
    made.mkdir()
    return made


@pytest.fixture(params=NAMES)
def stand_in(request: pytest.FixtureRequest, tmp_path: Path) -> StandIn:
    return StandIn(tmp_path / "bin", request.param)


@pytest.fixture
def app(make_app: MakeApp, stand_in: StandIn, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Ostinato:
    """An app without any setting of an agent: the stand-in is simply installed."""
    monkeypatch.setenv("PATH", f"{stand_in.home}:{os.environ['PATH']}")
    made = make_app("sqlite://:memory:")
    made.projects.add("blog", folder)
    return made


def done(app: Ostinato, stand_in: StandIn, prompt: str, *, policy: dict[str, Any] | None = None, **given: Any) -> Run:
    """One run of the agent, to its end."""
    work = Agent(prompt, cli=stand_in.name, **given)
    app.schedules.add("a", "every 1h", work, project="blog", **{"retry": 0, **(policy or {})})
    run = app.schedules.trigger("a")
    drain(app)
    return app.runs.get(run.id)


def test_it_answers_and_says_what_it_used(app: Ostinato, stand_in: StandIn) -> None:
    run = done(app, stand_in, "Summarise new issues", model="maker/model")
    assert (run.state, run.reason) == (RunState.SUCCEEDED, None)
    assert run.result["text"] == "message 1: Summarise new issues"
    cost = {"cost_usd": 0.25, "turns": 2} if stand_in.name in ("claude", "opencode") else {}
    assert run.totals == {**cost, "tokens_in": 1104, "tokens_out": 50}
    output = app.runs.output(run.id)
    assert output.startswith(f"conversation {run.result['session_id']}")
    assert "Let me look.\nThere is much to see.\n→ " in output
    assert ": ls -la /srv\n" in output
    (call,) = stand_in.calls
    assert call["argv"][call["argv"].index("--model") + 1] == "maker/model"


def test_the_second_run_continues_the_conversation_of_the_first(app: Ostinato, stand_in: StandIn) -> None:
    first, second = (done(app, stand_in, "look", context="group") for _ in range(2))
    assert second.result["text"] == "message 2: look"
    assert second.result["session_id"] == first.result["session_id"]
    # Codex counts over the whole conversation: that is not what the second run used.
    assert second.totals.get("tokens_out") == (None if stand_in.name == "codex" else 50)


def test_a_vanished_conversation_begins_anew(app: Ostinato, stand_in: StandIn) -> None:
    done(app, stand_in, "look", context="group")
    stand_in.forget()
    run = done(app, stand_in, "look", context="group")
    assert (run.state, run.attempt, run.result["text"]) == (RunState.SUCCEEDED, 1, "message 1: look")
    assert "no longer exists, so a new one was begun" in (run.reason or "")


@pytest.mark.parametrize(
    ("play", "cause"),
    [
        ("logged-out", "logged_out"),
        ("rate-limited", "rate_limited"),
        ("overloaded", "overloaded"),
        ("no-network", "no_network"),
        ("refused", "agent_error"),
        ("cut-off", "agent_error"),
        ("no-result", "agent_error"),
        ("dies", "agent_error"),
    ],
)
def test_every_failure_has_its_cause(app: Ostinato, stand_in: StandIn, play: str, cause: str) -> None:
    run = done(app, stand_in, f"play:{play}")
    assert (run.state, run.cause) == (RunState.FAILED, cause), run.reason
    if cause == "agent_error":
        assert f"{stand_in.name} " in (run.reason or "")
        assert "and gave no result" in (run.reason or "")
    if cause == "logged_out":
        assert BUILT_IN[stand_in.name].login in (run.reason or "")


def test_the_next_try_waits_until_the_limit_ends(app: Ostinato, stand_in: StandIn) -> None:
    run = done(app, stand_in, "play:rate-limited", policy={"retry": 1})
    assert (run.state, run.cause, run.attempt) == (RunState.QUEUED, "rate_limited", 1)
    assert timedelta(hours=1) <= run.ready_at - run.due_at <= timedelta(minutes=62)


def test_an_agent_that_had_begun_may_fail_too(app: Ostinato, stand_in: StandIn) -> None:
    run = done(app, stand_in, "play:error")
    assert (run.state, run.reason) == (RunState.FAILED, "API Error: 500 overloaded")


def test_what_is_cut_off_says_so(app: Ostinato, stand_in: StandIn) -> None:
    run = done(app, stand_in, "play:cut-off")
    end = "exited with status 1 and gave no result: its output ends in the middle of an event"
    assert run.reason == f"{stand_in.name} {end}"


def test_the_stand_in_reports_a_full_context(tmp_path: Path) -> None:
    claude, heard = StandIn(tmp_path / "claude"), AgentStream()
    command = [str(claude.path), "-p", "--output-format", "stream-json", "--verbose"]
    reader = reader_for(claude.cli, heard, lambda _: None)
    reader.feed(subprocess.run(command, input=b"play:full", capture_output=True, check=True, timeout=60).stdout)
    reader.close()
    assert (heard.answered, heard.context_tokens, heard.context_window) == (True, 150_000, 200_000)


def test_broken_lines_do_not_hide_the_answer(app: Ostinato, stand_in: StandIn) -> None:
    run = done(app, stand_in, "play:broken")
    assert (run.state, run.result["text"]) == (RunState.SUCCEEDED, "message 1: play:broken")
    assert "\\xff\\xfe caf\\xe9\n" in app.runs.output(run.id)


def test_what_it_leaves_behind_is_ended(app: Ostinato, stand_in: StandIn, folder: Path) -> None:
    run = done(app, stand_in, "play:fork")
    assert run.state is RunState.SUCCEEDED, run.reason
    assert not lives(int((folder / "pids").read_text()))


def test_a_missing_program_says_how_to_get_it(app: Ostinato, stand_in: StandIn, folder: Path) -> None:
    run = done(app, stand_in, "look", env={"PATH": str(folder)})
    assert (run.state, run.cause) == (RunState.FAILED, "not_started")
    assert str(BUILT_IN[stand_in.name].install) in (run.reason or "")
    assert f"[agents.{stand_in.name}]" in (run.reason or "")


def test_any_other_command_is_read_by_its_paths(make_app: MakeApp, folder: Path) -> None:
    program = folder.parent / "parrot"
    answer = '{"choices": [{"text": "you said \'"$1"\'"}], "meta": {"id": "s7"}, "usage": {"usd": 0.5, "out": 3}}'
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' '{answer}'\n")
    program.chmod(0o755)
    fields = {"answer": ("choices", "0", "text"), "conversation": ("meta", "id"), "cost": ("usage", "usd")}
    cli = AgentCli((str(program), "{prompt}"), (str(program), "again {conversation}"), output="json", fields=fields)
    app = make_app("sqlite://:memory:", agents={"parrot": cli}, agent_prompt="")
    app.projects.add("blog", folder)
    texts = []
    for _ in range(2):
        app.schedules.add("a", "every 1h", Agent("hello", cli="parrot", context="group"), project="blog")
        run = app.schedules.trigger("a")
        drain(app)
        run = app.runs.get(run.id)
        assert run.totals == {"cost_usd": 0.5}
        texts.append(run.result["text"])
    assert texts == ["you said hello", "you said again s7"]
