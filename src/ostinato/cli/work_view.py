"""How work and policies look on the pages of `schedule show` and `run show`, and work on one line of a table."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from ostinato.models.work_kinds import FieldForm, KindField, Work, line_of
from ostinato.plurals import counted

if TYPE_CHECKING:
    from ostinato.models.policy import Policy
    from ostinato.models.run import Run
    from ostinato.models.work import Unreadable

__all__ = ["name_of", "policy_line", "work_cell", "work_page"]


def work_cell(work: Work | Unreadable) -> str:
    """The work on one line."""
    line = line_of(work) if isinstance(work, Work) else work.line
    return " ".join(line.split())


def name_of(run: Run) -> str:
    """What a run is called: its schedule, its task, or what it does."""
    return run.schedule or run.task or work_cell(run.work)


def work_page(work: Work | Unreadable) -> str:
    """All of a work: what it does, then a line for each of its other fields, and what runs a text."""
    from ostinato.models.installed_kinds import kind_of
    from ostinato.models.work import Shell, Unreadable, work_json

    if isinstance(work, Unreadable):
        return f"{work.reason}\n{work.text}"
    kind, shape = kind_of(work), work_json(work)
    if isinstance(work, Shell) and isinstance(work.command, str):
        shape["interpreter"] = work.interpreter or "bash, or sh without it"
    others = [one for one in kind.fields if one not in kind.main_fields and _says_something(one, shape[one.name])]
    return "\n".join(
        [f"{kind.main_flag} {line_of(work)}", *(f"{one.name} {_value(one, shape[one.name])}" for one in others)]
    )


def _says_something(one: KindField, value: Any) -> bool:
    """What is empty says something where it need not be."""
    return bool(value) or one.is_required or value != one.default


def _value(one: KindField, value: Any) -> str:
    if value is None:
        return one.about.clear or "none"
    match one.form:
        case FieldForm.TEXT | FieldForm.TEXTS | FieldForm.PAIRS if not value:
            return json.dumps(value)
        case FieldForm.PAIRS if one.about.sign == ":":
            return ", ".join(f"{name}: {text}" for name, text in value.items())
        case FieldForm.PAIRS:
            return " ".join(f"{name}{one.about.sign}{text}" for name, text in value.items())
        case FieldForm.TEXTS:
            return ", ".join(str(item) for item in value)
        case FieldForm.JSON:
            return json.dumps(value, ensure_ascii=False)
        case _:
            return f"{value:g}{one.about.unit}" if one.about.unit else str(value)


def policy_line(policy: Policy) -> str:
    """The policy in words; what it does not say is left out."""
    from ostinato.models.policy import shown_policy

    shape = shown_policy(policy)
    shape |= {"gate": _gate(policy), "budget": _budget(policy)}
    return ", ".join(f"{name} {_plain(value)}" for name, value in shape.items() if _worth_showing(value))


def _gate(policy: Policy) -> str | None:
    gate = policy.gate
    if gate is None:
        return None
    from ostinato.durations import duration_text

    command = gate.command if isinstance(gate.command, str) else shlex.join(gate.command)
    return f"{command!r} within {duration_text(gate.timeout)}"


def _budget(policy: Policy) -> str | None:
    budget = policy.budget
    if budget is None:
        return None
    bounds = (
        ("" if budget.per_run_usd is None else f"${budget.per_run_usd:g} a run"),
        ("" if budget.per_day_usd is None else f"${budget.per_day_usd:g} a day"),
        ("" if budget.per_day_runs is None else f"{counted(budget.per_day_runs, 'run')} a day"),
    )
    return "(" + ", ".join(bound for bound in bounds if bound) + ")"


def _worth_showing(value: object) -> bool:
    return value is not None and value is not False and value != []


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return (
            "("
            + ", ".join(f"{name} {_plain(part)}" for name, part in value.items() if part is not None and part != [])
            + ")"
        )
    if isinstance(value, list):
        return " ".join(str(item) for item in value)
    return str(value)
