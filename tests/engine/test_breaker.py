"""The breaker: so many scheduled runs failed in a row, and the schedule is switched off with the reason."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ostinato import Agent, CheckIn, Http, Ostinato, RunState, Shell
from ostinato.engine.node import Engine
from ostinato.engine.rescuer import _crashed
from ostinato.testing import FakeClock, drain, simulate
from tests.engine.conftest import Gate, MakeApp, eventually, on_shared


def failing(app: Ostinato, **policy: Any) -> list[bool]:
    """A schedule each hour, without retries, that fails while the list's last item is True."""
    fails = [True]

    @app.task("job", retry=0)
    def job() -> None:
        if fails[-1]:
            raise ValueError("the disk is full")

    app.schedules.add("job", "every 1h", job, **{"break_after": 3, **policy})
    return fails


def test_three_scheduled_failures_in_a_row_break_the_schedule(app: Ostinato) -> None:
    failing(app)
    simulate(app, lasting="2h")
    schedule = app.schedules.get("job")
    assert (schedule.enabled, schedule.broken, schedule.failures) == (True, None, 2)

    assert simulate(app, lasting="10h") == 1
    schedule = app.schedules.get("job")
    assert schedule.enabled is False
    assert schedule.broken == "3 scheduled runs failed in a row; the last: ValueError: the disk is full"
    assert schedule.next_run_at is None
    assert (schedule.next_run_reason or "").startswith("broken: 3 scheduled runs")


def test_functions_have_no_breaker_unless_they_ask_for_one(app: Ostinato) -> None:
    failing(app, break_after=None)
    assert simulate(app, lasting="10h") == 10
    schedule = app.schedules.get("job")
    assert (schedule.enabled, schedule.broken, schedule.failures) == (True, None, 10)


def test_commands_agents_and_http_calls_break_after_three_failures_and_nothing_else_does(app: Ostinato) -> None:
    app.task("job")(lambda: None)
    works = {"shell": Shell("x"), "agent": Agent("x"), "http": Http("GET", "https://x.test"), "check": CheckIn("10m")}
    defaults = {name: app.schedules.add(name, "every 1h", work).policy.break_after for name, work in works.items()}
    assert defaults == {"shell": 3, "agent": 3, "http": 3, "check": None}
    assert app.schedules.add("function", "every 1h", "job").policy.break_after is None
    assert app.schedules.edit("function", work=Shell("x")).policy.break_after == 3
    assert app.schedules.edit("function", work="job").policy.break_after is None
    assert app.schedules.edit("shell", break_after=5).policy.break_after == 5
    assert app.schedules.edit("shell", work="job").policy.break_after == 5
    assert app.schedules.edit("shell", break_after=None).policy.break_after is None


# Probes: what the breaker switched off is tried again, and recovers by itself.


def test_a_probe_that_succeeds_switches_it_on_again(app: Ostinato, fake_clock: FakeClock) -> None:
    fails = failing(app, break_after=1, probe="10m")
    simulate(app, lasting="1h")
    schedule = app.schedules.get("job")
    assert (schedule.enabled, schedule.state, schedule.next_run_at) == (False, "broken", None)
    assert schedule.probe_at == fake_clock.now_utc() + timedelta(minutes=10)
    assert (schedule.next_run_reason or "").endswith("; probes at 2026-01-01 01:10:00 UTC")

    fails.append(False)
    assert simulate(app, lasting="9m") == 0
    assert simulate(app, lasting="1m") == 1
    (probe, *_) = app.runs.list(schedule="job")
    assert (probe.state, probe.trigger, probe.due_at) == (RunState.SUCCEEDED, "schedule", schedule.probe_at)
    schedule = app.schedules.get("job")
    assert (schedule.enabled, schedule.broken, schedule.failures, schedule.probe_at) == (True, None, 0, None)
    assert simulate(app, lasting="1h") == 1
    (incident,) = [one for one in app.incidents.list() if one.cause == "broken"]
    assert incident.closed_reason == "it succeeded"


def test_a_probe_that_fails_leaves_it_broken_until_the_next_one(app: Ostinato) -> None:
    fails = failing(app, break_after=2, probe="10m")
    simulate(app, lasting="2h")
    before = app.schedules.get("job")
    assert simulate(app, lasting="30m") == 3
    schedule = app.schedules.get("job")
    assert (schedule.enabled, schedule.broken) == (False, before.broken)
    assert [run.state for run in app.runs.list(schedule="job")] == [RunState.FAILED] * 5
    (incident,) = [one for one in app.incidents.list() if one.cause == "broken"]
    assert (incident.closed_at, incident.count) == (None, 1)
    fails.append(False)
    simulate(app, lasting="10m")
    assert app.schedules.get("job").enabled


def test_a_success_by_hand_does_not_count_as_a_probe(app: Ostinato) -> None:
    fails = failing(app, break_after=1, probe="10m")
    simulate(app, lasting="1h")
    fails.append(False)
    app.schedules.trigger("job")
    drain(app)
    assert app.schedules.get("job").broken is not None


