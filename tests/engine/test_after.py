"""Schedules that run after others, through a real engine on both databases: what follows what, and what it is told."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from ostinato import (
    Abort,
    After,
    AppEvent,
    CheckIn,
    Every,
    Function,
    InvalidInput,
    Ostinato,
    OstinatoError,
    RunContext,
    Schedule,
    Shell,
    Trigger,
    current_run,
)
from ostinato.clock import from_micros
from ostinato.testing import FakeClock, drain
from tests.engine.conftest import MakeApp


def outcomes(app: Ostinato, name: str) -> list[tuple[str, str | None]]:
    """State and cause of a schedule's rows, oldest first."""
    return [(str(run.state), run.cause and str(run.cause)) for run in reversed(app.runs.list(schedule=name))]


@pytest.fixture
def chain(app: Ostinato) -> Ostinato:
    """`import`, which fails when it is told to, and `report`, which returns what it is told of its upstream."""

    @app.task("import")
    def load(rows: int = 3) -> dict[str, int]:
        if rows < 0:
            raise Abort("no rows")
        return {"rows": rows}

    @app.task("report")
    def report(run: RunContext) -> list[object]:
        return [[one.schedule, one.run, str(one.state), one.result, one.error] for one in run.upstreams]

    app.schedules.add("import", "every 1h", "import")
    return app


def fire(app: Ostinato, clock: FakeClock) -> None:
    clock.advance("1h")
    drain(app)


def test_it_runs_when_the_other_has_succeeded_and_sees_what_that_returned(
    chain: Ostinato, fake_clock: FakeClock
) -> None:
    added = chain.schedules.add("report", "after import", "report")
    assert (added.next_run_at, str(added.state)) == (None, "on")
    fire(chain, fake_clock)
    (upstream,) = chain.runs.list(schedule="import")
    (run,) = chain.runs.list(schedule="report")
    assert (run.state, run.trigger, run.due_at) == ("succeeded", Trigger.AFTER, upstream.finished_at)
    assert run.result == [["import", upstream.id, "succeeded", {"rows": 3}, None]]


def test_a_run_by_hand_of_the_other_counts_too(chain: Ostinato) -> None:
    chain.schedules.add("report", "after import", "report")
    chain.schedules.trigger("import")
    drain(chain)
    assert outcomes(chain, "report") == [("succeeded", None)]


def test_a_run_by_hand_of_its_own_has_no_upstream_and_one_that_is_run_again_has_the_same(chain: Ostinato) -> None:
    chain.schedules.add("report", "after import", "report")
    assert chain.schedules.trigger("report").trigger is Trigger.MANUAL
    drain(chain)
    (run,) = chain.runs.list(schedule="report")
    assert run.result == []
    chain.schedules.trigger("import")
    drain(chain)
    run = chain.runs.list(schedule="report")[0]
    again = chain.runs.retry(run.id)
    drain(chain)
    assert chain.runs.get(again.id).result == run.result != []


def test_a_failure_has_its_row_that_says_why_nothing_was_run(chain: Ostinato, fake_clock: FakeClock) -> None:
    chain.schedules.add("report", After("import"), "report")
    chain.schedules.add("alarm", After("import", on="failure"), "report")
    chain.schedules.edit("import", work=Function("import", [-1]))
    fire(chain, fake_clock)
    assert outcomes(chain, "report") == [("skipped", "upstream")]
    assert chain.runs.list(schedule="report")[0].reason == "run 1 of 'import' failed, and this runs on success"
    (alarm,) = chain.runs.list(schedule="alarm")
    assert alarm.result[0][:3] == ["import", 1, "failed"]
    assert "no rows" in alarm.result[0][4]


def test_a_chain_of_three_runs_one_after_the_other(chain: Ostinato, fake_clock: FakeClock) -> None:
    chain.schedules.add("report", "after import", "report")
    chain.schedules.add("mail", "after report", "report")
    fire(chain, fake_clock)
    (mail,) = chain.runs.list(schedule="mail")
    assert mail.result[0][0] == "report"
    fire(chain, fake_clock)
    assert len(chain.runs.list(schedule="mail")) == 2


def test_all_of_two_are_one_run_that_sees_both(chain: Ostinato, fake_clock: FakeClock) -> None:
    chain.schedules.add("export", "every 1h", "import")
    chain.schedules.add("report", After("import", "export", all=True, within="30m"), "report")
    chain.schedules.trigger("import")
    drain(chain)
    assert outcomes(chain, "report") == []
    fake_clock.advance("5m")
    chain.schedules.trigger("export")
    drain(chain)
    (run,) = chain.runs.list(schedule="report")
    assert [one[0] for one in run.result] == ["import", "export"]


