"""`ostinato lane`: how full lanes are, and their limits, rates and switches, on all nodes at once."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from cyclopts import App

from ostinato.cli.console import Cell, Column, Styled, confirmed, emit_json, say, table, tell
from ostinato.cli.open_database import opened
from ostinato.cli.options import NO_COMMON, Common, LaneName, Yes
from ostinato.cli.times import span
from ostinato.plurals import counted

if TYPE_CHECKING:
    from ostinato.models.lane import Lane

__all__ = ["app"]

app = App(name="lane", help="List, set, pause, resume and clear lanes.")


@app.command
def ls(*, common: Common = NO_COMMON) -> None:
    """List lanes: how many runs are under way and how many wait, on all nodes together."""
    with opened(common) as database:
        lanes = database.ask(database.services.lanes.list())
        if common.json:
            from ostinato.service.answers import Lane as LaneAnswer

            emit_json([LaneAnswer.of(lane) for lane in lanes])
            return
        now = database.now
    titles = ("USED", "RATE", "QUEUED", "OLDEST", "STATE")
    columns = [Column("NAME", flexible=True), *(Column(title) for title in titles), Column("NOTE", flexible=True)]
    table(columns, [_row(lane, now) for lane in lanes])


def _row(lane: Lane, now: datetime) -> list[Cell]:
    used = f"{lane.used}/{lane.limit}"
    # What is to start later waits for its time, not for room.
    waited = -1.0 if lane.oldest_at is None else (now - lane.oldest_at).total_seconds()
    return [
        lane.name,
        Styled(used, "yellow") if lane.used >= lane.limit else used,
        lane.rate or "-",
        str(lane.queued),
        "-" if waited < 0 else span(waited),
        Styled("paused", "yellow") if lane.paused else Styled("on", "green"),
        lane.note or "",
    ]


@app.command(name="set")
def set_lane(
    name: LaneName, limit: int | None = None, /, *, rate: str | None = None, common: Common = NO_COMMON
) -> None:
    """Set the limit or the rate of a lane, on all nodes at once. With a limit, a missing lane is created.

    Parameters
    ----------
    limit
        How many of its runs may be under way, such as 10. Active runs go on, even above a smaller limit.
    rate
        How many of its runs may start in a period, such as 10/m or 3/10s; 'none' removes the rate.
    """
    with opened(common, create=True) as database:
        lane = database.ask(database.services.lanes.set(name, limit, rate=rate))
    _tell(lane, f"set: lane {name!r}, limit {lane.limit}, " + (f"rate {lane.rate}" if lane.rate else "no rate"), common)


@app.command
def pause(name: LaneName, /, *, note: str | None = None, common: Common = NO_COMMON) -> None:
    """Start nothing more in a lane, on any node, until it is resumed. Active runs go on.

    Parameters
    ----------
    note
        Why; shown by 'lane ls'.
    """
    with opened(common) as database:
        lane = database.ask(database.services.lanes.pause(name, note=note))
    _tell(lane, f"paused: lane {name!r}" + (f" ({lane.note})" if lane.note else ""), common)


@app.command
def resume(name: LaneName, /, *, common: Common = NO_COMMON) -> None:
    """Start the runs of a lane again."""
    with opened(common) as database:
        lane = database.ask(database.services.lanes.resume(name))
    _tell(lane, f"resumed: lane {name!r}, {counted(lane.queued, 'run')} queued", common)


def _tell(lane: Lane, text: str, common: Common) -> None:
    from ostinato.service.answers import Lane as LaneAnswer

    tell(LaneAnswer.of(lane), text, as_json=common.json)


@app.command
def clear(name: LaneName, /, *, yes: Yes = False, common: Common = NO_COMMON) -> int:
    """End everything that is queued in a lane as cancelled. Active runs go on."""
    with opened(common) as database:
        lane = database.ask(database.services.lanes.get(name))
        queued = counted(lane.queued, "queued run")
        question = f"End {queued} of lane {name!r} as cancelled?"
        if not yes and not confirmed(question, f"clearing lane {name!r} ends {queued}"):
            say("nothing was cleared")
            return 1
        ended = database.ask(database.services.lanes.clear(name))
    text = f"cleared: lane {name!r}, {counted(ended, 'run')} cancelled"
    tell({"name": name, "cleared": ended}, text, as_json=common.json)
    return 0
