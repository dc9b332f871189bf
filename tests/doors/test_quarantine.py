"""What is quarantined is told by every door: doctor, `db quarantine` and the overview."""

from __future__ import annotations

from pathlib import Path

import apsw

from ostinato.stores.rules import UNDECODABLE, UNREADABLE
from tests.doors.command_line import CommandLine
from tests.doors.web import Client, Web
from tests.stores.places import raw, switch_checks_off


def past_the_checks(path: Path, statement: str) -> None:
    """Write as a careless hand does."""
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(10_000)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute(statement)
    connection.close()


def rows_of(cli: CommandLine) -> list[tuple[str, str]]:
    return [(found["status"], found["text"]) for found in cli("doctor", "--json").json if found["check"] == "rows"]


def test_doctor_tells_of_a_bad_row_and_then_of_what_became_of_it(cli: CommandLine, tmp_path: Path) -> None:
    cli("schedule", "add", "hello", "every 1h", "--shell", "true")
    assert rows_of(cli) == [("ok", "every row follows the rules, and none is quarantined")]
    past_the_checks(tmp_path / "ostinato.db", "INSERT INTO lanes (name, max_running, rate_count) VALUES ('slow', 3, 0)")
    assert rows_of(cli) == [("warn", "lanes slow: its rate is not a rate")]
    listed = {lane["name"]: lane for lane in cli("lane", "ls", "--json").json}
    assert listed["slow"]["note"] == f"{UNREADABLE}its rate is not a rate"
    waiting = {"table": "lanes", "row": "slow", "reason": "its rate is not a rate", "at": None, "content": None}
    assert cli("db", "quarantine", "--json").json == [waiting], "what a list calls unreadable is here too"
    assert "waiting lanes slow: its rate is not a rate; not set aside yet" in cli("db", "quarantine").out
    keep = "INSERT INTO quarantine (table_name, row_key, reason, at, content) VALUES ('lanes', 'slow', 'odd', 5, '{}')"
    past_the_checks(tmp_path / "ostinato.db", keep)
    assert ("warn", "lanes slow is quarantined: odd") in rows_of(cli)
    assert "lanes slow: odd" in cli("db", "quarantine").out
    shape = {"table": "lanes", "row": "slow", "reason": "odd", "at": "1970-01-01T00:00:00.000005Z", "content": "{}"}
    assert cli("db", "quarantine", "--json").json == [waiting, shape]
    assert cli("db", "quarantine", "--clear", "--json").json == {"removed": 1}
    past_the_checks(tmp_path / "ostinato.db", "DELETE FROM lanes WHERE name = 'slow'")
    assert cli("db", "quarantine").err.strip() == "nothing is quarantined"


def test_a_text_that_is_not_utf_8_is_listed_and_told_by_doctor_and_check(cli: CommandLine, tmp_path: Path) -> None:
    cli("schedule", "add", "hello", "every 1h", "--shell", "true")
    cli.ok("schedule", "trigger", "hello")
    for table, column in (("schedules", "note"), ("runs", "work")):
        past_the_checks(tmp_path / "ostinato.db", f"UPDATE {table} SET {column} = CAST(x'7bff7d' AS TEXT)")
    assert [schedule["name"] for schedule in cli("schedule", "ls", "--json").json] == ["hello"]
    assert [run["id"] for run in cli("run", "ls", "--json").json] == [1]
    told = [f"runs 1: {UNDECODABLE}", f"schedules 1: {UNDECODABLE}"]
    assert rows_of(cli) == [("warn", text) for text in told]
    assert cli("db", "check", "--json").json == {"ok": False, "problems": told}


def test_the_overview_tells_what_is_quarantined_without_what_it_said(web: Web, admin: Client) -> None:
    async def spoil() -> None:
        store = web.container.store
        await switch_checks_off(store)
        await raw(store, "INSERT INTO lanes (name, max_running, rate_count) VALUES ('slow', 3, 0)")
        await store.quarantine.set_aside(await store.quarantine.find_bad(10), web.clock.now())

    web.run(spoil())
    shown = admin.get("/api/overview").json()
    assert shown["counts"]["quarantined"] == 1
    (row,) = shown["quarantine"]
    assert (row["table"], row["row"], row["reason"]) == ("lanes", "slow", "its rate is not a rate")
    assert set(row) == {"table", "row", "reason", "at"}
