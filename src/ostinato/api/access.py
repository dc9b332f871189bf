"""Who asks, and whether they may: everything under /api needs a token or a login, and each route names its role.

The authenticator stands behind `security.py` and before the routes; what they do is done by whom it let in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, TypeAlias

from fastapi import Depends
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from ostinato.api.container import ApiContainer
from ostinato.api.host_login import HostLogin, host_login_of
from ostinato.api.login_throttle import LoginThrottle
from ostinato.api.redaction import shown_to
from ostinato.errors import NotLoggedIn
from ostinato.models.access import Actor, Login, Role
from ostinato.service.access import TOKEN_PREFIX
from ostinato.service.audit import acting
from ostinato.service.permissions import require_role
from ostinato.service.services import Services

__all__ = [
    "ORIGIN_KEY",
    "PRINCIPAL",
    "Admin",
    "AuthenticationMiddleware",
    "Authenticator",
    "Container",
    "Operator",
    "Principal",
    "Served",
    "Viewer",
    "authenticator_of",
    "cookie_of",
    "needed_role",
    "needs",
    "principal_of",
    "require",
    "token_of",
]

ORIGIN_KEY = "x-origin-key"
"""The header of the second secret, which the page sends with every request. No other page can: it is kept for the
origin of this one, and to send it makes the browser ask first (CORS)."""
OPEN_PATHS = frozenset({("POST", "/api/login"), ("GET", "/api/openapi.json")})

PRINCIPAL = "ostinato.principal"
"""Where a request carries who it is of, once that is known."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who was let in."""

    login: Login
    door: str
    """`api` with a token, `page` with a cookie."""
    address: str | None
    secret: str | None = None
    """Of the cookie."""
    origin_key: str | None = None
    """Only of a login that was just made: it is told once."""

    @property
    def actor(self) -> Actor:
        return Actor(self.login.who, self.door, self.address)


Identify: TypeAlias = Callable[[], Awaitable[Principal]]
"""How to ask who it is, now and later."""


class Authenticator:
    """Knows tokens and cookies, and counts wrong ones."""

    def __init__(self, container: ApiContainer) -> None:
        self._container = container
        self._attempts = LoginThrottle()

    async def identify(self, connection: HTTPConnection) -> Principal:
        """Who asks; NotLoggedIn if nobody known does. With a token no cookie is looked at."""
        by_header = self.by_header(connection)
        if by_header is not None:
            return await by_header()
        return await self.by_page(connection, connection.headers.get(ORIGIN_KEY, ""))

    def by_header(self, connection: HTTPConnection) -> Identify | None:
        """How to ask whose token is in the header; None if there is none. The host may have tokens of its own."""
        token, host = token_of(connection), host_login_of(connection.scope)
        if token is None:
            return None
        if host is not None and not token.startswith(TOKEN_PREFIX):
            return partial(self._by_host, connection, host, "api")
        return partial(self.by_token, token, address_of(connection))

    async def by_page(self, connection: HTTPConnection, origin_key: str) -> Principal:
        """Whose page this is: by a login that was made here, or in the app that this is mounted in."""
        host = host_login_of(connection.scope)
        if host is None:
            return await self._by_cookie(connection, origin_key)
        if not origin_key:
            raise NotLoggedIn(
                "the cookie of the site alone is not enough, since browsers send it with requests of other pages too: "
                "send the header X-Origin-Key with any value (or an origin_key as the first message of a WebSocket), "
                "or use a token instead"
            )
        return await self._by_host(connection, host, "page")

    async def _by_host(self, connection: HTTPConnection, host: HostLogin, door: str) -> Principal:
        """Who this is by the word of the app that this is mounted in."""
        found = await host.identity()
        if found is None:
            raise NotLoggedIn("you are not logged in: log in to the site that this is a part of, or use a token")
        return Principal(Login(found.name, Role(found.role), None, None, None), door, address_of(connection))

    async def _by_cookie(self, connection: HTTPConnection, origin_key: str) -> Principal:
        """By a login that was made here. The cookie comes from every port of the host: it is not enough."""
        secret = connection.cookies.get(cookie_of(connection), "")
        login = await self._container.services.access.who(secret, origin_key)
        if login is None and secret and not origin_key:
            raise NotLoggedIn(
                "the cookie alone is not enough, since browsers send it to every port of the host: send the origin_key "
                "from the answer to the login as the header X-Origin-Key (or as the first message of a "
                "WebSocket), or use a token instead"
            )
        if login is None:
            raise NotLoggedIn("you are not logged in: 'ostinato login' prints a link, 'ostinato token add' a token")
        return Principal(login, "page", address_of(connection), secret)

    async def by_token(self, text: str, address: str | None) -> Principal:
        """Who this token is. One that holds is never refused, however many wrong ones came from there."""
        login = await self._container.services.access.who_by_token(text)
        if login is None:
            self._check(address)
            self._failed(address)
            raise NotLoggedIn("the token is unknown or has expired; make one with 'ostinato token add'")
        return Principal(login, "api", address)

    async def log_in(self, code: str | None, token: str | None, address: str | None) -> Principal:
        """Exchange a code or a token for a login. One that holds is never refused either."""
        try:
            new, login = await self._container.services.access.login(code=code, token=token, address=address)
        except NotLoggedIn:
            self._check(address)
            self._failed(address)
            raise
        return Principal(login, "page", address, new.cookie, new.origin_key)

    def _check(self, address: str | None) -> None:
        self._attempts.check(address, self._container.clock.steady())

    def _failed(self, address: str | None) -> None:
        self._attempts.failed(address, self._container.clock.steady())


