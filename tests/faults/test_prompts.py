"""Prompts in sessions while engines are killed: no process is left, and nothing is answered twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ostinato import Agent, Ostinato, RunState
from ostinato.models.states import Cause
from tests.engine.conftest import eventually
from tests.engine.stand_in import StandIn
from tests.faults.nodes import nodes
from tests.processes import lives

CHAT: dict[str, Any] = {"agent": Agent(), "project": "desk", "debounce": 0, "mode": "interrupt"}


@pytest.fixture
def stand_in(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path / "bin")


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("play", "kill_first"),
    # One that goes at once could be gone, and the next begun, before the kill.
    [("play:deaf", False), ("play:slow=100000", True)],
    ids=["interrupt, then kill", "kill, then interrupt"],
)
def test_an_interrupt_under_a_kill_of_the_engine_leaves_no_process_and_no_doubled_answer(
    app: Ostinato, url: str, stand_in: StandIn, tmp_path: Path, play: str, kill_first: bool
) -> None:
    app.projects.add("desk", tmp_path)
    with nodes(url, tmp_path / "notes", program="chatter.py", STAND_IN=str(stand_in.path)) as cluster:
        node = cluster.start()
        first = app.sessions.send("dm:42", play, **CHAT)
        pid = eventually(lambda: [call["pid"] for call in stand_in.calls])[0]
        if kill_first:
            cluster.kill(node)
        second = app.sessions.send("dm:42", "Never mind", **CHAT)
        if not kill_first:
            cluster.kill(node)
        cluster.start()
        interrupted, answered = first.wait(timeout="90s"), second.wait(timeout="90s")
        assert not lives(pid)
    assert (interrupted.state, interrupted.cause) == (RunState.SUPERSEDED, Cause.INTERRUPTED)
    assert (answered.state, answered.attempt) == (RunState.SUCCEEDED, 1)
    assert answered.result["text"].endswith("Never mind")
    assert [call["prompt"] for call in stand_in.calls] == [play, "Never mind"]


@pytest.mark.timeout(180)
def test_an_agent_that_died_with_its_engine_is_not_asked_again_unasked(
    app: Ostinato, url: str, stand_in: StandIn, tmp_path: Path
) -> None:
    app.projects.add("desk", tmp_path)
    with nodes(url, tmp_path / "notes", program="chatter.py", STAND_IN=str(stand_in.path)) as cluster:
        node = cluster.start()
        sent = app.sessions.send("dm:42", "play:slow=100000", agent=Agent(), debounce=0)
        pid = eventually(lambda: [call["pid"] for call in stand_in.calls])[0]
        cluster.kill(node)
        cluster.start()
        lost = sent.wait(timeout="90s")
        assert not lives(pid)
        follower = app.sessions.send("dm:42", "Still there?", agent=Agent(), debounce=0).wait(timeout="90s")
    assert (lost.state, lost.cause, lost.attempt) == (RunState.FAILED, Cause.NODE_LOST, 1)
    assert follower.state is RunState.SUCCEEDED
    assert [call["prompt"] for call in stand_in.calls] == ["play:slow=100000", "Still there?"]
