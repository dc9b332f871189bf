"""`ostinato db check` and `db backup`, and what a locked file means for those who only look."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import apsw
import pytest

from ostinato.stores.sqlite.store import SqliteStore
from tests.closed_folders import close
from tests.doors.command_line import CommandLine


def test_a_backup_holds_what_the_database_holds(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "nightly", "daily 03:00", "--task", "report")
    answer = cli.ok("db", "backup", "copy.db", "--json").json
    copy = Path(answer["file"])
    assert copy == cli.folder / "copy.db"
    assert answer["size_bytes"] == copy.stat().st_size
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert [one["name"] for one in cli.ok("schedule", "ls", "--json", "--db", "copy.db").json] == ["nightly"]
    again = cli("db", "backup", "copy.db")
    assert again.code == 1
    assert "--force" in again.err
    assert "wrote copy.db" in cli.ok("db", "backup", "copy.db", "--force").err


def test_a_database_that_is_not_there_is_neither_copied_nor_checked_nor_made(cli: CommandLine) -> None:
    for command in (["backup", "copy.db"], ["check"]):
        answer = cli("db", *command, "--db", "typo.db")
        assert answer.code == 4
        assert "there is no database" in answer.err
    assert not (cli.folder / "typo.db").exists()
    assert not (cli.folder / "copy.db").exists()


async def test_a_file_is_absent_only_where_this_user_may_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    assert not await SqliteStore(str(closed / "jobs.db")).exists()
    assert not await SqliteStore(str(tmp_path / "nowhere" / "jobs.db")).exists()
    close(closed, monkeypatch)
    assert await SqliteStore(str(closed / "jobs.db")).exists()


def test_a_check_says_what_is_wrong_and_exits_with_1(cli: CommandLine) -> None:
    cli.ok("db", "migrate")
    assert "nothing is wrong" in cli.ok("db", "check").err
    assert cli.ok("db", "check", "--json").json == {"ok": True, "problems": []}
    database = apsw.Connection(str(cli.folder / "ostinato.db"))
    database.execute("PRAGMA ignore_check_constraints = ON")
    database.execute("UPDATE lanes SET rate_count = 0, rate_per = 0 WHERE name = 'main'")
    database.close()
    answer = cli("db", "check", "--json")
    assert answer.code == 1
    assert answer.json == {"ok": False, "problems": ["lanes main: its rate is not a rate"]}
    assert "main" in cli("db", "check").err


def test_who_only_looks_takes_no_lock(cli: CommandLine) -> None:
    cli.ok("schedule", "add", "nightly", "daily 03:00", "--task", "report")
    cli.ok("schedule", "disable", "nightly")
    writer = apsw.Connection(str(cli.folder / "ostinato.db"))
    writer.execute("BEGIN EXCLUSIVE")
    try:
        for look in (["run", "ls"], ["schedule", "ls"], ["schedule", "show", "nightly"], ["lane", "ls"], ["node", "ls"],
                     ["db", "status"], ["db", "check"], ["doctor"], ["why", "nightly"]):  # fmt: skip
            answer = cli(*look)
            assert answer.code == 0, f"{look}: {answer.err}"
            assert "waiting" not in answer.err
        (writes,) = [one for one in cli.ok("doctor", "--json").json if one["check"] == "writes"]
        assert writes["status"] == "warn"
        assert f"lock of {cli.folder}/ostinato.db for all of the 2 s that doctor waited" in writes["text"]
    finally:
        writer.execute("ROLLBACK")
        writer.close()


def test_a_write_that_waits_says_so_and_ends(cli: CommandLine) -> None:
    cli.ok("db", "migrate")
    writer = apsw.Connection(str(cli.folder / "ostinato.db"))
    writer.execute("BEGIN IMMEDIATE")
    try:
        # A process of its own: it is its stderr that counts.
        with cli.start("schedule", "add", "nightly", "daily 03:00", "--task", "report", "--json") as process:
            assert process.wait(60) == 1
        assert f"waiting for the lock of {cli.folder}/ostinato.db: another process holds it" in process.err
        told = json.loads(process.err.splitlines()[-1])
        assert told["error"].startswith(f"another process held the lock of {cli.folder}/ostinato.db for 10 s")
    finally:
        writer.execute("ROLLBACK")
        writer.close()


def test_a_backup_into_a_folder_names_the_fix(cli: CommandLine) -> None:
    cli.ok("db", "migrate")
    (cli.folder / "copies").mkdir()
    answer = cli("db", "backup", "copies", "--force")
    assert answer.code != 0
    assert "is a folder: name a file in it" in answer.err
    assert list((cli.folder / "copies").iterdir()) == []
