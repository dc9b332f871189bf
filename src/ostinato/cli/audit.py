"""`ostinato audit`: what people and agents did. service/audit.py notes it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from cyclopts import App

from ostinato.cli.console import Cell, Column, emit_json, table
from ostinato.cli.open_database import opened
from ostinato.cli.options import NO_COMMON, Common, Limit
from ostinato.cli.times import brief

if TYPE_CHECKING:
    from ostinato.models.access import AuditEntry

__all__ = ["app"]

app = App(name="audit", help="List what people and agents did.")


@app.command
def ls(
    *,
    who: str | None = None,
    door: str | None = None,
    verb: str | None = None,
    object: str | None = None,
    limit: Limit = 50,
    common: Common = NO_COMMON,
) -> None:
    """List what people and agents did, the newest first. What code does by the Python API is not noted.

    Parameters
    ----------
    who
        Only what this person, token or chat did.
    door
        Only what was done there: page, api, cli or telegram.
    verb
        Only this, such as schedule.edit.
    object
        Only what was done to the schedule, run, lane or the like of this name.
    """
    with opened(common) as database:
        asked = database.services.audit.page(who=who, door=door, verb=verb, object=object, limit=limit)
        found = database.ask(asked).items
        zone, now = database.zone, database.now
    if common.json:
        emit_json(found)
        return
    columns = [Column(title) for title in ("TIME", "WHO", "DOOR", "VERB")]
    columns += [Column("OBJECT", flexible=True), Column("DETAIL", flexible=True)]
    table(columns, [_row(entry, zone, now) for entry in found], otherwise="nothing that was done matches")


def _row(entry: AuditEntry, zone: str, now: datetime) -> list[Cell]:
    detail = ", ".join(f"{name} {_short(value)}" for name, value in entry.detail.items())
    return [brief(entry.at, zone, now), entry.who, entry.door, entry.verb, entry.object, detail or "-"]


def _short(value: object) -> str:
    if isinstance(value, dict):
        return "(" + ", ".join(f"{name} {_short(part)}" for name, part in value.items()) + ")"
    if isinstance(value, list):
        return " ".join(map(_short, value))
    return str(value)
