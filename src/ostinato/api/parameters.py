"""Query parameters: one that its route does not know is refused, so that nothing is given and ignored."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import HTTPConnection

__all__ = ["only_known"]

_REFUSED = "there is no such parameter"


async def only_known(connection: HTTPConnection) -> None:
    """A dependency of every route under /api. The live stream has none to know, and looks after itself."""
    route = connection.scope.get("route")
    if not connection.query_params or not isinstance(route, APIRoute) or not route.path.startswith("/api/"):
        return
    known = set(_names(route.dependant))
    unknown = [name for name in connection.query_params if name not in known]
    if unknown:
        errors = [{"type": "unknown_parameter", "loc": ("query", name), "msg": _REFUSED} for name in unknown]
        raise RequestValidationError(errors)


def _names(dependant: Dependant) -> Iterator[str]:
    for field in dependant.query_params:
        shape = field.field_info.annotation
        if isinstance(shape, type) and issubclass(shape, BaseModel):
            yield from (inner.alias or name for name, inner in shape.model_fields.items())
        else:
            yield field.alias
    for inner in dependant.dependencies:
        yield from _names(inner)
