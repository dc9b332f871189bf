"""/api/schedules/{ref}/…: its runs, why it did not run, when it is due next, and how its days went."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from ostinato.api.access import Container, Served, Viewer
from ostinato.api.answers import Zoned
from ostinato.api.routes.runs import runs_page
from ostinato.api.segments import Name, routes_of
from ostinato.api.shapes.base import Moment
from ostinato.api.shapes.runs import RunsOfQuery
from ostinato.service.answers import NextTimes, Page, Run, Why, why_answer
from ostinato.service.schedules.history import History
from ostinato.service.schedules.upstreams import Relations

__all__ = ["router"]

router = routes_of("schedules")


@router.get("/api/schedules/{ref}/runs")
async def list_runs_of_schedule(
    ref: Name, query: Annotated[RunsOfQuery, Query()], services: Served, container: Container, _: Viewer
) -> Page[Run]:
    """Its runs, the newest first."""
    schedule = (await services.schedules.look(ref)).schedule
    return await runs_page(query, container, schedule=schedule.name)


@router.get("/api/schedules/{ref}/why")
async def explain_schedule(
    ref: Name,
    services: Served,
    container: Container,
    _: Viewer,
    at: Annotated[Moment | None, Query(description="The due time at or just before this one.")] = None,
) -> Zoned[Why]:
    """What became of a due time; without `at`, of the latest one."""
    schedule = (await services.schedules.look(ref)).schedule
    found = await services.why.why(schedule.name, at)
    return Zoned(why_answer(found, container.settings.tz), schedule.zone)


@router.get("/api/schedules/{ref}/next")
async def list_next_times(
    ref: Name, services: Served, _: Viewer, n: Annotated[int, Query(ge=1, le=100)] = 5
) -> NextTimes:
    """The next due times, as the engine computes them."""
    schedule = (await services.schedules.look(ref)).schedule
    times = await services.schedules.next(schedule.name, n)
    return NextTimes(schedule.zone, times, schedule.next_run_reason)


@router.get("/api/schedules/{ref}/relations")
async def list_relations(ref: Name, services: Served, _: Viewer) -> Relations:
    """Which schedules it runs after, and which run after it."""
    schedule = (await services.schedules.look(ref)).schedule
    return await services.schedules.relations(schedule.name)


@router.get("/api/schedules/{ref}/history")
async def get_history(
    ref: Name, services: Served, _: Viewer, days: Annotated[int, Query(ge=1, le=3660)] = 182
) -> History:
    """How its runs ended, by the day of their due time in its zone."""
    schedule = (await services.schedules.look(ref)).schedule
    return await services.schedules.history(schedule.name, days)
