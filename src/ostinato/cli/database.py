"""`ostinato db`: migrate, look at and prune the database, and see what is quarantined."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cyclopts import App

from ostinato.cli.console import Styled, emit_json, fields, paragraph, say
from ostinato.cli.opening import opened
from ostinato.cli.options import NO_COMMON, Common

if TYPE_CHECKING:
    from ostinato.cli.opening import Visit

__all__ = ["app"]

app = App(name="db", help="The database: migrate, status, prune, quarantine.")


@app.command
def migrate(*, common: Common = NO_COMMON) -> None:
    """Make the database, or bring it to the version of this program. Doing it twice changes nothing."""
    with opened(common) as visit:
        status = _status(visit)
    if common.json:
        emit_json(status)
    else:
        say(f"{status['url']} is at version {status['version']}, the latest")


@app.command
def status(*, common: Common = NO_COMMON) -> None:
    """Show the database: where it is, its version, its size, and how many rows it holds."""
    with opened(common) as visit:
        found = _status(visit)
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
def prune(*, common: Common = NO_COMMON) -> None:
    """Remove ended runs past what their schedules keep. The engine does this by itself now and then."""
    with opened(common) as visit:
        removed = visit.ask(visit.services.upkeep.prune())
    if common.json:
        emit_json({"removed": removed})
    else:
        say(f"removed {removed} runs")


@app.command
def quarantine(*, clear: bool = False, common: Common = NO_COMMON) -> None:
    """List rows that were set aside because nobody could work with them: why, when, and what they said.

    Parameters
    ----------
    clear
        Forget them, once they have been seen to. What became of the rows stays as it is.
    """
    with opened(common) as visit:
        if clear:
            removed = visit.ask(visit.services.upkeep.clear_quarantine())
            emit_json({"removed": removed}) if common.json else say(f"forgot {removed} quarantined rows")
            return
        rows = visit.ask(visit.services.upkeep.quarantined())
    if common.json:
        from ostinato.service.shapes import quarantined_shape

        emit_json([quarantined_shape(row) for row in rows])
        return
    if not rows:
        say("nothing is quarantined")
    for row in rows:
        paragraph(Styled(f"{row.at:%Y-%m-%d %H:%M:%S} UTC ", "dim"), f"{row.table} {row.row}: {row.reason}")


def _status(visit: Visit) -> dict[str, Any]:
    from ostinato.config import without_password

    found = asdict(visit.ask(visit.services.upkeep.status()))
    return {**found, "url": without_password(found["url"])}