def test_while_it_waits_for_the_rest_it_has_no_due_time_and_says_until_when(
    chain: Ostinato, fake_clock: FakeClock
) -> None:
    chain.schedules.add("export", "every 1h", "import", enabled=False)
    chain.schedules.add("report", "after import and export within 30m", "report")
    chain.schedules.add("later", "daily 23:00", "report")
    chain.schedules.trigger("import")
    drain(chain)
    report = chain.schedules.get("report")
    assert (report.state, report.next_run_at) == ("on", None)
    assert report.waits_until is not None
    assert report.waits_until == from_micros(fake_clock.now() + 1) + timedelta(minutes=30)
    until = f"; what has ended counts until {report.waits_until:%Y-%m-%d %H:%M:%S} UTC"
    assert report.next_run_reason is not None
    assert report.next_run_reason.startswith("it runs after a run of each of 'import' and 'export' has succeeded")
    assert report.next_run_reason.endswith(until)
    why = chain.why("report")
    assert "due next" not in " ".join((why.answer, *why.facts))
    assert why.facts[1].startswith("it waits for 'import', whose last run succeeded and 'export', which is off")
    assert why.facts[1].endswith(until)
    assert chain.schedules.next("report") == []
    assert [one.name for one in chain.schedules.list()] == ["import", "later", "export", "report"]
    (task,) = [one for one in chain.tasks.list() if one.name == "report"]
    assert task.next_run_at == chain.schedules.get("later").next_run_at


def test_what_waits_in_vain_for_the_others_gets_its_row_when_the_time_is_over(
    chain: Ostinato, fake_clock: FakeClock
) -> None:
    chain.schedules.add("export", "every 1h", "import", enabled=False)
    chain.schedules.add("report", "after import and export within 30m", "report")
    chain.schedules.trigger("import")
    drain(chain)
    fake_clock.advance(timedelta(minutes=30, seconds=1))
    drain(chain)
    assert outcomes(chain, "report") == [("skipped", "upstream")]
    assert chain.runs.list(schedule="report")[0].reason == "run 1 of 'import' waited 30m for 'export'"


def test_while_it_is_off_nothing_is_recorded_for_it(chain: Ostinato, fake_clock: FakeClock) -> None:
    chain.schedules.add("report", "after import", "report", enabled=False)
    fire(chain, fake_clock)
    chain.schedules.enable("report")
    drain(chain)
    assert outcomes(chain, "report") == []
    fire(chain, fake_clock)
    assert outcomes(chain, "report") == [("succeeded", None)]


def test_the_breaker_counts_its_runs(chain: Ostinato, fake_clock: FakeClock) -> None:
    chain.schedules.add("report", "after import", Shell("exit 3"), retry=0, break_after=2)
    fire(chain, fake_clock)
    fire(chain, fake_clock)
    assert str(chain.schedules.get("report").state) == "broken"
    fire(chain, fake_clock)
    assert len(chain.runs.list(schedule="report")) == 2


def test_a_command_reads_its_upstream_from_its_environment(chain: Ostinato, fake_clock: FakeClock) -> None:
    chain.schedules.add("show", "after import", Shell('printf %s "$OSTINATO_UPSTREAM"'))
    fire(chain, fake_clock)
    (run,) = chain.runs.list(schedule="show")
    seen = json.loads(chain.runs.output(run.id))
    assert (seen["schedule"], seen["state"], seen["result"]) == ("import", "succeeded", {"rows": 3})


def test_a_result_that_no_environment_can_hold_is_left_out(chain: Ostinato, fake_clock: FakeClock) -> None:
    chain.task("big")(lambda: "x" * 200_000)
    chain.schedules.add("big", "every 1h", "big")
    chain.schedules.add("show", "after big", Shell('printf %s "$OSTINATO_UPSTREAM"'))
    fire(chain, fake_clock)
    seen = json.loads(chain.runs.output(chain.runs.list(schedule="show")[0].id))
    assert (seen["schedule"], seen["result"], seen["cut"]) == ("big", None, True)


