"""Whether a value is the same after its way through JSON: what would arrive as something else is refused.

`conversion.py` converts a value and back, and compares both here: types, and what they hold, field by field.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import msgspec

from ostinato.plurals import a_or_an

__all__ = ["SCALARS", "ArrivalCheck", "NotFinite", "WouldChange", "check_json"]

SCALARS = frozenset({str, int, bool, type(None)})
_BYTES = (bytes, bytearray, memoryview)
_OF_CLASS = "its class must make the same of its JSON"
_OF_SECRET = "a secret is not stored: pass where the task finds it"


class WouldChange(ValueError):
    """A value that would not arrive as it was sent; says why, and what to do about it if that is known."""

    def __init__(self, why: str, hint: str = "") -> None:
        super().__init__(why)
        self.hint = hint


class NotFinite(ValueError):
    """NaN or an infinity."""

    def __init__(self, verb: str, value: object) -> None:
        super().__init__(f"{verb} {value}, which is not a number in JSON")


def check_json(value: Any, verb: str = "is") -> None:
    """Refuse what would not be the same after a way through JSON. A tuple becomes a list, as everywhere."""
    kind = type(value)
    if kind in SCALARS:
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotFinite(verb, value)
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str) or isinstance(key, Enum):
                raise WouldChange(f"has the key {key!r}, which is not text, as all keys of JSON are")
            check_json(item, "has")
    elif isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        for item in value:
            check_json(item, "has")
    elif not isinstance(value, (str, int)) or isinstance(value, Enum):
        raise WouldChange(f"{verb} {a_or_an(kind.__name__)}, which is not JSON")


@dataclass(frozen=True, slots=True)
class ArrivalCheck:
    """Compares what was sent with what its JSON is read as. What was JSON already may be read as any type."""

    arrive: str = "arrive"
    takes_base64: bool = False
    """Whether text may be read as bytes: it comes from where there is only JSON."""
    takes_subclasses: bool = False
    """Whether an object may be read as one of a base class."""

    def check(self, sent: Any, arrived: Any, verb: str = "is", field: str = "") -> None:
        """WouldChange, or NotFinite, if it is not the same. `field` is where it is in an object."""
        kind = type(sent)
        if kind in SCALARS or kind is float:
            self._check_scalar(sent, arrived, verb, field)
        elif isinstance(sent, Decimal) and not sent.is_finite():
            raise NotFinite(verb, sent)
        elif isinstance(sent, dict):
            if isinstance(arrived, dict):
                self._check_dict(sent, arrived, field)
        elif kind in (list, tuple):
            if isinstance(arrived, (list, tuple)):
                if len(sent) != len(arrived):
                    raise self._changed(sent, verb, field)
                for one, other in zip(sent, arrived, strict=True):
                    self.check(one, other, "has", field)
        else:
            self._check_object(sent, arrived, verb, field)

    def _check_scalar(self, sent: Any, arrived: Any, verb: str, field: str) -> None:
        if type(sent) is str and isinstance(arrived, _BYTES) and not self.takes_base64:
            raise WouldChange(f"{verb} text, which would {self.arrive} as the bytes of its base64", "give bytes")
        # Outside of objects, the annotation itself may say what becomes of it.
        if field and arrived != sent and (type(arrived) in SCALARS or type(arrived) is float):
            raise self._changed(sent, verb, field)

    def _check_dict(self, sent: dict[Any, Any], arrived: dict[Any, Any], field: str) -> None:
        if sent.keys() != arrived.keys():
            if not all(isinstance(key, str) for key in sent):
                raise WouldChange(f"has keys that would {self.arrive} as others")
            if len(arrived) < len(sent):
                lost = next(key for key in sent if key not in arrived)
                raise WouldChange(f"has the key {lost!r}, which is not known and would not {self.arrive}")
            return
        for key, item in sent.items():
            self.check(item, arrived[key], "has", field)

    def _check_object(self, sent: Any, arrived: Any, verb: str, field: str) -> None:
        kind = type(sent)
        names = _field_names(arrived)
        may_be_base = names is None or self.takes_subclasses
        if not isinstance(sent, type(arrived)) if may_be_base else type(arrived) is not kind:
            raise WouldChange(
                f"{verb} {a_or_an(kind.__name__)}, which would {self.arrive} as {a_or_an(type(arrived).__name__)}"
            )
        if names is None:
            if not _is_same(sent, arrived):
                raise self._changed(sent, verb, field)
            return
        for name in dict.fromkeys([*names, *(_field_names(sent) or ())]) if type(arrived) is kind else names:
            path = f"{field}.{name}" if field else name
            self.check(getattr(sent, name, None), getattr(arrived, name, None), "has", path)

    def _changed(self, sent: Any, verb: str, field: str) -> WouldChange:
        kind = type(sent)
        hint = _OF_SECRET if kind.__name__.startswith("Secret") else _OF_CLASS if field else ""
        if field:
            return WouldChange(f"would {self.arrive} changed in its field {field!r}", hint)
        return WouldChange(f"{verb} {a_or_an(kind.__name__)}, which would {self.arrive} changed", hint)


def _field_names(value: Any) -> Sequence[str] | None:
    """The fields of an object; None for what is not made of fields."""
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        return [each.name for each in dataclasses.fields(kind)]
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_fields__
    if hasattr(kind, "__attrs_attrs__"):
        return [each.name for each in kind.__attrs_attrs__]
    if hasattr(kind, "__pydantic_fields__"):
        return [*kind.__pydantic_fields__, *(value.__pydantic_extra__ or ())]
    return getattr(kind, "_fields", None) if isinstance(value, tuple) else None


def _is_same(sent: Any, arrived: Any) -> bool:
    if isinstance(sent, datetime) and sent.tzinfo is not None and arrived.tzinfo is not None:
        # Not `==`: by that, an hour that a clock repeats equals nothing of another zone.
        return not sent - arrived
    kind: Any = type(sent)
    if kind.__eq__ is object.__eq__:
        return True  # nobody can tell
    return bool(sent == arrived)