def test_what_a_person_switches_off_is_not_tried(app: Ostinato) -> None:
    failing(app, break_after=1, probe="10m")
    simulate(app, lasting="1h")
    app.schedules.disable("job")
    assert app.schedules.get("job").probe_at is None
    assert simulate(app, lasting="1h") == 0


def test_a_probe_begins_and_ends_with_the_policy(app: Ostinato) -> None:
    failing(app, break_after=1)
    simulate(app, lasting="1h")
    assert app.schedules.get("job").probe_at is None
    assert app.schedules.edit("job", probe="5m").probe_at is not None
    assert simulate(app, lasting="5m") == 1
    assert app.schedules.edit("job", note="x").probe_at is not None
    assert app.schedules.edit("job", probe=None).probe_at is None
    assert simulate(app, lasting="1h") == 0


def test_what_has_no_run_left_is_not_probed_whatever_its_policy_says(app: Ostinato) -> None:
    failing(app, run_once=True, delete_after_run=True, break_after=1)
    simulate(app, lasting="2h")
    assert app.schedules.get("job").broken is not None
    assert app.schedules.edit("job", probe="5m").probe_at is None
    assert simulate(app, lasting="2h") == 0


def test_a_probe_that_succeeds_finishes_what_is_not_due_again(app: Ostinato) -> None:
    fails = failing(app, break_after=1)
    app.schedules.add("once", "in 30m", "job", break_after=1, probe="1h")
    app.schedules.add("gone", "in 30m", "job", break_after=1, probe="1h", delete_after_run=True)
    simulate(app, lasting="45m")
    assert {name: app.schedules.get(name).broken is not None for name in ("once", "gone")} == {
        "once": True,
        "gone": True,
    }
    fails.append(False)
    simulate(app, lasting="10h")
    once = app.schedules.get("once")
    assert (once.broken, once.state, once.probe_at) == (None, "finished", None)
    assert [run.state for run in app.runs.list(schedule="once")] == [RunState.SUCCEEDED, RunState.FAILED]
    assert "gone" not in [schedule.name for schedule in app.schedules.list()]


def test_a_probe_uses_up_one_of_the_runs_that_remain(app: Ostinato) -> None:
    fails = failing(app, break_after=1, probe="10m", remaining=2)
    simulate(app, lasting="1h")
    fails.append(False)
    assert simulate(app, lasting="5h") == 1
    schedule = app.schedules.get("job")
    assert (schedule.enabled, schedule.broken, schedule.state) == (False, None, "finished")


def test_what_counts_from_its_end_recovers_too(app: Ostinato) -> None:
    fails = failing(app, break_after=1, probe="10m")
    app.schedules.edit("job", timing="every 1h after finish")
    simulate(app, lasting="1h")
    fails.append(False)
    assert simulate(app, lasting="10m") == 1
    assert app.schedules.get("job").enabled
    assert simulate(app, lasting="1h") == 1


def test_enabling_clears_it_and_the_count(app: Ostinato) -> None:
    fails = failing(app)
    simulate(app, lasting="5h")
    fails.append(False)
    schedule = app.schedules.enable("job")
    assert (schedule.enabled, schedule.broken, schedule.failures) == (True, None, 0)
    assert simulate(app, lasting="1h") == 1


@on_shared
def test_a_lost_node_neither_trips_the_breaker_nor_resets_it(
    shared_db: str, make_app: MakeApp, gate: Gate, fake_clock: FakeClock
) -> None:
    app, other = make_app(shared_db), make_app(shared_db, clock=(later := FakeClock()))
    app.task("job", retry=0)(gate.wait)
    other.task("job", retry=0)(lambda: None)
    app.schedules.add("job", "every 1h", "job", retry=0, break_after=1)
    fake_clock.advance("1h")
    app.start()
    gate.entered()
    (run,) = app.runs.list(schedule="job")
    other.start()
    later.advance("15s")
    eventually(lambda: later.advance("100ms") and other.runs.get(run.id).state is RunState.FAILED)
    assert "was lost while it ran this" in (other.runs.get(run.id).reason or "")
    assert other.runs.get(run.id).cause == "node_lost"
    schedule = other.schedules.get("job")
    assert (schedule.enabled, schedule.broken, schedule.failures) == (True, None, 0)
    assert schedule.next_run_at is not None


def test_failures_before_a_lost_node_still_count(app: Ostinato, fake_clock: FakeClock) -> None:
    failing(app, break_after=2)
    simulate(app, lasting="1h")

    async def lose(engine: Engine) -> None:
        """A due time comes, and the node that claims it is never heard of again."""
        await engine.ticker.tick()
        request = engine.dispatcher.request()
        assert request is not None
        (run,) = (await engine.store.runs.claim_runs(request)).runs
        engine.dispatcher.release()
        await engine.store.runs.finish_runs([_crashed(run, engine.clock.now())])

    fake_clock.advance("1h")
    app.with_engine(lose)
    assert [run.state for run in app.runs.list(limit=1)] == [RunState.FAILED]
    assert app.schedules.get("job").failures == 1
    simulate(app, lasting="1h")
    assert app.schedules.get("job").broken
