"""Times as people read and write them on a command line: in the zone of the settings, and how long until or since."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from ostinato.durations import span, took
from ostinato.errors import InvalidInput

__all__ = ["brief", "full", "read_time", "span", "took"]

_HINT = "give 2026-03-01T09:00:00Z, or 2026-03-01 09:00 in the zone of the settings"


def read_time(text: str, zone: str, *, field: str) -> datetime:
    """The time that a person means: RFC 3339, or a wall time in the zone."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(f"{field} {text!r} is not a time", field=field, hint=_HINT) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=ZoneInfo(zone))


def full(moment: datetime, zone: str) -> str:
    """`Sun 2026-03-01 09:00:00 +01:00`."""
    from ostinato.timing.zones import shown_zone

    local = moment.astimezone(shown_zone(zone))
    return f"{local:%a %Y-%m-%d %H:%M:%S} {local.isoformat()[-6:]}"


def brief(moment: datetime, zone: str, now: datetime) -> str:
    """For tables: the time alone if it is today, date and time within a year, else the date."""
    from ostinato.timing.zones import shown_zone

    local, today = moment.astimezone(shown_zone(zone)), now.astimezone(shown_zone(zone))
    if local.date() == today.date():
        return f"{local:%H:%M:%S}"
    if abs((local.date() - today.date()).days) < 300:
        return f"{local:%m-%d %H:%M}"
    return f"{local:%Y-%m-%d}"
