"""/api/schedules: list, add, change, remove. Beside it: `schedule_verbs.py` (switch, trigger, backfill, bulk) and
`schedule_views.py` (runs, why, next, history)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from fastapi import Header, Query
from starlette.responses import Response

from ostinato.api.access import Operator, Served, Viewer
from ostinato.api.answers import json_answer, problems
from ostinato.api.fields import of_schedule
from ostinato.api.permissions import check_changes, check_permissions, check_replaced
from ostinato.api.segments import Name, path_of, routes_of
from ostinato.api.shapes.policy import given_policy
from ostinato.api.shapes.schedules import NewSchedule, ScheduleChanges, ScheduleQuery
from ostinato.api.shapes.work import make_work
from ostinato.errors import NotFound, VersionConflict
from ostinato.models.access import Role
from ostinato.models.project import NO_PROJECT
from ostinato.models.schedule import Revision
from ostinato.models.schedule import Schedule as ScheduleModel
from ostinato.models.work import Work
from ostinato.service.answers import Removed, Schedule, SchedulePage, schedule_answer
from ostinato.service.schedules.listing import ListedSchedule
from ostinato.service.services import Services

__all__ = ["IfMatch", "ScheduleAnswer", "expected", "router", "schedule_response"]

router = routes_of("schedules")

ScheduleAnswer = Annotated[Response, Schedule]
"""A response that tells a schedule, with its ETag."""

IfMatch = Annotated[str | None, Header(description="The ETag that it was read with; 412 if it has changed since.")]
IfNoneMatch = Annotated[Literal["*"] | None, Header(description="`*`: only if no schedule has this name, else 412.")]

_FORCE = "Remove it even if a run does not stop, whose work then goes on; and even if code declares it."
_TRIES = 5
"""A change that meets another one is done again on top of it."""


@router.get("/api/schedules", responses=problems(404))
async def list_schedules(query: Annotated[ScheduleQuery, Query()], services: Served, _: Viewer) -> SchedulePage:
    """Schedules, page by page."""
    found = await services.schedules.page(
        search=query.q,
        owner=query.owner,
        project=query.project,
        state=query.state,
        sort=query.sort.removeprefix("-"),
        descending=query.sort.startswith("-"),
        cursor=query.cursor,
        limit=query.reach,
        recent=query.recent,
    )
    found = query.of(found)
    return SchedulePage.of(found, items=[_told(one) for one in found.items])


@router.post(
    "/api/schedules",
    status_code=201,
    responses={200: {"description": "It already existed"}, **problems(404, 409, 412)},
)
async def add_schedule(
    body: NewSchedule,
    services: Served,
    login: Operator,
    if_none_match: IfNoneMatch = None,
) -> ScheduleAnswer:
    """Add a schedule, or update the one of this name; doing it twice changes nothing. One that another owner or
    person made is refused (409) without `replace`. Shell and agent work, gates and
    secrets in headers need an admin. So does replacing a schedule that has one of them."""
    work, policy = make_work(body.work), given_policy(body.policy)
    check_permissions(login, work, body.policy)
    with of_schedule():
        await services.lanes.check(policy.get("lane"))

    async def add() -> Response:
        before = None if if_none_match is not None else await _find(services, body.name)
        if before is not None:
            check_replaced(login, before)
        with of_schedule():
            await services.schedules.add(
                body.name,
                body.timing,
                work,
                tz=body.zone,
                enabled=body.enabled,
                note=body.note,
                project=body.project,
                replace=body.replace,
                **({"only_new": True} if before is None else {"version": before.revision}),
                **policy,
            )
        return await schedule_response(services, body.name, 201 if before is None else 200)

    return await _on_top(add, is_conditional=if_none_match is not None)


@router.get("/api/schedules/{ref}")
async def get_schedule(ref: Name, services: Served, _: Viewer) -> ScheduleAnswer:
    """The schedule of this name, or else of this number."""
    return await _answer(services, await services.schedules.look(ref))


@router.patch("/api/schedules/{ref}", responses=problems(409, 412))
async def change_schedule(
    ref: Name,
    body: ScheduleChanges,
    services: Served,
    login: Operator,
    if_match: IfMatch = None,
) -> ScheduleAnswer:
    """Change only the given fields; `enabled` is applied after the others. Shell and agent work, gates and
    secrets in headers need an admin. If a schedule has one of them, an operator may change only when it runs."""
    work = None if body.work is None else make_work(body.work)
    check_permissions(login, work, body.policy)
    given = body.model_fields_set

    async def change() -> Response:
        current = (await services.schedules.look(ref)).schedule
        check_changes(login, current, given, body.policy)
        version = expected(if_match, current)
        changes = _changes(body, work)
        if changes.get("lane") != current.policy.lane:
            with of_schedule():
                await services.lanes.check(changes.get("lane"))
        if changes and version is None and not login.role.covers(Role.ADMIN):
            # What may be changed was decided by this one.
            version = current.revision
        with of_schedule():
            await services.schedules.change(
                current.name, enabled=body.enabled if "enabled" in given else None, version=version, **changes
            )
        return await schedule_response(services, current.name)

    return await _on_top(change, is_conditional=if_match is not None)


@router.delete(
    "/api/schedules/{ref}",
    status_code=204,
    responses={200: {"description": "Removed by force; some of its work goes on"}, **problems(409, 412)},
)
async def remove_schedule(
    ref: Name,
    services: Served,
    _: Operator,
    if_match: IfMatch = None,
    force: Annotated[bool, Query(description=_FORCE)] = False,
) -> Removed | None:
    """Remove it with its runs and their output. Active runs are told to stop and waited for: 409 if one does not end,
    or if code of a run that was given up still runs; and if code declares it, for it would come back when that code
    starts the next time."""
    current = (await services.schedules.look(ref)).schedule
    running = await services.schedules.remove(current.name, version=expected(if_match, current), force=force)
    return Removed(running) if running else None


async def _on_top(attempt: Callable[[], Awaitable[Response]], *, is_conditional: bool) -> Response:
    """Try it again when another wrote in between, unless the request asks for a version."""
    for _ in range(_TRIES - 1):
        try:
            return await attempt()
        except VersionConflict:
            if is_conditional:
                raise
    return await attempt()


async def schedule_response(services: Services, name: str, status: int = 200) -> Response:
    """The schedule as it is now."""
    return await _answer(services, await services.schedules.look(name), status)


async def _answer(services: Services, found: ListedSchedule, status: int = 200) -> Response:
    """The schedule, with what keeps it from running."""
    blocked = await services.blocking.of_schedule(found.schedule)
    headers = {"ETag": _tag(found.schedule)}
    if status == 201:
        # A client takes . and .. for steps in the path: such a schedule is found by its number.
        headers["Location"] = path_of(
            "schedules", found.schedule.name if found.schedule.name.strip(".") else found.schedule.id
        )
    answer = schedule_answer(found.schedule, found.running, found.queued, found.recent, blocked_by=blocked)
    return json_answer(answer, status, headers)


def _told(found: ListedSchedule) -> Schedule:
    return schedule_answer(found.schedule, found.running, found.queued, found.recent)


async def _find(services: Services, name: str) -> ScheduleModel | None:
    try:
        return await services.schedules.get(name)
    except NotFound:
        return None


def expected(if_match: str | None, current: ScheduleModel) -> Revision | None:
    """The revision that If-Match asks for; None if it asks for none."""
    if if_match is None or if_match.strip() == "*":
        return None
    # In quotes, as an ETag is written; people leave them out.
    found = re.findall(r'(?:^|,)\s*(?:W/)?"?(\d{1,15})\.(\d{1,15})"?\s*(?=,|$)', if_match)
    if current.revision in {(int(id), int(version)) for id, version in found}:
        return current.revision
    raise VersionConflict(
        f"schedule {current.name!r} has the ETag {_tag(current)}, not {if_match.strip()[:40]}",
        version=current.version,
    )


def _tag(schedule: ScheduleModel) -> str:
    return f'"{schedule.id}.{schedule.version}"'


def _changes(body: ScheduleChanges, work: Work | None) -> dict[str, Any]:
    """What the service is asked to change."""
    given = body.model_fields_set
    changes: dict[str, Any] = given_policy(body.policy)
    if work is not None:
        changes["work"] = work
    if "timing" in given:
        changes["timing"] = body.timing
    if "zone" in given:
        changes["tz"] = body.zone
    if "note" in given:
        changes["note"] = body.note or ""
    if "project" in given:
        changes["project"] = body.project or NO_PROJECT
    return changes
