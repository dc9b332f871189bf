"""Durations as people write them: a timedelta, a number of seconds, or text such as `90s`, `1h30m`, `2d`.

Used by timings, policies and settings alike; pure.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from ostinato.errors import InvalidInput

__all__ = ["Duration", "duration_text", "elapsed", "parse_duration", "span", "took"]

Duration = timedelta | float | str

_UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_SHOWN = (("y", 31_536_000), ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_MICROSECONDS = {"ms": 1_000, "us": 1, **{unit: seconds * 1_000_000 for unit, seconds in _UNITS.items()}}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|us|w|d|h|m|s)")
_LONGEST = timedelta(days=3_652_500)
"""Ten thousand years: an instant that is so much later can still be stored."""
_HINT = "a duration is text such as 90s, 5m, 1h30m or 2d, or a number of seconds"


def parse_duration(value: Duration, *, field: str = "duration") -> timedelta:
    """The timedelta of a duration in any of its forms; a negative or malformed one is an InvalidInput."""
    try:
        if isinstance(value, timedelta):
            result = value
        elif isinstance(value, str):
            result = _parse_text(value, field)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            result = _timedelta(value * 1_000_000, value, field)
        else:
            raise InvalidInput(f"{field} cannot be {value!r}", field=field, hint=_HINT)
    except (OverflowError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        # Too long for a timedelta, infinite, or not a number.
        raise InvalidInput(f"{field} cannot be {value!r}", field=field, hint=_HINT) from error
    if result < timedelta(0):
        raise InvalidInput(f"{field} cannot be negative: {value!r}", field=field, hint=_HINT)
    if result > _LONGEST:
        raise InvalidInput(f"{field} {value!r} is too long or not a number", field=field, hint=_HINT)
    return result


def _parse_text(text: str, field: str) -> timedelta:
    compact = text.strip().lower()
    position, microseconds = 0, 0.0
    while position < len(compact):
        part = _PART.match(compact, position)
        if part is None:
            break
        microseconds += float(part[1]) * _MICROSECONDS[part[2]]
        position = part.end()
        while position < len(compact) and compact[position] == " ":
            position += 1
    if compact.replace(".", "", 1).isdigit():
        raise InvalidInput(
            f"{field} {text!r} has no unit", field=field, hint=f"write {compact}ms, {compact}s or {compact}m"
        )
    if not compact or position < len(compact):
        raise InvalidInput(f"{field} {text!r} is not a duration", field=field, hint=_HINT)
    return _timedelta(microseconds, text, field)


def _timedelta(microseconds: float, given: Duration, field: str) -> timedelta:
    try:
        return timedelta(microseconds=round(microseconds))
    except (OverflowError, ValueError):
        raise InvalidInput(f"{field} {given!r} is too long or not a number", field=field, hint=_HINT) from None


def duration_text(value: timedelta) -> str:
    """The shortest text that parses back to the same duration: `1h30m`, `500ms`, `0s`."""
    microseconds = value // timedelta(microseconds=1)
    parts = []
    for unit in ("d", "h", "m", "s", "ms", "us"):
        amount, microseconds = divmod(microseconds, _MICROSECONDS[unit])
        if amount:
            parts.append(f"{amount}{unit}")
    return "".join(parts) or "0s"


def span(seconds: float) -> str:
    """A length of time in its two largest units: `45s`, `4m10s`, `23h59m`, `6d3h`."""
    rest = max(0, round(seconds))
    parts: list[str] = []
    for unit, size in _SHOWN:
        amount, rest = divmod(rest, size)
        if amount or parts:
            parts.append(f"{amount}{unit}" if amount else "")
        if len(parts) == 2:
            break
    return "".join(parts) or "0s"


def took(started: datetime | None, finished: datetime | None) -> str:
    """How long something took; empty if it did not start or has not ended."""
    if started is None or finished is None:
        return ""
    return elapsed((finished.astimezone(UTC) - started.astimezone(UTC)).total_seconds())


def elapsed(seconds: float) -> str:
    """How long something took: `12ms`, `3.2s`, `4m10s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    return f"{seconds:.1f}s" if seconds < 60 else span(seconds)
