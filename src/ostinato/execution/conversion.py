"""One value and its annotation: to JSON, and back to what was sent. What would arrive as something else is refused.

msgspec converts; what it does not know is converted here (paths), or by pydantic (`pydantic_types.py`). `arrival.py`
compares what was sent with what arrives.
"""

from __future__ import annotations

import functools
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Any

import msgspec
import msgspec.inspect

from ostinato.execution.arrival import SCALARS, ArrivalCheck, NotFinite, WouldChange, check_json
from ostinato.execution.hints import UnresolvedHint
from ostinato.execution.pydantic_types import (
    decoder_of,
    dump,
    has_constraints,
    is_of_pydantic,
    names_pydantic,
    validate,
)
from ostinato.logs import one_line
from ostinato.models.work import check_finite
from ostinato.plurals import a_or_an

__all__ = ["Annotation", "annotation_of", "encode_json", "unannotated"]

_OPEN_TYPES = frozenset({Any, object, list, dict, tuple, set, frozenset, Mapping, Sequence, Iterable})
_JSON_TYPES = frozenset({*SCALARS, float, list, dict, None, Any, object})
_UNIONS = (typing.Union, types.UnionType)
_ARRAYS = (list, Sequence, Iterable)
_OBJECTS = (dict, Mapping)
_ANNOTATE = "annotate {} with its type, or pass plain JSON"
_MAKE_INSIDE = "pass plain JSON, and make it inside the task"
_FROM_PYTHON, _FROM_JSON = ArrivalCheck(), ArrivalCheck(takes_base64=True)
_OF_RESULT = ArrivalCheck("come back", takes_subclasses=True)
_INVALID = re.compile(r"Invalid (?:RFC3339 encoded|ISO8601) (datetime|date|time|duration)\b")
_EXAMPLES = {
    "datetime": "2026-03-01T09:30:00Z",
    "date": "2026-03-01",
    "time": "09:30:00",
    "duration": "P1DT2H30M",
}


class Annotation:
    """What a parameter is annotated with, and how its values are converted."""

    __slots__ = (
        "_has_typed_dicts",
        "_hint",
        "_is_exact",
        "_is_json",
        "_kind",
        "_taken_as_it_is",
        "_why_none",
        "decode",
        "sent_as_it_is",
        "text",
    )

    def __init__(
        self, kind: Any, why_none: str | None = None, hint: str = "", decode: Callable[[Any], Any] | None = None
    ) -> None:
        self._kind = kind
        self.decode = decode or functools.partial(_convert, kind)
        """The value of JSON; an error of any kind if it does not fit."""
        self._why_none = why_none
        """Why there is no annotation to convert by; None if there is one."""
        self._hint = hint
        """What to do about that; `{}` is the name of the parameter."""
        self._is_json = _is_json(kind)
        self._is_exact = not _is_open(kind)
        self._has_typed_dicts = self._is_json and _has_typed_dicts(kind)
        shown = typing.get_args(kind)[0] if decode and typing.get_origin(kind) is typing.Annotated else kind
        self.text = shown.__name__ if isinstance(shown, type) else str(shown).removeprefix("typing.")
        members = _members(kind)
        self.sent_as_it_is = SCALARS if kind is Any else members & SCALARS
        """Values of exactly these types are stored as they are."""
        self._taken_as_it_is = None if kind is Any else members & {*SCALARS, float}
        """Stored values of these types are what the function takes; None for all."""

    def takes_more_than(self, value: Any) -> bool:
        """Whether a stored value is to be converted, or looked at."""
        return self._taken_as_it_is is not None and type(value) not in self._taken_as_it_is

    def encode(self, value: Any, *, from_json: bool = False) -> Any:
        """A value as JSON that is read back as the same; an error of any kind if there is none."""
        check = _FROM_JSON if from_json else _FROM_PYTHON
        if self._is_json:
            check_json(value)
            if self._kind is not Any:
                arrived = self.decode(value)
                if self._has_typed_dicts:
                    check.check(value, arrived)
            return value
        stored = msgspec.json.decode(encode_json(value))
        check.check(value, self.decode(stored))
        return stored

    def check_result(self, value: Any, encoded: bytes) -> bytes:
        """The JSON of a result, which fits the annotation and is read back as the same; else an error of any kind.
        What the annotation leaves open is whatever JSON makes of it."""
        if self._why_none is not None or type(value) in self.sent_as_it_is:
            return encoded
        encoded, arrived = self._read_back(encoded)
        if self._is_exact:
            _OF_RESULT.check(value, arrived)
        return encoded

    def _read_back(self, encoded: bytes) -> tuple[bytes, Any]:
        stored = msgspec.json.decode(encoded)
        try:
            return encoded, self.decode(stored)
        except Exception:
            # To a type checker a bool is an int, to msgspec it is none.
            with suppress(Exception):
                as_numbers = _with_ints(stored)
                return encode_json(as_numbers), self.decode(as_numbers)
            raise

    def refusal(self, name: str, error: Exception, value: Any = None) -> tuple[str, str]:
        """Why a value was refused, as the end of a sentence that begins with its name; and what to do about it."""
        if isinstance(error, NotFinite):
            return str(error), ""
        if not isinstance(error, WouldChange):
            text = _in_words(str(error), value) if isinstance(error, ValueError) else one_line(error)
            return f"does not fit {self.text}: {text}", ""
        if self._why_none is None:
            return str(error), error.hint
        return f"{error}, and {self._why_none}", self._hint.format(name)


