"""/api/schedules/{ref}/…: enable, disable, trigger, backfill; and one verb for many schedules."""

from __future__ import annotations

from starlette.responses import Response

from ostinato.api.access import House, Operator, Served
from ostinato.api.answers import json_answer, problems, zoned
from ostinato.api.problems import problem_of
from ostinato.api.routes.runs import run_answer
from ostinato.api.routes.schedules import IfMatch, expected, schedule_answer
from ostinato.api.segments import Name, routes_of
from ostinato.api.shapes.runs import Run
from ostinato.api.shapes.schedules import (
    Backfill,
    BackfillAnswer,
    Bulk,
    BulkAnswer,
    Disable,
    Schedule,
    Trigger,
)
from ostinato.models.schedule import Revision
from ostinato.models.schedule import Schedule as ScheduleModel
from ostinato.service.bulk import do_with_many
from ostinato.service.services import Services
from ostinato.service.shapes import backfill_shape

__all__ = ["router"]

router = routes_of("schedules")


@router.post("/api/schedules/bulk", response_model=None, responses={200: {"model": BulkAnswer}})
async def change_many_schedules(body: Bulk, services: Served, _: Operator) -> Response:
    """Do the same with many schedules, one after the other; what cannot be done with one does not hinder the others."""
    found = await do_with_many(services.schedules, body.action, body.names, note=body.note, force=body.force)
    failed = [{"name": name, "problem": problem_of(error)} for name, error in found.failed]
    return json_answer({"done": found.done, "failed": failed})


@router.post(
    "/api/schedules/{ref}/enable", response_model=None, responses={200: {"model": Schedule}, **problems(404, 409, 412)}
)
async def enable_schedule(ref: Name, services: Served, _: Operator, if_match: IfMatch = None) -> Response:
    """Switch it on and clear what broke it. Its checks must pass: 409 says which did not."""
    schedule, version = await _asked(services, ref, if_match)
    await services.schedules.enable(schedule.name, version=version)
    return await schedule_answer(services, schedule.name)


@router.post(
    "/api/schedules/{ref}/disable", response_model=None, responses={200: {"model": Schedule}, **problems(404, 409, 412)}
)
async def disable_schedule(
    ref: Name, services: Served, _: Operator, body: Disable | None = None, if_match: IfMatch = None
) -> Response:
    """Switch it off. What runs goes on."""
    schedule, version = await _asked(services, ref, if_match)
    await services.schedules.disable(schedule.name, note=None if body is None else body.note, version=version)
    return await schedule_answer(services, schedule.name)


@router.post(
    "/api/schedules/{ref}/trigger",
    status_code=201,
    response_model=None,
    responses={201: {"model": Run}, **problems(404, 409, 412)},
)
async def trigger_schedule(
    ref: Name, services: Served, house: House, _: Operator, body: Trigger | None = None, if_match: IfMatch = None
) -> Response:
    """Run it now. Refused while a run is active, unless its overlap policy allows it or it is forced."""
    schedule, version = await _asked(services, ref, if_match)
    run = await services.schedules.trigger(schedule.name, force=body is not None and body.force, version=version)
    return run_answer(run, house, 201)


@router.post(
    "/api/schedules/{ref}/backfill",
    status_code=201,
    response_model=None,
    responses={
        200: {"model": BackfillAnswer, "description": "A dry run: nothing was queued"},
        201: {"model": BackfillAnswer},
        **problems(404, 409, 412),
    },
)
async def backfill_schedule(
    ref: Name, body: Backfill, services: Served, _: Operator, if_match: IfMatch = None
) -> Response:
    """Run the due times of a span that has passed, oldest first, 1,000 at most."""
    schedule, version = await _asked(services, ref, if_match)
    found = await services.schedules.backfill(
        schedule.name, body.from_, body.until, all=body.all, dry_run=body.dry_run, version=version
    )
    return json_answer(zoned(backfill_shape(found), schedule.zone), 200 if body.dry_run else 201)


async def _asked(services: Services, ref: str, if_match: str | None) -> tuple[ScheduleModel, Revision | None]:
    """The schedule of this name or number, and the revision that it must be."""
    current = (await services.schedules.look(ref)).schedule
    return current, expected(if_match, current)
