"""How routes answer: JSON by msgspec, for whoever asks; and how they say in OpenAPI what can go wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
from starlette.responses import Response

from ostinato.api.problems import PROBLEM_JSON
from ostinato.api.redaction import shown

__all__ = ["Zoned", "json_answer", "problems"]

T = TypeVar("T")
_MEANINGS = {
    401: "Not logged in",
    403: "Not allowed: the role is too low, or the request comes from another page",
    404: "Not found",
    409: "Its state does not allow this",
    412: "It was changed in the meantime, or it already exists",
    413: "The body is too large",
    416: "The range cannot be satisfied",
    421: "The Host of the request is not one of this server's names",
    422: "A given value is not valid",
    429: "Too many wrong tokens or codes",
    503: "The database cannot be reached, or this node is shutting down",
}


@dataclass(frozen=True, slots=True)
class Zoned(Generic[T]):
    """An answer, and beside its times the zone of whoever they belong to: in JSON, one more field."""

    answer: T
    zone: str


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value as JSON. Nothing leaves that whoever asks may not see: this is the one place where it is encoded."""
    if isinstance(value, Zoned):
        value = {**msgspec.to_builtins(shown(value.answer)), "zone": value.zone}
    return Response(msgspec.json.encode(shown(value)), status, headers, "application/json")


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For `responses=` of a route: the problems that it may answer beside those of every route."""
    content = {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": _MEANINGS[status], "content": content} for status in statuses}
