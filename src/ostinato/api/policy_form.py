"""`python -m ostinato.api.policy_form` prints the table of policies as the page reads it: web/src/api/policies.ts. Of
every policy its default and how it is told, and the controls of the form, one for each part of a value.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from datetime import timedelta
from enum import EnumType
from inspect import Parameter
from typing import Any

from ostinato.models.installed_kinds import default_policy
from ostinato.models.policy import plain
from ostinato.models.policy_fields import POLICIES, PolicyField
from ostinato.models.policy_values import MOST
from ostinato.models.work_values import OUR_KINDS

__all__ = ["policy_form"]

_HEAD = "// Written by `make types` from the table of policies, src/ostinato/models/policy_fields.py. Do not edit.\n"
_TYPES = {bool: "flag", int: "whole", float: "number", str: "text", timedelta: "duration", tuple[str, ...]: "names"}


def policy_form() -> str:
    """The module of TypeScript."""
    rows = POLICIES.values()
    controls = (_control(path, leaf) for row in rows for path, leaf in _leaves(row) if leaf.about.group is not None)
    return f"{_HEAD}{_constant('POLICIES', map(_told, rows))}{_constant('POLICY_CONTROLS', controls)}"


def _constant(name: str, rows: Iterable[dict[str, Any]]) -> str:
    lines = "".join(f"  {json.dumps(row, ensure_ascii=False)},\n" for row in rows)
    return f"\nexport const {name} = [\n{lines}] as const;\n"


def _leaves(field: PolicyField) -> Iterator[tuple[str, PolicyField]]:
    """What has a control of its own: the parts of a value, or the field itself."""
    if not field.parts:
        yield field.name, field
    for part in field.parts:
        yield f"{field.name}.{part.name}", part


def _told(field: PolicyField) -> dict[str, Any]:
    """A policy as the page tells it in words."""
    says = {"else" if value is ... else json.dumps(plain(value)): text for value, text in field.about.says.items()}
    told = {"name": field.name, "label": field.about.label, "default": plain(field.default), "says": says}
    return {**told, "kinds": _of_kinds(field.name)} if field.about.is_of_kind else told


def _of_kinds(name: str) -> dict[str, Any]:
    """What each kind of work comes with instead of the default."""
    own = {kind.name: default_policy(kind.name) for kind in OUR_KINDS}
    return {kind: plain(policy[name]) for kind, policy in own.items() if name in policy}


def _control(path: str, field: PolicyField) -> dict[str, Any]:
    """A control of the form; `standard` is what holds when it is empty, as a person would write it."""
    is_required = field.default is Parameter.empty
    is_nothing = is_required or field.default in (None, ())
    standard = "none" if is_nothing else "off" if field.default is False else str(plain(field.default))
    control: dict[str, Any] = {
        "path": path,
        "group": field.about.group,
        "label": field.about.label,
        "help": field.about.help,
        "standard": standard,
        "type": "choice" if isinstance(field.type, EnumType) else _TYPES.get(field.type, "command"),
        "nullable": field.is_nullable,
    }
    if field.type is int:
        control |= {"least": field.about.least, "most": MOST}
    if is_required:
        control["required"] = True
    if field.about.is_of_kind:
        control["kinds"] = {kind: str(value) for kind, value in _of_kinds(path).items()}
    if field.about.choices:
        control["choices"] = [{"value": str(v), "label": f"{v}: {words}"} for v, words in field.about.choices.items()]
    return control


if __name__ == "__main__":
    sys.stdout.write(policy_form())
