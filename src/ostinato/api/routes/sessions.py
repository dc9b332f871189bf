"""/api/sessions: mailboxes; send, stop, and what happened in them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from ostinato.api.access import House, Operator, Served, Viewer
from ostinato.api.answers import json_answer, problems, zoned
from ostinato.api.routes.runs import run_answer, runs_answer
from ostinato.api.segments import Name, routes_of
from ostinato.api.shapes.places import (
    EventList,
    EventQuery,
    NewMessage,
    SessionAnswer,
    SessionList,
    SessionQuery,
    Stopped,
)
from ostinato.api.shapes.runs import Run, RunPage, RunsOfQuery
from ostinato.models.session import Stopped as StoppedModel
from ostinato.service.shapes import event_shape, session_shape

__all__ = ["router"]

router = routes_of("sessions")


@router.get("/api/sessions", response_model=None, responses={200: {"model": SessionList}})
async def list_sessions(query: Annotated[SessionQuery, Query()], services: Served, house: House, _: Viewer) -> Response:
    """Sessions, the latest message first."""
    found = await services.sessions.list(search=query.q or None, busy=query.busy, limit=query.limit)
    return json_answer(zoned({"items": [session_shape(session) for session in found]}, house.settings.tz))


@router.get("/api/sessions/{key}", response_model=None, responses={200: {"model": SessionAnswer}, **problems(404)})
async def get_session(key: Name, services: Served, house: House, _: Viewer) -> Response:
    """The session of this key."""
    return json_answer(zoned(session_shape(await services.sessions.get(key)), house.settings.tz))


@router.get("/api/sessions/{key}/messages", response_model=None, responses={200: {"model": RunPage}, **problems(404)})
async def list_messages(
    key: Name, query: Annotated[RunsOfQuery, Query()], services: Served, house: House, _: Viewer
) -> Response:
    """Its runs, the newest first."""
    await services.sessions.get(key)
    return await runs_answer(query, house, session=key)


@router.post(
    "/api/sessions/{key}/messages",
    status_code=201,
    response_model=None,
    responses={201: {"model": Run}, **problems(409)},
)
async def send_message(key: Name, body: NewMessage, services: Served, house: House, _: Operator) -> Response:
    """Put a message into a session; answers the run that carries it. It is durable when this returns."""
    given = body.model_dump(exclude_unset=True)
    id = await services.sessions.send(key, given.pop("payload"), **given)
    return run_answer(await services.runs.get(id), house, 201)


@router.get("/api/sessions/{key}/events", response_model=None, responses={200: {"model": EventList}, **problems(404)})
async def list_events(
    key: Name, query: Annotated[EventQuery, Query()], services: Served, house: House, _: Viewer
) -> Response:
    """What happened in it, oldest first."""
    await services.sessions.get(key)
    found = await services.sessions.events(key, after=query.after, limit=query.limit, newest=query.newest)
    return json_answer(zoned({"items": [event_shape(event) for event in found]}, house.settings.tz))


@router.post("/api/sessions/{key}/stop", response_model=None, responses={200: {"model": Stopped}})
async def stop_session(key: Name, services: Served, _: Operator) -> Response:
    """Cancel the oldest run that is under way; the next one gets its turn."""
    return _answer(await services.sessions.stop(key))


@router.post("/api/sessions/{key}/stop_all", response_model=None, responses={200: {"model": Stopped}})
async def stop_whole_session(key: Name, services: Served, _: Operator) -> Response:
    """Cancel all that is under way and drop all that is queued; nothing that was sent until now will start."""
    return _answer(await services.sessions.stop_all(key))


def _answer(stopped: StoppedModel) -> Response:
    return json_answer({"cancelled": stopped.cancelled, "dropped": stopped.dropped})
