"""What people may do with a schedule that code declares: switch it, give a field back to the code, remove it. Pure.

`models/declared.py` has the rules of whose word counts, `service.py` asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ostinato.clock import Micros
from ostinato.errors import Conflict, InvalidInput
from ostinato.models.declared import ENABLED, PROJECT, TIMING, WORK, Declared, Override, override, stored_text
from ostinato.models.policy import load_policy
from ostinato.models.project import NO_PROJECT
from ostinato.models.schedule import Schedule
from ostinato.models.work import default_policy, load_work

__all__ = ["declared_values", "still_declared", "switch_overrides"]

_NO_POLICIES = {TIMING, WORK, PROJECT, ENABLED}


def switch_overrides(schedule: Schedule, by: str, now: Micros, *, enabled: bool) -> str | None:
    """What people have changed of it, once one of them has switched it."""
    if schedule.declared is None:
        return None
    before, after = {ENABLED: schedule.enabled}, {ENABLED: enabled}
    return stored_text(override(schedule.declared, schedule.overrides, before, after, Override(by, now)))


def declared_values(schedule: Schedule, fields: Sequence[str]) -> dict[str, Any]:
    """What the code says of these fields, as `change` takes it. Of what nobody changed nothing."""
    if schedule.declared is None or schedule.orphaned:
        raise Conflict(f"schedule {schedule.name!r} is not declared by code: there is nothing to go back to")
    changed = schedule.overrides.keys()
    for field in fields:
        if field not in changed and field not in schedule.declared:
            known = ", ".join(sorted({*schedule.declared, *changed}))
            raise InvalidInput(f"its code says nothing of {field!r}", field="fields", hint=f"the fields are {known}")
    wanted = [field for field in sorted(changed) if field in fields]
    values = {name: value for field in wanted for name, value in _value(schedule.declared, field).items()}
    if WORK in wanted:  # work of another kind would bring its own
        kept = {name: getattr(schedule.policy, name) for name in ("timeout", "retry", "break_after")}
        if kept["break_after"] == default_policy(schedule.work.kind).get("break_after"):
            kept |= _value(schedule.declared, "break_after")  # it came with the work, and goes with it
        values = kept | values
    return values


def _value(declared: Declared, field: str) -> dict[str, Any]:
    if field not in _NO_POLICIES:
        given = {name: said.value for name, said in declared.items() if name not in _NO_POLICIES}
        return {field: getattr(load_policy(msgspec.json.encode(given).decode()), field)}
    value = declared[field].value
    match field:
        case "timing":
            return {"timing": value[0], "tz": value[1]}
        case "work":
            return {"work": load_work(value, None)}
        case "project":
            return {"project": value or NO_PROJECT}
        case _:
            return {"enabled": value}


def still_declared(schedule: Schedule, force: str = "force") -> Conflict:
    """Why it is not removed without force, which is called so where it is asked for."""
    return Conflict(
        f"schedule {schedule.name!r} is declared by the code of app {schedule.origin!r}: removed, it would come back "
        "without its runs when that app starts the next time. Disable it instead, or remove it from the code; with "
        f"{force} it is removed until then"
    )