def test_what_it_would_run_after_must_be_there(chain: Ostinato) -> None:
    with pytest.raises(
        InvalidInput, match=r"run after 'imports', and there is no such schedule.*did you mean 'import'"
    ):
        chain.schedules.add("report", "after imports", "report")
    with pytest.raises(InvalidInput, match="there is no such schedule"):
        chain.schedules.edit("import", timing="after nothing")


def test_a_circle_is_refused_when_it_is_added_or_changed(chain: Ostinato) -> None:
    chain.schedules.add("report", "after import", "report")
    with pytest.raises(InvalidInput, match="import → report → import"):
        chain.schedules.edit("import", timing="after report")
    with pytest.raises(InvalidInput, match="would run after itself: own → own"):
        chain.schedules.add("own", "after own", "report")
    assert chain.schedules.get("import").timing == "every 1h"


def test_a_check_in_cannot_run_after_another(chain: Ostinato) -> None:
    with pytest.raises(InvalidInput, match="awaited at a time"):
        chain.schedules.add("ping", "after import", CheckIn())


def test_when_the_other_is_removed_it_is_broken_and_enabled_only_when_that_is_there_again(chain: Ostinato) -> None:
    chain.schedules.add("report", "after import", "report")
    chain.schedules.remove("import")
    broken: Schedule = chain.schedules.get("report")
    assert broken.broken is not None
    assert broken.broken.startswith("it runs after 'import', which was removed")
    with pytest.raises(OstinatoError, match="no such schedule"):
        chain.schedules.enable("report")
    chain.schedules.add("import", "every 1h", "import")
    chain.schedules.enable("report")
    chain.schedules.trigger("import")
    drain(chain)
    assert len(chain.runs.list(schedule="report")) == 1


def test_what_is_broken_because_the_other_was_removed_is_told_in_the_log_and_to_callbacks(
    chain: Ostinato, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[AppEvent] = []
    chain.on("schedule.broken", told.append)
    for name in ("report", "mail"):
        chain.schedules.add(name, "after import", "report")
    chain.schedules.add("off", "after import", "report", enabled=False)
    chain.schedules.remove("import")
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    why = "it runs after 'import', which was removed: give it another timing, or add 'import' again and enable it"
    assert errors == [f"schedule {name!r} is broken and disabled: {why}" for name in ("report", "mail")]
    chain.stop()
    assert [(event.schedule, event.reason) for event in told] == [("report", why), ("mail", why)]


def test_code_declares_it_with_the_task(app: Ostinato, fake_clock: FakeClock) -> None:
    @app.task("load", schedule=Every(hours=1))
    def load() -> int:
        return 7

    @app.task("tell", after="load")
    def tell() -> int:
        upstream = current_run().upstream
        assert upstream is not None
        return int(upstream.result)

    @app.task("both", schedule=After("load", "tell", all=True))
    def both() -> None: ...

    drain(app)
    fire(app, fake_clock)
    assert app.runs.list(schedule="tell")[0].result == 7
    assert outcomes(app, "both") == [("succeeded", None)]


def test_one_of_the_two_is_given_with_a_task(app: Ostinato) -> None:
    with pytest.raises(InvalidInput, match="either schedule or after"):
        app.task("tell", after="load", schedule="every 5m")(lambda: None)


def test_code_that_names_what_is_not_there_yet_starts_and_says_so(
    app: Ostinato, caplog: pytest.LogCaptureFixture
) -> None:
    app.task("tell", after="load")(lambda: None)
    drain(app)
    assert "would run after 'load', and there is no such schedule" in caplog.text
    assert app.schedules.get("tell").enabled


def test_ends_that_nobody_answered_in_time_are_for_catch_up(db: str, make_app: MakeApp, fake_clock: FakeClock) -> None:
    app = make_app(db)
    app.task("job")(lambda: None)
    app.schedules.add("first", "every 1h", "job")
    app.schedules.add("latest", "after first", "job")
    app.schedules.add("none", "after first", "job", catch_up="none")
    for _ in range(2):
        run = app.schedules.trigger("first")
        app.runs.cancel(run.id)
    for name in ("latest", "none"):
        app.schedules.edit(name, timing="after first on end")
    for _ in range(2):  # ended without an engine: cancelled while they were queued
        run = app.schedules.trigger("first")
        app.runs.cancel(run.id)
        fake_clock.advance("10m")
    drain(app)
    assert outcomes(app, "latest")[:2] == [("missed", "downtime"), ("succeeded", None)]
    assert outcomes(app, "none")[0] == ("missed", "downtime")
    assert app.runs.list(schedule="none")[-1].count == 2
