"""Schedules that run after others, through every door: added, shown with whom they come before and after, explained."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ostinato import Function, Ostinato
from ostinato.testing import FakeClock, drain
from tests.doors.command_line import CommandLine
from tests.doors.web import Web


@pytest.fixture
def chain(app: Ostinato) -> Ostinato:
    @app.task("load", retry=0)
    def load(rows: int = 1) -> int:
        if rows < 0:
            raise ValueError("no rows")
        return rows

    app.schedules.add("import", "every 1h", "load")
    app.schedules.add("report", "after import", "load")
    app.schedules.add("mail", "after report or import on end", "load")
    return app


def fail(app: Ostinato, name: str = "import") -> None:
    app.schedules.edit(name, work=Function("load", [-1]))
    app.schedules.trigger(name)
    drain(app)


def test_who_comes_before_and_after_is_known_with_how_it_stands(chain: Ostinato) -> None:
    fail(chain)
    of_report = chain.schedules.relations("report")
    assert [(one.name, one.timing, str(one.last_state)) for one in of_report.upstreams] == [
        ("import", "every 1h", "failed")
    ]
    assert [(one.name, str(one.state)) for one in of_report.dependents] == [("mail", "on")]
    of_import = chain.schedules.relations("import")
    assert (list(of_import.upstreams), [one.name for one in of_import.dependents]) == ([], ["mail", "report"])
    assert [one.name for one in chain.schedules.relations("mail").upstreams] == ["report", "import"]


def test_of_an_upstream_that_is_gone_the_name_is_left(chain: Ostinato) -> None:
    chain.schedules.remove("import")
    (gone,) = chain.schedules.relations("report").upstreams
    assert (gone.name, gone.state, gone.timing) == ("import", None, None)


def test_what_holds_up_the_one_before_holds_up_the_whole_chain(chain: Ostinato) -> None:
    chain.start()
    assert [chain.why(name).blocked_by for name in ("report", "mail")] == [None, None]
    chain.schedules.disable("import", note="disk swap")
    for name, steps in {"report": ["import"], "mail": ["report", "import"]}.items():
        blocked = chain.why(name).blocked_by
        assert blocked is not None
        assert blocked.sentence.startswith("schedule 'import' is switched off")
        assert [link.name for link in blocked.chain] == steps
        assert blocked.command == "ostinato schedule enable import"


def test_of_several_before_it_one_that_runs_is_enough_unless_all_have_to(chain: Ostinato) -> None:
    chain.start()
    chain.schedules.add("export", "every 1h", "load")
    chain.schedules.add("either", "after import or export", "load")
    chain.schedules.add("both", "after import and export", "load")
    chain.schedules.disable("export")
    assert chain.why("either").blocked_by is None
    blocked = chain.why("both").blocked_by
    assert blocked is not None
    assert [link.name for link in blocked.chain] == ["export"]


def test_one_that_deletes_itself_after_its_run_leaves_the_next_one_waiting_for_nobody(
    chain: Ostinato, clock: FakeClock
) -> None:
    chain.start()
    chain.schedules.add("once", "in 1m", "load", delete_after_run=True)
    chain.schedules.add("then", "after once", "load")
    clock.advance("1m")
    drain(chain)
    assert [run.state for run in chain.runs.list(schedule="then")] == ["succeeded"]
    blocked = chain.why("then").blocked_by
    assert blocked is not None
    assert blocked.sentence == "it runs after 'once', which does not exist"


def test_one_whose_upstream_was_removed_is_not_said_to_go_on_when_it_is_enabled(
    chain: Ostinato,
) -> None:
    chain.start()
    chain.schedules.remove("import")
    blocked = chain.why("report").blocked_by
    assert blocked is not None
    assert (blocked.cause, blocked.command) == ("broken", "ostinato schedule edit report --timing TIMING")
    assert blocked.action is not None
    assert (blocked.action.verb, blocked.action.target) == ("schedule.edit", "report")
    chain.schedules.add("import", "every 1h", "load")
    back = chain.why("report").blocked_by
    assert back is not None
    assert back.command == "ostinato schedule enable report"


def test_a_paused_lane_does_not_hide_that_nobody_runs_the_one_before(chain: Ostinato) -> None:
    chain.start()
    chain.lanes.pause("cron")
    blocked = chain.why("report").blocked_by
    assert blocked is not None
    assert blocked.cause == "lane_paused"
    chain.schedules.disable("import")
    blocked = chain.why("report").blocked_by
    assert blocked is not None
    assert blocked.cause == "off"


def test_removing_a_schedule_names_those_that_it_breaks(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "import", "every 1h", "--shell", "true")
    cli.ok("schedule", "add", "report", "after import", "--shell", "true")
    removed = cli.ok("schedule", "rm", "import", "--yes")
    assert "removed: 'import'; 'report' ran after it, and is switched off as broken" in removed.out + removed.err


def test_why_says_what_it_waits_for(chain: Ostinato) -> None:
    assert chain.why("report").answer == "It is not due: it waits for 'import', which has not run yet."
    fail(chain)
    why = chain.why("report")
    assert "was skipped; run 1 of 'import' failed, and this runs on success" in why.answer
    assert "it waits for 'import', whose last run failed" in why.facts
    chain.schedules.disable("import")
    assert "it waits for 'import', which is off" in chain.why("report").facts
    assert "it waits for 'report', whose last run was skipped and 'import', which is off" in chain.why("mail").facts


def test_why_of_one_that_is_off_is_that(chain: Ostinato) -> None:
    chain.schedules.disable("report", note="later")
    assert chain.why("report").answer == "It is not due: disabled: later."


def test_there_is_nothing_to_backfill(chain: Ostinato) -> None:
    with pytest.raises(Exception, match="runs after others: it has no due times"):
        chain.schedules.backfill("report", datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 1, 2, tzinfo=UTC))


def test_the_command_line_adds_shows_and_explains_it(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "import", "every 1h", "--shell", "exit 3", "--retry", "0")
    added = cli.ok("schedule", "add", "report", "after import", "--shell", "true")
    assert added.err == "added: 'report'. After each run of 'import' that succeeded.\n"
    assert "After each run of 'import' that succeeded." in cli.ok("timing", "after import").out
    refused = cli("schedule", "add", "bad", "after imports", "--shell", "true")
    assert refused.code != 0
    assert "there is no such schedule" in refused.err
    shown = cli.ok("schedule", "show", "report").out
    assert "runs after" in shown
    assert "import: on, has not run yet" in shown
    assert "report: on, has not run yet" in cli.ok("schedule", "show", "import").out
    assert cli.ok("schedule", "show", "report", "--json").json["follows"] is True
    assert "it waits for 'import', which has not run yet" in cli.ok("why", "report").out


def test_the_api_has_its_relations(web: Web) -> None:
    admin = web.script("admin")
    body: dict[str, object] = {"work": {"kind": "http", "method": "GET", "url": "https://example.com"}}
    for name, timing in (("import", "every 1h"), ("report", "after import")):
        body |= {"name": name, "timing": timing}
        assert admin.post("/api/schedules", json=body).status_code == 201
    found = admin.get("/api/schedules/report/relations").json()
    assert (found["upstreams"][0]["name"], found["dependents"]) == ("import", [])
    assert admin.get("/api/schedules/import/relations").json()["dependents"][0]["name"] == "report"
    refused = admin.post("/api/schedules", json={**body, "name": "x", "timing": "after nobody"})
    assert refused.status_code == 422
    assert "there is no such schedule" in refused.json()["detail"]
