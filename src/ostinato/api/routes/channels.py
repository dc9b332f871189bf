"""/api/channels, /api/rules and /api/deliveries: who is told, of what, and what became of it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from ostinato.api.access import Admin, Container, Operator, Served, Viewer
from ostinato.api.answers import Zoned, json_answer, problems
from ostinato.api.fields import at
from ostinato.api.segments import Name, Number, path_of, routes_of
from ostinato.api.shapes.notifications import DeliveryQuery, NewChannel, NewRule, RemoveChannel
from ostinato.models.notification import Delivery
from ostinato.service.answers import DeliveryPage, Listed
from ostinato.service.notifications import ChannelRule, ChannelStatus, Put

__all__ = ["router"]

router = routes_of("notifications")


@router.get("/api/channels")
async def list_channels(services: Served, container: Container, _: Viewer) -> Listed[ChannelStatus]:
    """All channels, by name. Nobody is shown a URL; viewers not even its host."""
    return Listed([*await services.notifications.list()], container.settings.tz)


@router.post("/api/channels", status_code=201, responses={200: {"description": "It already existed"}})
async def add_channel(body: NewChannel, services: Served, _: Admin) -> Annotated[Response, ChannelStatus]:
    """Add a channel, or change what is given of the one of this name; doing it twice changes nothing."""
    with at("digest"):
        channel, did = await services.notifications.put(
            body.name,
            body.url,
            note=body.note,
            quiet=body.quiet,
            digest=body.digest,
            tz=body.zone,
            cool_down=body.cool_down,
        )
    headers = {"Location": path_of("channels", channel.name)} if did is Put.ADDED else None
    return json_answer(channel, 201 if did is Put.ADDED else 200, headers)


@router.get("/api/channels/{name}")
async def get_channel(name: Name, services: Served, _: Viewer) -> ChannelStatus:
    """The channel of this name."""
    return await services.notifications.get(name)


@router.delete("/api/channels/{name}", status_code=204, responses=problems(409))
async def remove_channel(name: Name, query: Annotated[RemoveChannel, Query()], services: Served, _: Admin) -> None:
    """Remove a channel with its rules; what was still to be sent there is dropped. Refused while schedules name it."""
    await services.notifications.remove(name, force=query.force)


@router.post("/api/channels/{name}/test")
async def send_test(name: Name, services: Served, container: Container, _: Operator) -> Zoned[Delivery]:
    """Send a test message, and answer what became of it."""
    return Zoned(await services.notifications.test(name), container.settings.tz)


@router.get("/api/rules")
async def list_rules(services: Served, container: Container, _: Viewer) -> Listed[ChannelRule]:
    """All rules, the oldest first."""
    return Listed([*await services.notifications.rules()], container.settings.tz)


@router.post(
    "/api/rules", status_code=201, responses={200: {"description": "It replaced another one"}, **problems(404)}
)
async def add_rule(body: NewRule, services: Served, _: Admin) -> Annotated[Response, ChannelRule]:
    """Tell a channel what happens, in one project or in all. It replaces the rule of the same channel and project."""
    with at("digest"):
        rule, did = await services.notifications.put_rule(
            body.channel, body.on, project=body.project, digest=body.digest, tz=body.zone
        )
    return json_answer(rule, 201 if did is Put.ADDED else 200)


@router.delete("/api/rules/{id}", status_code=204)
async def remove_rule(id: Number, services: Served, _: Admin) -> None:
    """Remove a rule."""
    await services.notifications.remove_rule(id)


@router.get("/api/deliveries", responses=problems(404))
async def list_deliveries(
    query: Annotated[DeliveryQuery, Query()], services: Served, container: Container, _: Viewer
) -> DeliveryPage:
    """What was sent, or is to be, the newest first, page by page."""
    found = await services.notifications.page(
        channel=query.channel, state=query.state, cursor=query.cursor, limit=query.reach
    )
    return DeliveryPage.of(query.of(found), zone=container.settings.tz)
