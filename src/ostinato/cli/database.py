"""`ostinato db`: migrate, look at, check, copy and prune the database, and see what is quarantined."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cyclopts import App

from ostinato.cli.console import Styled, emit_json, fields, paragraph, say, tell
from ostinato.cli.open_database import opened
from ostinato.cli.options import NO_COMMON, Common
from ostinato.plurals import counted

if TYPE_CHECKING:
    from ostinato.service.upkeep import Status

__all__ = ["app"]

app = App(name="db", help="The database: migrate, status, check, backup, prune, quarantine.")


@app.command
def migrate(*, common: Common = NO_COMMON) -> None:
    """Create the database, or migrate it to the version of this program. Doing it twice changes nothing."""
    with opened(common, create=True) as database:
        status = _shape(database.ask(database.services.upkeep.migrated()))
    tell(status, f"{status['url']} is at version {status['version']}, the latest", as_json=common.json)


@app.command
def status(*, common: Common = NO_COMMON) -> None:
    """Show the database: where it is, its version, its size, and how many rows it holds."""
    with opened(common) as database:
        found = _shape(database.ask(database.services.upkeep.status()))
    if common.json:
        emit_json(found)
        return
    runs = ", ".join(f"{count} {state}" for state, count in found["runs"].items())
    fields(
        [
            ("database", found["url"]),
            ("version", f"{found['version']} of {found['latest']}"),
            ("size", f"{found['size_bytes'] / 1_048_576:.1f} MB"),
            ("schedules", str(found["schedules"])),
            ("runs", runs or "none"),
        ]
    )


@app.command
def check(*, common: Common = NO_COMMON) -> int:
    """Look for damage, and for rows that break a rule. Exit code 1 if something is found.

    A database of an older version, such as an old copy, is migrated first, as with every command.
    """
    with opened(common) as database:
        problems = database.ask(database.services.upkeep.check())
    if common.json:
        emit_json({"ok": not problems, "problems": problems})
    else:
        for problem in problems:
            say(problem, "red")
        if not problems:
            say("nothing is wrong")
    return 1 if problems else 0


@app.command
def backup(file: str, /, *, force: bool = False, common: Common = NO_COMMON) -> None:
    """Write a complete copy of an SQLite database to a file, while everything runs.

    Parameters
    ----------
    file
        The file to write; only you may read it. It appears when it is complete.
    force
        Overwrite an existing file.
    """
    shown = not common.json and sys.stderr.isatty()
    target = os.path.abspath(file)
    with opened(common) as database:
        size = database.ask(database.services.upkeep.back_up(target, _show if shown else _hide, overwrite=force))
    tell({"file": target, "size_bytes": size}, f"wrote {file}, {size / 1_048_576:.1f} MB", as_json=common.json)


@app.command
def prune(*, common: Common = NO_COMMON) -> None:
    """Remove ended runs that their schedules no longer keep. The engine does this on its own from time to time."""
    with opened(common) as database:
        removed = database.ask(database.services.upkeep.prune())
    tell({"removed": removed}, f"removed {counted(removed, 'run')}", as_json=common.json)


@app.command
def quarantine(*, clear: bool = False, common: Common = NO_COMMON) -> None:
    """List rows that were set aside because they could not be used: why, when, and what they held.

    Rows that break a rule and wait for a running engine to set them aside are listed too.

    Parameters
    ----------
    clear
        Clear the list, once you have dealt with it. The rows stay as they are.
    """
    with opened(common) as database:
        if clear:
            removed = database.ask(database.services.upkeep.clear_quarantine())
            tell({"removed": removed}, f"forgot {counted(removed, 'quarantined row')}", as_json=common.json)
            return
        rows = database.ask(database.services.upkeep.quarantined())
        bad = database.ask(database.services.upkeep.find_bad())
    if common.json:
        from ostinato.service.answers import quarantined_answer

        emit_json([*map(quarantined_answer, bad), *map(quarantined_answer, rows)])
        return
    if not rows and not bad:
        say("nothing is quarantined")
    for found in bad:
        waits = "; not set aside yet: a running engine does that when it meets the row, within a day at the latest"
        paragraph(Styled("waiting ", "yellow"), f"{found.table} {found.row}: {found.reason}{waits}")
    for row in rows:
        paragraph(Styled(f"{row.at:%Y-%m-%d %H:%M:%S} UTC ", "dim"), f"{row.table} {row.row}: {row.reason}")


def _show(done: int, total: int) -> None:
    end = "\n" if done >= total else ""
    sys.stderr.write(f"\rcopied {100 * done // max(total, 1):3} %{end}")
    sys.stderr.flush()


def _hide(done: int, total: int) -> None:
    """Nobody looks."""


def _shape(status: Status) -> dict[str, Any]:
    from ostinato.config import without_password

    found = asdict(status)
    return {**found, "url": without_password(found["url"])}