class AuthenticationMiddleware:
    """Everything under /api waits here until the authenticator knows who it is."""

    def __init__(self, app: ASGIApp, authenticator: Authenticator) -> None:
        self._app = app
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _is_closed(scope["method"], scope["path"]):
            await self._app(scope, receive, send)
            return
        principal = await self._authenticator.identify(HTTPConnection(scope))
        scope[PRINCIPAL] = principal
        with acting(principal.actor), shown_to(principal.login):
            await self._app(scope, receive, send)


def _is_closed(method: str, path: str) -> bool:
    return (path == "/api" or path.startswith("/api/")) and (method, path) not in OPEN_PATHS


def address_of(connection: HTTPConnection) -> str | None:
    """The address at the other end of the socket; what a header says about it is not believed."""
    return None if connection.client is None else connection.client.host


def cookie_of(connection: HTTPConnection) -> str:
    """The name of the cookie, with the port of the server: browsers send it to every port of the host, and a login at
    one must not end that at another."""
    server = connection.scope.get("server")
    return "ostinato" if server is None or server[1] is None else f"ostinato-{server[1]}"


def token_of(connection: HTTPConnection) -> str | None:
    """The token of the header; None if it has none. What a proxy asks for itself (Basic) is not for us."""
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def authenticator_of(connection: HTTPConnection) -> Authenticator:
    """For the live stream, which lets in by itself."""
    found = connection.app.state.authenticator
    assert isinstance(found, Authenticator)
    return found


def principal_of(connection: HTTPConnection) -> Principal:
    """Who was let in with this request."""
    found = connection.scope.get(PRINCIPAL)
    if not isinstance(found, Principal):
        raise NotLoggedIn("you are not logged in")
    return found


def require(login: Login, role: Role, deed: str = "this") -> None:
    """NotAllowed, unless this role or a higher one is there."""
    require_role(login.who, login.role, role, deed)


@lru_cache
def needs(role: Role) -> Callable[[Request], Awaitable[Login]]:
    """A dependency that lets only this role and higher ones on, and answers who it is."""

    async def allowed(request: Request) -> Login:
        login = principal_of(request).login
        require(login, role)
        return login

    allowed.needed_role = role  # type: ignore[attr-defined]  # read by needed_role
    return allowed


def needed_role(route: APIRoute) -> Role | None:
    """The role that a route asks for; None if it asks for none."""
    roles = list(_roles(route.dependant))
    return max(roles, key=list(Role).index) if roles else None


def _roles(dependant: Dependant) -> Iterator[Role]:
    role = getattr(dependant.call, "needed_role", None)
    if role is not None:
        yield role
    for inner in dependant.dependencies:
        yield from _roles(inner)


async def _container(request: Request) -> ApiContainer:
    container: ApiContainer = request.app.state.container
    return container


async def _services(request: Request) -> Services:
    container: ApiContainer = request.app.state.container
    return container.services


Viewer = Annotated[Login, Depends(needs(Role.VIEWER))]
Operator = Annotated[Login, Depends(needs(Role.OPERATOR))]
Admin = Annotated[Login, Depends(needs(Role.ADMIN))]
Container = Annotated[ApiContainer, Depends(_container)]
Served = Annotated[Services, Depends(_services)]
"""The services, for a route."""
