"""Agents through the whole engine, against a stand-in that speaks the contract of the Claude Code CLI."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ostinato import Agent, Ostinato, Run, RunState
from ostinato.config import AgentCli
from ostinato.testing import FakeClock, drain, settle, simulate
from tests.conftest import tuned
from tests.engine.conftest import MakeApp, eventually
from tests.engine.stand_in import StandIn
from tests.processes import lives


@pytest.fixture
def stand_in(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path / "bin")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "blog"
    made.mkdir()
    return made


@pytest.fixture
def agent_app(make_app: MakeApp, stand_in: StandIn, folder: Path) -> Ostinato:
    """An app whose `claude` is the stand-in, with a project `blog`."""
    app = make_app("sqlite://:memory:", agents={"claude": stand_in.cli})
    app.projects.add("blog", folder)
    return app


def done(app: Ostinato, prompt: str = "look", *, policy: dict[str, Any] | None = None, **given: Any) -> Run:
    """One run of an agent, to its end."""
    app.schedules.add("a", "every 1h", Agent(prompt, **given), project="blog", **{"retry": 0, **(policy or {})})
    run = app.schedules.trigger("a")
    drain(app)
    return app.runs.get(run.id)


def output(app: Ostinato, run: Run) -> str:
    return app.runs.output(run.id)


def test_an_agent_answers_and_says_what_it_cost(agent_app: Ostinato, stand_in: StandIn, folder: Path) -> None:
    run = done(agent_app, "Summarise new issues")
    assert (run.state, run.reason) == (RunState.SUCCEEDED, None)
    assert run.result["text"] == "message 1: Summarise new issues"
    assert run.result["report"] is None
    assert run.totals == {"cost_usd": 0.25, "turns": 2, "tokens_in": 1104, "tokens_out": 50}
    conversation = run.result["session_id"]
    assert output(agent_app, run).splitlines() == [
        f"conversation {conversation} with claude-stand-in",
        "Let me look.",
        "There is much to see.",
        "→ Bash: ls -la /srv",
    ]
    (call,) = stand_in.calls
    assert call["prompt"] == "Summarise new issues"
    assert call["folder"] == str(folder)
    assert f"--session-id={conversation}" in call["argv"]
    assert call["environment"]["OSTINATO_RUN_ID"] == str(run.id)
    assert list(folder.iterdir()) == []


def test_an_agent_is_found_by_the_path_of_its_own_environment(
    make_app: MakeApp, stand_in: StandIn, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app("sqlite://:memory:")
    app.projects.add("blog", folder)
    monkeypatch.setenv("CLAUDECODE", "1")  # as inside of a Claude Code, where it would refuse to start
    assert done(app, env={"PATH": f"{stand_in.home}:{os.environ['PATH']}"}).state is RunState.SUCCEEDED
    assert "CLAUDECODE" not in stand_in.calls[0]["environment"]


def test_isolated_runs_have_a_conversation_each(agent_app: Ostinato) -> None:
    first, second = done(agent_app), done(agent_app)
    assert first.result["session_id"] != second.result["session_id"]
    assert second.result["text"] == "message 1: look"


@pytest.mark.parametrize("context", ["group", "session:research"])
def test_runs_of_one_context_continue_one_conversation(agent_app: Ostinato, stand_in: StandIn, context: str) -> None:
    first, second = done(agent_app, context=context), done(agent_app, context=context)
    assert second.result["text"] == "message 2: look"
    assert second.result["session_id"] == first.result["session_id"]
    assert f"--resume={first.result['session_id']}" in stand_in.calls[1]["argv"]


def test_the_next_run_continues_under_the_id_that_was_said_last(agent_app: Ostinato, stand_in: StandIn) -> None:
    ids = [done(agent_app, "play:renamed", context="group").result["session_id"] for _ in range(3)]
    assert len(set(ids)) == 3
    assert [call["argv"][4] for call in stand_in.calls[1:]] == [f"--resume={id}" for id in ids[:2]]


def test_a_failure_keeps_the_conversation(agent_app: Ostinato) -> None:
    failed = done(agent_app, "play:error", context="group")
    assert failed.state is RunState.FAILED
    assert done(agent_app, context="group").result["text"] == "message 2: look"


def test_runs_of_one_conversation_go_in_turn(agent_app: Ostinato, folder: Path) -> None:
    for name in ("a", "b"):
        agent_app.schedules.add(name, "every 1h", Agent("play:wait", context="group"), project="blog")
    agent_app.start()
    runs = [agent_app.schedules.trigger(name) for name in ("a", "b")]
    settle(agent_app)
    eventually((folder / "waiting").exists)
    assert sorted(agent_app.runs.get(run.id).state for run in runs) == [RunState.QUEUED, RunState.RUNNING]
    (folder / "go").touch()
    texts = [agent_app.runs.wait(run.id, timeout=60).result["text"] for run in runs]
    assert sorted(texts) == ["message 1: play:wait", "message 2: play:wait"]
    assert len(set((folder / "waiting").read_text().splitlines())) == 1


@pytest.mark.parametrize("on_stderr", [False, True])
def test_a_vanished_conversation_begins_anew_and_says_so(
    agent_app: Ostinato, stand_in: StandIn, *, on_stderr: bool
) -> None:
    before = done(agent_app, context="group")
    stand_in.forget()
    if on_stderr:
        (stand_in.home / "on-stderr").touch()
    run = done(agent_app, context="group")
    note = f"conversation {before.result['session_id']} no longer exists, so a new one was begun"
    assert (run.state, run.reason, run.attempt) == (RunState.SUCCEEDED, note, 1)
    assert f"ostinato: {note}\n" in output(agent_app, run)
    assert run.result["text"] == "message 1: look"
    after = done(agent_app, context="group")
    assert after.result["text"] == "message 2: look"
    assert len(stand_in.calls) == 4


def test_what_was_done_is_not_done_twice_because_of_what_is_said_of_a_failure(
    agent_app: Ostinato, stand_in: StandIn
) -> None:
    done(agent_app, context="group")
    run = done(agent_app, "play:late", context="group")
    assert (run.state, run.reason) == (RunState.FAILED, "No conversation found with session ID: 7")
    assert len(stand_in.calls) == 2


def test_an_authentication_error_breaks_the_schedule_at_once(agent_app: Ostinato) -> None:
    agent_app.schedules.add("a", "every 1h", Agent("play:logged-out"), project="blog")
    assert simulate(agent_app, lasting="5h") == 1
    schedule = agent_app.schedules.get("a")
    assert schedule.enabled is False
    assert (schedule.broken or "").startswith(
        "claude is not logged in (Not logged in · Please run /login): run 'claude' and type /login"
    )
    (run,) = agent_app.runs.list()
    assert (run.state, run.cause, run.attempt) == (RunState.FAILED, "logged_out", 1)


def test_a_report_is_stored_and_the_file_removed(agent_app: Ostinato, folder: Path) -> None:
    run = done(agent_app, "play:report")
    assert run.result["report"] == "# Done\n\ncaf\\xe9 is open\n"
    assert list(folder.iterdir()) == []


def test_the_report_of_a_failure_is_kept_too(agent_app: Ostinato, folder: Path) -> None:
    run = done(agent_app, "play:report-of-failure")
    assert run.state is RunState.FAILED
    assert run.result["report"] == "it went wrong"
    assert output(agent_app, run).endswith("ostinato: the report of this attempt:\nit went wrong\n")
    assert list(folder.iterdir()) == []


def test_without_a_place_for_its_report_a_run_goes_on_and_says_so(
    agent_app: Ostinato, stand_in: StandIn, folder: Path
) -> None:
    (folder / ".ostinato").write_text("taken")
    run = done(agent_app)
    assert run.state is RunState.SUCCEEDED
    assert output(agent_app, run).startswith("ostinato: this run has no report: .ostinato cannot be made in ")
    assert "report" not in stand_in.calls[0]["argv"][-1]


def test_the_template_of_the_system_prompt_can_be_replaced(make_app: MakeApp, stand_in: StandIn, folder: Path) -> None:
    app = make_app("sqlite://:memory:", agents={"claude": stand_in.cli}, agent_prompt="Run {run} to {report} {else}")
    app.projects.add("blog", folder)
    run = done(app, model="opus", system="Speak French.")
    argv = stand_in.calls[0]["argv"]
    system = argv[argv.index("--append-system-prompt") + 1]
    assert system == f"Run {run.id} to {folder}/.ostinato/run-{run.id}-report.md {{else}}\n\nSpeak French."
    assert argv[argv.index("--model") + 1] == "opus"


def test_what_the_gate_gave_joins_the_prompt(agent_app: Ostinato, stand_in: StandIn) -> None:
    gate = """echo '{"wake": true, "data": {"mails": 3}}'"""
    run = done(agent_app, policy={"gate": gate})
    assert run.state is RunState.SUCCEEDED, run.reason
    assert '```json\n{\n  "mails": 3\n}\n```' in stand_in.calls[0]["prompt"]


def test_what_the_gate_gave_is_only_in_the_prompt(make_app: MakeApp, folder: Path) -> None:
    app = other(make_app, folder, 'cat > /dev/null; echo "${OSTINATO_GATE-none}"')
    run = done(app, "look", cli="parrot", policy={"gate": """echo '{"wake": true, "data": 7}'"""})
    assert run.result["text"] == "none"


def test_it_counts_through_the_side_channel(agent_app: Ostinato) -> None:
    run = done(agent_app, "play:counts")
    assert (run.totals["copied"], run.totals["turns"]) == (5, 2)


def test_secrets_do_not_show(agent_app: Ostinato, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", 'hun"ter\\2')
    run = done(agent_app, "play:environment", env={"TOKEN": "env:MY_TOKEN"})
    assert run.result["text"] == "the token is ***"


def test_a_timeout_ends_the_whole_group(agent_app: Ostinato, fake_clock: FakeClock, folder: Path) -> None:
    agent_app.schedules.add("a", "every 2h", Agent("play:hang"), project="blog", retry=0)
    agent_app.start()
    run = agent_app.schedules.trigger("a")
    eventually((folder / "pids").exists)
    fake_clock.advance("29m")
    assert agent_app.runs.get(run.id).state is RunState.RUNNING
    fake_clock.advance("1m")
    ended = agent_app.runs.wait(run.id, timeout=60)
    assert (ended.state, ended.reason) == (RunState.FAILED, "timed out after 30m")
    assert not _left(folder)
    drain(agent_app)  # what it left goes once its end is written
    assert not (folder / ".ostinato").exists()


@tuned(command_kill_seconds=0.2)
def test_a_cancel_ends_what_does_not_listen(agent_app: Ostinato, folder: Path) -> None:
    agent_app.schedules.add("a", "every 1h", Agent("play:deaf"), project="blog")
    agent_app.start()
    run = agent_app.schedules.trigger("a")
    eventually((folder / "pids").exists)
    agent_app.runs.cancel(run.id)
    assert agent_app.runs.wait(run.id, timeout=60).state is RunState.CANCELLED
    assert not _left(folder)


def test_what_it_says_can_be_read_while_it_runs(agent_app: Ostinato, folder: Path) -> None:
    agent_app.schedules.add("a", "every 1h", Agent("play:hang"), project="blog")
    agent_app.start()
    run = agent_app.schedules.trigger("a")
    eventually((folder / "pids").exists)
    eventually(lambda: output(agent_app, run).endswith("I wait.\n"))
    assert agent_app.runs.get(run.id).state is RunState.RUNNING


def test_a_drain_puts_it_back_and_leaves_nothing(
    make_app: MakeApp, stand_in: StandIn, folder: Path, tmp_path: Path
) -> None:
    app = make_app(f"sqlite:///{tmp_path / 'jobs.db'}", agents={"claude": stand_in.cli})
    app.projects.add("blog", folder)
    app.schedules.add("a", "every 1h", Agent("play:hang"), project="blog", retry=1)
    app.start()
    run = app.schedules.trigger("a")
    eventually((folder / "pids").exists)
    app.stop(grace=0.1)
    assert not _left(folder)
    assert not (folder / ".ostinato").exists()
    run = app.runs.get(run.id)
    assert (run.state, run.attempts[0].state) == (RunState.QUEUED, "cut_off")


def _left(folder: Path) -> list[int]:
    pids = [int(pid) for pid in (folder / "pids").read_text().split()]
    return [pid for pid in pids if lives(pid)]


def test_a_missing_program_says_what_was_looked_for_and_how_to_get_it(make_app: MakeApp, folder: Path) -> None:
    app = make_app("sqlite://:memory:")
    app.projects.add("blog", folder)
    run = done(app, env={"PATH": str(folder)}, policy={"retry": 3})
    assert run.state is RunState.FAILED
    for words in (
        "'claude'",
        str(folder),
        "npm install -g @anthropic-ai/claude-code",
        "[agents.claude]",
        "ostinato.toml",
    ):
        assert words in (run.reason or "")


def test_an_unknown_agent_names_the_known_ones(agent_app: Ostinato) -> None:
    run = done(agent_app, cli="clyde", policy={"retry": 3})
    assert (run.state, run.reason) == (
        RunState.FAILED,
        "this run cannot be executed: there is no agent 'clyde', only claude, codex, gemini, opencode: "
        "set its command under [agents.clyde] in ostinato.toml",
    )


def other(make_app: MakeApp, folder: Path, script: str, **cli: Any) -> Ostinato:
    """An app with another agent, `parrot`, that is a shell script."""
    program = folder.parent / "parrot"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    given = AgentCli((str(program),))
    app = make_app("sqlite://:memory:", agents={"parrot": replace(given, **cli)}, agent_prompt="")
    app.projects.add("blog", folder)
    return app


def test_another_agent_prints_text_and_its_exit_status_decides(make_app: MakeApp, folder: Path) -> None:
    app = other(make_app, folder, 'read line; echo "you said $line"; case "$line" in *bad*) echo no >&2; exit 2;; esac')
    run = done(app, "hello", cli="parrot")
    assert (run.state, run.result["text"]) == (RunState.SUCCEEDED, "you said hello")
    assert output(app, run) == "you said hello\n"
    run = done(app, "bad", cli="parrot")
    assert (run.state, run.reason) == (RunState.FAILED, "parrot exited with status 2: no")


def test_another_agent_is_not_started_without_the_bounds_that_it_does_not_know(make_app: MakeApp, folder: Path) -> None:
    run = done(other(make_app, folder, "echo anyway"), "hello", cli="parrot", permission_mode="plan")
    assert (run.state, run.reason) == (
        RunState.FAILED,
        "this run cannot be executed: the agent 'parrot' does not support permission_mode: put it into its command "
        "under [agents.parrot] in ostinato.toml, or set speaks_claude there",
    )


def test_another_agent_continues_by_its_own_command(make_app: MakeApp, folder: Path) -> None:
    program = str(folder.parent / "parrot")
    app = other(
        make_app,
        folder,
        """echo '{"text": "'"$*"'", "thread_id": "t7"}'""",
        output="json",
        command=(program, "new", "{prompt}"),
        resume=(program, "again", "{conversation}", "{prompt}"),
    )
    assert done(app, "hi; $(reboot)", cli="parrot", context="group").result["text"] == "new hi; $(reboot)"
    assert done(app, "hi; $(reboot)", cli="parrot", context="group").result["text"] == "again t7 hi; $(reboot)"


def test_an_agent_that_cannot_continue_says_so(make_app: MakeApp, folder: Path) -> None:
    run = done(other(make_app, folder, "true"), cli="parrot", context="group")
    assert run.state is RunState.FAILED
    assert "cannot continue a conversation, as context='group' wants: set resume under [agents.parrot]" in (
        run.reason or ""
    )


def test_an_agent_runs_on_every_kind_of_database(make_app: MakeApp, db: str, stand_in: StandIn, folder: Path) -> None:
    app = make_app(db, agents={"claude": stand_in.cli})
    app.projects.add("blog", folder)
    done(app, context="group")
    run = done(app, "play:report", context="group")
    assert (run.state, run.result["text"]) == (RunState.SUCCEEDED, "message 2: play:report")
    assert run.result["report"].startswith("# Done")
