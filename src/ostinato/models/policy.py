"""Policies as they are made, shown and stored: JSON that holds only what differs from the defaults.

Which fields there are is the table's of `policy_fields.py`; what their values are, `policy_values.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec

from ostinato.durations import duration_text, parse_duration
from ostinato.errors import InvalidInput, NotLoadable
from ostinato.models.channel_url import HIDDEN, is_reference
from ostinato.models.policy_fields import (
    POLICIES,
    RUN_ONCE,
    SECRET_POLICIES,
    MessageOptions,
    Policy,
    PolicyField,
    PolicyOptions,
)
from ostinato.models.policy_values import (
    Budget,
    CatchUp,
    Covers,
    Gate,
    Keep,
    OnLostLease,
    Overlap,
    Retry,
    check_choice,
    check_key,
    check_ping_url,
    check_session,
    check_whole,
    positive_duration,
)

__all__ = [
    "DEFAULT",
    "NO_RETRY",
    "SECRET_POLICIES",
    "CatchUp",
    "Covers",
    "Gate",
    "Keep",
    "MessageOptions",
    "OnLostLease",
    "Overlap",
    "Policy",
    "PolicyOptions",
    "Retry",
    "check_choice",
    "check_key",
    "check_session",
    "check_soft_timeout",
    "check_whole",
    "load_policy",
    "make_policy",
    "notify_of",
    "plain",
    "policy_json",
    "policy_text",
    "shown_policy",
]

DEFAULT = Policy()
NO_RETRY = Retry(max=0)
"""What a schedule that is to run once has, unless a retry is asked for: one execution, over errors and crashes."""


def make_policy(given: Mapping[str, Any], base: Policy = DEFAULT) -> Policy:
    """`base` with the given fields, in any form that users write; a wrong one is an InvalidInput with its name."""
    if not given:
        return base
    changes: dict[str, Any] = {}
    for name, value in given.items():
        field = POLICIES.get(name)
        if field is not None:
            changes[name] = _read(field, value, getattr(base, name))
        elif name != RUN_ONCE:
            known = ", ".join(sorted({*POLICIES, RUN_ONCE}))
            raise InvalidInput(f"there is no policy {name!r}", field=name, hint=f"the policies are {known}")
        else:
            changes["remaining"] = 1 if _flag(name, value) else None
    return replace(base, **changes)


def check_soft_timeout(policy: Policy) -> Policy:
    """The policy, unless its timeout ends what its soft timeout is to ask first."""
    soft, hard = policy.soft_timeout, policy.timeout
    if soft is not None and hard is not None and soft >= hard:
        raise InvalidInput(
            f"soft_timeout {duration_text(soft)} is not before timeout {duration_text(hard)}, "
            "which would end the work before it is asked to end",
            field="soft_timeout",
            hint="give a shorter soft_timeout, or a longer timeout",
        )
    return policy


def _read(field: PolicyField, value: Any, now: Any) -> Any:
    """The value of a field, by its type, from whatever form was given. `now` is what it is without that."""
    name, kind = field.name, field.type
    if value is None and field.is_nullable:
        return None
    if kind in _VALUES:
        return _value(kind, name, value, now)
    if kind is timedelta:
        return positive_duration(name, value) if field.is_nullable else parse_duration(value, field=name)
    if kind is int:
        return check_whole(name, value, field.about.least)
    if kind is bool:
        return _flag(name, value)
    if kind is str:
        return _TEXTS[name](value) if name in _TEXTS else check_key(value, name, field.about.hint)
    return _names(name, value) if kind == tuple[str, ...] else check_choice(kind, name, value)


_TEXTS = {"session": check_session, "ping_url": check_ping_url}
"""Texts that are more than a name."""
_VALUES = {
    Retry: "its fields are max, base, longest, spread, covers, on, never",
    Keep: "its fields are age, count",
    Gate: "give a command, or its fields, command and timeout",
    Budget: "its fields are per_run_usd, per_day_usd, per_day_runs",
}
"""Values with parts, and what is said to who gives something else."""


def _value(kind: type[Any], name: str, value: Any, now: Any) -> Any:
    """A value as it is, by its parts, of which the others stay, or in its short form. A gate is always a new one, and
    whoever asks for a retry means every failure."""
    if isinstance(value, kind):
        return value
    try:
        if kind is Gate or now is None:
            return kind(**value) if isinstance(value, Mapping) or kind is Budget else kind(value)
        if isinstance(value, Mapping) or kind is Budget:
            return replace(now, **({"covers": Covers.ALL, **value} if kind is Retry else value))
    except TypeError as error:
        raise InvalidInput(f"{name} cannot be {value!r}", field=name, hint=_VALUES[kind]) from error
    if kind is Retry:
        return replace(now, max=check_whole(name, value, 0), covers=Covers.ALL)
    return replace(now, age=parse_duration(value, field=name))


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} cannot be {value!r}", field=name, hint="give True or False")
    return value


def _names(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    names = tuple(value) if isinstance(value, Iterable) else ()
    if not isinstance(value, Iterable) or not all(
        isinstance(item, str) and item.isprintable() and item for item in names
    ):
        raise InvalidInput(f"{name} cannot be {value!r}", field=name, hint="give a list of names")
    return names


def plain(value: Any) -> Any:
    """A value of a policy as JSON has it; durations are text."""
    match value:
        case timedelta():
            return duration_text(value)
        case StrEnum():
            return str(value)
        case tuple():
            return list(value)
        case Retry() | Keep() | Gate() | Budget():
            return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        case _:
            return value


def policy_json(policy: Policy) -> dict[str, Any]:
    """Every field as scripts see it; durations are text."""
    return {name: plain(getattr(policy, name)) for name in POLICIES}


def shown_policy(policy: Policy) -> dict[str, Any]:
    """The same as everybody may see it: of a secret, whether there is one, or where it is (env:NAME, file:PATH)."""
    shape = policy_json(policy)
    return shape | {name: HIDDEN for name in SECRET_POLICIES if shape[name] and not is_reference(shape[name])}


@lru_cache(maxsize=1024)
def policy_text(policy: Policy) -> str:
    """The JSON text that is stored: only what differs from the defaults, so that most rows say `{}`."""
    given = {
        name: plain(value) for name, field in POLICIES.items() if (value := getattr(policy, name)) != field.default
    }
    if "retry" in given and policy.retry.covers is Covers.ALL:
        del given["retry"]["covers"]  # as it was stored before there was a choice: another text would be an edit
    for name in ("on", "never"):
        if "retry" in given and not given["retry"][name]:
            del given["retry"][name]
    return msgspec.json.encode(given).decode()


@lru_cache(maxsize=4096)
def load_policy(text: str) -> Policy:
    """The policy of a stored text; NotLoadable when it says what this program does not know."""
    try:
        given = msgspec.json.decode(text, type=dict[str, Any])
        return make_policy(given)
    except RecursionError:
        raise NotLoadable("its policy is nested too deep") from None
    except (msgspec.DecodeError, InvalidInput) as error:
        raise NotLoadable(f"its policy is not readable: {error}") from error


def notify_of(text: str) -> tuple[str, ...]:
    """Who is told, as a stored policy says; nobody, if it cannot be read."""
    try:
        return load_policy(text).notify
    except NotLoadable:
        return ()
