"""`ostinato incident`: what is wrong, whom that was told, and running again what failed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from ostinato.cli.console import Cell, Column, Styled, confirmed, emit_json, fields, say, table, tell
from ostinato.cli.open_database import opened, os_user
from ostinato.cli.options import NO_COMMON, Common, Limit, Yes
from ostinato.cli.times import brief, full, span
from ostinato.plurals import counted

if TYPE_CHECKING:
    from ostinato.models.incident import Incident
    from ostinato.service.incidents import IncidentDetail

__all__ = ["app"]

app = App(name="incident", help="What is wrong: list, show and acknowledge incidents, and run again what failed.")

Id = Annotated[int, Parameter(help="Its number, as 'incident ls' shows it.")]
_SHOWN = 10
"""How many runs are named."""
_ASKED_ABOVE = 10
"""To run more than these again is asked for."""


@app.command
def ls(
    *,
    everything: Annotated[bool, Parameter(name="--all")] = False,
    project: str | None = None,
    limit: Limit = 20,
    common: Common = NO_COMMON,
) -> None:
    """List open incidents, the newest first.

    Parameters
    ----------
    everything
        Also those that are closed, after the open ones.
    project
        Only those of this project; 'none' for those without a project.
    """
    state = None if everything else "open"
    with opened(common) as database:
        found = database.ask(database.services.incidents.list(state=state, project=project, limit=limit))
        if common.json:
            emit_json(found)
            return
        zone, now = database.zone, database.now
    columns = [Column(title) for title in ("ID", "STATE", "OPENED", "FOR", "COUNT")]
    columns += [Column(title, flexible=True) for title in ("SUBJECT", "CAUSE", "REASON")]
    nothing = "no incidents" if everything else "no open incidents; 'ostinato incident ls --all' lists those before"
    table(columns, [_row(one, zone, now) for one in found], otherwise=nothing)


def _row(incident: Incident, zone: str, now: datetime) -> list[Cell]:
    lasted = ((incident.closed_at or now) - incident.opened_at).total_seconds()
    return [
        str(incident.id),
        _state(incident),
        brief(incident.opened_at, zone, now),
        span(lasted),
        str(incident.count),
        incident.subject,
        incident.cause,
        incident.reason or "",
    ]


def _state(incident: Incident) -> Styled:
    if incident.state == "closed":
        return Styled("closed", "green")
    return Styled("open", "red") if incident.acked_at is None else Styled("acked", "yellow")


@app.command
def show(id: Id, /, *, common: Common = NO_COMMON) -> None:
    """Show an incident: how often it happened, who was told, its runs, and what was run again."""
    with opened(common) as database:
        found = database.ask(database.services.incidents.look(id))
        if common.json:
            from ostinato.service.answers import incident_answer

            emit_json(incident_answer(found))
            return
        fields(_pairs(found, database.zone))


def _pairs(found: IncidentDetail, zone: str) -> list[tuple[str, Cell | None]]:
    one = found.incident
    runs = ", ".join(map(str, found.runs[:_SHOWN]))
    runs += f" and {len(found.runs) - _SHOWN} more" if len(found.runs) > _SHOWN else ""
    acked = None if one.acked_at is None else f"by {one.acked_by}, {full(one.acked_at, zone)}"
    closed = None if one.closed_at is None else full(one.closed_at, zone)
    return [
        ("incident", str(one.id)),
        ("subject", one.subject),
        ("cause", one.cause),
        ("state", _state(one)),
        ("reason", one.reason),
        ("count", str(one.count)),
        ("reopened", str(one.reopened) if one.reopened else None),
        ("opened", full(one.opened_at, zone)),
        ("last", full(one.last_at, zone)),
        ("closed", closed if one.closed_reason is None else f"{closed}: {one.closed_reason}"),
        ("acked", acked),
        ("note", one.note),
        ("project", one.project),
        ("told", "\n".join(_told(found, zone)) or "nobody"),
        ("runs", runs or None),
        ("run again", "\n".join(_reruns(found)) or None),
    ]


def _reruns(found: IncidentDetail) -> Iterator[str]:
    for one in found.reruns[:_SHOWN]:
        why = f" ({one.reason})" if one.reason else ""
        yield f"{one.of} as {one.run}: {one.state}{why}"
    if len(found.reruns) > _SHOWN:
        yield f"and {len(found.reruns) - _SHOWN} more"


def _told(found: IncidentDetail, zone: str) -> list[str]:
    from ostinato.cli.notify import delivery_line

    return [f"{one.channel}: {one.kind}, {delivery_line(one)}, {full(one.at, zone)}" for one in found.deliveries]


@app.command
def ack(id: Id, /, *, note: str | None = None, common: Common = NO_COMMON) -> None:
    """Acknowledge an incident: nobody is told of it again until it recovers.

    Parameters
    ----------
    note
        What is being done about it; 'incident show' prints it.
    """
    with opened(common) as database:
        incident = database.ask(database.services.incidents.ack(id, who=os_user(), note=note))
    tell(incident, f"acked: incident {id}, {incident.subject!r} ({incident.cause})", as_json=common.json)


@app.command
def rerun(id: Id, /, *, yes: Yes = False, common: Common = NO_COMMON) -> int:
    """Run all failed runs of an incident again, as new runs; the old rows stay as they are."""
    with opened(common) as database:
        failed = len(database.ask(database.services.incidents.look(id)).runs)
        question = f"Run {counted(failed, 'failed run')} of incident {id} again?"
        many = f"this runs {counted(failed, 'failed run')} again"
        if failed > _ASKED_ABOVE and not yes and not confirmed(question, many):
            say("nothing was run")
            return 1
        made = database.ask(database.services.incidents.rerun(id))
    shown = f": {', '.join(map(str, made.runs[:10]))}{', …' if len(made.runs) > 10 else ''}" if made.runs else ""
    left = f"; {counted(made.left, 'run')} cannot be run again" if made.left else ""
    tell(made, f"queued {counted(len(made.runs), 'run')} of incident {id}{shown}{left}", as_json=common.json)
    return 0
