"""Query parameters: a route takes those that it knows, and refuses every other one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.routing import APIRoute

from ostinato.api.app import api_routes
from tests.doors.web import Web, web_on


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with web_on() as web:
        yield web


ROUTES = [
    (method, route) for route in api_routes() for method in sorted(route.methods or ()) if route.path.startswith("/api")
]


@pytest.mark.parametrize(("method", "route"), ROUTES, ids=[f"{method} {route.path}" for method, route in ROUTES])
def test_a_parameter_that_the_route_does_not_know_is_refused(web: Web, method: str, route: APIRoute) -> None:
    path = route.path
    for place in ("{id}", "{ref}", "{name}", "{key}"):
        path = path.replace(place, "999")
    answer = web.script("admin", f"{method} {route.path}").send(method, f"{path}?unheard=1&more=2")
    assert answer.status_code == 422
    if method != "HEAD":
        assert {error["field"] for error in answer.json()["errors"]} == {"unheard", "more"}


def test_a_probe_may_send_what_it_likes(web: Web) -> None:
    assert web.anybody().get("/healthz?verbose=1").status_code == 200
