"""What the shapes of requests share: text and times as REST takes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from ostinato.api.fields import at
from ostinato.timing.zones import check_zone

__all__ = ["GREATEST", "Cursor", "Moment", "QueryParameters", "RequestBody", "Text", "Zone"]

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
