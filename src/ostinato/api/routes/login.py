"""/api/login, /api/logout, /api/me: how the page gets in, and who it is. /api/logins: every browser that is in."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response

from ostinato.api.access import (
    Admin,
    Container,
    Principal,
    Served,
    Viewer,
    address_of,
    authenticator_of,
    cookie_of,
    principal_of,
)
from ostinato.api.answers import json_answer
from ostinato.api.host_login import host_login_of
from ostinato.api.prefix import prefix_of
from ostinato.api.segments import Number, routes_of
from ostinato.api.shapes.access import NewLogin
from ostinato.config import db_argument
from ostinato.errors import NotAllowed
from ostinato.models.access import Browser, Role
from ostinato.service.answers import Listed, MadeLogin, Me

__all__ = ["router"]

router = routes_of("login")


@router.post("/api/login")
async def log_in(body: NewLogin, request: Request, container: Container) -> Annotated[Response, MadeLogin]:
    """Log in with a one-time code or a token. The answer sets the cookie and has the origin key: every request needs
    both."""
    _refuse_at_host(request)
    principal = await authenticator_of(request).log_in(body.code, body.token, address_of(request))
    answer = json_answer(MadeLogin.of(_me(principal, container), origin_key=principal.origin_key))
    answer.set_cookie(
        cookie_of(request),
        principal.secret or "",
        max_age=int(container.settings.login_lifetime.total_seconds()),
        path=prefix_of(request) or "/",
        secure=_is_https(request),
        httponly=True,
        samesite="strict",
    )
    return answer


@router.post("/api/logout", status_code=204)
async def log_out(request: Request, services: Served, _: Viewer) -> Response:
    """End the page's login. A token is not a login: it stays."""
    _refuse_at_host(request)
    principal = principal_of(request)
    if principal.secret is not None:
        await services.access.logout(principal.secret)
    answer = Response(status_code=204)
    path = prefix_of(request) or "/"
    answer.delete_cookie(cookie_of(request), path=path, secure=_is_https(request), httponly=True, samesite="strict")
    return answer


@router.get("/api/me")
async def me(request: Request, container: Container, _: Viewer) -> Me:
    """Your name and role, and what the page needs to know first."""
    return _me(principal_of(request), container)


@router.get("/api/logins")
async def list_logins(request: Request, services: Served, container: Container, _: Admin) -> Listed[Browser]:
    """Every browser that is logged in."""
    return Listed([*await services.access.logins(principal_of(request).secret)], container.settings.tz)


@router.delete("/api/logins/{id}", status_code=204)
async def end_login(id: Number, services: Served, _: Admin) -> None:
    """Log a browser out."""
    await services.access.end_login(id)


def _me(principal: Principal, container: Container) -> Me:
    login, settings = principal.login, container.settings
    db = db_argument(settings.db) if login.role.covers(Role.OPERATOR) else None
    return Me(login.who, login.role, version("ostinato"), settings.tz, db)


def _refuse_at_host(request: Request) -> None:
    """Where the app that this is mounted in logs people in, there are no logins of ours."""
    if host_login_of(request.scope) is not None:
        raise NotAllowed("people log in to the site that this is a part of, and out of it, not here")


def _is_https(request: Request) -> bool:
    """Behind a proxy that ends TLS, the page's own origin says so."""
    return request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")
