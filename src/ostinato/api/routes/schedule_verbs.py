"""/api/schedules/{ref}/…: enable, disable, trigger, backfill; and one verb for many schedules."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.responses import Response

from ostinato.api.access import Container, Operator, Served
from ostinato.api.answers import Zoned, json_answer, problems
from ostinato.api.permissions import check_reverted
from ostinato.api.problems import Problem, problem_of
from ostinato.api.routes.runs import RunAnswer, run_response
from ostinato.api.routes.schedules import IfMatch, ScheduleAnswer, expected, schedule_response
from ostinato.api.segments import Name, routes_of
from ostinato.api.shapes.schedules import Backfill, Bulk, Disable, NewKey, Revert, Trigger
from ostinato.models.schedule import Revision, Schedule
from ostinato.service.answers import MadeKey
from ostinato.service.schedules.backfill import Backfill as BackfillDone
from ostinato.service.schedules.bulk import do_with_many
from ostinato.service.services import Services

__all__ = ["router"]

router = routes_of("schedules")


class BulkFailure(msgspec.Struct):
    """Why it was not done for one schedule."""

    name: str
    problem: Problem


class BulkAnswer(msgspec.Struct):
    """The schedules for which it was done, and those for which it was not."""

    done: list[str]
    failed: list[BulkFailure]


@router.post("/api/schedules/bulk")
async def change_many_schedules(body: Bulk, services: Served, _: Operator) -> BulkAnswer:
    """Do the same with many schedules, one after the other; a failure of one does not stop the others."""
    found = await do_with_many(services.schedules, body.action, body.names, note=body.note, force=body.force)
    failed = [BulkFailure(name, msgspec.convert(problem_of(error), Problem)) for name, error in found.failed]
    return BulkAnswer(found.done, failed)


@router.post("/api/schedules/{ref}/enable", responses=problems(412))
async def enable_schedule(ref: Name, services: Served, _: Operator, if_match: IfMatch = None) -> ScheduleAnswer:
    """Switch it on and clear what broke it. Its checks must pass: 409 says which did not."""
    schedule, version = await _asked(services, ref, if_match)
    await services.schedules.enable(schedule.name, version=version)
    return await schedule_response(services, schedule.name)


@router.post("/api/schedules/{ref}/disable", responses=problems(412))
async def disable_schedule(
    ref: Name, services: Served, _: Operator, body: Disable | None = None, if_match: IfMatch = None
) -> ScheduleAnswer:
    """Switch it off. What runs goes on; what waits for another attempt is cancelled, unless `keep_retries`."""
    schedule, version = await _asked(services, ref, if_match)
    asked = body or Disable()
    await services.schedules.disable(schedule.name, note=asked.note, keep_retries=asked.keep_retries, version=version)
    return await schedule_response(services, schedule.name)


@router.post("/api/schedules/{ref}/revert", responses=problems(409, 412))
async def revert_schedule(
    ref: Name, services: Served, login: Operator, body: Revert | None = None, if_match: IfMatch = None
) -> ScheduleAnswer:
    """Give a schedule that code declares back what the code says: of the given fields, or of all that people changed,
    which `changes` lists. 409 if no code declares it. A gate, a ping_url, and what else an operator may not change
    need an admin."""
    schedule, version = await _asked(services, ref, if_match)
    fields = None if body is None else body.fields
    check_reverted(login, schedule, fields)
    await services.schedules.revert(schedule.name, fields, version=version)
    return await schedule_response(services, schedule.name)


@router.post("/api/schedules/{ref}/trigger", status_code=201, responses=problems(412))
async def trigger_schedule(
    ref: Name,
    services: Served,
    container: Container,
    _: Operator,
    body: Trigger | None = None,
    if_match: IfMatch = None,
) -> RunAnswer:
    """Run it now. Refused while a run is active, unless its overlap policy allows it or it is forced."""
    schedule, version = await _asked(services, ref, if_match)
    run = await services.schedules.trigger(schedule.name, force=body is not None and body.force, version=version)
    return run_response(run, container, 201)


@router.post(
    "/api/schedules/{ref}/backfill",
    status_code=201,
    responses={200: {"description": "A dry run: nothing was queued"}, **problems(412)},
)
async def backfill_schedule(
    ref: Name, body: Backfill, services: Served, _: Operator, if_match: IfMatch = None
) -> Annotated[Response, Zoned[BackfillDone]]:
    """Run the due times of a span that has passed, oldest first, 1,000 at most."""
    schedule, version = await _asked(services, ref, if_match)
    found = await services.schedules.backfill(
        schedule.name, body.from_, body.until, all=body.all, dry_run=body.dry_run, version=version
    )
    return json_answer(Zoned(found, schedule.zone), 200 if body.dry_run else 201)


@router.post("/api/schedules/{ref}/ping-key", status_code=201, responses=problems(409))
async def make_ping_key(ref: Name, services: Served, _: Operator, body: NewKey | None = None) -> MadeKey:
    """Make the key of the address at which its machine checks in; it is in this answer and nowhere else. 409 if it has
    one, unless a new one is asked for."""
    name = (await services.schedules.look(ref)).schedule.name
    return MadeKey.of(await services.schedules.ping_key(name, new=body is not None and body.new))


@router.post("/api/schedules/{ref}/badge-key", status_code=201, responses=problems(409))
async def make_badge_key(ref: Name, services: Served, _: Operator, body: NewKey | None = None) -> MadeKey:
    """Make the key of its badge, a picture of its state that anybody who has the key may see. 409 if it has one, unless
    a new one is asked for."""
    name = (await services.schedules.look(ref)).schedule.name
    return MadeKey.of(await services.schedules.badge_key(name, new=body is not None and body.new))


async def _asked(services: Services, ref: str, if_match: str | None) -> tuple[Schedule, Revision | None]:
    """The schedule of this name or number, and the revision that it must be."""
    current = (await services.schedules.look(ref)).schedule
    return current, expected(if_match, current)
