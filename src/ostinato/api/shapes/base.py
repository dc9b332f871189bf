"""What the shapes of requests share: text and times as REST takes them."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from ostinato.api.fields import at
from ostinato.service.pages import Page
from ostinato.timing.zones import check_zone

__all__ = [
    "GREATEST",
    "MOST_ITEMS",
    "Cursor",
    "Moment",
    "PagedQuery",
    "ProjectFilter",
    "QueryParameters",
    "RequestBody",
    "Text",
    "Zone",
]

P = TypeVar("P", bound=Page[Any])

GREATEST = 2**53
"""The greatest number that every reader of JSON holds exactly; ids stay below it."""
MOST_UNKNOWN = 20
"""Fields that nobody knows, each of which is told."""
MOST_PARTS = 1_000
"""Entries of a list or an object whose parts are checked one by one."""


class RequestBody(BaseModel):
    """Something that the server is told: nothing that it does not know, nothing of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, populate_by_name=False)

    @model_validator(mode="before")
    @classmethod
    def _is_of_a_size(cls, given: Any) -> Any:
        """Before each part is looked at: pydantic makes an error of every one that is wrong, however many there are."""
        if not isinstance(given, dict):
            return given
        if len(given) > len(cls.model_fields) + MOST_UNKNOWN:
            known = {"given": len(given), "known": len(cls.model_fields)}
            raise PydanticCustomError("too_many_fields", "it has {given} fields, but only {known} are known", known)
        for name, value in given.items():
            if isinstance(value, list | dict) and len(value) > MOST_PARTS and name not in _free_fields(cls):
                found = {"field": name[:100], "given": len(value), "most": MOST_PARTS}
                raise PydanticCustomError(
                    "too_many_parts", "{field} has {given} entries, but may have at most {most}", found
                )
        return given


@cache
def _free_fields(shape: type[BaseModel]) -> frozenset[str]:
    """Those that take any JSON, of which nothing is checked part by part."""
    return frozenset(field.alias or name for name, field in shape.model_fields.items() if _is_free(field.annotation))


def _is_free(annotation: Any) -> bool:
    return annotation is Any or any(_is_free(part) for part in get_args(annotation))


class QueryParameters(RequestBody):
    """What is asked for in a query string, where everything is text."""

    model_config = ConfigDict(strict=False)


MOST_ITEMS = 10_000
"""So many can be reached without a cursor: a page by its number is counted off from the beginning of the list."""


def _storable(text: str) -> str:
    if "\0" in text:
        raise PydanticCustomError("text", "text cannot hold the character NUL")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise PydanticCustomError("text", "text cannot hold half of a surrogate pair")
    return text


Text = Annotated[str, AfterValidator(_storable)]
"""Text that every database takes."""


def _zone(name: str) -> str:
    with at("zone"):
        return check_zone(name)


Zone = Annotated[Text, AfterValidator(_zone)]
"""The name of a zone that there is, as IANA spells it."""

Cursor = Annotated[Text | None, Field(description="`next` of the previous page.", max_length=4_000)]
"""Where a page begins; it holds a name twice at the most."""

ProjectFilter = Annotated[Text | None, Field(description="Its name; none finds what is in no project.")]
"""Of which project a list is."""


def _without_cursor(value: Any, info: ValidationInfo) -> Any:
    """One way to say where a page begins is enough."""
    if value and (info.data.get("cursor") is not None or info.data.get("all")):
        raise PydanticCustomError("two_places", "give one of cursor, page and all")
    return value


def _one_size(size: int | None, info: ValidationInfo) -> int | None:
    """One way to say how long a page is, and none where all is asked for: what is ignored would mislead."""
    if size is not None and (info.data.get("all") or info.data.get("page_size") is not None):
        raise PydanticCustomError("two_sizes", "give one of limit, page_size and all")
    return size


def _within_reach(page: int | None, info: ValidationInfo) -> int | None:
    size = info.data.get("page_size") or info.data.get("limit") or 0
    if page is not None and page * size > MOST_ITEMS:
        far = {"most": f"{MOST_ITEMS:,}"}
        raise PydanticCustomError("too_far", "page times page_size may be {most} at most; go on with cursor", far)
    return page


class PagedQuery(QueryParameters):
    """Which part of a list is wanted: behind a cursor, a page by its number, or all of it."""

    cursor: Cursor = None
    # In this order: each of these looks at those before it, and what is not given is not looked at.
    all: Annotated[
        bool,
        AfterValidator(_without_cursor),
        Field(description=f"All in one answer, {MOST_ITEMS:,} at most; `next` goes on behind those."),
    ] = False
    page_size: Annotated[
        Annotated[int, Field(ge=1, le=500)] | None,
        AfterValidator(_one_size),
        Field(description="The same as limit."),
    ] = None
    limit: Annotated[int, AfterValidator(_one_size), Field(ge=1, le=500, description="At most this many.")] = 50
    page: Annotated[
        Annotated[int, Field(ge=1, le=MOST_ITEMS)] | None,
        AfterValidator(_without_cursor),
        AfterValidator(_within_reach),
        Field(description=f"Its number, from 1, instead of a cursor; it reaches the first {MOST_ITEMS:,} items."),
    ] = None

    @property
    def skipped(self) -> int:
        """How many items come before the page."""
        return 0 if self.page is None else (self.page - 1) * (self.page_size or self.limit)

    @property
    def reach(self) -> int:
        """How many items are counted off, with those of the page."""
        return MOST_ITEMS if self.all else self.skipped + (self.page_size or self.limit)

    def of(self, found: P) -> P:
        """The page itself, of what was found up to its end."""
        return replace(found, items=found.items[self.skipped :]) if self.skipped else found


_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)")


def _moment(value: Any) -> Any:
    """The instant of an RFC 3339 text, in UTC."""
    if isinstance(value, str) and _RFC3339.fullmatch(value.upper()):
        try:
            return datetime.fromisoformat(value.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise PydanticCustomError("moment", "a time is RFC 3339 with its zone, such as 2026-03-01T09:00:00Z")


Moment = Annotated[datetime, BeforeValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})]
"""A time that somebody gives."""
