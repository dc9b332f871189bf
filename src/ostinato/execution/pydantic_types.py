"""Pydantic's part of `conversion.py`: its models and types, and annotations that only it understands.

Pydantic is imported when the first of its types is met, so it need not be installed.
"""

from __future__ import annotations

import functools
import importlib.util
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

__all__ = ["decoder_of", "dump", "has_constraints", "is_of_pydantic", "names_pydantic", "validate"]

_SCHEMA = "__get_pydantic_core_schema__"
_UNIONS = (typing.Union, types.UnionType)


def is_of_pydantic(kind: Any) -> bool:
    """Whether it is a type of pydantic, or one that was written for it."""
    return hasattr(kind, _SCHEMA)


def names_pydantic(kind: Any) -> bool:
    """Whether an annotation names one somewhere."""
    return any(map(is_of_pydantic, _parts(kind)))


def has_constraints(kind: Any) -> bool:
    """Whether an annotation says what only pydantic knows: `Annotated[int, pydantic.Field(ge=0)]`, or EmailStr, whose
    values are no EmailStr, but text."""
    parts = list(_parts(kind))
    said = [one for part in parts for one in getattr(part, "__metadata__", ())]
    is_said = any(map(_is_constraint, said)) or any(map(_is_type_alone, parts))
    return is_said and importlib.util.find_spec("pydantic") is not None


def _is_type_alone(kind: Any) -> bool:
    """Whether it is a type of pydantic that is neither a model nor a dataclass."""
    return isinstance(kind, type) and is_of_pydantic(kind) and not hasattr(kind, "__pydantic_validator__")


def _is_constraint(metadata: Any) -> bool:
    return hasattr(metadata, _SCHEMA) or type(metadata).__module__.split(".")[0] in ("pydantic", "annotated_types")


def _parts(kind: Any, seen: tuple[Any, ...] = ()) -> Iterator[Any]:
    """An annotation and all that it is made of; an alias may be made of itself."""
    yield kind
    if typing.get_origin(kind) is typing.Literal or any(kind is each for each in seen):
        return
    of_another_name = [getattr(kind, name) for name in ("__supertype__", "__value__") if hasattr(kind, name)]
    for part in [*typing.get_args(kind), *of_another_name]:
        yield from _parts(part, (*seen, kind))


def dump(value: Any) -> Any:
    """A value of a type of pydantic as JSON."""
    kind: Any = type(value)
    return _adapter(kind).dump_python(value, mode="json", by_alias=True, round_trip=True)


def validate(kind: Any, value: Any) -> Any:
    """JSON as a value of a type of pydantic; ValueError says what is wrong."""
    return _validated(_adapter(kind), value)


def decoder_of(kind: Any, convert: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """Reads a whole annotation; pydantic's error if it cannot. What is msgspec's or attrs' inside is for `convert`."""
    return functools.partial(_validated, _strict_adapter(_with_others(kind, convert)))


def _validated(adapter: Any, value: Any) -> Any:
    from pydantic import ValidationError

    try:
        return adapter.validate_json(msgspec.json.encode(value))
    except ValidationError as error:
        found = [(".".join(map(str, each["loc"])), each["msg"]) for each in error.errors()]
        raise ValueError("; ".join(f"{where}: {what}" if where else what for where, what in found)) from None


@functools.lru_cache(maxsize=1024)
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _strict_adapter(kind: Any) -> Any:
    """As msgspec reads it: no number of text, and bytes of base64. A model follows its own configuration."""
    from pydantic import ConfigDict, PydanticUserError, TypeAdapter

    try:
        return TypeAdapter(kind, config=ConfigDict(strict=True, val_json_bytes="base64"))
    except PydanticUserError as error:
        if error.code != "type-adapter-config-unused":
            raise
        return TypeAdapter(kind)


def _with_others(kind: Any, convert: Callable[[Any, Any], Any]) -> Any:
    """The annotation with classes that pydantic does not know made known to it."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if _is_foreign(origin or kind):
        from pydantic import PlainValidator

        return typing.Annotated[kind, PlainValidator(functools.partial(convert, kind))]
    if origin is typing.Annotated:
        return typing.Annotated[(_with_others(inner[0], convert), *kind.__metadata__)]
    if origin is None or origin is typing.Literal or not inner:
        return kind
    parts = tuple(_with_others(each, convert) for each in inner)
    return typing.Union[parts] if origin in _UNIONS else origin[parts]  # noqa: UP007


def _is_foreign(kind: Any) -> bool:
    return isinstance(kind, type) and (issubclass(kind, msgspec.Struct) or hasattr(kind, "__attrs_attrs__"))
