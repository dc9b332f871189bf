"""`timing_from_json`: the way back from `Timing.to_json`, naming the field when something is wrong.

Used by stores and doors; the JSON of each kind is written in the file of the kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

from ostinato.durations import parse_duration
from ostinato.errors import InvalidInput, TimingError
from ostinato.timing.at import At
from ostinato.timing.base import NO_JITTER, Timing
from ostinato.timing.calendar import DailyAt, Monthly, Weekly
from ostinato.timing.combine import MOST_PARTS, Except, Or, refuse_many
from ostinato.timing.cron import Cron
from ostinato.timing.dates import Dates
from ostinato.timing.every import Every

__all__ = ["timing_from_json"]

Value = TypeVar("Value")
Fields = Mapping[str, object]


def timing_from_json(obj: object) -> Timing:
    """The timing that `to_json` wrote; a wrong or missing field is a TimingError that names it."""
    refuse_many(_parts(obj))
    return _read(obj)


def _parts(obj: object) -> int:
    """How many timings are joined, as far as is allowed. They may be nested as deep as anybody likes to write."""
    joints, simple, rest = 0, 0, [obj]
    while rest and max(joints, simple) <= MOST_PARTS:
        match rest.pop():
            case {"kind": "or", "parts": [*parts]}:
                joints += 1
                rest += parts[: MOST_PARTS + 1]
            case {"kind": "except", "base": base, "days": days}:
                joints += 1
                rest += [base, days]
            case _:
                simple += 1
    return max(joints, simple)


def _read(obj: object) -> Timing:
    if not isinstance(obj, Mapping):
        raise TimingError(f"a timing in JSON is an object, not {obj!r}", hint='{"kind": "every", "interval": "5m"}')
    kind = _field(obj, "kind", str)
    if kind not in _KINDS:
        raise TimingError(f"field 'kind': there is no timing {kind!r}", hint=", ".join(_KINDS))
    return _KINDS[kind](obj)


def _field(obj: Fields, name: str, *types: type[Value]) -> Value:
    value = obj.get(name)
    # bool is an int in Python; in JSON it is not.
    if isinstance(value, types) and (not isinstance(value, bool) or bool in types):
        return value
    expected = " or ".join("null" if kind is type(None) else kind.__name__ for kind in types)
    found = repr(value) if name in obj else "missing"
    raise TimingError(f"field {name!r} must be {expected}, it is {found}", hint=f'"{name}": {expected}')


def _duration(obj: Fields, name: str) -> timedelta:
    text = _field(obj, name, str)
    try:
        return parse_duration(text, field=name)
    except (InvalidInput, OverflowError) as error:
        raise TimingError(f"field {name!r}: {text!r} is not a duration", hint=f'"{name}": "5m"') from error


def _moment(obj: Fields, name: str) -> datetime:
    text = _field(obj, name, str)
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise TimingError(f"field {name!r}: {text!r} is not a time", hint=f'"{name}": "2026-12-24T18:00Z"') from error


def _shared(obj: Fields) -> dict[str, Any]:
    """The jitter that every simple timing may have."""
    jitter = _duration(obj, "jitter") if "jitter" in obj else NO_JITTER
    return {"jitter": jitter, "stable": _field(obj, "stable", bool) if "stable" in obj else False}


def _zone(obj: Fields) -> Any:
    return _field(obj, "zone", str, type(None)) if "zone" in obj else None


def _clock(obj: Fields) -> dict[str, Any]:
    clock = {name: _field(obj, name, int) if name in obj else 0 for name in ("minute", "second")}
    return {"hour": _field(obj, "hour", int), **clock, "tz": _zone(obj), **_shared(obj)}


def _every(obj: Fields) -> Timing:
    interval = _duration(obj, "interval")
    given = obj.get("anchor")
    anchor: Any = given if given in (None, "finish") else _moment(obj, "anchor")
    if anchor not in (None, "finish") and anchor.utcoffset() is None:
        raise TimingError(f"field 'anchor': {given!r} has no offset", hint='"anchor": "2026-01-01T10:00Z"')
    return Every.of(interval, anchor=anchor, **_shared(obj))


def _or(obj: Fields) -> Timing:
    return Or(*(_read(part) for part in _field(obj, "parts", list)))


def _except(obj: Fields) -> Timing:
    given = obj.get("days")
    days = Dates(given) if isinstance(given, list) else _read(_field(obj, "days", dict))
    return Except(_read(_field(obj, "base", dict)), days, _zone(obj))


_KINDS: dict[str, Callable[[Fields], Timing]] = {
    "at": lambda obj: At(_moment(obj, "when"), _zone(obj), **_shared(obj)),
    "every": _every,
    "cron": lambda obj: Cron(_field(obj, "expression", str), _zone(obj), **_shared(obj)),
    "daily": lambda obj: DailyAt(**_clock(obj)),
    "weekly": lambda obj: Weekly(_field(obj, "days", str), **_clock(obj)),
    "monthly": lambda obj: Monthly(_field(obj, "day", int, str), **_clock(obj)),  # type: ignore[arg-type]
    "or": _or,
    "except": _except,
}
