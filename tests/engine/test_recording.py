"""What the recorder does with a finish that cannot be stored, and what follows from a finish."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ostinato import Ostinato, Run, RunContext, RunState
from ostinato.clock import Micros
from ostinato.engine.recorder import _joined
from ostinato.errors import StoreUnavailable
from ostinato.models.ids import RunId
from ostinato.models.output import OutputPart
from ostinato.models.run import Finish, Report
from ostinato.stores.base import Claim, Finished
from ostinato.testing import FakeClock, drain
from tests.engine.conftest import Gate, engine_of, eventually


def test_a_schedule_that_counts_from_a_finish_fires_again_and_again(app: Ostinato, fake_clock: FakeClock) -> None:
    """Nobody else wakes the ticker: the end of the run has to."""
    app.task("job")(lambda: None)
    app.schedules.add("job", "every 1s after finish", "job")
    app.start()
    ended: list[Run] = []
    for _ in range(3):
        fake_clock.advance("1s")
        before = len(ended)
        while len(ended) == before:
            ended = eventually(lambda: [run for run in app.runs.list(schedule="job") if run.ended])
    assert [run.state for run in ended] == [RunState.SUCCEEDED] * 3


def test_an_outcome_that_cannot_be_stored_is_told_and_holds_up_nobody(
    memory_app: Ostinato, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = memory_app

    @app.task("job", retry=0)
    def job(value: str) -> str:
        return value

    app.start()
    runs = engine_of(app).store.runs
    write = runs.finish_runs

    async def picky(finishes: Sequence[Finish], claim: Claim | None = None, now: Micros | None = None) -> Finished:
        if any(finish.result == '"bad"' for finish in finishes):
            raise ValueError("no such thing is ever stored")
        return await write(finishes, claim, now)

    monkeypatch.setattr(runs, "finish_runs", picky)
    bad, *good = job.enqueue_many([("bad",), *[("good",)] * 20])
    ended = bad.wait(timeout=60)
    assert ended.state is RunState.FAILED
    assert ended.reason == "its outcome could not be stored: ValueError: no such thing is ever stored"
    assert {handle.wait(timeout=60).state for handle in good} == {RunState.SUCCEEDED}
    drain(app)  # the ledger has them a moment before the recorder knows
    assert app.health()["unwritten"] == 0


def test_what_was_said_before_the_store_was_away_is_read_while_the_work_is_silent(
    app: Ostinato, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task("job")
    def job(run: RunContext) -> None:
        run.log("starting")
        gate.wait()

    app.start()
    engine = engine_of(app)
    report_runs = engine.store.runs.report_runs
    refused: list[Sequence[Report]] = []

    async def once_away(reports: Sequence[Report]) -> None:
        if not refused:
            refused.append(reports)
            raise StoreUnavailable("away")
        await report_runs(reports)

    monkeypatch.setattr(engine.store.runs, "report_runs", once_away)
    run = job.enqueue()
    gate.entered()
    assert eventually(lambda: app.runs.output(run.id)) == "starting\n"
    assert refused


def test_reports_that_wait_are_one_for_each_run() -> None:
    run, other = RunId(1), RunId(2)
    said, tail, newer = OutputPart("said\n"), OutputPart("a", is_tail=True), OutputPart("ab", is_tail=True)
    before = [Report(run, 1, progress="1", totals="t", output=[said, tail]), Report(other, 1, output=[tail])]
    joined = _joined(before, [Report(run, 1, progress="2", output=[newer])])
    assert joined == [
        Report(run, 1, progress="2", totals="t", output=[said, newer]),
        Report(other, 1, output=[tail]),
    ]
    assert _joined([], before) == before
