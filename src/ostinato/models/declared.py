"""Whose word counts for a schedule that code declares, field by field. Pure; the stores ask when they write a draft.

What the code changed since it was declared last is obeyed. What a person changed stays until the code changes that
field. The fields are `timing` (with its zone), `work`, `project`, `enabled`, and each policy by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from ostinato.clock import Micros, from_micros
from ostinato.models.policy import plain
from ostinato.models.policy_fields import POLICIES
from ostinato.timing.calendar_days import folded
from ostinato.timing.zones import local_text

__all__ = [
    "ENABLED",
    "PROJECT",
    "SOMEBODY",
    "TIMING",
    "WORK",
    "Declared",
    "FieldChange",
    "Fields",
    "Override",
    "Overrides",
    "Said",
    "declare",
    "declared_fields",
    "field_changes",
    "load_declared",
    "load_overrides",
    "override",
    "said_text",
    "stored_text",
]

TIMING, WORK, PROJECT, ENABLED = "timing", "work", "project", "enabled"
SOMEBODY = "somebody"
"""Who made a change before there was a record of who did."""


class Said(Struct, frozen=True):
    """What the code says of a field, and since when."""

    value: Any
    at: Micros


class Override(Struct, frozen=True):
    """Who changed a field that the code declares, and when."""

    by: str
    at: Micros


Fields = Mapping[str, Any]
"""The value of each field; a policy that has its default is left out."""
Declared = Mapping[str, Said]
Overrides = Mapping[str, Override]

_LEFT_OUT = object()
"""The value of a policy that has its default: null may be another."""

_decode_declared = msgspec.json.Decoder(dict[str, Said]).decode
_decode_overrides = msgspec.json.Decoder(dict[str, Override]).decode
_decode_policy = msgspec.json.Decoder(dict[str, Any]).decode
_decode_work = msgspec.json.Decoder(dict[str, Any]).decode


def declared_fields(
    timing: str, zone: str, work: str, policy: str, project: str | None, *, enabled: bool
) -> dict[str, Any]:
    """The value of each field that code declares. A policy that cannot be read says nothing."""
    try:
        policies = _decode_policy(policy)
    except msgspec.DecodeError:
        policies = {}
    return {TIMING: [folded(timing), zone], WORK: work, PROJECT: project, ENABLED: enabled, **policies}


def load_declared(text: str | None) -> dict[str, Said] | None:
    """What the code said last; None if there is no record of it, or none that can be read."""
    try:
        return None if text is None else _decode_declared(text)
    except msgspec.DecodeError:
        return None


def load_overrides(text: str | None) -> dict[str, Override]:
    """What people changed of it."""
    try:
        return {} if text is None else _decode_overrides(text)
    except msgspec.DecodeError:
        return {}


def stored_text(record: Declared | Overrides) -> str | None:
    """A record as it is stored; NULL if it is empty."""
    return msgspec.json.encode(record).decode() if record else None


def declare(before: Declared | None, says: Fields, now: Micros) -> tuple[dict[str, Said], frozenset[str]]:
    """What the code says from now on, and which fields it has changed since it was declared last."""
    known = before or {}
    declared = {
        field: known[field] if field in known and known[field].value == value else Said(value, now)
        for field, value in says.items()
    }
    changed = {field for field in says if declared[field] is not known.get(field)} | (known.keys() - says.keys())
    return declared, frozenset() if before is None else frozenset(changed)


def override(
    declared: Declared, overrides: Overrides, before: Fields, after: Fields, change: Override
) -> dict[str, Override]:
    """What people have changed, after somebody changed these fields. What is the code's word again is no override."""
    found = dict(overrides)
    for field in before.keys() | after.keys():
        value = after.get(field, _LEFT_OUT)
        if value == before.get(field, _LEFT_OUT):
            continue
        if value == _said(declared, field):
            found.pop(field, None)
        else:
            found[field] = change
    return found


def _said(declared: Declared, field: str) -> Any:
    return declared[field].value if field in declared else _LEFT_OUT


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field of a schedule that code declares, which somebody else has changed, or the code has since it was made."""

    field: str
    """timing (with its zone), work, project, enabled, or the name of a policy."""
    value: str
    """What it is."""
    code: str
    """What the code says."""
    by: str | None
    """Who changed it; null if the code did."""
    at: datetime

    def sentence(self, zone: str) -> str:
        """Such as: timing by ada on 2026-11-18 09:00; code says every 1h."""
        what = f"switched {self.value}" if self.field == ENABLED else self.field
        when = local_text(zone, self.at)
        return (
            f"{what} by code on {when}" if self.by is None else f"{what} by {self.by} on {when}; code says {self.code}"
        )


def said_text(declared: Declared, field: str) -> str:
    """What the code says of a field, as people read it."""
    return _text(field, _said(declared, field))


def field_changes(declared: Declared | None, overrides: Overrides, now: Fields) -> tuple[FieldChange, ...]:
    """What people changed, and what the code did: since it was first declared, or when it says that it is off."""
    if not declared:
        return ()
    first = min(said.at for said in declared.values())
    found = []
    for field in sorted(declared.keys() | overrides.keys()):
        said, changed = declared.get(field), overrides.get(field)
        if changed is not None and (field != ENABLED or now.get(field) != _said(declared, field)):
            at, by = changed.at, changed.by
        elif said is not None and (said.at > first or (field == ENABLED and not said.value)):
            at, by = said.at, None
        else:
            continue
        value, code = _text(field, now.get(field, _LEFT_OUT)), said_text(declared, field)
        if by is None and value != code:
            continue  # the breaker has switched it off since, or it ran as often as it should
        found.append(FieldChange(field, value, code, by, from_micros(at)))
    return tuple(found)


def _text(field: str, value: Any) -> str:
    """A value as people read it; of what may be a secret nothing."""
    if field == TIMING:
        timing, zone = value
        return f"{timing} ({zone})"
    if field == WORK:
        try:
            work = _decode_work(value)
        except msgspec.DecodeError:
            return "unreadable"
        return str(work.get("task") or work.get("kind"))
    if field == ENABLED:
        return "on" if value else "off"
    policy = POLICIES.get(field)
    default = None if policy is None else plain(policy.default)
    if value is _LEFT_OUT:
        value = default
    if value is None:
        return "none"
    if policy is not None and policy.about.secret:
        return "***"
    if isinstance(value, dict) and isinstance(default, dict):  # of a retry what is not as always, or else its `max`
        own = {name: part for name, part in value.items() if default.get(name) != part}
        value = own or dict([*value.items()][:1])
    return _readable(value)


def _readable(value: Any) -> str:
    """Without the quotes and braces of JSON."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_readable(part)}" for name, part in value.items() if part is not None)
    if isinstance(value, list):
        return " ".join(map(str, value))
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
