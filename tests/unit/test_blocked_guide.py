"""docs/guides/why.md lists every cause of a wait as the resolver tells it: its sentence, the command and the button."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from ostinato.clock import SECOND, from_micros
from ostinato.models.blocking import BlockedBy, BlockedCause, Verb
from ostinato.models.budget import Spending
from ostinato.models.given_up import GivenUp
from ostinato.models.ids import NodeId, RunId
from ostinato.models.policy import make_policy
from ostinato.models.run import Run
from ostinato.models.states import Cause, RunState
from ostinato.models.work import CheckIn
from ostinato.service.blocked_runs import Facts, blocked_run
from ostinato.service.blocked_schedules import blocked_schedule, blocked_upstream
from ostinato.stores.base import FirstActive
from tests.unit.test_blocked_schedules import ID, schedule
from tests.unit.waiting import NOW, START, facts, lane, node, run, running

GUIDE = Path(__file__).parents[2] / "docs/guides/why.md"
LATER = from_micros(NOW + 30 * SECOND)
BUSY = FirstActive(lanes={"cron": running(5)}, nodes={"one": running(5)}, sessions={"chat": running(3, schedule=None)})
DUE = START + timedelta(hours=1)
SWITCHED = {"enabled": False, "next_run_at": None}
PAUSED = {"paused_since": START, "next_run_at": DUE}
GIVEN_UP = GivenUp(RunId(4), 1, "nightly", "nightly", NodeId("one"), START)


def of_run(given: Run | None = None, known: Facts | None = None) -> BlockedBy | None:
    return blocked_run(given or run(), known or facts())


def samples() -> list[BlockedBy | None]:
    """One of each cause, in the order of the guide."""
    skipped = run(id=RunId(8), state=RunState.SKIPPED, cause=Cause.OVERLAP)
    refused = run(id=RunId(9), state=RunState.SKIPPED, cause=Cause.CHECK, reason="check failed: ink: empty")
    budget = "paused: budget: 3 of 3 runs used today; it goes on at 2026-01-02 00:00 UTC"
    off = schedule(**SWITCHED, off_by="ada", off_at=START, off_note="moving house")
    broken = schedule(**SWITCHED, broken="3 scheduled runs failed in a row; the last: ValueError: no ink")
    return [
        blocked_schedule(off, facts()),
        blocked_schedule(broken, facts()),
        blocked_schedule(schedule(**SWITCHED, broken=broken.broken, timing="at 2025-12-31T00:00"), facts()),
        blocked_schedule(schedule(orphaned=True, next_run_at=None), facts()),
        blocked_schedule(
            schedule(
                **PAUSED,
                paused_cause=Cause.BUDGET,
                next_run_reason=budget,
                policy=make_policy({"budget": {"per_day_runs": 3}}),
            ),
            facts(spending=Spending(runs=3)),
        ),
        blocked_schedule(
            schedule(**PAUSED, paused_cause=Cause.REMOVED, next_run_reason="paused: it is being removed"), facts()
        ),
        blocked_schedule(schedule(last_run=refused, next_run_at=DUE), facts()),
        blocked_upstream(schedule(), "import", None, None),
        of_run(
            run(ready_at=LATER, cause=Cause.RAISED, reason="attempt 1 of 4 failed, next in 30s: ValueError: no ink")
        ),
        of_run(run(ready_at=LATER)),
        of_run(run(work=CheckIn(late_after="30m"))),
        of_run(run(waiting=True), facts(first=FirstActive(after={RunId(7): [running(3)]}))),
        of_run(run(session="chat", waiting=True), facts(first=BUSY)),
        blocked_schedule(schedule(last_run=skipped), facts(first=FirstActive(running={ID: running(7)}))),
        of_run(known=facts(given_up=[GIVEN_UP])),
        of_run(known=facts(lanes=[lane(paused=True, paused_by="ada", paused_at=START, note="disk swap")])),
        of_run(known=facts(lanes=[lane(limit=2, used=2)], first=BUSY)),
        of_run(known=facts(lanes=[lane(rate="6/m", rate_from=NOW)])),
        of_run(known=facts(nodes=[])),
        of_run(known=facts(nodes=[node(task="other")])),
        of_run(known=facts(nodes=[node(drain=True)])),
        of_run(known=facts(nodes=[node(state="draining")])),
        of_run(known=facts(nodes=[node(running=4)], first=BUSY)),
        of_run(running(5), facts(nodes=[node("two"), node(state="lost")])),
    ]


def rows() -> list[tuple[str, str, str, str]]:
    """As they stand in the table: cause, sentence, command, button."""
    found = []
    for blocked in samples():
        assert blocked is not None
        command = "" if blocked.command is None else f"`{blocked.command}`"
        label = "" if blocked.action is None else f"**{blocked.action.label}**"
        found.append((f"`{blocked.cause}`", blocked.sentence, command, label))
    return found


def test_the_guide_has_a_row_for_every_cause_and_says_what_is_told() -> None:
    assert [row[0].strip("`") for row in rows()] == [str(cause) for cause in BlockedCause]
    text = GUIDE.read_text(encoding="utf-8")
    table = [line for line in text.splitlines() if line.startswith("| `") and not line.startswith("| `cause` |")]
    assert table == [" ".join(f"| {cell}".rstrip() for cell in row) + " |" for row in rows()]


def test_every_verb_of_a_button_is_used() -> None:
    assert {blocked.action.verb for blocked in samples() if blocked and blocked.action} == set(Verb)
