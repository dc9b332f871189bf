"""How messages wait in their sessions: what is said by the settings, by a task, for keys of a pattern, and by a call.

Whoever says nothing leaves it to the one before; `BUILT_IN_OPTIONS` is what holds if nobody says anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import reduce
from typing import Any

from ostinato.durations import parse_duration
from ostinato.errors import InvalidInput
from ostinato.models.policy_values import check_choice, check_whole
from ostinato.models.session import Drop, Mode

__all__ = [
    "BUILT_IN_OPTIONS",
    "NO_DEFAULTS",
    "NO_OPTIONS",
    "SessionDefaults",
    "SessionOptions",
    "read_session_defaults",
    "read_session_options",
]

_LONGEST_DEBOUNCE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How messages wait in a session; None is for whoever said something before."""

    mode: Mode | None = None
    max_concurrent: int | None = None
    """How many runs may be under way at once. If nobody says it, a session keeps what it has."""
    cap: int | None = None
    drop: Drop | None = None
    debounce: timedelta | None = None
    debounce_max: timedelta | None = None
    """How long a burst may be drawn out; ten times the debounce, unless it is said together with one."""

    def then(self, later: SessionOptions) -> SessionOptions:
        """The same, with what `later` says in its place."""
        said = {field.name: getattr(later, field.name) for field in fields(later)}
        if later.debounce is not None and later.debounce_max is None:
            said["debounce_max"] = later.debounce * _DRAWN_OUT  # the bound of another debounce says nothing of this one
        return SessionOptions(**{name: getattr(self, name) if said[name] is None else said[name] for name in said})


_DRAWN_OUT = 10
NO_OPTIONS = SessionOptions()
"""Of whom nothing is said."""
BUILT_IN_OPTIONS = SessionOptions(Mode.QUEUE, None, 10, Drop.OLD).then(
    SessionOptions(debounce=timedelta(milliseconds=800))
)
"""What holds for messages of which nobody says anything."""


@dataclass(frozen=True, slots=True)
class SessionDefaults:
    """`[sessions]` in the settings: what holds for all keys, and what holds for those of a pattern such as dm:*."""

    everywhere: SessionOptions = NO_OPTIONS
    patterns: tuple[tuple[str, SessionOptions], ...] = ()
    """The least specific first."""

    def of(self, key: str, task: SessionOptions = NO_OPTIONS) -> SessionOptions:
        """What holds for a message to this key, whose task says this, if its sender says nothing."""
        matching = [options for pattern, options in self.patterns if _matches(pattern, key)]
        return reduce(SessionOptions.then, [self.everywhere, task, *matching], BUILT_IN_OPTIONS)


NO_DEFAULTS = SessionDefaults()


def _matches(pattern: str, key: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), key, re.DOTALL) is not None


def read_session_defaults(value: Any) -> SessionDefaults:
    """`[sessions]` as it is written: options, and tables of options under patterns of keys."""
    hint = 'write [sessions] and mode = "interrupt", or [sessions."dm:*"]'
    if not isinstance(value, Mapping):
        raise InvalidInput(f"sessions cannot be {value!r}", field="sessions", hint=hint)
    tables = {name: table for name, table in value.items() if isinstance(table, Mapping)}
    everywhere = {name: given for name, given in value.items() if name not in tables}
    patterns = [(name, read_session_options(table, f'sessions."{name}".')) for name, table in tables.items()]
    return SessionDefaults(
        read_session_options(everywhere, "sessions."),
        tuple(sorted(patterns, key=lambda one: len(one[0].replace("*", "")))),
    )


def read_session_options(given: Mapping[str, Any], prefix: str = "") -> SessionOptions:
    """Options as people write them; `prefix` stands before the name of a wrong one."""
    known = [field.name for field in fields(SessionOptions)]
    for name in given:
        if name not in known:
            listed = ", ".join(known)
            raise InvalidInput(f"{prefix}{name} is no option of a session", field=name, hint=f"there are {listed}")
    said = {name: value for name, value in given.items() if value is not None}
    read = {name: _read(name, f"{prefix}{name}", value) for name, value in said.items()}
    options = SessionOptions(**read)
    if options.debounce is not None and options.debounce_max is not None and options.debounce_max < options.debounce:
        reason = f"{prefix}debounce_max {given['debounce_max']!r} is shorter than debounce"
        raise InvalidInput(reason, field="debounce_max", hint="give a longer one")
    return options


def _read(name: str, field: str, value: Any) -> Any:
    match name:
        case "mode":
            return check_choice(Mode, field, value)
        case "drop":
            return check_choice(Drop, field, value)
        case "cap" | "max_concurrent":
            return check_whole(field, value, 1)
        case _:
            duration = parse_duration(value, field=field)
            if name == "debounce" and duration > _LONGEST_DEBOUNCE:
                raise InvalidInput(f"{field} cannot be {value!r}", field=field, hint="1d is the most")
            return duration
