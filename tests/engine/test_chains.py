"""Chains in code, through a real engine on both databases: what runs after what, what it is told, and when."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from ostinato import (
    Abort,
    ChainHandle,
    InvalidInput,
    Ostinato,
    Run,
    RunContext,
    RunFailed,
    Snooze,
    Task,
    Trigger,
    group,
)
from ostinato.errors import Conflict, NotFound
from ostinato.models.access import Actor
from ostinato.service.audit import acting
from ostinato.testing import FakeClock, drain, simulate
from tests.engine.conftest import PATIENCE, Gate, MakeApp
from tests.stores.places import raw


class Jobs:
    """The tasks of these tests; `log` has what they did, in order."""

    def __init__(self, app: Ostinato) -> None:
        self.log: list[str] = []
        self.load: Task[[str], str] = app.task("load", retry=0)(self._load)
        self.join: Task[[], list[str]] = app.task("join", retry=0)(self._join)

    def _load(self, part: str) -> str:
        self.log.append(part)
        if part == "bad":
            raise Abort("no rows")
        return part

    def _join(self, run: RunContext) -> list[str]:
        self.log.append("join")
        return [str(one.result) for one in run.upstreams]


@pytest.fixture
def jobs(app: Ostinato) -> Jobs:
    return Jobs(app)


def states(runs: Sequence[Run]) -> list[str]:
    return [str(run.state) for run in runs]


def test_steps_run_one_after_the_other_and_each_sees_the_one_before_it(app: Ostinato, jobs: Jobs) -> None:
    handle = jobs.load.then(jobs.join).then(jobs.load.call("last")).enqueue("first")
    assert drain(app) == 3
    assert jobs.log == ["first", "join", "last"]
    first, second, third = handle.get()
    assert (first.trigger, second.trigger, third.trigger) == (Trigger.API, Trigger.AFTER, Trigger.AFTER)
    assert (second.result, second.due_at) == (["first"], first.finished_at)


def test_what_comes_after_a_group_sees_all_of_it_in_its_order(app: Ostinato, jobs: Jobs) -> None:
    slow = jobs.load.using(delay="1m").call("slow")
    handle = group([slow, jobs.load.call("b"), jobs.load.call("c")]).then(jobs.join).enqueue()
    drain(app)
    assert jobs.log == ["b", "c"]
    simulate(app, lasting="2m")
    assert handle.get()[-1].result == ["slow", "b", "c"]


def test_the_upstream_of_several_is_the_last_to_end(app: Ostinato, jobs: Jobs) -> None:
    @app.task
    def told(run: RunContext) -> list[object]:
        assert run.upstream is not None
        return [run.upstream.result, run.upstream.task, run.upstream.schedule]

    handle = group([jobs.load.using(delay="1m").call("slow"), jobs.load.call("b")]).then(told).enqueue()
    simulate(app, lasting="2m")
    assert handle.get()[-1].result == ["slow", "load", None]


def test_series_and_groups_nest(app: Ostinato, jobs: Jobs) -> None:
    load, join = jobs.load, jobs.join
    branch = group([load.call("b"), load.call("c").then(join)]).then(join)
    handle = load.call("a").then(group([branch, load.call("d")])).then(join).enqueue()
    assert drain(app) == len(handle.ids) == 7
    assert handle.get()[-1].result == ["['b', \"['c']\"]", "d"]
    assert jobs.log[0] == "a"
    assert jobs.log[-1] == "join"


def test_after_a_failure_nothing_that_comes_after_it_runs(app: Ostinato, jobs: Jobs) -> None:
    handle = group([jobs.load.call("bad").then(jobs.join), jobs.load.call("good")]).then(jobs.join).enqueue()
    drain(app)
    assert jobs.log == ["bad", "good"]
    runs = handle.get()
    assert states(runs) == ["failed", "skipped", "succeeded", "skipped"]
    assert runs[1].reason == f"run {runs[0].id} of 'load' failed, and this runs on success"
    assert runs[3].reason == f"run {runs[1].id} of 'join' was skipped, and this runs on success"


def test_a_step_that_is_tried_again_holds_up_the_next(app: Ostinato, fake_clock: FakeClock) -> None:
    tries: list[int] = []

    @app.task(retry=1)
    def flaky(run: RunContext) -> int:
        tries.append(run.attempt)
        if run.attempt == 1:
            raise ValueError("not yet")
        return 7

    @app.task
    def after(run: RunContext) -> object:
        return run.upstream and run.upstream.result

    handle = flaky.then(after).enqueue()
    drain(app)
    assert states(handle.get()) == ["queued", "queued"]
    fake_clock.advance("1m")
    drain(app)
    assert (tries, handle.get()[-1].result) == ([1, 2], 7)


def test_a_snooze_is_no_end(app: Ostinato, jobs: Jobs, fake_clock: FakeClock) -> None:
    naps: list[int] = []

    @app.task
    def nap() -> str:
        naps.append(1)
        if len(naps) == 1:
            raise Snooze("5m")
        return "rested"

    handle = nap.then(jobs.join).enqueue()
    drain(app)
    assert (jobs.log, states(handle.get())) == ([], ["queued", "queued"])
    fake_clock.advance("5m")
    drain(app)
    assert handle.get()[-1].result == ["rested"]


def test_delay_and_max_age_count_from_the_end_of_what_is_before(
    app: Ostinato, jobs: Jobs, fake_clock: FakeClock
) -> None:
    late = jobs.load.using(delay="10m", max_age="1m")
    handle = jobs.load.using(delay="1h").then(late.call("late")).enqueue("first")
    fake_clock.advance("1h")
    drain(app)
    assert jobs.log == ["first"]
    run = handle.get()[1]
    assert run.due_at == run.ready_at == fake_clock.now_utc() + timedelta(minutes=10)
    fake_clock.advance("10m")
    drain(app)
    assert jobs.log == ["first", "late"]


def test_lane_priority_and_session_hold_for_each_step(app: Ostinato, jobs: Jobs) -> None:
    handle = jobs.load.then(jobs.load.using(lane="team", priority=3, session="mail").call("b")).enqueue("a")
    assert handle.get()[1].session is None
    drain(app)
    _, second = handle.get()
    assert (second.lane, second.priority, second.session, str(second.state)) == ("team", 3, "mail", "succeeded")


def test_steps_into_one_session_go_one_after_the_other(app: Ostinato, gate: Gate) -> None:
    @app.task(session="one")
    def turn() -> None:
        gate.wait()

    @app.task
    def begin() -> None: ...

    handle = begin.then(group([turn] * 3)).enqueue()
    gate.open()
    drain(app)
    assert (gate.most, set(states(handle.get()))) == (1, {"succeeded"})


def test_a_waiting_step_is_not_waited_for_by_a_drain(app: Ostinato, jobs: Jobs, fake_clock: FakeClock) -> None:
    jobs.load.using(delay="1d").then(jobs.join).enqueue("later")
    assert drain(app) == 0
    app.wait_idle(timeout=1)
    assert simulate(app, lasting="2d") == 2


def test_a_chain_of_hundreds_of_steps_comes_through_and_is_left_out_as_a_whole(app: Ostinato, jobs: Jobs) -> None:
    for first, state in (("good", "succeeded"), ("bad", "skipped")):
        chain = jobs.load.then(jobs.load.call("1"))
        for _ in range(300):
            chain = chain.then(jobs.load.call("n"))
        handle = chain.enqueue(first)
        drain(app)
        assert set(states(handle.get()[1:])) == {state}


def test_a_run_by_hand_of_a_step_revives_nothing_and_has_its_upstreams(app: Ostinato, jobs: Jobs) -> None:
    handle = jobs.load.then(jobs.join).enqueue("bad")
    drain(app)
    failed, skipped = handle.get()
    app.runs.retry(failed.id)
    drain(app)
    assert jobs.log == ["bad", "bad"]
    again = app.runs.retry(skipped.id)
    drain(app)
    assert app.runs.get(again.id).result == ["None"]


def test_cancelling_the_handle_ends_all_that_has_not_ended(app: Ostinato, jobs: Jobs) -> None:
    handle = jobs.load.then(jobs.load.using(delay="1h").call("b")).then(jobs.join).enqueue("a")
    drain(app)
    assert states(handle.cancel()) == ["succeeded", "cancelled", "cancelled"]
    with pytest.raises(Conflict, match="have ended already"):
        handle.cancel()


def test_a_result_that_cannot_come_is_not_waited_for(app: Ostinato, jobs: Jobs, gate: Gate) -> None:
    slow = app.task("slow", retry=0)(lambda: gate.passed("slow"))
    handle = group([slow, jobs.load.call("bad")]).then(jobs.join).enqueue()
    app.start()
    gate.entered()
    with pytest.raises(RunFailed, match=f"run {handle.ids[1]} of 'load' failed"):
        handle.result(timeout="10s")
    assert states(handle.get()) == ["running", "failed", "skipped"]
    gate.open()
    assert states(handle.wait(timeout=PATIENCE)) == ["succeeded", "failed", "skipped"]


def test_who_waits_no_longer_for_a_result_has_its_slot_back(app: Ostinato, jobs: Jobs, gate: Gate) -> None:
    app.lanes.set("main", 1)
    app.lanes.set("other", 1)
    chains: list[ChainHandle[list[str]]] = []
    began = threading.Event()

    @app.task(retry=0)
    def slow() -> None:
        began.set()
        gate.wait()

    @app.task(retry=0, lane="other")
    def bad() -> None:
        assert began.wait(PATIENCE)
        raise Abort("no rows")

    @app.task(retry=0)
    def parent() -> None:
        chains.append(group([slow, bad]).then(jobs.join).enqueue())
        chains[0].result(timeout="20s")

    app.start()
    run = parent.enqueue().wait(PATIENCE)
    assert run.reason is not None
    assert "of 'bad' failed" in run.reason
    lent = "SELECT count(*) FROM runs WHERE slot_of IS NOT NULL AND state = 'running'"
    assert app._host.run(lambda container: raw(container.store, lent)) == [(0,)]
    assert states(chains[0].get())[0] == "running"
    gate.open()
    chains[0].wait(timeout=PATIENCE)


def test_steps_that_retention_has_removed_leave_the_rest_of_the_handle(app: Ostinato, jobs: Jobs) -> None:
    def remove(*ids: int) -> None:
        gone = f"DELETE FROM runs WHERE id IN ({', '.join(map(str, ids))})"
        app._host.run(lambda container: raw(container.store, gone))

    handle = jobs.load.then(jobs.join).then(jobs.join).enqueue("a")
    left = jobs.load.then(jobs.join.using(delay="1h")).enqueue("b")
    drain(app)
    remove(handle.ids[0], left.ids[0])
    assert [run.id for run in handle.get()] == handle.ids[1:]
    assert handle.wait(timeout=5) == handle.get()
    assert handle.result(timeout=5) == ["['a']"]
    assert states(left.cancel()) == ["cancelled"]
    remove(*handle.ids)
    assert handle.get() == []
    with pytest.raises(NotFound, match=f"the result of run {handle.ids[2]} was removed by retention"):
        handle.result(timeout=5)
    with pytest.raises(Conflict, match="have ended already"):
        handle.cancel()


def test_who_cancels_a_chain_is_noted_with_all_its_runs(app: Ostinato, jobs: Jobs) -> None:
    handle = jobs.load.then(jobs.join).then(jobs.join).enqueue("a")
    with acting(Actor("ada", "page")):
        handle.cancel()
    (entry,) = app._host.run(lambda container: container.services.audit.page()).items
    assert (entry.verb, entry.object, entry.detail) == ("run.cancel", str(handle.ids[0]), {"ids": handle.ids})


def test_a_running_step_is_asked_to_stop_with_the_rest(app: Ostinato, jobs: Jobs, gate: Gate) -> None:
    @app.task
    def work(run: RunContext) -> None:
        gate.wait()
        if run.cancelled:
            raise Abort("stopped")

    handle = work.then(jobs.join).enqueue()
    app.start()
    gate.entered()
    assert states(handle.cancel()) == ["running", "cancelled"]
    gate.open()
    assert states(handle.wait(timeout=30))[1] == "cancelled"


def test_what_is_cut_off_at_a_stop_and_has_no_retry_left_skips_the_next(app: Ostinato, jobs: Jobs, gate: Gate) -> None:
    @app.task(retry=0)
    def work() -> None:
        gate.wait()

    handle = work.then(jobs.join).enqueue()
    app.start()
    gate.entered()
    app.stop(grace=0)
    gate.open()
    assert [(str(run.state), run.cause and str(run.cause)) for run in handle.get()] == [
        ("failed", "cut_off"),
        ("skipped", "upstream"),
    ]


def test_an_end_that_nobody_noted_is_found_by_the_engine(app: Ostinato, jobs: Jobs) -> None:
    handle = jobs.load.then(jobs.join).enqueue("gone")
    app._host.run(lambda container: raw(container.store, f"DELETE FROM runs WHERE id = {handle.ids[0]}"))
    app.with_engine(lambda engine: engine.rescuer.rescue())
    assert app.runs.get(handle.ids[1]).reason == "run 1 of 'load' was removed, and this runs on success"


def test_a_key_that_is_active_is_the_step(app: Ostinato, jobs: Jobs) -> None:
    known = jobs.load.using(key="k").enqueue("known")
    handle = jobs.load.using(key="k").then(jobs.join).enqueue("other")
    assert (handle.ids[0], [step.is_new for step in handle.steps]) == (known.id, [False, True])
    drain(app)
    assert (jobs.log, handle.get()[1].result) == (["known", "join"], ["known"])


def test_a_call_with_a_key_that_stands_twice_in_a_chain_is_one_step(app: Ostinato, jobs: Jobs) -> None:
    keyed = jobs.load.using(key="k").call("a")
    first, join, again = keyed.then(jobs.join).then(keyed).enqueue().ids
    assert first == again != join
    drain(app)
    assert jobs.log == ["a", "join"]


def test_ends_that_cannot_be_decided_hold_up_no_rescue(
    app: Ostinato, jobs: Jobs, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def rescue(engine: Any) -> Any:
        monkeypatch.setattr(engine.rescuer._runs, "settle_parked", broken)
        return engine.rescuer.rescue()

    async def broken(now: int) -> int:
        raise RuntimeError("no such column")

    assert app.with_engine(rescue) == 0
    assert "could not be decided: tried again soon" in caplog.text


def test_what_cannot_be_is_refused_with_the_way_out(
    app: Ostinato, jobs: Jobs, fake_clock: FakeClock, make_app: MakeApp
) -> None:
    load, join = jobs.load, jobs.join
    with pytest.raises(InvalidInput, match="a group needs a step"):
        group([])
    with pytest.raises(InvalidInput, match="a step of a chain cannot be 'join'"):
        load.then("join")  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match="has its arguments already"):
        load.call("a").then(join).enqueue("b")  # type: ignore[call-arg]
    with pytest.raises(InvalidInput, match="cannot be enqueued in a transaction"):
        load.then(join.using(connection=object()))  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match="cannot be enqueued in a transaction"):
        load.using(connection=object()).then(join)
    with pytest.raises(InvalidInput, match="a step of 'join' that runs after others cannot have a time"):
        load.then(join.using(at=fake_clock.now_utc())).enqueue("a")
    with pytest.raises(InvalidInput, match="belongs to another app"):
        load.then(Jobs(make_app("sqlite://:memory:", name="other")).join).enqueue("a")
    with pytest.raises(InvalidInput, match="too many steps"):
        group([load.call("a")] * 400).then(group([join] * 400)).enqueue()
    with pytest.raises(InvalidInput, match="a call cannot be <chain"):
        load.enqueue_many([load.then(join)])  # type: ignore[list-item]
    assert app.runs.list() == []


def test_arguments_that_do_not_fit_leave_nothing_behind(app: Ostinato, jobs: Jobs) -> None:
    with pytest.raises(InvalidInput):
        jobs.join.then(jobs.load).enqueue()
    assert app.runs.list() == []


def test_a_chain_shows_its_steps(jobs: Jobs) -> None:
    chain = group([jobs.load.call("a"), jobs.load.call("b").then(jobs.join)]).then(jobs.join)
    assert repr(chain) == "<chain (load('a'), load('b') → join) → join>"
    assert repr(group([jobs.join])) == "<group (join)>"
    assert repr(jobs.join.then(jobs.join).enqueue()) == "<chain of runs 1, 2>"


def test_what_a_step_waits_for_is_followed_to_its_root(app: Ostinato, jobs: Jobs) -> None:
    first, second, third = jobs.load.using(lane="team").then(jobs.join).then(jobs.join).enqueue("a").ids
    drained = app.runs.blocked_by(third)
    assert drained is not None
    assert str(drained.cause) == "no_engine"
    assert [(link.kind, link.name) for link in drained.chain] == [("run", str(second)), ("run", str(first))]


def test_of_several_that_a_step_waits_for_the_one_that_is_kept_is_told(app: Ostinato, jobs: Jobs, gate: Gate) -> None:
    slow = app.task("slow", retry=0)(lambda: gate.passed("slow"))
    app.lanes.set("team", 1)
    app.lanes.pause("team")
    side = jobs.load.using(lane="team").call("a")
    _, kept, join, last = group([slow, side]).then(jobs.join).then(jobs.join).enqueue().ids
    app.start()
    gate.entered()
    blocked = app.runs.blocked_by(last)
    assert blocked is not None
    assert str(blocked.cause) == "lane_paused"
    assert [link.name for link in blocked.chain] == [str(join), str(kept), "team"]
    app.lanes.resume("team")
    gate.open()


def test_a_step_whose_upstream_ended_unnoted_is_about_to_be_released(app: Ostinato, jobs: Jobs) -> None:
    first, second = jobs.load.then(jobs.join).enqueue("a").ids
    ended = f"UPDATE runs SET state = 'succeeded', finished_at = 1 WHERE id = {first}"
    app._host.run(lambda container: raw(container.store, ended))
    blocked = app.runs.blocked_by(second)
    assert blocked is not None
    assert (str(blocked.cause), blocked.sentence) == (
        "upstream",
        f"run {second} is about to be released: what it waited for has ended",
    )


def test_of_two_steps_with_one_key_the_first_alone_is_new(app: Ostinato) -> None:
    fetch = app.task("fetch")(lambda part: part)
    merge = app.task("merge")(lambda: None)
    handle = group([fetch.using(key="K").call("x"), fetch.using(key="K").call("y")]).then(merge).enqueue()
    assert [step.is_new for step in handle.steps] == [True, False, True]
    assert handle.ids[0] == handle.ids[1]
