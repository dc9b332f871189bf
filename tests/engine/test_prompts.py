"""Sessions that drive an agent: prompts with debounce, modes, stop and budgets, against a stand-in for its CLI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ostinato import Agent, Budget, InvalidInput, Ostinato, QueueFull, RunState
from ostinato.config import AgentCli
from ostinato.models.session_options import read_session_defaults
from ostinato.models.states import Cause
from ostinato.models.work import Function
from ostinato.testing import FakeClock, drain, simulate
from tests.engine.conftest import MakeApp, eventually
from tests.engine.stand_in import StandIn
from tests.processes import lives


@pytest.fixture
def stand_in(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path / "bin")


@pytest.fixture
def agent_app(db: str, make_app: MakeApp, stand_in: StandIn) -> Ostinato:
    """An app whose `claude` is the stand-in."""
    return make_app(db, agents={"claude": stand_in.cli})


def asked(app: Ostinato, text: str, key: str = "dm:42", **given: Any) -> Any:
    """Send one prompt, and let it be answered."""
    sent = app.sessions.send(key, text, **{"agent": Agent(), "debounce": 0, "retry": 0, **given})
    drain(app)
    return sent.wait(timeout="60s")


def test_a_prompt_is_answered_and_the_next_continues_the_conversation(agent_app: Ostinato, stand_in: StandIn) -> None:
    first, second = asked(agent_app, "Hello"), asked(agent_app, "And again")
    assert [run.result["text"] for run in (first, second)] == ["message 1: Hello", "message 2: And again"]
    assert f"--resume={first.result['session_id']}" in stand_in.calls[1]["argv"]
    assert (first.session, first.trigger, first.task) == ("dm:42", "message", None)


def test_each_session_has_a_conversation_of_its_own(agent_app: Ostinato) -> None:
    asked(agent_app, "Hello")
    assert asked(agent_app, "Hello", key="dm:43").result["text"] == "message 1: Hello"


def test_an_isolated_agent_begins_anew_with_each_message(agent_app: Ostinato) -> None:
    runs = [asked(agent_app, "Hello", agent=Agent(context="isolated")) for _ in range(2)]
    assert [run.result["text"] for run in runs] == ["message 1: Hello"] * 2


def test_a_burst_of_twenty_messages_becomes_one_prompt(agent_app: Ostinato, stand_in: StandIn) -> None:
    sent = {agent_app.sessions.send("dm:42", f"line {number}", agent=True).id for number in range(20)}
    simulate(agent_app, lasting="10s")
    (call,) = stand_in.calls
    assert call["prompt"] == "\n\n".join(f"line {number}" for number in range(20))
    (id,) = sent
    assert agent_app.runs.get(id).state is RunState.SUCCEEDED


def test_an_agent_of_a_message_may_have_a_project_a_model_and_words_of_its_own(
    agent_app: Ostinato, stand_in: StandIn, tmp_path: Path
) -> None:
    (tmp_path / "blog").mkdir()
    agent_app.projects.add("blog", tmp_path / "blog")
    run = asked(agent_app, "Hello", agent=Agent("Be brief.", model="opus"), project="blog")
    (call,) = stand_in.calls
    assert (call["prompt"], call["folder"]) == ("Hello", str(tmp_path / "blog"))
    assert call["argv"][call["argv"].index("--model") + 1] == "opus"
    assert "Be brief." in call["argv"][call["argv"].index("--append-system-prompt") + 1]
    assert run.project == "blog"


def test_a_session_knows_what_it_has_used(agent_app: Ostinato) -> None:
    asked(agent_app, "Hello")
    asked(agent_app, "And again")
    shown = agent_app.sessions.get("dm:42")
    assert (shown.cost_usd, shown.tokens_in, shown.tokens_out, shown.turns) == (0.5, 2208, 100, 4)


def test_an_agent_whose_context_is_full_throttles_its_session(agent_app: Ostinato) -> None:
    fresh: dict[str, Any] = {"agent": Agent(context="isolated"), "max_concurrent": 3}
    asked(agent_app, "play:full", **fresh)
    shown = agent_app.sessions.get("dm:42")
    assert (shown.context_used, shown.context_window, shown.throttled) == (150_000, 200_000, True)
    asked(agent_app, "Hello", **fresh)
    assert not agent_app.sessions.get("dm:42").throttled


def test_what_an_attempt_of_a_prompt_used_is_counted_though_it_failed(agent_app: Ostinato) -> None:
    sent = agent_app.sessions.send("dm:42", "play:error", agent=True, debounce=0, retry=3)
    simulate(agent_app, lasting="5m")
    run = sent.get()
    assert (run.state, run.attempt, run.totals["cost_usd"]) == (RunState.FAILED, 4, 1.0)
    assert agent_app.sessions.get("dm:42").cost_usd == 1.0


def test_an_agent_that_had_begun_is_not_asked_again_unless_somebody_says_so(agent_app: Ostinato) -> None:
    sent = agent_app.sessions.send("dm:42", "play:error", agent=True, debounce=0)
    simulate(agent_app, lasting="5m")
    assert (sent.get().state, sent.get().attempt) == (RunState.FAILED, 1)
    sent = agent_app.sessions.send("dm:42", "play:overloaded", agent=True, debounce=0)
    simulate(agent_app, lasting="5m")
    assert (sent.get().cause, sent.get().attempt) == (Cause.OVERLOADED, 4)


def test_a_session_pays_for_the_agents_that_its_tasks_execute(db: str, make_app: MakeApp, stand_in: StandIn) -> None:
    app = make_app(db, agents={"claude": stand_in.cli})

    @app.task
    async def reply(payloads: list[str]) -> str:
        run = await app.aio.execute(Agent(payloads[0], context="session:dm:42"))
        return str(run.result["text"])

    app.start()
    sent = app.sessions.send("dm:42", "Hello", task=reply, debounce=0)
    assert sent.wait(timeout="60s").result == "message 1: Hello"
    assert app.sessions.get("dm:42").cost_usd == 0.25


def test_a_session_that_has_used_up_its_day_answers_no_more(agent_app: Ostinato, stand_in: StandIn) -> None:
    budget = Budget(per_run_usd=0.5, per_day_usd=0.7)
    assert asked(agent_app, "Hello", budget=budget).state is RunState.SUCCEEDED
    refused = asked(agent_app, "More", budget=budget)
    assert (refused.state, refused.cause) == (RunState.SKIPPED, Cause.BUDGET)
    assert refused.reason == "budget: $0.25 of $0.70 spent today, and a run may cost $0.50"
    assert asked(agent_app, "Hello", key="dm:43", budget=budget).state is RunState.SUCCEEDED
    assert len(stand_in.calls) == 2


def test_a_message_with_a_budget_joins_none_without(agent_app: Ostinato) -> None:
    first = agent_app.sessions.send("dm:42", "a", agent=True)
    second = agent_app.sessions.send("dm:42", "b", agent=True, budget=Budget(per_run_usd=0.1))
    third = agent_app.sessions.send("dm:42", "c", agent=True, budget=Budget(per_run_usd=0.1))
    assert first.id != second.id == third.id


def test_a_run_may_cost_what_its_budget_says_over_all_its_attempts(agent_app: Ostinato, stand_in: StandIn) -> None:
    sent = agent_app.sessions.send(
        "dm:42", "play:error", agent=True, debounce=0, retry=5, budget=Budget(per_run_usd=0.6)
    )
    simulate(agent_app, lasting="10m")
    run = sent.get()
    assert (run.state, run.cause, run.totals["cost_usd"]) == (RunState.FAILED, Cause.BUDGET, 0.75)
    allowed = [call["argv"][call["argv"].index("--max-budget-usd") + 1] for call in stand_in.calls]
    assert allowed == ["0.6", "0.35", "0.1"]


def test_a_message_that_waits_for_a_limit_expires_as_any_other(agent_app: Ostinato) -> None:
    sent = agent_app.sessions.send("dm:42", "play:rate-limited", agent=True, debounce=0, max_age="1m")
    simulate(agent_app, lasting="5m")
    assert sent.get().state is RunState.EXPIRED
    assert asked(agent_app, "Hello").state is RunState.SUCCEEDED


def test_a_message_is_told_that_it_is_one(agent_app: Ostinato, stand_in: StandIn) -> None:
    asked(agent_app, "Hello")
    (argv,) = (call["argv"] for call in stand_in.calls)
    said = argv[argv.index("--append-system-prompt") + 1]
    assert "in the session dm:42" in said
    assert "unattended" not in said
    assert "report" not in said


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "a message goes to a task or to an agent"),
        ({"task": "reply", "agent": True}, "a message goes to a task or to an agent"),
        ({"agent": "claude"}, "agent cannot be 'claude'"),
        ({"agent": Agent(context="group")}, "a message continues the conversation of its session"),
        ({"agent": Agent(context="session:other")}, "a message continues the conversation of its session"),
        ({"agent": True, "project": "nope"}, "no project 'nope'"),
        ({"agent": True, "cap": 0}, "cap cannot be 0"),
        ({"agent": True, "debounce_max": "1ms"}, "debounce_max is shorter than debounce"),
    ],
)
def test_what_cannot_be_sent_is_told(memory_app: Ostinato, given: dict[str, Any], says: str) -> None:
    with pytest.raises(Exception, match=says):
        memory_app.sessions.send("dm:42", "Hello", **given)


def test_an_agent_without_a_prompt_is_for_messages_only(memory_app: Ostinato) -> None:
    for use in (
        lambda: memory_app.enqueue(Agent()),
        lambda: memory_app.schedules.add("a", "every 1h", Agent(model="opus")),
        lambda: memory_app.execute(Agent()),
    ):
        with pytest.raises(InvalidInput, match="an agent needs a prompt"):
            use()


def test_how_messages_wait_is_said_by_settings_tasks_patterns_and_calls(make_app: MakeApp) -> None:
    said = {"cap": 2, "drop": "new", "debounce": 0, "dm:*": {"cap": 1}}
    app = make_app("sqlite://:memory:", sessions=read_session_defaults(said))

    @app.task(cap=3, session_mode="followup")
    def reply(payloads: list[int]) -> None: ...

    def taken(key: str, **given: Any) -> int:
        """How many messages a session takes."""
        for count in range(10):
            try:
                app.sessions.send(key, count, **given)
            except QueueFull:
                return count
        return 10

    assert taken("a", agent=True) == 2
    assert taken("b", task=reply) == 3
    assert taken("dm:1", task=reply) == 1
    assert taken("dm:2", task=reply, cap=4) == 4
    assert app.runs.list(session="b")[0].work == Function("reply", kwargs={"payloads": [2]})


@pytest.mark.parametrize("play", ["play:hang", "play:deaf"])
def test_an_interrupt_ends_all_of_the_agent_and_the_next_prompt_is_answered(
    db: str, make_app: MakeApp, stand_in: StandIn, tmp_path: Path, play: str
) -> None:
    app = make_app(db, agents={"claude": stand_in.cli}).start()
    app.projects.add("desk", tmp_path)
    chat: dict[str, Any] = {"agent": Agent(), "project": "desk", "debounce": 0, "retry": 0, "mode": "interrupt"}
    first = app.sessions.send("dm:42", play, **chat)
    pids = [int(pid) for pid in eventually(lambda: _read(tmp_path / "pids")).split()]
    second = app.sessions.send("dm:42", "Never mind", **chat)
    assert (first.wait(timeout="60s").state, second.wait(timeout="60s").state) == ("superseded", "succeeded")
    assert not any(map(lives, pids))
    assert second.get().result["text"] == "message 2: Never mind"  # it knows what was asked before


def test_what_a_plain_agent_had_printed_when_it_was_told_to_stop_is_no_answer(
    db: str, make_app: MakeApp, tmp_path: Path
) -> None:
    polite = AgentCli(("sh", "-c", "trap 'echo half; exit 0' TERM; touch begun; sleep 600 & wait"))
    app = make_app(db, agents={"polite": polite}).start()
    app.projects.add("desk", tmp_path)
    chat: dict[str, Any] = {"agent": Agent(cli="polite", context="isolated"), "project": "desk", "debounce": 0}
    sent = app.sessions.send("dm:42", "Hello", **chat)
    eventually((tmp_path / "begun").exists)
    app.sessions.stop("dm:42")
    assert sent.wait(timeout="60s").state is RunState.CANCELLED


@pytest.mark.parametrize("stop", ["stop", "stop_all"])
def test_a_stop_ends_the_agent_and_the_session_goes_on(
    db: str, make_app: MakeApp, stand_in: StandIn, tmp_path: Path, stop: str
) -> None:
    app = make_app(db, agents={"claude": stand_in.cli}).start()
    app.projects.add("desk", tmp_path)
    chat: dict[str, Any] = {"agent": Agent(), "project": "desk", "debounce": 0, "retry": 0}
    first = app.sessions.send("dm:42", "play:hang", **chat)
    pids = [int(pid) for pid in eventually(lambda: _read(tmp_path / "pids")).split()]
    waiting = app.sessions.send("dm:42", "And?", **chat)
    getattr(app.sessions, stop)("dm:42")
    ended = first.wait(timeout="60s")
    assert (ended.state, ended.cause) == ("cancelled", Cause.SESSION_STOPPED)
    assert not any(map(lives, pids))
    assert waiting.wait(timeout="60s").state == ("succeeded" if stop == "stop" else "cancelled")
    assert app.sessions.send("dm:42", "Still there?", **chat).wait(timeout="60s").state == "succeeded"


def test_what_an_agent_says_is_there_while_it_works(db: str, make_app: MakeApp, stand_in: StandIn) -> None:
    app = make_app(db, agents={"claude": stand_in.cli}).start()
    sent = app.sessions.send("dm:42", "play:slow=100000", agent=True, debounce=0)
    eventually(lambda: "line 2\n" in app.runs.output(sent.id))
    assert sent.get().state is RunState.RUNNING
    app.sessions.stop("dm:42")
    assert sent.wait(timeout="60s").state is RunState.CANCELLED


def test_what_an_agent_leaves_behind_is_ended_with_its_answer(
    agent_app: Ostinato, stand_in: StandIn, tmp_path: Path
) -> None:
    agent_app.projects.add("desk", tmp_path)
    assert asked(agent_app, "play:fork", project="desk").state is RunState.SUCCEEDED
    (pid,) = map(int, _read(tmp_path / "pids").split())
    assert not lives(pid)


@pytest.mark.parametrize("play", ["play:dies", "play:cut-off"])
def test_after_an_agent_that_died_in_mid_stream_the_session_goes_on_in_the_same_conversation(
    agent_app: Ostinato, play: str
) -> None:
    first, failed, last = (asked(agent_app, text) for text in ("Hello", play, "And now?"))
    assert (failed.state, failed.cause, failed.attempt) == (RunState.FAILED, Cause.AGENT_ERROR, 1)
    assert last.result["session_id"] == first.result["session_id"]
    assert last.result["text"] == "message 3: And now?"


def test_a_message_that_comes_meanwhile_waits_or_follows_as_its_mode_says(
    db: str, make_app: MakeApp, stand_in: StandIn, tmp_path: Path, fake_clock: FakeClock
) -> None:
    app = make_app(db, agents={"claude": stand_in.cli}).start()
    app.projects.add("desk", tmp_path)
    chat: dict[str, Any] = {"agent": Agent(), "project": "desk"}
    first = app.sessions.send("dm:42", "play:wait", debounce=0, **chat)
    eventually(lambda: _read(tmp_path / "waiting"))
    waiting = [app.sessions.send("dm:42", text, debounce=0, **chat) for text in ("one", "two")]
    following = set()
    for text in ("a", "b"):
        following.add(app.sessions.send("dm:42", text, mode="followup", debounce="1ms", **chat).id)
        fake_clock.advance("1s")  # the timer is over, and a followup is joined until it starts
    assert [app.runs.get(one.id).state for one in waiting] == [RunState.QUEUED] * 2
    (tmp_path / "go").touch()
    app.wait_idle(timeout="60s")
    assert first.get().state is RunState.SUCCEEDED
    assert [call["prompt"] for call in stand_in.calls] == ["play:wait", "one", "two", "a\n\nb"]
    assert len(following) == 1


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""
