"""/api/runs: the ledger, and work that is asked for directly. Beside it: `output.py`, what runs printed."""

from __future__ import annotations

from typing import Annotated, Unpack

from fastapi import Query
from starlette.responses import Response

from ostinato.api.access import Container, Operator, Served, Viewer
from ostinato.api.answers import json_answer, problems
from ostinato.api.container import ApiContainer
from ostinato.api.fields import of_schedule
from ostinato.api.permissions import check_permissions
from ostinato.api.segments import Number, path_of, routes_of
from ostinato.api.shapes.policy import given_policy
from ostinato.api.shapes.runs import Cancel, NewRun, RunQuery, RunsOfQuery
from ostinato.api.shapes.work import make_work
from ostinato.models.run import Run as RunModel
from ostinato.models.upstream import RunRelations
from ostinato.service.answers import Page, Run, run_answer
from ostinato.service.run_lists import RunsWanted

__all__ = ["RunAnswer", "router", "run_response", "runs_page"]

router = routes_of("runs")

RunAnswer = Annotated[Response, Run]
"""A response that tells a run."""


@router.get("/api/runs", responses=problems(404))
async def list_runs(query: Annotated[RunQuery, Query()], container: Container, _: Viewer) -> Page[Run]:
    """Runs, the newest first, page by page."""
    return await runs_page(
        query,
        container,
        schedule=query.schedule,
        task=query.task,
        session=query.session,
        project=query.project,
        lane=query.lane,
        search=query.q,
    )


@router.post(
    "/api/runs",
    status_code=201,
    responses={200: {"description": "Its key is active: the run that has it"}, **problems(404)},
)
async def add_run(body: NewRun, services: Served, container: Container, login: Operator) -> RunAnswer:
    """Run this work soon, on any node. Shell and agent work, gates and secrets in headers need an admin."""
    work = make_work(body.work)
    check_permissions(login, work, body.policy)
    policy = given_policy(body.policy)
    with of_schedule():
        await services.lanes.check(policy.get("lane"))
        enqueued = await services.runs.enqueue_work(
            work,
            project=body.project,
            key=body.key,
            scope=body.scope,
            delay=body.delay,
            at=body.at,
            **policy,
        )
    return run_response(await services.runs.get(enqueued.id), container, 201 if enqueued.is_new else 200)


@router.get("/api/runs/{id}")
async def get_run(id: Number, services: Served, container: Container, _: Viewer) -> RunAnswer:
    """The run of this number; the reason of a queued run says what it waits for, and `blocked_by` what ends that."""
    run = await services.runs.look(id)
    blocked = await services.blocking.of_run(run)
    return json_answer(run_answer(run, container.settings.tz, blocked_by=blocked))


@router.get("/api/runs/{id}/relations")
async def list_run_relations(id: Number, services: Served, _: Viewer) -> RunRelations:
    """Which runs it came after or waits for, and which come after it."""
    return await services.runs.relations(id)


@router.post("/api/runs/{id}/cancel")
async def cancel_run(
    id: Number, services: Served, container: Container, _: Operator, body: Cancel | None = None
) -> RunAnswer:
    """End it if it is queued; ask its node to stop it if it is running."""
    reason = None if body is None else body.reason
    return run_response(await services.runs.cancel(id, reason=reason), container)


@router.post("/api/runs/{id}/retry", status_code=201)
async def retry_run(id: Number, services: Served, container: Container, _: Operator) -> RunAnswer:
    """Run the same work again, now, as a new run."""
    return run_response(await services.runs.retry(id), container, 201)


def run_response(run: RunModel, container: ApiContainer, status: int = 200) -> Response:
    """A run; a new one with its place."""
    headers = {"Location": path_of("runs", run.id)} if status == 201 else None
    return json_answer(run_answer(run, container.settings.tz), status, headers)


async def runs_page(query: RunsOfQuery, container: ApiContainer, **of: Unpack[RunsWanted]) -> Page[Run]:
    """A page of runs."""
    of |= {"trigger": query.trigger, "state": query.state, "cause": query.cause}
    of |= {"since": query.from_, "until": query.until}
    found = query.of(await container.services.runs.page(**of, cursor=query.cursor, limit=query.reach))
    return Page([run_answer(run, container.settings.tz) for run in found.items], found.next)
