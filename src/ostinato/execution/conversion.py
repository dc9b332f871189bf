"""One value and its annotation: to JSON, and back to what was sent. What would arrive as something else is refused.

msgspec converts; what it does not know is converted here (paths), or by pydantic (its models and types).
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from pathlib import PurePath
from typing import Any

import msgspec
import msgspec.inspect

from ostinato.logs import one_line
from ostinato.models.work import check_finite
from ostinato.plurals import a_or_an

__all__ = ["Annotation", "annotation_of", "encode_json", "unannotated"]

_SCALARS = frozenset({str, int, bool, type(None)})
_JSON_TYPES = frozenset({*_SCALARS, float, list, dict, None, Any, object})
_UNIONS = (typing.Union, types.UnionType)
_ARRAYS = (list, Sequence, Iterable)
_OBJECTS = (dict, Mapping)
_OF_PYDANTIC = "__get_pydantic_core_schema__"


class _WouldChange(ValueError):
    """A value that would not arrive as it was sent; says why."""


class _NotFinite(ValueError):
    """NaN or an infinity."""


class Annotation:
    """What a parameter is annotated with, and how its values are converted."""

    __slots__ = ("_is_json", "_kind", "_taken_as_it_is", "_why_none", "decode", "sent_as_it_is", "text")

    def __init__(self, kind: Any, why_none: str | None = None, decode: Callable[[Any], Any] | None = None) -> None:
        self._kind = kind
        self.decode = decode or functools.partial(msgspec.convert, type=kind, str_keys=True, dec_hook=_decode_other)
        """The value of JSON; an error of any kind if it does not fit."""
        self._why_none = why_none
        """Why there is no annotation to convert by; None if there is one."""
        self._is_json = _is_json(kind)
        self.text = kind.__name__ if isinstance(kind, type) else str(kind).removeprefix("typing.")
        members = _members(kind)
        self.sent_as_it_is = _SCALARS if kind is Any else members & _SCALARS
        """Values of exactly these types are stored as they are."""
        self._taken_as_it_is = None if kind is Any else members & {*_SCALARS, float}
        """Stored values of these types are what the function takes; None for all."""

    def takes_more_than(self, value: Any) -> bool:
        """Whether a stored value is to be converted, or looked at."""
        return self._taken_as_it_is is not None and type(value) not in self._taken_as_it_is

    def encode(self, value: Any) -> Any:
        """A value as JSON that is read back as the same; an error of any kind if there is none."""
        if self._is_json:
            _check_json(value)
            if self._kind is not Any:
                self.decode(value)
            return value
        stored = msgspec.json.decode(encode_json(value))
        _check_arrives(value, self.decode(stored))
        return stored

    def refusal(self, name: str, error: Exception) -> tuple[str, str]:
        """Why a value was refused, as the end of a sentence that begins with its name; and what to do about it."""
        if isinstance(error, _NotFinite):
            return str(error), ""
        if not isinstance(error, _WouldChange):
            return f"does not fit {self.text}: {error if isinstance(error, ValueError) else one_line(error)}", ""
        if self._why_none is None:
            return str(error), ""
        return f"{error}, and {self._why_none}", f"annotate {name} with its type, or pass plain JSON"


def unannotated(why: str = "its parameter has no annotation") -> Annotation:
    """For values of plain JSON alone."""
    return Annotation(Any, why)


@functools.lru_cache(maxsize=1024)
def _annotation_of(kind: Any) -> Annotation:
    try:
        unknown = _unknown_type(msgspec.inspect.type_info(kind))
    except Exception as error:  # TypeError for what msgspec cannot do; and the hints of a class may raise anything
        if any(hasattr(each, _OF_PYDANTIC) for each in typing.get_args(kind)):  # several models in a union, say
            return Annotation(kind, decode=functools.partial(_validated, _adapter(kind)))
        return unannotated(f"its annotation cannot be used ({error})")
    if unknown is not None:
        return unannotated(f"values of its annotation, {unknown}, cannot be made of JSON")
    return Annotation(kind)


def _unknown_type(node: Any) -> str | None:
    """The name of a type in an annotation that nobody here can convert; None if there is none."""
    if isinstance(node, msgspec.inspect.CustomType):
        kind = typing.get_origin(node.cls) or node.cls
        is_known = kind is object or issubclass(kind, PurePath) or hasattr(node.cls, _OF_PYDANTIC)
        return None if is_known else getattr(kind, "__name__", str(kind))
    inner = [getattr(node, name, None) for name in ("item_type", "key_type", "value_type", "type")]
    inner += [*getattr(node, "types", ()), *getattr(node, "item_types", ())]
    found = (_unknown_type(each) for each in inner if isinstance(each, msgspec.inspect.Type))
    return next((name for name in found if name is not None), None)


def annotation_of(kind: Any) -> Annotation:
    """Of a resolved annotation; what cannot be converted at all is as good as none."""
    if kind in (Any, object):
        return unannotated("its annotation leaves its type open")
    try:
        return _annotation_of(kind)
    except TypeError:  # Annotated[int, []], say, which has no hash
        return _annotation_of.__wrapped__(kind)


def encode_json(value: Any) -> bytes:
    """A value as JSON; TypeError or ValueError if it cannot be, NaN and infinity among them."""
    encoded = _encode(value)
    if b"null" in encoded:  # which is what msgspec writes for NaN and infinity: JSON has neither
        check_finite(msgspec.to_builtins(value, enc_hook=_encode_other))
    return encoded


def _members(kind: Any) -> frozenset[Any]:
    """The types of a union, or the one type."""
    is_union = typing.get_origin(kind) in _UNIONS
    return frozenset(each for each in (typing.get_args(kind) if is_union else [kind]) if isinstance(each, type))


def _is_json(kind: Any) -> bool:
    """Whether an annotation has only values that JSON has too."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is None:
        return _is_json_dict(kind) if typing.is_typeddict(kind) else any(kind is each for each in _JSON_TYPES)
    if origin is typing.Literal:
        return all(type(value) in _SCALARS for value in inner)
    if origin is typing.Annotated:
        return _is_json(inner[0])
    if origin in _OBJECTS:
        return inner[0] is str and _is_json(inner[1])
    return origin in (*_UNIONS, typing.Required, typing.NotRequired, *_ARRAYS) and all(map(_is_json, inner))