def unannotated(why: str = "its parameter has no annotation", hint: str = _ANNOTATE) -> Annotation:
    """For values of plain JSON alone."""
    return Annotation(Any, why, hint)


def annotation_of(kind: Any) -> Annotation:
    """Of a resolved annotation; what cannot be converted at all is as good as none."""
    if kind in (Any, object):
        return unannotated("its annotation leaves its type open")
    if isinstance(kind, UnresolvedHint):
        return unannotated(
            f"the annotation {kind.text} cannot be resolved when the program runs ({kind.why})",
            "pass plain JSON, or import that type where the program runs, too",
        )
    try:
        return _annotation_of(kind)
    except TypeError:  # Annotated[int, []], say, which has no hash
        return _annotation_of.__wrapped__(kind)


@functools.lru_cache(maxsize=1024)
def _annotation_of(kind: Any) -> Annotation:
    if has_constraints(kind):
        return _by_pydantic(kind)
    try:
        unknown = _unknown_type(msgspec.inspect.type_info(kind))
    except Exception as error:  # TypeError for what msgspec cannot do; and the hints of a class may raise anything
        if names_pydantic(kind):  # several models in a union, say
            return _by_pydantic(kind)
        return unannotated(f"its annotation cannot be used ({error})", _MAKE_INSIDE)
    if unknown is not None:
        return unannotated(f"values of its annotation, {unknown}, cannot be made of JSON", _MAKE_INSIDE)
    return Annotation(kind)


def _by_pydantic(kind: Any) -> Annotation:
    try:
        return Annotation(kind, decode=decoder_of(kind, _convert))
    except Exception as error:  # a type that pydantic does not know, say
        return unannotated(f"its annotation cannot be used ({one_line(error)})", _MAKE_INSIDE)


def _unknown_type(node: Any) -> str | None:
    """The name of a type in an annotation that nobody here can convert; None if there is none."""
    if isinstance(node, msgspec.inspect.CustomType):
        kind = typing.get_origin(node.cls) or node.cls
        is_known = kind is object or issubclass(kind, PurePath) or is_of_pydantic(node.cls)
        return None if is_known else getattr(kind, "__name__", str(kind))
    inner = [getattr(node, name, None) for name in ("item_type", "key_type", "value_type", "type")]
    inner += [*getattr(node, "types", ()), *getattr(node, "item_types", ())]
    found = (_unknown_type(each) for each in inner if isinstance(each, msgspec.inspect.Type))
    return next((name for name in found if name is not None), None)


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


def _is_open(kind: Any) -> bool:
    """Whether an annotation leaves the type of something open."""
    inner = typing.get_args(kind)
    if typing.get_origin(kind) is typing.Literal:
        return False
    if not inner:
        return isinstance(kind, typing.TypeVar) or (typing.get_origin(kind) or kind) in _OPEN_TYPES
    return any(map(_is_open, inner[:1] if typing.get_origin(kind) is typing.Annotated else inner))


def _is_json(kind: Any) -> bool:
    """Whether an annotation has only values that JSON has too."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is None:
        return _is_json_dict(kind) if typing.is_typeddict(kind) else any(kind is each for each in _JSON_TYPES)
    if origin is typing.Literal:
        return all(type(value) in SCALARS for value in inner)
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


def _has_typed_dicts(kind: Any) -> bool:
    return typing.is_typeddict(kind) or any(map(_has_typed_dicts, typing.get_args(kind)))


def _with_ints(stored: Any) -> Any:
    """JSON with numbers for its booleans."""
    if isinstance(stored, list):
        return [_with_ints(each) for each in stored]
    if isinstance(stored, dict):
        return {key: _with_ints(each) for key, each in stored.items()}
    return int(stored) if isinstance(stored, bool) else stored


def _in_words(error: str, value: Any) -> str:
    """What msgspec says of a time that is none, with the value if it is that itself, and an example."""
    found = _INVALID.match(error)
    if found is None:
        return error
    what, where = found[1], error[found.end() :]
    shown = "some text" if where else repr(value[:60]) if isinstance(value, str) else a_or_an(type(value).__name__)
    return f"{shown} is not a {what} such as {_EXAMPLES[what]}{where}"


def _encode_other(value: Any) -> Any:
    """What msgspec does not know itself."""
    if isinstance(value, PurePath):
        return str(value)
    if is_of_pydantic(type(value)):
        return dump(value)
    raise TypeError(f"{a_or_an(type(value).__name__)} is not JSON")


def _decode_other(kind: Any, value: Any) -> Any:
    if kind is object:
        return value
    if isinstance(kind, type) and issubclass(kind, PurePath):
        if not isinstance(value, str):
            raise ValueError(f"Expected `{kind.__name__}`, got `{type(value).__name__}`")
        return kind(value)
    if is_of_pydantic(kind):
        return validate(kind, value)
    raise ValueError(f"{getattr(kind, '__name__', kind)} cannot be made of JSON")


def _convert(kind: Any, value: Any) -> Any:
    return msgspec.convert(value, kind, str_keys=True, dec_hook=_decode_other)


_encode: Callable[[Any], bytes] = msgspec.json.Encoder(enc_hook=_encode_other).encode
