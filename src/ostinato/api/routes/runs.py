"""/api/runs: the ledger, and work that is asked for directly. Beside it: `output.py`, what runs printed."""

from __future__ import annotations

from typing import Annotated, Unpack

from fastapi import Query
from starlette.responses import Response

from ostinato.api.access import House, Operator, Served, Viewer
from ostinato.api.answers import json_answer, problems
from ostinato.api.fields import of_schedule
from ostinato.api.house import ApiHouse
from ostinato.api.powers import check_powers
from ostinato.api.segments import Number, path_of, routes_of
from ostinato.api.shapes.policy import given_policy
from ostinato.api.shapes.runs import Cancel, NewRun, Run, RunPage, RunQuery, RunsOfQuery
from ostinato.api.shapes.work import make_work
from ostinato.api.shown import run_shape
from ostinato.models.run import Run as RunModel
from ostinato.service.runs import RunsWanted

__all__ = ["router", "run_answer", "runs_answer"]

router = routes_of("runs")


@router.get("/api/runs", response_model=None, responses={200: {"model": RunPage}, **problems(404)})
async def list_runs(query: Annotated[RunQuery, Query()], house: House, _: Viewer) -> Response:
    """Runs, the newest first, page by page."""
    return await runs_answer(
        query,
        house,
        schedule=query.schedule,
        task=query.task,
        session=query.session,
        project=query.project,
        lane=query.lane,
    )


@router.post("/api/runs", status_code=201, response_model=None, responses={201: {"model": Run}, **problems(404, 409)})
async def add_run(body: NewRun, services: Served, house: House, login: Operator) -> Response:
    """Run this work soon, on any node. Shell and agent work, gates and secrets in headers need an admin."""
    work = make_work(body.work)
    check_powers(login, work, body.policy)
    with of_schedule():
        id = await services.runs.enqueue_work(
            work, project=body.project, key=body.key, delay=body.delay, at=body.at, **given_policy(body.policy)
        )
    return run_answer(await services.runs.get(id), house, 201)


@router.get("/api/runs/{id}", response_model=None, responses={200: {"model": Run}, **problems(404)})
async def get_run(id: Number, services: Served, house: House, _: Viewer) -> Response:
    """The run of this number; the reason of a queued one is what it waits for."""
    return run_answer(await services.runs.look(id), house)


@router.post("/api/runs/{id}/cancel", response_model=None, responses={200: {"model": Run}, **problems(404, 409)})
async def cancel_run(
    id: Number, services: Served, house: House, login: Operator, body: Cancel | None = None
) -> Response:
    """End it if it is queued, ask its node to stop it if it runs."""
    reason = f"cancelled by {login.who}" if body is None or body.reason is None else body.reason
    return run_answer(await services.runs.cancel(id, reason=reason), house)


@router.post(
    "/api/runs/{id}/retry", status_code=201, response_model=None, responses={201: {"model": Run}, **problems(404, 409)}
)
async def retry_run(id: Number, services: Served, house: House, _: Operator) -> Response:
    """Run the same work again, now, as a new run."""
    return run_answer(await services.runs.retry(id), house, 201)


def run_answer(run: RunModel, house: ApiHouse, status: int = 200) -> Response:
    """A run; a new one with its place."""
    headers = {"Location": path_of("runs", run.id)} if status == 201 else None
    return json_answer(run_shape(run, house.settings.tz), status, headers)


async def runs_answer(query: RunsOfQuery, house: ApiHouse, **of: Unpack[RunsWanted]) -> Response:
    """A page of runs."""
    of |= {"trigger": query.trigger, "state": query.state, "cause": query.cause}
    of |= {"since": query.from_, "until": query.until}
    found = await house.services.runs.page(**of, cursor=query.cursor, limit=query.limit)
    return json_answer({"items": [run_shape(run, house.settings.tz) for run in found.items], "next": found.next})
