"""The page, the API and the live stream in an ASGI project, behind the login of its staff."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import lru_cache
from importlib import import_module
from typing import Any, TypeAlias

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user
from django.core.exceptions import DisallowedHost, ImproperlyConfigured
from django.http import HttpRequest
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch, get_script_prefix, reverse, set_script_prefix
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection

from ostinato import Identity
from ostinato.api.host_login import Who
from ostinato.api.mount import MountedApp
from ostinato.api.security import CHECKED_HOST
from ostinato.integrations.django.connections import around_call
from ostinato.integrations.django.page_url import mounted_at
from ostinato.integrations.django.roles import role_of

__all__ = ["login_url", "mount", "staff"]

AsgiApp: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]


def mount(application: AsgiApp, path: str = "/jobs", who: Who | None = None) -> AsgiApp:
    """The project with the page, REST and the stream below this path; all else is the project's.

    `who(request)` says who somebody is; without it, `staff` does.
    """
    place = "/" + path.strip("/")
    if place == "/":
        raise ImproperlyConfigured("the page cannot be mounted at '/', which is the project's: give a path, '/jobs'")
    if who is None and apps.ready and not apps.is_installed("django.contrib.auth"):
        raise ImproperlyConfigured(
            "the page is behind the login of staff, and 'django.contrib.auth' is not in INSTALLED_APPS: add it, or say "
            "who somebody is with mount(…, who=…)"
        )
    mounted_at(place)
    return _Mount(application, place, who or _staff_on_thread)


class _Mount:
    """Sends what is below the path to the page."""

    def __init__(self, application: AsgiApp, place: str, who: Who) -> None:
        self._application = application
        self._place = place
        self._who = who
        self._page_below = lru_cache(maxsize=8)(self._mounted)
        """By the prefix of the site, which its proxy says: the login is below it."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path, root = str(scope.get("path", "")), str(scope.get("root_path") or "").rstrip("/")
        asked = path.removeprefix(root) if root else path
        if scope["type"] in ("http", "websocket") and (asked == self._place or asked.startswith(f"{self._place}/")):
            below = {**_with_checked_host(scope), "root_path": root + self._place}
            await self._page_below(root)(below, receive, send)
        else:
            await self._application(scope, receive, send)

    def _mounted(self, root: str) -> MountedApp:
        # Not before a request: then the URLs of the project can be asked for.
        from ostinato.integrations.django import jobs

        return jobs.asgi(self._who, login_url=login_url(root))


def _with_checked_host(scope: Any) -> dict[str, Any]:
    """With the Host that Django would take, by ALLOWED_HOSTS and USE_X_FORWARDED_HOST; as it is, if it takes none."""
    headers, asked = Headers(scope=scope), HttpRequest()
    for name in ("host", "x-forwarded-host"):
        if name in headers:
            asked.META[f"HTTP_{name.upper().replace('-', '_')}"] = ",".join(headers.getlist(name))
    try:
        host = str(asked.get_host())
    except (DisallowedHost, KeyError):  # KeyError: of a request without any
        return dict(scope)
    others = [(name, value) for name, value in scope["headers"] if name != b"host"]
    return {**scope, "headers": [*others, (b"host", host.encode("latin-1"))], CHECKED_HOST: host}


def staff(request: HTTPConnection) -> Identity | None:
    """Who is logged in to Django: superusers are admins, staff with the permission `ostinato.operate` are operators,
    other staff are viewers, and nobody else gets in."""
    asked = HttpRequest()
    store = import_module(settings.SESSION_ENGINE).SessionStore
    asked.session = _ReadSession(store(request.cookies.get(settings.SESSION_COOKIE_NAME)).items())
    user = get_user(asked)
    role = role_of(user)
    return None if role is None else Identity(user.get_username(), role)


class _ReadSession(dict[str, Any]):
    """What a session holds. Django's own would be given another key after a rotation of SECRET_KEY, or be deleted, and
    no answer of the page could tell the browser: that is for the next request of the site."""

    def cycle_key(self) -> None:
        """Not here."""

    def flush(self) -> None:
        """Not here."""


def _staff_on_thread(request: HTTPConnection) -> Identity | None:
    """Where the page asks for it, which is no thread of a request."""
    with around_call():
        return staff(request)


def login_url(root: str) -> str:
    """Where staff log in, on a site below this prefix; `{next}` is where they come from."""
    before = get_script_prefix()
    if root and not settings.FORCE_SCRIPT_NAME:
        set_script_prefix(f"{root}/")
    try:
        url = str(reverse("admin:login"))
    except NoReverseMatch:
        url = str(resolve_url(settings.LOGIN_URL))
    finally:
        set_script_prefix(before)
    return f"{url}{'&' if '?' in url else '?'}next={{next}}"
