"""/api/schedules/{ref}/…: its runs, why it did not run, when it is due next, and how its days went."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from ostinato.api.access import House, Served, Viewer
from ostinato.api.answers import json_answer, problems, zoned
from ostinato.api.routes.runs import runs_answer
from ostinato.api.segments import Name, routes_of
from ostinato.api.shapes.base import Moment
from ostinato.api.shapes.runs import RunPage, RunsOfQuery
from ostinato.api.shapes.schedules import History, NextTimes, Why
from ostinato.api.shown import why_shape
from ostinato.service.shapes import rfc3339
from ostinato.service.view_shapes import history_shape

__all__ = ["router"]

router = routes_of("schedules")


@router.get("/api/schedules/{ref}/runs", response_model=None, responses={200: {"model": RunPage}, **problems(404)})
async def list_runs_of_schedule(
    ref: Name, query: Annotated[RunsOfQuery, Query()], services: Served, house: House, _: Viewer
) -> Response:
    """Its runs, the newest first."""
    schedule = (await services.schedules.look(ref)).schedule
    return await runs_answer(query, house, schedule=schedule.name)


@router.get("/api/schedules/{ref}/why", response_model=None, responses={200: {"model": Why}, **problems(404)})
async def explain_schedule(
    ref: Name,
    services: Served,
    house: House,
    _: Viewer,
    at: Annotated[Moment | None, Query(description="The due time at or just before this one.")] = None,
) -> Response:
    """What became of a due time; without `at`, of the latest one."""
    schedule = (await services.schedules.look(ref)).schedule
    found = await services.why.why(schedule.name, at)
    return json_answer(zoned(why_shape(found, house.settings.tz), schedule.zone))


@router.get("/api/schedules/{ref}/next", response_model=None, responses={200: {"model": NextTimes}, **problems(404)})
async def list_next_times(
    ref: Name, services: Served, _: Viewer, n: Annotated[int, Query(ge=1, le=100)] = 5
) -> Response:
    """The next due times, as the engine computes them."""
    schedule = (await services.schedules.look(ref)).schedule
    times = await services.schedules.next(schedule.name, n)
    return json_answer(
        {"zone": schedule.zone, "next": [rfc3339(due) for due in times], "reason": schedule.next_run_reason}
    )


@router.get("/api/schedules/{ref}/history", response_model=None, responses={200: {"model": History}, **problems(404)})
async def get_history(
    ref: Name, services: Served, _: Viewer, days: Annotated[int, Query(ge=1, le=3660)] = 182
) -> Response:
    """How its runs ended, by the day of their due time in its zone."""
    schedule = (await services.schedules.look(ref)).schedule
    return json_answer(history_shape(await services.schedules.history(schedule.name, days)))
