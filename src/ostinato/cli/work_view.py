"""How work and policies look on the pages of `schedule show` and `run show`, and work on one line of a table."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any, assert_never

from ostinato.plurals import counted

if TYPE_CHECKING:
    from ostinato.models.policy import Policy
    from ostinato.models.run import Run
    from ostinato.models.work import Unreadable, Work

__all__ = ["name_of", "policy_line", "work_cell", "work_page"]


def work_cell(work: Work | Unreadable) -> str:
    """The work on one line."""
    from ostinato.models.work import work_line

    return " ".join(work_line(work).split())


def name_of(run: Run) -> str:
    """What a run is called: its schedule, its task, or what it does."""
    return run.schedule or run.task or work_cell(run.work)


def work_page(work: Work | Unreadable) -> str:
    """All of a work: what it does, then a line for each of its other fields."""
    from ostinato.models.work import Agent, Function, Http, Shell, Unreadable, work_json

    told: tuple[str, ...]
    match work:
        case Unreadable():
            return f"{work.reason}\n{work.text}"
        case Function():
            head, told = f"task {work.task}", ("task",)
        case Shell():
            command = work.command if isinstance(work.command, str) else shlex.join(work.command)
            head, told = f"shell {command}", ("command",)
        case Agent():
            head, told = f"agent {work.prompt}", ("prompt",)
        case Http():
            head, told = f"http {work.method} {work.url}", ("method", "url")
        case _:
            assert_never(work)
    shape = work_json(work)
    rest = [f"{name} {_value(name, value)}" for name, value in shape.items() if name not in ("kind", *told) and value]
    return "\n".join([head, *rest])


def _value(name: str, value: Any) -> str:
    if name == "env":
        return " ".join(f"{variable}={text}" for variable, text in value.items())
    if name == "headers":
        return ", ".join(f"{header}: {text}" for header, text in value.items())
    if name in ("args", "kwargs", "json"):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return f"{value:g} s" if name == "cpu" else str(value)


def policy_line(policy: Policy) -> str:
    """The policy in words; what it does not say is left out."""
    from ostinato.models.policy import policy_json

    shape = policy_json(policy)
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
        return "(" + ", ".join(f"{name} {_plain(part)}" for name, part in value.items() if part is not None) + ")"
    if isinstance(value, list):
        return " ".join(str(item) for item in value)
    return str(value)
