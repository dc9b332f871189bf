"""What an agent did, it does not do again unasked: its default retry covers only what failed before it began."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from ostinato import Agent, Ostinato, Retry, Run, RunState, Shell
from ostinato.engine.node import Engine
from ostinato.models.policy import DEFAULT
from ostinato.testing import FakeClock, simulate
from tests.conftest import tuned
from tests.engine.conftest import MakeApp, eventually, on_shared
from tests.engine.stand_in import StandIn

CAREFUL = Retry(covers="start")
NOT_AGAIN = "not tried again, because the agent had begun; set retry to have it tried again even then"


@pytest.fixture
def stand_in(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path / "bin")


@pytest.fixture
def agent_app(db: str, make_app: MakeApp, stand_in: StandIn, tmp_path: Path) -> Ostinato:
    app = make_app(db, agents={"claude": stand_in.cli})
    app.projects.add("blog", tmp_path)
    return app


def ended(app: Ostinato, prompt: str, folder: str | None = None, **policy: Any) -> Run:
    run = app.enqueue(Agent(prompt, folder=folder), project="blog", **policy)
    simulate(app, lasting="10m")
    return run.get()


def test_an_agent_that_had_begun_is_not_tried_again_by_default(agent_app: Ostinato, stand_in: StandIn) -> None:
    run = ended(agent_app, "play:late")
    assert (run.state, run.attempt, run.cause) == (RunState.FAILED, 1, "overloaded")
    assert (run.reason or "").endswith(NOT_AGAIN)
    assert len(stand_in.calls) == 1


@pytest.mark.parametrize("retry", [3, {"max": 3}, Retry(3), {"max": 3, "covers": "all"}], ids=str)
def test_a_retry_that_is_asked_for_by_name_covers_every_failure(
    agent_app: Ostinato, stand_in: StandIn, retry: Any
) -> None:
    run = ended(agent_app, "play:late", retry=retry)
    assert (run.state, run.attempt, len(stand_in.calls)) == (RunState.FAILED, 4, 4)
    assert "not tried again" not in (run.reason or "")


@tuned(folder_seconds=1)
def test_what_failed_before_the_agent_began_is_tried_again(
    agent_app: Ostinato, stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a network drive that hangs once: the look at its folder does not return."""
    is_dir, asked, answers = Path.is_dir, threading.Event(), threading.Event()

    def hang_once(path: Path) -> bool:
        if path == tmp_path / "far" and not asked.is_set():
            asked.set()
            answers.wait(60)
        return is_dir(path)

    (tmp_path / "far").mkdir()
    monkeypatch.setattr(Path, "is_dir", hang_once)
    try:
        run = ended(agent_app, "look", folder="far")
    finally:
        answers.set()
    assert (run.state, run.attempt, len(stand_in.calls)) == (RunState.SUCCEEDED, 2, 1)
    assert "did not answer within 1s" in (run.attempts[0].error or "")


@on_shared
@pytest.mark.parametrize(("given", "state"), [({}, RunState.FAILED), ({"retry": 1}, RunState.SUCCEEDED)])
def test_a_crash_of_its_node_counts_as_begun(
    shared_db: str,
    make_app: MakeApp,
    stand_in: StandIn,
    fake_clock: FakeClock,
    tmp_path: Path,
    given: dict[str, Any],
    state: RunState,
) -> None:
    agents = {"claude": stand_in.cli}
    first, second = (make_app(shared_db, name=name, agents=agents) for name in ("first", "second"))
    first.projects.add("blog", tmp_path)

    async def fall_silent(engine: Engine) -> None:
        await engine.watchdog.stop("lease", "waker", "rescuer")

    first.start()
    run = first.enqueue(Agent("play:wait"), project="blog", timeout=None, **given)
    eventually((tmp_path / "waiting").exists)
    first.with_engine(fall_silent)
    if given:
        (tmp_path / "go").touch()
    second.start()

    def is_over() -> bool:
        fake_clock.advance("5s")
        return second.runs.get(run.id).ended

    eventually(is_over)
    over = second.runs.get(run.id)
    assert over.state is state
    if state is RunState.FAILED:
        assert (over.cause, (over.reason or "").endswith(NOT_AGAIN)) == ("node_lost", True)


# Where the default comes from, and how long it stays.


def test_a_schedule_of_an_agent_has_the_default_of_agents_and_any_other_has_its_own(app: Ostinato) -> None:
    app.schedules.add("agent", "every 1h", Agent("look"))
    app.schedules.add("shell", "every 1h", Shell("true"))
    assert app.schedules.get("agent").policy.retry == CAREFUL
    assert app.schedules.get("shell").policy.retry == DEFAULT.retry


@pytest.mark.parametrize(
    ("given", "retry"),
    [
        (3, Retry(3)),
        (5, Retry(5)),
        ({"max": 2}, Retry(2)),
        ({"max": 2, "covers": "start"}, Retry(2, covers="start")),
        ({"covers": "all"}, Retry()),
    ],
    ids=str,
)
def test_what_is_given_by_name_is_stored_when_it_is_added_and_when_it_is_edited(
    app: Ostinato, given: Any, retry: Retry
) -> None:
    app.schedules.add("added", "every 1h", Agent("look"), retry=given)
    app.schedules.add("edited", "every 1h", Agent("look"))
    app.schedules.edit("edited", retry=given)
    app.schedules.edit("edited", timeout="1h")
    assert [app.schedules.get(name).policy.retry for name in ("added", "edited")] == [retry, retry]


def test_an_edit_of_something_else_leaves_it(app: Ostinato) -> None:
    app.schedules.add("a", "every 1h", Agent("look"))
    app.schedules.edit("a", work=Agent("look again"), timeout="1h")
    assert app.schedules.get("a").policy.retry == CAREFUL


def test_work_of_another_kind_comes_with_its_own_unless_another_was_asked_for(app: Ostinato) -> None:
    app.schedules.add("a", "every 1h", Agent("look"))
    app.schedules.edit("a", work=Shell("true"))
    assert app.schedules.get("a").policy.retry == DEFAULT.retry
    app.schedules.edit("a", work=Agent("look"))
    assert app.schedules.get("a").policy.retry == CAREFUL
    app.schedules.edit("a", work=Shell("true"), retry=5)
    app.schedules.edit("a", work=Agent("look"))
    assert app.schedules.get("a").policy.retry == Retry(5)


def test_adding_it_twice_changes_nothing(app: Ostinato) -> None:
    first = app.schedules.add("a", "every 1h", Agent("look"))
    assert app.schedules.add("a", "every 1h", Agent("look")).version == first.version
