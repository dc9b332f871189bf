"""`ostinato calendar`: named sets of dates, on which schedules that say `except calendar(NAME)` are not due."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import App

from ostinato.cli.console import Cell, Column, Styled, emit_json, fields, say, table, tell
from ostinato.cli.open_database import opened
from ostinato.cli.options import NO_COMMON, CalendarName, Common
from ostinato.cli.times import full
from ostinato.command_hints import hint
from ostinato.errors import InvalidInput
from ostinato.plurals import counted

if TYPE_CHECKING:
    from ostinato.models.calendar import Calendar

__all__ = ["app"]

app = App(name="calendar", help="List, set and remove calendars: named sets of dates on which schedules are not due.")

_SHOWN, _NAMED = 4, 10


@app.command
def ls(*, common: Common = NO_COMMON) -> None:
    """List calendars: their dates, and how many schedules use them."""
    with opened(common) as database:
        calendars = database.ask(database.services.calendars.list())
    if common.json:
        emit_json(calendars)
        return
    columns = [
        Column("NAME", flexible=True),
        Column("SCHEDULES"),
        Column("DATES", flexible=True),
        Column("NOTE", flexible=True),
    ]
    rows: list[list[Cell]] = [[one.name, str(len(one.schedules)), _dates(one), one.note or ""] for one in calendars]
    table(columns, rows, otherwise="no calendars: make one with 'ostinato calendar set NAME 2026-12-24 12-31'")


def _dates(calendar: Calendar) -> Cell:
    shown = ", ".join(calendar.dates[:_SHOWN])
    more = f", and {len(calendar.dates) - _SHOWN} more" if len(calendar.dates) > _SHOWN else ""
    return Styled(f"all past: {shown}{more}", "yellow") if calendar.past else shown + more or "none"


@app.command
def show(name: CalendarName, /, *, common: Common = NO_COMMON) -> None:
    """Show a calendar: its dates, its note and the schedules that use it."""
    with opened(common) as database:
        calendar = database.ask(database.services.calendars.get(name))
        zone = database.zone
    if common.json:
        emit_json(calendar)
        return
    fields(
        [
            ("name", calendar.name),
            ("dates", "\n".join(calendar.dates) or "none"),
            ("note", calendar.note or ""),
            ("schedules", ", ".join(calendar.schedules) or "none"),
            ("updated", f"{full(calendar.updated_at, zone)} by {calendar.updated_by}"),
        ]
    )
    _warn(calendar)


@app.command(name="set")
def set_calendar(
    name: CalendarName,
    /,
    *dates: str,
    file: str | None = None,
    note: str | None = None,
    common: Common = NO_COMMON,
) -> None:
    """Give a calendar these dates and no others; one that does not exist is made. Schedules that use it are planned
    anew at once.

    Parameters
    ----------
    dates
        Such as 2026-12-24, or 12-24 for every year.
    file
        A file with more of them, separated by spaces, commas or line ends; what is behind a # is left out. '-' is the
        standard input. An empty file makes a calendar without dates.
    note
        What it is for; an empty one clears it.
    """
    listed = [*_split(dates), *([] if file is None else _read(file))]
    if not listed and file is None:
        raise InvalidInput(
            "give at least one date",
            field="dates",
            hint="as in 'ostinato calendar set office 2026-12-24 12-31'; --file /dev/null for none",
        )
    with opened(common, create=True) as database:
        calendar = database.ask(database.services.calendars.set(name, listed, note=note))
    _tell(calendar, "set", common)


@app.command
def add(name: CalendarName, /, *dates: str, common: Common = NO_COMMON) -> None:
    """Add dates to a calendar; one that does not exist is made. Schedules that use it are planned anew at once.

    Parameters
    ----------
    dates
        Such as 2026-12-24, or 12-24 for every year.
    """
    if not dates:
        raise InvalidInput("give at least one date", field="dates", hint=f"as in {hint('calendar add', name, '12-24')}")
    with opened(common, create=True) as database:
        calendar = database.ask(database.services.calendars.add(name, _split(dates)))
    _tell(calendar, "set", common)


@app.command
def rm(name: CalendarName, /, *dates: str, common: Common = NO_COMMON) -> None:
    """Take dates out of a calendar. Without dates remove it, which is refused while schedules use it.

    Parameters
    ----------
    dates
        As 'calendar show' lists them.
    """
    with opened(common) as database:
        calendar = database.ask(database.services.calendars.remove(name, _split(dates) if dates else None))
    if calendar is None:
        tell({"name": name, "removed": True}, f"removed: calendar {name!r}", as_json=common.json)
    else:
        _tell(calendar, "set", common)


def _split(dates: tuple[str, ...] | list[str]) -> list[str]:
    return [one for given in dates for one in given.replace(",", " ").split()]


def _read(file: str) -> list[str]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidInput(f"{file} cannot be read: {reason}", field="file", hint="give a readable file") from None
    return _split([line.partition("#")[0] for line in text.splitlines()])


def _tell(calendar: Calendar, did: str, common: Common) -> None:
    text = f"{did}: calendar {calendar.name!r}, {counted(len(calendar.dates), 'date')}"
    if calendar.replanned:
        listed = ", ".join(calendar.replanned[:_NAMED])
        more = f" and {len(calendar.replanned) - _NAMED} more" if len(calendar.replanned) > _NAMED else ""
        text += f"; planned anew: {listed}{more}"
    tell(calendar, text, as_json=common.json)
    _warn(calendar)


def _warn(calendar: Calendar) -> None:
    if calendar.past:
        say(f"all dates of calendar {calendar.name!r} have passed", "yellow")
