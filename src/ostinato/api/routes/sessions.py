"""/api/sessions: mailboxes; send, stop, and what happened in them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from ostinato.api.access import Container, Operator, Served, Viewer
from ostinato.api.answers import Zoned
from ostinato.api.permissions import check_permissions
from ostinato.api.routes.runs import RunAnswer, run_response, runs_page
from ostinato.api.segments import Name, routes_of
from ostinato.api.shapes.places import EventQuery, NewMessage, SessionQuery
from ostinato.api.shapes.runs import RunsOfQuery
from ostinato.api.shapes.work import make_agent
from ostinato.models.event import Event
from ostinato.models.session import Session, Stopped
from ostinato.service.answers import Listed, Page, Run

__all__ = ["router"]

router = routes_of("sessions")


@router.get("/api/sessions")
async def list_sessions(
    query: Annotated[SessionQuery, Query()], services: Served, container: Container, _: Viewer
) -> Listed[Session]:
    """Sessions, the latest message first."""
    found = await services.sessions.list(search=query.q or None, busy=query.busy, limit=query.limit)
    return Listed([*found], container.settings.tz)


@router.get("/api/sessions/{key}")
async def get_session(key: Name, services: Served, container: Container, _: Viewer) -> Zoned[Session]:
    """The session of this key."""
    return Zoned(await services.sessions.get(key), container.settings.tz)


@router.get("/api/sessions/{key}/messages")
async def list_messages(
    key: Name, query: Annotated[RunsOfQuery, Query()], services: Served, container: Container, _: Viewer
) -> Page[Run]:
    """Its runs, the newest first."""
    await services.sessions.get(key)
    return await runs_page(query, container, session=key)


@router.post("/api/sessions/{key}/messages", status_code=201)
async def send_message(
    key: Name, body: NewMessage, services: Served, container: Container, login: Operator
) -> RunAnswer:
    """Put a message into a session; returns the run that carries it. It is durable when this returns. A message to an
    agent needs an admin."""
    given = body.model_dump(exclude_unset=True)
    agent = given["agent"] = None if body.agent is None else make_agent(body.agent)
    check_permissions(login, agent, None, "agent")
    await services.lanes.check(body.lane)
    id = await services.sessions.send(key, given.pop("payload"), **given)
    return run_response(await services.runs.get(id), container, 201)


@router.get("/api/sessions/{key}/events")
async def list_events(
    key: Name, query: Annotated[EventQuery, Query()], services: Served, container: Container, _: Viewer
) -> Listed[Event]:
    """What happened in it, oldest first."""
    await services.sessions.get(key)
    found = await services.sessions.events(key, after=query.after, limit=query.limit, newest=query.newest)
    return Listed([*found], container.settings.tz)


@router.post("/api/sessions/{key}/stop")
async def stop_session(key: Name, services: Served, _: Operator) -> Stopped:
    """Cancel the oldest active run; the next one gets its turn."""
    return await services.sessions.stop(key)


@router.post("/api/sessions/{key}/stop_all")
async def stop_whole_session(key: Name, services: Served, _: Operator) -> Stopped:
    """Cancel everything that runs and drop everything that is queued; no message sent until now will start."""
    return await services.sessions.stop_all(key)
