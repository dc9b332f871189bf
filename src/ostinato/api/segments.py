"""Names in paths: a name may hold slashes and anything else that can be printed, percent-encoded as one segment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints
from urllib.parse import quote, unquote

from fastapi import APIRouter, Path
from fastapi.routing import APIRoute
from pydantic import AfterValidator
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from ostinato.api.answers import json_answer
from ostinato.api.shapes.base import GREATEST
from ostinato.errors import NotFound
from ostinato.models.nesting import MOST_DEPTH, is_deeper, too_deep

__all__ = ["Name", "Number", "SegmentRoute", "path_of", "routes_of"]

_AROUND = 10
"""What a body has around the JSON that may be so deep."""


class SegmentRoute(APIRoute):
    """Answers what its function returns, as JSON, and None with nothing; OpenAPI describes it by the type.

    A function that makes the response itself says what is in it: `Annotated[Response, Type]`. The path is matched as
    it was sent, so that `a%2Fb` is one name; `Name` decodes it. A body that is nested too deep is refused before
    anybody reads it: whatever repeats a value would fail at it.
    """

    def __init__(
        self, path: str, endpoint: Callable[..., Any], *, status_code: int | None = None, **options: Any
    ) -> None:
        self.answer = _answer_of(get_type_hints(endpoint, include_extras=True)["return"])
        options["response_model"] = None
        status = 200 if status_code in (None, 204) else status_code
        super().__init__(path, _answering(endpoint, status), status_code=status_code, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()
        if self.body_field is None:
            return answer

        async def answer_shallow(request: Request) -> Response:
            if is_deeper(await request.body(), MOST_DEPTH + _AROUND):
                raise too_deep("the body is", "body")
            return await answer(request)

        return answer_shallow

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        raw = scope.get("raw_path")
        if not isinstance(raw, bytes) or b"%" not in raw:
            return super().matches(scope)
        sent: dict[str, Any] = {**scope, "path": raw.partition(b"?")[0].decode("latin-1")}
        return super().matches(sent)


def _answer_of(hint: Any) -> Any:
    """What a function that returns this answers; None if that is no JSON."""
    if get_origin(hint) is Annotated:
        return hint.__metadata__[0]
    if isinstance(hint, UnionType):
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    return None if hint in (NoneType, Response) else hint


def _answering(endpoint: Callable[..., Awaitable[Any]], status: int) -> Callable[..., Awaitable[Response]]:
    @wraps(endpoint)
    async def answering(*arguments: Any, **named: Any) -> Response:
        found = await endpoint(*arguments, **named)
        if isinstance(found, Response):
            return found
        return Response(status_code=204) if found is None else json_answer(found, status)

    return answering


def _decoded(segment: str) -> str:
    name = unquote(segment)
    if not name.isprintable():
        raise NotFound(f"nothing is called {name!r}")
    return name


Name = Annotated[str, Path(description="Percent-encoded; it may hold slashes."), AfterValidator(_decoded)]
Number = Annotated[int, Path(ge=1, le=GREATEST)]


def path_of(*segments: str | int) -> str:
    """The path of something under /api, for Location."""
    return "/".join(("/api", *(quote(str(segment), safe="") for segment in segments)))


def routes_of(noun: str) -> APIRouter:
    """An empty router for one noun; in OpenAPI its routes are called as their functions are."""
    return APIRouter(tags=[noun], route_class=SegmentRoute, generate_unique_id_function=lambda route: route.name)