def _is_json_dict(kind: Any) -> bool:
    try:
        return all(map(_is_json, typing.get_type_hints(kind, include_extras=True).values()))
    except (NameError, RecursionError):
        return False


def _check_json(value: Any, verb: str = "is") -> None:
    """Refuse what would not be the same after a way through JSON. A tuple becomes a list, as everywhere."""
    kind = type(value)
    if kind in _SCALARS:
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _NotFinite(f"{verb} {value}, which is not a number in JSON")
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str) or isinstance(key, Enum):
                raise _WouldChange(f"has the key {key!r}, which is not text, as all keys of JSON are")
            _check_json(item, "has")
    elif isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        for item in value:
            _check_json(item, "has")
    elif not isinstance(value, (str, int)) or isinstance(value, Enum):
        raise _WouldChange(f"{verb} {a_or_an(kind.__name__)}, which is not JSON")


def _check_arrives(sent: Any, arrived: Any, verb: str = "is") -> None:
    """Refuse a value of which a part is of another type after the conversion, unless it was JSON already."""
    kind = type(sent)
    if kind in _SCALARS or kind is float:
        return
    if isinstance(sent, dict) and isinstance(arrived, dict):
        if sent.keys() != arrived.keys():
            if not all(isinstance(key, str) for key in sent):
                raise _WouldChange("has keys that would arrive as others")
            return
        for key, item in sent.items():
            _check_arrives(item, arrived[key], "has")
    elif kind in (list, tuple) and isinstance(arrived, (list, tuple)):
        for one, other in zip(sent, arrived, strict=True):
            _check_arrives(one, other, "has")
    elif kind not in (list, tuple) and not isinstance(sent, dict):
        names = _field_names(kind)
        if type(arrived) is not kind if names else not isinstance(sent, type(arrived)):
            raise _WouldChange(
                f"{verb} {a_or_an(kind.__name__)}, which would arrive as {a_or_an(type(arrived).__name__)}"
            )
        for name in names:
            _check_arrives(getattr(sent, name, None), getattr(arrived, name, None), "has")


def _field_names(kind: type[Any]) -> Sequence[str]:
    """The fields of a class that is made of fields."""
    if dataclasses.is_dataclass(kind):
        return [each.name for each in dataclasses.fields(kind)]
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_fields__
    if hasattr(kind, "__attrs_attrs__"):
        return [each.name for each in kind.__attrs_attrs__]
    return list(getattr(kind, "model_fields", ())) or getattr(kind, "_fields", ())


def _encode_other(value: Any) -> Any:
    """What msgspec does not know itself."""
    if isinstance(value, PurePath):
        return str(value)
    if (adapter := _pydantic(type(value))) is not None:
        return adapter.dump_python(value, mode="json", by_alias=True, round_trip=True)
    raise TypeError(f"{a_or_an(type(value).__name__)} is not JSON")


def _decode_other(kind: Any, value: Any) -> Any:
    if kind is object:
        return value
    if isinstance(kind, type) and issubclass(kind, PurePath):
        if not isinstance(value, str):
            raise ValueError(f"Expected `{kind.__name__}`, got `{type(value).__name__}`")
        return kind(value)
    if (adapter := _pydantic(kind)) is not None:
        return _validated(adapter, value)
    raise ValueError(f"{getattr(kind, '__name__', kind)} cannot be made of JSON")


def _validated(adapter: Any, value: Any) -> Any:
    from pydantic import ValidationError

    try:
        return adapter.validate_json(msgspec.json.encode(value))
    except ValidationError as error:
        found = [(".".join(map(str, each["loc"])), each["msg"]) for each in error.errors()]
        raise ValueError("; ".join(f"{where}: {what}" if where else what for where, what in found)) from None


def _pydantic(kind: Any) -> Any:
    """Pydantic's way to convert a type of its own, or one that was written for it; None for any other."""
    return _adapter(kind) if hasattr(kind, _OF_PYDANTIC) else None


@functools.lru_cache(maxsize=1024)
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


_encode: Callable[[Any], bytes] = msgspec.json.Encoder(enc_hook=_encode_other).encode
