"""/api/calendars: named sets of dates, on which schedules are not due."""

from __future__ import annotations

from ostinato.api.access import Container, Operator, Served, Viewer
from ostinato.api.answers import Zoned, problems
from ostinato.api.segments import Name, routes_of
from ostinato.api.shapes.places import CalendarDates
from ostinato.models.calendar import Calendar
from ostinato.service.answers import Listed

__all__ = ["router"]

router = routes_of("calendars")


@router.get("/api/calendars")
async def list_calendars(services: Served, container: Container, _: Viewer) -> Listed[Calendar]:
    """All calendars, by name, with the schedules that use them."""
    return Listed([*await services.calendars.list()], container.settings.tz)


@router.get("/api/calendars/{name}")
async def get_calendar(name: Name, services: Served, container: Container, _: Viewer) -> Zoned[Calendar]:
    """The calendar of this name."""
    return Zoned(await services.calendars.get(name), container.settings.tz)


@router.put("/api/calendars/{name}", responses=problems(409))
async def set_calendar(
    name: Name, body: CalendarDates, services: Served, container: Container, _: Operator
) -> Zoned[Calendar]:
    """Add a calendar, or give the one of this name these dates; the schedules that use it are planned anew at once.
    With a `version`, 409 if it was changed since."""
    made = await services.calendars.set(name, body.dates, note=body.note, version=body.version)
    return Zoned(made, container.settings.tz)


@router.delete("/api/calendars/{name}", status_code=204, responses=problems(409))
async def remove_calendar(name: Name, services: Served, _: Operator) -> None:
    """Remove a calendar that no schedule uses."""
    await services.calendars.remove(name)
