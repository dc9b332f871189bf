"""`create_app`: the routes and their middleware. It touches nothing until the first request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from fastapi import APIRouter, Depends, FastAPI
from fastapi.routing import APIRoute
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ostinato.api import health, live, metrics
from ostinato.api.access import AuthenticationMiddleware, Authenticator
from ostinato.api.answers import json_answer
from ostinato.api.bodies import BodyLimit
from ostinato.api.container import ApiContainer
from ostinato.api.denials import Denials
from ostinato.api.idempotency import IdempotencyStore
from ostinato.api.openapi import describe
from ostinato.api.page import Page
from ostinato.api.parameters import only_known
from ostinato.api.problems import Unexpected, add_problem_handlers
from ostinato.api.proxies import ProxyMiddleware
from ostinato.api.routes import (
    audit,
    calendars,
    channels,
    incidents,
    kinds,
    lanes,
    login,
    nodes,
    output,
    overview,
    pings,
    projects,
    runs,
    schedule_verbs,
    schedule_views,
    schedules,
    sessions,
    tasks,
    timeline,
    timings,
    tokens,
)
from ostinato.api.security import SecurityMiddleware
from ostinato.api.trace import TraceMiddleware, is_untraced
from ostinato.service.metrics import ConnectionCounts

if TYPE_CHECKING:
    from fastapi.telemetry import TelemetryConfig  # older versions have none

__all__ = ["api_routes", "create_app", "create_metrics_app"]

# Newer versions of FastAPI make spans of requests by themselves.
_TELEMETRY: TelemetryConfig = {"exclude": is_untraced}

_ABOUT = """Schedules, runs, lanes, sessions and everything else that the command line can do.

Times are RFC 3339 in UTC. Errors are problem+json (RFC 9457), and name the invalid field. A POST with an
`Idempotency-Key` can be sent again. Everything needs a token (`Authorization: Bearer ost_…`) or the page's login.
"""

_ROUTERS: tuple[APIRouter, ...] = (
    login.router,
    overview.router,
    schedules.router,
    schedule_verbs.router,
    schedule_views.router,
    timings.router,
    runs.router,
    output.router,
    timeline.router,
    lanes.router,
    sessions.router,
    nodes.router,
    projects.router,
    calendars.router,
    channels.router,
    incidents.router,
    tasks.router,
    kinds.router,
    tokens.router,
    audit.router,
    pings.router,
    live.router,
    health.router,
    metrics.router,
)


def api_routes(routers: Iterable[APIRouter] = _ROUTERS) -> Iterator[APIRoute]:
    """Every route."""
    for router in routers:
        yield from (route for route in router.routes if isinstance(route, APIRoute))


def create_app(container: ApiContainer, connections: ConnectionCounts | None = None) -> FastAPI:
    """The server on this container, and on its loop; whoever accepts connections says how many there are."""
    app = FastAPI(
        title="Ostinato",
        version=version("ostinato"),
        description=_ABOUT,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        telemetry=_TELEMETRY,
    )
    _hold(app, container, connections, _ROUTERS)
    app.state.live_sockets = Counter[str]()
    app.state.ping_limits = pings.PingLimits()
    for router in _ROUTERS:
        app.include_router(router, dependencies=[Depends(only_known)])
    app.router.default = Page()
    # The last that is added is the first that a request meets.
    app.add_middleware(TraceMiddleware)
    app.add_middleware(IdempotencyStore, container=container)
    app.add_middleware(BodyLimit)
    app.add_middleware(AuthenticationMiddleware, authenticator=app.state.authenticator)
    _guard(app, container)

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = describe(app, api_routes())
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI says it is to be replaced
    app.add_route("/api/openapi.json", _described, include_in_schema=False)
    return app


def create_metrics_app(container: ApiContainer, connections: ConnectionCounts | None = None) -> FastAPI:
    """Health and metrics alone, for a worker."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False, telemetry=_TELEMETRY)
    routers = (health.router, metrics.router)
    _hold(app, container, connections, routers)
    for router in routers:
        app.include_router(router)
    app.add_middleware(BodyLimit)
    _guard(app, container)
    return app


def _hold(
    app: FastAPI, container: ApiContainer, connections: ConnectionCounts | None, routers: Iterable[APIRouter]
) -> None:
    """What every route, and the answer to a wrong method, asks its app for."""
    app.state.routes = tuple(api_routes(routers))
    app.state.container = container
    app.state.connections = connections
    app.state.authenticator = Authenticator(container)


def _guard(app: FastAPI, container: ApiContainer) -> None:
    """What stands before everything that is served."""
    add_problem_handlers(app)
    app.add_middleware(Compression)
    app.add_middleware(Unexpected)
    app.add_middleware(SecurityMiddleware, container=container)
    app.add_middleware(Denials, container=container)
    app.add_middleware(ProxyMiddleware, container=container)


async def _described(request: Request) -> Response:
    """The OpenAPI document. To make it takes a while: not on the loop, which others wait for."""
    return json_answer(await anyio.to_thread.run_sync(request.app.openapi))


class Compression:
    """Gzip for answers of a kilobyte and more; not for a part of a text, which is asked for by its bytes."""

    def __init__(self, app: ASGIApp) -> None:
        self._plain = app
        # The engine waits for the same interpreter: what compresses fast serves.
        self._small = GZipMiddleware(app, minimum_size=1_000, compresslevel=2, thread_minimum_size=32_768)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wants_part = any(name == b"range" for name, _ in scope.get("headers", ()))
        await (self._plain if wants_part else self._small)(scope, receive, send)
