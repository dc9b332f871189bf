"""`ostinato db`: migrate, look at and prune the database."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cyclopts import App

from ostinato.cli.console import emit_json, fields, say
from ostinato.cli.opening import opened
from ostinato.cli.options import NO_COMMON, Common

if TYPE_CHECKING:
    from ostinato.service.upkeep import Status

__all__ = ["app"]

app = App(name="db", help="The database: migrate, status, prune.")


@app.command
def migrate(*, common: Common = NO_COMMON) -> None:
    """Make the database, or bring it to the version of this program. Doing it twice changes nothing."""
    with opened(common) as visit:
        status = _shape(visit.ask(visit.services.upkeep.migrated()))
    if common.json:
        emit_json(status)
    else:
        say(f"{status['url']} is at version {status['version']}, the latest")


@app.command
def status(*, common: Common = NO_COMMON) -> None:
    """Show the database: where it is, its version, its size, and how many rows it holds."""
    with opened(common) as visit:
        found = _shape(visit.ask(visit.services.upkeep.status()))
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


def _shape(status: Status) -> dict[str, Any]:
    from ostinato.config import without_password

    found = asdict(status)
    return {**found, "url": without_password(found["url"])}
